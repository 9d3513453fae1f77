"""Bloom matrices: the bit-sliced filters of one kind and column over many segments, row by row.

docs/format.md, "Bloom matrices". A row spans up to a million blocks, so a look-up reads k rows whatever the number of
segments. There is a matrix for every size class; a matrix is cut by rows into parts, each in its own filter file. Its
columns are *runs*: the blocks of one segment whose filters have one size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, salt_of
from secateur.index.filters.packed_rows import packed_bytes, row_bytes, rows_packed
from secateur.index.filters.size_class import are_valid, shape_of
from secateur.integers import all_within, distinct_and_places, sorted_distinct

MATRIX_BLOCKS = 1 << 20
MOST_COLUMNS = 1 << 27  # of a matrix that a reader accepts: those of 128 full ones
MOST_PARTS = 1 << 22  # limit for matrices and runs too; checked before constant arrays are expanded

_MATRIX = ("size_class", "columns")
_PART = ("part_matrix", "first_row", "rows", "file", "at", "salt")
_RUN = ("run_matrix", "segment", "run_size_class", "begin", "count")


class PartShapes(NamedTuple):
    """How the rows of parts lie in their files: int64 arrays over parts."""

    together: np.ndarray  # rows of a packed row
    width: np.ndarray  # bytes of a packed row
    band_rows: np.ndarray  # packed rows of a band
    stride: np.ndarray  # bytes of a band with its checksums
    nbytes: np.ndarray


@dataclass(frozen=True)
class BloomMatrices:
    """All bloom matrices of one filter of a snapshot: int64 arrays over matrices, parts and runs.

    Parts ascend by matrix and row; runs ascend by matrix and column. A run of a removed segment has segment -1.
    """

    file_name: Sequence[str]
    file_size: np.ndarray
    size_class: np.ndarray  # size class of every matrix
    columns: np.ndarray
    part_matrix: np.ndarray
    first_row: np.ndarray
    rows: np.ndarray
    file: np.ndarray
    at: np.ndarray
    salt: np.ndarray
    run_matrix: np.ndarray
    segment: np.ndarray
    run_size_class: np.ndarray  # size class of the blocks; smaller filters than the matrix's are repeated
    begin: np.ndarray  # column of the first block
    count: np.ndarray  # blocks

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(getattr(self, name).nbytes for name in (*_MATRIX, *_PART, *_RUN)) + self.file_size.nbytes

    def part(self, number: int) -> Matrix:
        """Return a part of a matrix, in its file."""
        columns = int(self.columns[self.part_matrix[number]])
        return part_matrix(int(self.at[number]), int(self.rows[number]), columns, salt_of(int(self.salt[number])))

    @cached_property
    def bits(self) -> np.ndarray:
        """Bits of the filters of every matrix, int64."""
        distinct, which = distinct_and_places(self.size_class)
        return np.array([shape_of(size_class).bits for size_class in distinct.tolist()], np.int64)[which]

    @cached_property
    def part_shapes(self) -> PartShapes:
        """How the rows of every part lie in its file."""
        shapes = np.stack([self.rows, self.columns[self.part_matrix]], axis=1)
        distinct, which = distinct_and_places(shapes)  # most parts share a few shapes
        arrays = np.array([_part_shape(rows, columns) for rows, columns in distinct.tolist()], np.int64).reshape(-1, 5)
        return PartShapes(*np.ascontiguousarray(arrays[which].T))

    def row_bytes(self, matrix: int) -> int:
        """Return the bytes of a row of a matrix in memory."""
        return row_bytes(int(self.columns[matrix]))

    def take(self, segments: np.ndarray, total: int) -> BloomMatrices:
        """Keep the given segments of `total`, renumbered in that order."""
        place = np.full(total + 1, -1, np.int64)
        place[segments] = np.arange(len(segments))
        return _with_segments(replace(self, segment=place[self.segment]))

    def at_segments(self, numbers: np.ndarray) -> BloomMatrices:
        """Renumber the segments: segment i becomes `numbers[i]`."""
        return replace(self, segment=np.append(numbers, -1)[self.segment])

    def segments_in(self, files: Iterable[bool]) -> np.ndarray:
        """Return the segments with filters in any matrix that has a part in the chosen files, ascending."""
        chosen = np.fromiter(files, bool, len(self.file_name))
        matrices = np.zeros(len(self.size_class), bool)
        matrices[self.part_matrix[chosen[self.file]]] = True
        return sorted_distinct(self.segment[matrices[self.run_matrix] & (self.segment >= 0)])

    def without_files(self, lost: Collection[str]) -> tuple[BloomMatrices, np.ndarray]:
        """Drop everything that needs some lost files; also return the segments that lose filters, ascending.

        A matrix with a lost part is useless.
        """
        harmed = self.segments_in(name in lost for name in self.file_name)
        return _with_segments(replace(self, segment=np.where(np.isin(self.segment, harmed), -1, self.segment))), harmed

    def followed_by(self, other: BloomMatrices, segments: int) -> BloomMatrices:
        """Append the matrices of other segments, which are numbered from `segments` on."""
        shifts = {
            "part_matrix": len(self.size_class),
            "run_matrix": len(self.size_class),
            "file": len(self.file_name),
            "segment": np.where(other.segment < 0, 0, segments),
        }
        pairs = {
            name: np.concatenate([getattr(self, name), getattr(other, name) + shifts.get(name, 0)])
            for name in ("file_size", *_MATRIX, *_PART, *_RUN)
        }
        return BloomMatrices([*self.file_name, *other.file_name], **pairs)

    def arrays(self) -> list[np.ndarray]:
        """Return the arrays of the chunk that describes the matrices, without file names."""
        return [getattr(self, name) for name in ("file_size", *_MATRIX, *_PART, *_RUN)]


def _with_segments(table: BloomMatrices) -> BloomMatrices:
    """Drop matrices without segments, and files without parts."""
    kept = np.flatnonzero(np.bincount(table.run_matrix[table.segment >= 0], minlength=len(table.size_class)))
    number = np.full(len(table.size_class), -1, np.int64)
    number[kept] = np.arange(len(kept))
    parts, runs = (np.flatnonzero(number[matrices] >= 0) for matrices in (table.part_matrix, table.run_matrix))
    files, file = np.unique(table.file[parts], return_inverse=True)
    arrays = {name: getattr(table, name)[kept] for name in _MATRIX}
    arrays |= {name: getattr(table, name)[parts] for name in _PART}
    arrays |= {name: getattr(table, name)[runs] for name in _RUN}
    arrays |= {name: number[arrays[name]] for name in ("part_matrix", "run_matrix")}
    arrays |= {"file": file.astype(np.int64), "file_size": table.file_size[files]}
    return BloomMatrices([table.file_name[i] for i in files.tolist()], **arrays)


def part_matrix(at: int, rows: int, columns: int, salt: int) -> Matrix:
    """Return where some rows of a bloom matrix lie in their file, packed."""
    return Matrix(at, -(-rows // rows_packed(columns)), packed_bytes(columns), salt)


def _part_shape(rows: int, columns: int) -> tuple[int, ...]:
    """Return the fields of PartShapes."""
    part = part_matrix(0, rows, columns, 0)
    return rows_packed(columns), part.width, part.band_rows, part.stride, part.nbytes


def no_bloom_matrices() -> BloomMatrices:
    """Return a table without matrices."""
    nothing = np.zeros(0, np.int64)
    return BloomMatrices([], *([nothing] * (1 + len(_MATRIX) + len(_PART) + len(_RUN))))


def bloom_matrices_of(
    names: Sequence[str], arrays: Sequence[np.ndarray], block_count: np.ndarray, where: str
) -> BloomMatrices:
    """Decode the matrices in the arrays of a chunk, over segments with `block_count` blocks. Raises IndexFault."""
    expected = 1 + len(_MATRIX) + len(_PART) + len(_RUN)
    if len(arrays) != expected or any(array.dtype != np.dtype("<i8") for array in arrays):
        raise IndexFault(f"{where}: these {len(arrays)} arrays are not bloom matrices")
    table = BloomMatrices(names, *arrays)
    shapes = [{len(getattr(table, name)) for name in group} for group in (_MATRIX, _PART, _RUN)]
    if any(len(lengths) > 1 for lengths in shapes) or len(table.file_size) != len(names):
        raise IndexFault(f"{where}: the arrays of the bloom matrices differ in length")
    if max(map(max, shapes)) > MOST_PARTS:
        raise IndexFault(f"{where}: the bloom matrices claim {max(map(max, shapes)):,} parts")
    if not (_matrices_fit(table) and _parts_fit(table) and _runs_fit(table, block_count)):
        raise IndexFault(f"{where}: the bloom matrices are malformed")
    return table


def _matrices_fit(table: BloomMatrices) -> bool:
    return are_valid(table.size_class) and all_within(table.columns, 1, MOST_COLUMNS)


def _parts_fit(table: BloomMatrices) -> bool:
    """Whether the parts of every matrix cover its rows in order, inside their files."""
    n = len(table.size_class)
    if not (all_within(table.part_matrix, 0, n - 1) and all_within(table.file, 0, len(table.file_name) - 1)):
        return False
    if not (
        all_within(table.rows, 1, 1 << 40)
        and all_within(table.at, 0, 1 << 60)
        and all_within(table.first_row, 0, 1 << 40)
    ):
        return False
    together = 8 // np.gcd(8, table.columns[table.part_matrix])
    is_first = np.diff(table.part_matrix, prepend=-1) != 0
    due = np.where(is_first, 0, np.append(0, (table.first_row + table.rows)[:-1]))
    rows = np.zeros(n, np.int64)
    np.add.at(rows, table.part_matrix, table.rows)
    ascending = not len(is_first) or bool((np.diff(table.part_matrix) >= 0).all())
    if not (ascending and np.array_equal(table.first_row, due) and np.array_equal(rows, table.bits)):
        return False
    if (table.first_row % together).any():
        return False
    return bool((table.at + table.part_shapes.nbytes <= table.file_size[table.file]).all())


def _runs_fit(table: BloomMatrices, block_count: np.ndarray) -> bool:
    """Whether runs are disjoint within the columns of their matrix, and no segment has more filters than blocks."""
    n = len(table.size_class)
    if not (all_within(table.run_matrix, 0, n - 1) and all_within(table.segment, -1, len(block_count) - 1)):
        return False
    if not (all_within(table.count, 1, 1 << 40) and all_within(table.begin, 0, 1 << 40)):
        return False
    is_first = np.diff(table.run_matrix, prepend=-1) != 0
    ends = table.begin + table.count
    before = np.where(is_first, 0, np.append(0, ends[:-1]))
    ordered = not len(ends) or bool((np.diff(table.run_matrix) >= 0).all())
    known = table.segment >= 0
    counted = np.bincount(table.segment[known], table.count[known], minlength=len(block_count))
    return bool(
        ordered
        and (table.begin >= before).all()
        and (ends <= table.columns[table.run_matrix]).all()
        and _sizes_fit(table)
        and (counted <= block_count).all()
    )


def _sizes_fit(table: BloomMatrices) -> bool:
    """Whether the filters of every run can be repeated into those of their matrix."""
    pairs = np.stack([table.run_size_class, table.size_class[table.run_matrix]], axis=1)
    if not are_valid(table.run_size_class):
        return False
    return all(
        shape_of(of_run).divides(shape_of(of_matrix)) for of_run, of_matrix in distinct_and_places(pairs)[0].tolist()
    )
