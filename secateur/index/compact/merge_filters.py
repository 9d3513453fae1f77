"""Rebuild bloom matrices: gather columns of old matrices into new ones.

When blocks move to other segments, their filters move to other matrices. A part of a new matrix is some of its rows, so
it is made of rows of old matrices, each read once per part. The bits of a filter stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from secateur.errors import IndexFault
from secateur.index.compact.merge_segments import MergePlan
from secateur.index.container.checked_matrix import Matrix
from secateur.index.file_names import build_of
from secateur.index.filters.bands import FilesInTurn
from secateur.index.filters.bloom_fragment import BloomFragment
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.packed_rows import row_bytes
from secateur.index.filters.probe import matrix_rows
from secateur.index.filters.size_class import NONE, shape_of
from secateur.index.filters.transpose import MatrixPlan, PartPlan, plan_matrices
from secateur.index.model import Store

AT_ONCE = 1 << 25  # bits of a part held in memory, one per byte


@dataclass(frozen=True)
class MatrixColumns:
    """Where the filters of some blocks lie: arrays of shape (n_blocks,)."""

    size_class: np.ndarray  # size class to keep, int16; NONE for a block without a filter
    matrix: np.ndarray  # int32; -1 for a block without a filter
    column: np.ndarray  # int32, in the matrix

    def take(self, blocks: np.ndarray) -> MatrixColumns:
        """Return the columns of the given blocks."""
        return MatrixColumns(self.size_class[blocks], self.matrix[blocks], self.column[blocks])


def columns_of(bloom_matrices: BloomMatrices, segment: int, size_classes: np.ndarray, name: str) -> MatrixColumns:
    """Locate the filters of a segment's blocks, given their size classes. Raises IndexFault."""
    columns = MatrixColumns(
        np.full(len(size_classes), NONE, np.int16), *(np.full(len(size_classes), -1, np.int32) for _ in range(2))
    )
    for run in np.flatnonzero(bloom_matrices.segment == segment).tolist():
        members = np.flatnonzero(size_classes == bloom_matrices.run_size_class[run])
        if len(members) != bloom_matrices.count[run]:
            raise IndexFault(f"{name}: the size classes of its filters are not those of the snapshot")
        matrix = int(bloom_matrices.run_matrix[run])
        columns.size_class[members] = bloom_matrices.run_size_class[run]
        columns.matrix[members] = matrix
        columns.column[members] = bloom_matrices.begin[run] + np.arange(len(members))
    if ((columns.size_class == NONE) != (size_classes == NONE)).any():
        raise IndexFault(f"{name}: some of its filters are in no bloom matrix")
    return columns


def merged_columns(plan: MergePlan, by_segment: Mapping[int, MatrixColumns]) -> MatrixColumns:
    """Locate the filters of the blocks of a merged segment, in its order."""
    parts = [by_segment[part.segment].take(part.blocks) for part in plan.parts]
    names = ("size_class", "matrix", "column")
    whole = MatrixColumns(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    return whole.take(plan.order)


def plan_merged(segments: Sequence[MatrixColumns]) -> list[MatrixPlan]:
    """Plan the matrices for the filters of some segments."""
    nowhere = Matrix(0, 0, 0, 0)
    counts = [np.unique(segment.size_class[segment.size_class != NONE], return_counts=True) for segment in segments]
    return plan_matrices(
        [[BloomFragment("", int(c), int(n), nowhere) for c, n in zip(*classes, strict=True)] for classes in counts]
    )


@dataclass(frozen=True)
class Gathering:
    """Fills the parts of new matrices from the current ones."""

    store: Store
    bloom_matrices: BloomMatrices
    segments: Sequence[MatrixColumns]
    matrices: Sequence[MatrixPlan]

    def rows_of(self, part: PartPlan) -> np.ndarray:
        """Return the rows of a part: uint8 of shape (rows, row_bytes). Raises IndexFault."""
        plan = self.matrices[part.matrix]
        moves = list(self._moves(plan))
        rows_of_part = np.empty((part.rows, row_bytes(plan.columns)), np.uint8)
        step = max(1, AT_ONCE // plan.columns)
        for start in range(0, part.rows, step):
            rows = np.arange(part.first + start, part.first + min(start + step, part.rows))
            bits = np.zeros((len(rows), plan.columns), np.uint8)
            for move in moves:
                bits[:, move.to] = self._bits(move, rows)
            rows_of_part[start : start + len(rows)] = np.packbits(bits, axis=1, bitorder="little")
        return rows_of_part

    def _moves(self, plan: MatrixPlan) -> Iterator[_Move]:
        """Yield which columns come from which matrix, grouped by size of filter."""
        bits = shape_of(plan.size_class).bits
        moves: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
        for run in plan.runs:
            columns = self.segments[run.segment]
            members = np.flatnonzero(columns.size_class == run.size_class)
            to, own_bits = run.begin + np.arange(len(members)), shape_of(run.size_class).bits
            order = np.argsort(columns.matrix[members], kind="stable")
            cuts = np.flatnonzero(np.diff(columns.matrix[members][order])) + 1
            for chosen in np.split(order, cuts):
                matrix = int(columns.matrix[members[chosen[0]]])
                moves.setdefault((matrix, own_bits), []).append((columns.column[members[chosen]], to[chosen]))
        for (matrix, own_bits), pairs in moves.items():
            column, to = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
            times_before = shape_of(int(self.bloom_matrices.size_class[matrix])).bits // own_bits
            yield _Move(matrix, times_before, bits // own_bits, column, to)

    def _bits(self, move: _Move, rows: np.ndarray) -> np.ndarray:
        """Return the bits of the moved columns in consecutive rows: uint8 of shape (n_rows, n_columns)."""
        distinct, which = np.unique(rows // move.times, return_inverse=True)
        strips = range(Matrix(0, 1, self.bloom_matrices.row_bytes(move.matrix), 0).strips)
        files = FilesInTurn(self.store.read_many)
        packed = matrix_rows(self.bloom_matrices, move.matrix, distinct * move.times_before, strips, files)
        bits = (packed[:, move.column >> 3] >> (move.column & 7).astype(np.uint8)) & 1
        return bits if len(distinct) == len(rows) else bits[which]


@dataclass(frozen=True)
class _Move:
    """Columns of an old matrix that become columns of a new one."""

    matrix: int
    times_before: int  # how often a filter was repeated in the old matrix
    times: int  # how often it is in the new one
    column: np.ndarray  # in the old matrix
    to: np.ndarray  # in the new matrix


def live_blocks_by_build(bloom_matrices: BloomMatrices, segments: np.ndarray) -> dict[str | None, int]:
    """Count the live filters of some segments, bool of shape (n_segments,), in the files of every build."""
    live_run = bloom_matrices.segment >= 0
    live_run[live_run] = segments[bloom_matrices.segment[live_run]]
    first = np.searchsorted(bloom_matrices.part_matrix, np.arange(len(bloom_matrices.size_class)))
    builds = [build_of(bloom_matrices.file_name[f]) for f in bloom_matrices.file[first].tolist()]
    live = np.bincount(
        bloom_matrices.run_matrix,
        np.where(live_run, bloom_matrices.count, 0),
        len(bloom_matrices.size_class),
    )
    counts = dict.fromkeys(builds, 0)
    for build, count in zip(builds, live.tolist(), strict=True):
        counts[build] += int(count)
    return counts
