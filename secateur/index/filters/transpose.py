"""Merge bloom fragments: the bloom matrices of a build, planned on the driver and written part by part.

A part is some rows of a matrix over all its columns, so a task reads only the bytes of these rows from every fragment.
Filters of a size that few blocks have join the least greater size that theirs divides, where they are repeated: row r
of a filter that is f times as large is row r div f of the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from secateur.index.container import index_file
from secateur.index.container.checked_matrix import Matrix, signed_salt
from secateur.index.container.index_file import Writer
from secateur.index.filters.bloom_fragment import BloomFragment, read_fragment
from secateur.index.filters.bloom_matrix import MATRIX_BLOCKS, BloomMatrices
from secateur.index.filters.packed_rows import columns_for, lay_at, pack, packed_bytes, row_bytes, rows_packed
from secateur.index.filters.size_class import shape_of
from secateur.index.model import Store

FOLDER = "filters"
PART_BYTES = 1 << 25
JOINED_SHARE = 0.04  # share of the bytes by which repeating small filters may enlarge a group of matrices
JOINED_BYTES = 1 << 9  # or so many: about what the names and places of a few matrices take


@dataclass(frozen=True)
class ColumnSpan:
    """The fragments of one size of one segment, and the column of a matrix where they begin."""

    segment: int
    fragments: Sequence[BloomFragment]
    begin: int

    @property
    def count(self) -> int:
        """Number of blocks."""
        return sum(fragment.blocks for fragment in self.fragments)

    @property
    def size_class(self) -> int:
        """Size class of every filter."""
        return self.fragments[0].size_class


@dataclass(frozen=True)
class MatrixPlan:
    """One bloom matrix: filters of one size, of many segments."""

    size_class: int
    runs: Sequence[ColumnSpan]

    @property
    def columns(self) -> int:
        """Bits of a row."""
        return columns_for(self.runs[-1].begin + self.runs[-1].count)


@dataclass(frozen=True)
class PartPlan:
    """Rows [first, first + rows) of a matrix of so many columns."""

    matrix: int
    first: int
    rows: int
    columns: int


def plan_matrices(fragments: Sequence[Sequence[BloomFragment]]) -> list[MatrixPlan]:
    """Plan all matrices from the fragments of every segment."""
    return [matrix for bloom_matrix in _bloom_matrices(fragments) for matrix in _matrices(fragments, bloom_matrix)]


def _bloom_matrices(fragments: Sequence[Sequence[BloomFragment]]) -> Iterator[range]:
    """Yield ranges of consecutive segments with about as many blocks as a matrix may span."""
    first = blocks = 0
    for segment, of_segment in enumerate(fragments):
        count = sum(fragment.blocks for fragment in of_segment)
        if blocks and blocks + count > MATRIX_BLOCKS:
            yield range(first, segment)
            first, blocks = segment, 0
        blocks += count
    yield range(first, len(fragments))


def _matrices(fragments: Sequence[Sequence[BloomFragment]], segments: range) -> Iterator[MatrixPlan]:
    counts: dict[int, int] = {}
    for segment in segments:
        for fragment in fragments[segment]:
            counts[fragment.size_class] = counts.get(fragment.size_class, 0) + fragment.blocks
    target = _joined(counts)
    for size_class in sorted(set(target.values())):
        runs, begin = [], 0
        for segment in segments:
            for source in sorted(c for c in counts if target[c] == size_class):
                of_class = [fragment for fragment in fragments[segment] if fragment.size_class == source]
                if of_class:
                    runs.append(ColumnSpan(segment, of_class, begin))
                    begin += runs[-1].count
        yield MatrixPlan(size_class, runs)


def _joined(counts: dict[int, int]) -> dict[int, int]:
    """Map every size class to the one under which its filters are kept, from the number of filters of each.

    The size class that costs least to join the next one does so, again and again, as long as all of them cost little.
    """
    shape = {size_class: shape_of(size_class) for size_class in counts}
    room = max(JOINED_SHARE * sum(counts[c] * shape[c].bits for c in counts) / 8, JOINED_BYTES)
    target = {size_class: size_class for size_class in counts}
    left = sorted((c for c in counts if shape[c].encoding is None), key=lambda c: shape[c].bits)
    blocks = dict(counts)

    def joins() -> Iterator[tuple[float, int, int]]:
        for at, smaller in enumerate(left):
            greater = next((other for other in left[at + 1 :] if shape[smaller].divides(shape[other])), None)
            if greater is not None:
                yield blocks[smaller] * (shape[greater].bits - shape[smaller].bits) / 8, smaller, greater

    while (cheapest := min(joins(), default=None)) is not None and cheapest[0] <= room:
        added, smaller, greater = cheapest
        room -= added
        left.remove(smaller)
        blocks[greater] += blocks[smaller]
        target = {size_class: greater if to == smaller else to for size_class, to in target.items()}
    return target


def plan_files(matrices: Sequence[MatrixPlan]) -> list[list[PartPlan]]:
    """Distribute the parts of all matrices over files."""
    files: list[list[PartPlan]] = []
    room = 0
    for number, matrix in enumerate(matrices):
        bits, together = shape_of(matrix.size_class).bits, rows_packed(matrix.columns)
        packed, width = -(-bits // together), packed_bytes(matrix.columns)
        parts = -(-packed // max(PART_BYTES // width, 1))
        cuts = np.arange(parts + 1) * packed // parts  # no part has a row more than the quotient, rounded up
        for first, end in pairwise(cuts.tolist()):
            if not files or (end - first) * width > room:
                files.append([])
                room = PART_BYTES
            rows = min(end * together, bits) - first * together
            files[-1].append(PartPlan(number, first * together, rows, matrix.columns))
            room -= (end - first) * width
    return files


class WrittenFile(NamedTuple):
    """A written filter file: its size, and where its parts lie."""

    name: str
    size: int
    parts: Sequence[Matrix]


RowsOf = Callable[[PartPlan], np.ndarray]  # of a part: uint8 of shape (rows, row_bytes), not packed


def write_file(store: Store, name: str, parts: Sequence[PartPlan], rows_of: RowsOf) -> WrittenFile:
    """Write one filter file. Raises IndexFault, IndexNotWritable."""
    writer = Writer(index_file.FILTERS, {})
    places = [writer.add_rows(str(i), pack(rows_of(part), part.columns)) for i, part in enumerate(parts)]
    data = writer.finish()
    store.put(name, data)
    return WrittenFile(name, len(data), places)


def interleaved(store: Store, matrix: MatrixPlan, part: PartPlan) -> np.ndarray:
    """Return the rows of a part, from the fragments in the store: uint8, (rows, row_bytes). Raises IndexFault."""
    bits = shape_of(matrix.size_class).bits
    matrix_rows = np.zeros((part.rows, row_bytes(matrix.columns)), np.uint8)
    for run in matrix.runs:
        column = run.begin
        times = bits // shape_of(run.size_class).bits
        first, end = part.first // times, (part.first + part.rows - 1) // times + 1
        for fragment in run.fragments:
            fragment_rows = read_fragment(store, fragment, first, end)
            if times > 1:
                start = part.first - first * times
                fragment_rows = np.repeat(fragment_rows, times, axis=0)[start : start + part.rows]
            lay_at(matrix_rows, fragment_rows, column)
            column += fragment.blocks
    return matrix_rows


def written_matrices(
    matrices: Sequence[MatrixPlan], files: Sequence[tuple[Sequence[PartPlan], WrittenFile]]
) -> BloomMatrices:
    """Describe the matrices whose parts were written to files."""
    parts = [
        (plan.matrix, plan.first, plan.rows, number, place.at, signed_salt(place.salt))
        for number, (plans, written) in enumerate(files)
        for plan, place in zip(plans, written.parts, strict=True)
    ]
    runs = [(m, r.segment, r.size_class, r.begin, r.count) for m, plan in enumerate(matrices) for r in plan.runs]
    return BloomMatrices(
        [written.name for _, written in files],
        np.array([written.size for _, written in files], np.int64),
        np.array([plan.size_class for plan in matrices], np.int64),
        np.array([plan.columns for plan in matrices], np.int64),
        *_columns(parts, 6),
        *_columns(runs, 5),
    )


def _columns(rows: Sequence[Sequence[int]], count: int) -> list[np.ndarray]:
    table = np.array(rows, np.int64).reshape(-1, count)
    return [np.ascontiguousarray(table[:, i]) for i in range(count)]
