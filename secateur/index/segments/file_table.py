"""Tables of files, in memory and as they are stored: in a snapshot, or in a base that snapshots share.

docs/format.md, "Bases".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, truths
from secateur.errors import IndexFault
from secateur.index.container.index_file import Place, is_repeated
from secateur.index.identity import FileIdentity, identities
from secateur.integers import all_within
from secateur.ragged import offsets_of

COLUMNS = ("size", "stamp", "witness", "end", "block_count", "row_count", "byte_count")
LEAST_BLOCK = 7  # bytes of a row group in a footer: its columns, their bytes, its rows, and where it ends
MOST_REPEATED = 1 << 16  # most repetitions of a single letter
INT64 = np.dtype("<i8")
TEXTS = (INT64, np.dtype("u1"))  # offsets, bytes


@dataclass(frozen=True)
class FileTable:
    """The files of all segments, segment by segment: arrays of shape (n_files,)."""

    path: pa.Array  # large_string
    size: np.ndarray
    stamp: np.ndarray
    witness: np.ndarray
    end: np.ndarray  # checksums of their last bytes; 0: unknown
    block_count: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray
    segment: np.ndarray  # ascending

    def take(self, files: np.ndarray) -> FileTable:
        """Return the given files."""
        arrays = {name: getattr(self, name)[files] for name in (*COLUMNS, "segment")}
        return FileTable(self.path.take(pa.array(files)), **arrays)

    def column(self, name: str) -> np.ndarray:
        """Return one of :data:`COLUMNS`."""
        array: np.ndarray = getattr(self, name)
        return array

    def identities(self) -> list[FileIdentity]:
        """Return the identities of the files, in order."""
        return identities(self.path, self.size, self.stamp, self.witness, self.end)


@dataclass(frozen=True)
class FileCounts:
    """The counts of every file of the segments: arrays of shape (n_files,)."""

    block_count: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray


class StoredFiles:
    """The files in a base, or a snapshot's own, read on first use; paths, stored in order, apart from the rest."""

    def __init__(
        self,
        count: int,
        read_ordered_paths: Callable[[], pa.Array],
        read_arrays: Callable[[], Sequence[np.ndarray]],
        where: str,
    ) -> None:
        self._count, self._where = count, where
        self._read_ordered_paths, self._read_arrays = read_ordered_paths, read_arrays

    def __len__(self) -> int:
        return self._count

    @cached_property
    def path(self) -> pa.Array:
        """The paths, file by file. Raises IndexFault."""
        return self.ordered_paths if self.is_ordered else self.ordered_paths.take(from_numpy(self.arrays["rank"]))

    def column(self, name: str) -> np.ndarray:
        """Return one of :data:`COLUMNS`. Raises IndexFault."""
        return self.arrays[name]

    @cached_property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """The columns, and the rank of every file by path. Raises IndexFault if they are inconsistent.

        Files cannot claim more blocks than their footers can hold: a constant array stands for any number of blocks,
        and what is computed of it is as long.
        """
        arrays = dict(zip((*COLUMNS, "rank", "after"), self._read_arrays(), strict=False))
        rank, blocks = arrays["rank"], arrays["block_count"]
        if any(array.shape != (self._count,) for array in arrays.values()):
            raise IndexFault(f"{self._where}: the table of files is malformed")
        if is_repeated(rank) or not _is_permutation(rank):
            raise IndexFault(f"{self._where}: the table of files is malformed")
        if (blocks < 0).any() or (blocks > arrays["size"] // LEAST_BLOCK).any():
            raise IndexFault(f"{self._where}: a file of the table has more blocks than its bytes can describe")
        return arrays

    @cached_property
    def block_begin(self) -> np.ndarray:
        """The blocks before every file, then of all: int64 of shape (n_files + 1,)."""
        return offsets_of(self.arrays["block_count"])

    @cached_property
    def by_path(self) -> np.ndarray:
        """The order of the files by path."""
        return inverse(self.arrays["rank"])

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the files are ordered by path as they are."""
        return bool((self.arrays["rank"] == np.arange(self._count)).all())

    @cached_property
    def ordered_paths(self) -> pa.Array:
        """The paths in their order. Raises IndexFault where there are not as many as files, or in another order.

        Positions say which of them a file has, so those of another order would be of other files.
        """
        paths = self._read_ordered_paths()
        if len(paths) != self._count:
            raise IndexFault(f"{self._where}: there are {len(paths)} paths of {self._count} files")
        if len(paths) > 1 and not truths(pc.less_equal(paths[:-1], paths[1:])).all():
            raise IndexFault(f"{self._where}: the paths of files are not in their order")
        return paths


@dataclass(frozen=True)
class Base:
    """A base: its files, and where they are stored."""

    name: str  # of the index file
    size: int  # of it, in bytes
    places: Mapping[str, Place]  # of its chunks
    files: StoredFiles

    @property
    def nbytes(self) -> int:
        """Bytes of the file, for caches."""
        return self.size


def texts_of(parts: Sequence[np.ndarray], what: str) -> pa.Array:
    """Return large strings that are stored as their offsets and bytes. Raises IndexFault; `what` says which."""
    offsets, data = parts
    n = len(offsets) - 1  # at most one text is empty, and a text of one repeated letter is short
    if not 0 <= n <= max(1, len(data)) or (is_repeated(data) and len(data) > MOST_REPEATED):
        raise IndexFault(f"{what} are malformed")
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise IndexFault(f"{what} are malformed")
    buffers = [None, *(pa.py_buffer(np.ascontiguousarray(part)) for part in (offsets, data))]
    texts = pa.Array.from_buffers(pa.large_string(), n, buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise IndexFault(f"{what} are malformed: {error}") from None
    return texts


def stored_arrays(table: FileTable | StoredFiles, rank: np.ndarray) -> list[np.ndarray]:
    """Return the columns of files, and the rank of every file by path, as they are stored."""
    return [*map(table.column, COLUMNS), rank]


def inverse(permutation: np.ndarray) -> np.ndarray:
    """Return the inverse of a permutation."""
    at = np.empty(len(permutation), np.int64)
    at[permutation] = np.arange(len(permutation))
    return at


def _is_permutation(rank: np.ndarray) -> bool:
    """Whether the numbers are a permutation of range(n)."""
    n = len(rank)
    return all_within(rank, 0, n - 1) and bool((np.bincount(rank, minlength=n) == 1).all())
