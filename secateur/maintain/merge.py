"""Move blocks between segments: the segments and bloom matrices of a merge, written from index files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from secateur.index.build.assemble import Assembled
from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.build.build import OnProgress, Sizes, decode_summary, encode_summary, total, watching
from secateur.index.build.filter_files import lay_side_by_side
from secateur.index.build.tasks import RunTasks
from secateur.index.compact.merge_filters import Gathering, MatrixColumns, columns_of, merged_columns, plan_merged
from secateur.index.compact.merge_segments import MergePlan, merge, plan_merge
from secateur.index.filters.bloom_matrix import BloomMatrices, no_bloom_matrices
from secateur.index.filters.transpose import PartPlan
from secateur.index.model import OF_ROWS, Store
from secateur.index.segments.segment_file import encode_segment
from secateur.index.segments.segment_table import Segments, SegmentSummary, summarised
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.stored_segment import stored_segment


@dataclass(frozen=True)
class Sources:
    """The segments that a merge takes blocks from; a task opens them itself, by `reopen`."""

    store: Store
    snapshot: Snapshot
    reopen: Callable[[], Snapshot]


def write_merged(
    sources: Sources,
    run: RunTasks,
    build: str,
    merged: Sequence[np.ndarray],
    progress: tuple[OnProgress | None, OnProgress | None] = (None, None),
) -> Segments:
    """Write a segment for every group of entries of the sources' table of files, and the bloom matrices of all.

    Raises IndexFault, IndexNotWritable.
    """
    store, snapshot = sources.store, sources.snapshot
    segments = snapshot.as_segments()
    merges = [plan_merge(snapshot, entries) for entries in merged]
    sizes = [_sizes(segments, entries) for entries in merged]
    on_survey, on_progress = progress
    if on_survey is not None:
        on_survey(*total(sizes))
    columns = _columns(store, snapshot, segments.bloom_matrices, merges)
    with watching(store, build, sizes, on_progress):
        summaries = _write_segments(run, build, sources, merges, columns)
    bloom_matrices = _write_bloom_matrices(run, build, store, segments.bloom_matrices, columns)
    return summarised(segments.columns, segments.filters, summaries, bloom_matrices)


def _sizes(segments: Segments, entries: np.ndarray) -> Sizes:
    files = segments.files
    return len(entries), int(files.row_count[entries].sum()), int(files.byte_count[entries].sum())


def _columns(
    store: Store, snapshot: Snapshot, bloom_matrices: Mapping[int, BloomMatrices], merges: Sequence[MergePlan]
) -> dict[int, list[MatrixColumns]]:
    """Return the location of the bloom filters of every merged segment's blocks, per filter. Raises IndexFault."""
    sources = sorted({part.segment for plan in merges for part in plan.parts})
    columns = {}
    for f, filter_ in enumerate(snapshot.filters):
        if filter_.kind not in OF_ROWS:
            names, matrices = snapshot.segments.name, bloom_matrices.get(f, no_bloom_matrices())
            size_classes = ((s, stored_segment(store, snapshot, s).size_classes(f)) for s in sources)
            by_segment = {s: columns_of(matrices, s, of_blocks, names[s]) for s, of_blocks in size_classes}
            columns[f] = [merged_columns(plan, by_segment) for plan in merges]
    return columns


def _write_segments(
    run: RunTasks,
    build: str,
    sources: Sources,
    merges: Sequence[MergePlan],
    columns: Mapping[int, Sequence[MatrixColumns]],
) -> list[SegmentSummary]:
    """Write the merged segments, one task each; each task opens the sources itself."""
    store, reopen = sources.store, sources.reopen
    size_classes = [{f: filters[i].size_class for f, filters in columns.items()} for i in range(len(merges))]

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        opened = reopen()
        for i in numbers:
            segment = merge(store, opened, merges[i], size_classes[i])
            encoded = encode_segment(segment)
            name = f"{build}-{i:06d}"
            store.put(f"{SEGMENTS_FOLDER}/{name}.segment", encoded.data)
            yield encode_summary(i, name, len(encoded.data), Assembled(segment, {}), encoded.places, {})

    summaries = dict(decode_summary(data) for data in run(work, len(merges)))
    return [summaries[i] for i in range(len(merges))]


def _write_bloom_matrices(
    run: RunTasks,
    build: str,
    store: Store,
    bloom_matrices: Mapping[int, BloomMatrices],
    columns: Mapping[int, Sequence[MatrixColumns]],
) -> dict[int, BloomMatrices]:
    """Write the bloom matrices of the merged segments, which are numbered from 0."""
    plans = {f: plan_merged(of_filter) for f, of_filter in columns.items()}
    gatherings = {
        f: Gathering(store, bloom_matrices.get(f, no_bloom_matrices()), of_filter, plans[f])
        for f, of_filter in columns.items()
    }

    def rows_of(f: int, part: PartPlan) -> np.ndarray:
        return gatherings[f].rows_of(part)

    return lay_side_by_side(run, build, store, plans, rows_of)
