"""Bloom matrices: the bit-sliced filters of one kind and column over many segments, row by row.

docs/format.md, "Slabs". A row spans up to a million blocks, so a look-up reads k rows whatever the number of segments.
There is a matrix for every size class; a matrix is cut by rows into parts, each in its own filter file. Its columns are
*runs*: the blocks of one segment whose filters have one size, starting at a multiple of eight.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, salt_of
from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import GROUP, LEAST_LOG2_BITS, MOST_LOG2_BITS, MOST_PROBES
from secateur.values import all_within

SLAB_BLOCKS = 1 << 20
WORD = 8  # bytes; the width of a matrix is a multiple
MOST_WIDTH = 1 << 24  # longest row that a reader accepts, in bytes: that of 128 full matrices
MOST_PARTS = 1 << 22  # limit for matrices and runs too; checked before constant arrays are expanded

OWN, FEWER = 0, 33  # canonical hashing, with the usual number of probes or with fewer
COUNTED = 64  # canonical hashing with (encoding - COUNTED) probes: for filters of several builds
OWN_ENCODINGS = (
    OWN,
    FEWER,
    *range(COUNTED + 1, COUNTED + MOST_PROBES + 1),
)  # the others are encodings of filters in data files
_CODES = 64  # exceeds every log2 of bits
NONE = -1  # size class of a block without a filter


def code_of(encoding: int, log2_bits: int) -> int:
    """Return the size class; filters share a matrix only if their encoding and size agree."""
    return encoding * _CODES + log2_bits


def encoding_and_size(code: int) -> tuple[int, int]:
    """Return the encoding and the log2 of the bits of a size class."""
    return divmod(code, _CODES)


_MATRIX = ("code", "probes", "width")
_PART = ("part_matrix", "first_row", "rows", "file", "at", "salt")
_RUN = ("run_matrix", "segment", "run_code", "begin", "count")


@dataclass(frozen=True)
class Slabs:
    """All bloom matrices of one filter of a snapshot: int64 arrays over matrices, parts and runs.

    Parts ascend by matrix and row; runs ascend by matrix and column. A run of a removed segment has segment -1.
    """

    file_name: Sequence[str]
    file_size: np.ndarray
    code: np.ndarray  # size class of every matrix
    probes: np.ndarray
    width: np.ndarray  # bytes of a row
    part_matrix: np.ndarray
    first_row: np.ndarray
    rows: np.ndarray
    file: np.ndarray
    at: np.ndarray
    salt: np.ndarray
    run_matrix: np.ndarray
    segment: np.ndarray
    run_code: np.ndarray  # size class of the blocks; smaller filters than the matrix's are repeated
    begin: np.ndarray  # column of the first block
    count: np.ndarray  # blocks

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(getattr(self, name).nbytes for name in (*_MATRIX, *_PART, *_RUN)) + self.file_size.nbytes

    def part(self, number: int) -> Matrix:
        """Return a part of a matrix, in its file."""
        width = int(self.width[self.part_matrix[number]])
        return Matrix(int(self.at[number]), int(self.rows[number]), width, salt_of(int(self.salt[number])))

    def take(self, segments: np.ndarray, total: int) -> Slabs:
        """Keep the given segments of `total`, renumbered in that order."""
        place = np.full(total + 1, -1, np.int64)
        place[segments] = np.arange(len(segments))
        return _with_segments(replace(self, segment=place[self.segment]))

    def at_segments(self, numbers: np.ndarray) -> Slabs:
        """Renumber the segments: segment i becomes `numbers[i]`."""
        return replace(self, segment=np.append(numbers, -1)[self.segment])

    def segments_in(self, files: Iterable[bool]) -> np.ndarray:
        """Return the segments with filters in any matrix that has a part in the chosen files, ascending."""
        chosen = np.fromiter(files, bool, len(self.file_name))
        matrices = np.zeros(len(self.code), bool)
        matrices[self.part_matrix[chosen[self.file]]] = True
        return np.unique(self.segment[matrices[self.run_matrix] & (self.segment >= 0)])

    def without_files(self, lost: Collection[str]) -> tuple[Slabs, np.ndarray]:
        """Drop everything that needs some lost files; also return the segments that lose filters, ascending.

        A matrix with a lost part is useless.
        """
        harmed = self.segments_in(name in lost for name in self.file_name)
        return _with_segments(replace(self, segment=np.where(np.isin(self.segment, harmed), -1, self.segment))), harmed

    def followed_by(self, other: Slabs, segments: int) -> Slabs:
        """Append the matrices of other segments, which are numbered from `segments` on."""
        shifts = {
            "part_matrix": len(self.code),
            "run_matrix": len(self.code),
            "file": len(self.file_name),
            "segment": np.where(other.segment < 0, 0, segments),
        }
        pairs = {
            name: np.concatenate([getattr(self, name), getattr(other, name) + shifts.get(name, 0)])
            for name in ("file_size", *_MATRIX, *_PART, *_RUN)
        }
        return Slabs([*self.file_name, *other.file_name], **pairs)

    def arrays(self) -> list[np.ndarray]:
        """Return the arrays of the chunk that describes the matrices, without file names."""
        return [getattr(self, name) for name in ("file_size", *_MATRIX, *_PART, *_RUN)]


def _with_segments(slabs: Slabs) -> Slabs:
    """Drop matrices without segments, and files without parts."""
    kept = np.flatnonzero(np.bincount(slabs.run_matrix[slabs.segment >= 0], minlength=len(slabs.code)))
    number = np.full(len(slabs.code), -1, np.int64)
    number[kept] = np.arange(len(kept))
    parts, runs = (np.flatnonzero(number[each] >= 0) for each in (slabs.part_matrix, slabs.run_matrix))
    files, file = np.unique(slabs.file[parts], return_inverse=True)
    arrays = {name: getattr(slabs, name)[kept] for name in _MATRIX}
    arrays |= {name: getattr(slabs, name)[parts] for name in _PART}
    arrays |= {name: getattr(slabs, name)[runs] for name in _RUN}
    arrays |= {name: number[arrays[name]] for name in ("part_matrix", "run_matrix")}
    arrays |= {"file": file.astype(np.int64), "file_size": slabs.file_size[files]}
    return Slabs([slabs.file_name[i] for i in files.tolist()], **arrays)


def no_slabs() -> Slabs:
    """Return a table without matrices."""
    nothing = np.zeros(0, np.int64)
    return Slabs([], *([nothing] * (1 + len(_MATRIX) + len(_PART) + len(_RUN))))


def slabs_of(names: Sequence[str], arrays: Sequence[np.ndarray], block_count: np.ndarray, where: str) -> Slabs:
    """Decode the matrices in the arrays of a chunk, over segments with `block_count` blocks. Raises IndexFault."""
    expected = 1 + len(_MATRIX) + len(_PART) + len(_RUN)
    if len(arrays) != expected or any(array.dtype != np.dtype("<i8") for array in arrays):
        raise IndexFault(f"{where}: these {len(arrays)} arrays are no slabs")
    slabs = Slabs(names, *arrays)
    shapes = [{len(getattr(slabs, name)) for name in group} for group in (_MATRIX, _PART, _RUN)]
    if any(len(each) > 1 for each in shapes) or len(slabs.file_size) != len(names):
        raise IndexFault(f"{where}: the arrays of the slabs differ in length")
    if max(map(max, shapes)) > MOST_PARTS:
        raise IndexFault(f"{where}: the slabs claim {max(map(max, shapes)):,} parts")
    if not (_matrices_fit(slabs) and _parts_fit(slabs) and _runs_fit(slabs, block_count)):
        raise IndexFault(f"{where}: the slabs are malformed")
    return slabs


def _matrices_fit(slabs: Slabs) -> bool:
    encoding, size = slabs.code // _CODES, slabs.code % _CODES
    least = np.where(np.isin(encoding, OWN_ENCODINGS), LEAST_LOG2_BITS, parquet_bloom.LEAST_LOG2_BITS)
    return (
        all_within(slabs.code, 0, _CODES * 1024)
        and all_within(size, 0, MOST_LOG2_BITS + 3)
        and not (size < least).any()
        and all_within(slabs.probes, 1, MOST_PROBES)
        and all_within(slabs.width, WORD, MOST_WIDTH)
        and not (slabs.width % WORD).any()
    )


def _parts_fit(slabs: Slabs) -> bool:
    """Whether the parts of every matrix cover its rows in order, inside their files."""
    n = len(slabs.code)
    if not (all_within(slabs.part_matrix, 0, n - 1) and all_within(slabs.file, 0, len(slabs.file_name) - 1)):
        return False
    if not (
        all_within(slabs.rows, 1, 1 << 40)
        and all_within(slabs.at, 0, 1 << 60)
        and all_within(slabs.first_row, 0, 1 << 40)
    ):
        return False
    is_first = np.diff(slabs.part_matrix, prepend=-1) != 0
    due = np.where(is_first, 0, np.append(0, (slabs.first_row + slabs.rows)[:-1]))
    rows = np.zeros(n, np.int64)
    np.add.at(rows, slabs.part_matrix, slabs.rows)
    ascending = not len(is_first) or bool((np.diff(slabs.part_matrix) >= 0).all())
    if not (ascending and np.array_equal(slabs.first_row, due) and (rows == 1 << (slabs.code % _CODES)).all()):
        return False
    return bool((slabs.at + _part_bytes(slabs) <= slabs.file_size[slabs.file]).all())


def _part_bytes(slabs: Slabs) -> np.ndarray:
    """Return the bytes of every part in its file; most parts share a few shapes."""
    shapes = np.stack([slabs.rows, slabs.width[slabs.part_matrix]], axis=1)
    distinct, which = np.unique(shapes, axis=0, return_inverse=True)
    return np.array([Matrix(0, rows, width, 0).nbytes for rows, width in distinct.tolist()], np.int64)[which]


def _runs_fit(slabs: Slabs, block_count: np.ndarray) -> bool:
    """Whether runs are disjoint within the width of their matrix, and no segment has more filters than blocks."""
    n = len(slabs.code)
    if not (all_within(slabs.run_matrix, 0, n - 1) and all_within(slabs.segment, -1, len(block_count) - 1)):
        return False
    if not (all_within(slabs.count, 1, 1 << 40) and all_within(slabs.begin, 0, 1 << 40)) or (slabs.begin % GROUP).any():
        return False
    is_first = np.diff(slabs.run_matrix, prepend=-1) != 0
    ends = slabs.begin + slabs.count
    before = np.where(is_first, 0, np.append(0, ends[:-1]))
    ordered = not len(ends) or bool((np.diff(slabs.run_matrix) >= 0).all())
    codes = slabs.code[slabs.run_matrix]
    fits = (slabs.run_code // _CODES == codes // _CODES) & (slabs.run_code <= codes) & (slabs.run_code >= 0)
    known = slabs.segment >= 0
    counted = np.bincount(slabs.segment[known], slabs.count[known], minlength=len(block_count))
    return bool(
        ordered
        and (slabs.begin >= before).all()
        and (ends <= GROUP * slabs.width[slabs.run_matrix]).all()
        and fits.all()
        and (counted <= block_count).all()
    )
