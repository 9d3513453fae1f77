"""Write the files of bloom matrices: on the driver if they are few, else one file per task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from secateur.errors import IndexConflict, IndexFault
from secateur.index.build.tasks import RunTasks
from secateur.index.container.checked_matrix import Matrix
from secateur.index.filters import transpose
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.transpose import MatrixPlan, PartPlan, WrittenFile
from secateur.index.model import Store
from secateur.index.segments.segment_table import SegmentSummary


def write_bloom_matrices(
    run: RunTasks, build: str, store: Store, summaries: Sequence[SegmentSummary]
) -> dict[int, BloomMatrices]:
    """Run the third pass: merge the bloom fragments of all segments, filter by filter.

    Raises IndexConflict if fragments were removed meanwhile, IndexNotWritable.
    """
    plans = {}
    for f in sorted({f for summary in summaries for f in summary.fragments}):
        plans[f] = transpose.plan_matrices([summary.fragments.get(f, ()) for summary in summaries])

    def rows_of(f: int, part: PartPlan) -> np.ndarray:
        return transpose.interleaved(store, plans[f][part.matrix], part)

    try:
        return lay_side_by_side(run, build, store, plans, rows_of)
    except IndexFault as fault:
        raise IndexConflict(
            f"what the build wrote aside cannot be read back: {fault}. A vacuum with a short grace period, or a drop, "
            "may have removed it. Nothing was published: build again"
        ) from None


def lay_side_by_side(
    run: RunTasks,
    build: str,
    store: Store,
    plans: Mapping[int, Sequence[MatrixPlan]],
    rows_of: Callable[[int, PartPlan], np.ndarray],
) -> dict[int, BloomMatrices]:
    """Write the planned bloom matrices of every filter; `rows_of` gives the rows of one part.

    If every filter fits into one file, they are written here: starting a job would take longer.
    """
    files = [(f, parts) for f, matrices in plans.items() for parts in transpose.plan_files(matrices)]

    def write(i: int) -> WrittenFile:
        f, parts = files[i]
        return transpose.write_file(store, f"{transpose.FOLDER}/{build}-{i:06d}.filter", parts, partial(rows_of, f))

    is_little = len({f for f, _ in files}) == len(files)
    written = [write(i) for i in range(len(files))] if is_little else _written(run, write, len(files))
    return {
        f: transpose.written_matrices(
            matrices,
            [(parts, done) for (g, parts), done in zip(files, written, strict=True) if g == f],
        )
        for f, matrices in plans.items()
        if matrices
    }


def _written(run: RunTasks, write: Callable[[int], WrittenFile], count: int) -> list[WrittenFile]:
    """Write files in tasks."""

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        for i in numbers:
            yield json.dumps((i, write(i))).encode()

    files = dict(map(json.loads, run(work, count)))
    return [_written_file(*files[i]) for i in range(count)]


def _written_file(name: str, size: int, parts: Sequence[Sequence[int]]) -> WrittenFile:
    return WrittenFile(name, size, [Matrix(*part) for part in parts])
