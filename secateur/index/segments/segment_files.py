"""The files of segments, segment by segment, wherever they are stored.

In an index of many files most of them stand in a *base*, a file that snapshots share, so that a refresh writes only
what is new. A snapshot says where in the base the files of each of its segments begin; the files of all other segments
are its own. What is asked of the files is put together when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.index.segments.file_table import COLUMNS, Base, FileTable, StoredFiles, inverse
from secateur.index.segments.path_search import among, places, places_nearby, positions_among, searched
from secateur.ragged import elements_of, offsets_of


@dataclass(frozen=True)
class SegmentFiles:
    """The files of n segments. Those of a segment follow one another, in the base or among the snapshot's own."""

    own_files: FileTable | StoredFiles  # of the segments whose files are not in the base, segment by segment
    count: np.ndarray  # files of every segment: int64
    base: Base | None = None
    at: np.ndarray | None = None  # where the files of every segment begin in the base: int64, -1: they are its own

    @staticmethod
    def of(table: FileTable, segments: int) -> SegmentFiles:
        """Return the files of so many segments, none of them in a base."""
        return SegmentFiles(table, np.bincount(table.segment, minlength=segments).astype(np.int64))

    def __len__(self) -> int:
        return int(self.count.sum())

    # ---- columns, segment by segment

    @cached_property
    def path(self) -> pa.Array:
        """The paths, as large strings."""
        if self.base is None:
            return self.own_files.path
        parts = [self._part(is_own).path.slice(begin, end - begin) for is_own, begin, end in self._pieces]
        return parts[0] if len(parts) == 1 else pa.concat_arrays([self.own_files.path.slice(0, 0), *parts])

    @cached_property
    def size(self) -> np.ndarray:
        """Bytes of every file."""
        return self._column("size")

    @cached_property
    def stamp(self) -> np.ndarray:
        """The stamp of every file."""
        return self._column("stamp")

    @cached_property
    def witness(self) -> np.ndarray:
        """The witness of every file."""
        return self._column("witness")

    @cached_property
    def end(self) -> np.ndarray:
        """The checksum of every file's last bytes."""
        return self._column("end")

    @cached_property
    def block_count(self) -> np.ndarray:
        """The blocks of every file."""
        return self._column("block_count")

    @cached_property
    def row_count(self) -> np.ndarray:
        """The rows of every file."""
        return self._column("row_count")

    @cached_property
    def byte_count(self) -> np.ndarray:
        """The bytes of every file's blocks."""
        return self._column("byte_count")

    @cached_property
    def segment(self) -> np.ndarray:
        """The segment of every file: int32, ascending."""
        return np.repeat(np.arange(len(self.count), dtype=np.int32), self.count)

    @cached_property
    def table(self) -> FileTable:
        """All of it as one table."""
        return FileTable(self.path, **{name: getattr(self, name) for name in COLUMNS}, segment=self.segment)

    def _column(self, name: str) -> np.ndarray:
        if self.base is None:
            return self.own_files.column(name)
        return self._spliced(self.base.files.column(name), self.own_files.column(name))

    def _spliced(self, of_base: np.ndarray, of_own: np.ndarray) -> np.ndarray:
        """Return values of the files, segment by segment, from those in the order of the base and of the own files."""
        parts = [(of_own if is_own else of_base)[begin:end] for is_own, begin, end in self._pieces]
        return parts[0] if len(parts) == 1 else np.concatenate([of_own[:0], *parts])

    def _part(self, is_own: bool) -> FileTable | StoredFiles:
        return self.own_files if is_own or self.base is None else self.base.files

    @cached_property
    def _pieces(self) -> list[tuple[bool, int, int]]:
        """The stretches that make up the files: whether of the own ones, where it begins and ends."""
        filled = np.flatnonzero(self.count)
        is_own = self._is_own[filled]
        begin = np.where(is_own, self._own_begin[filled], self._at[filled])
        end = begin + self.count[filled]
        cuts = np.flatnonzero((is_own[1:] != is_own[:-1]) | (begin[1:] != end[:-1])) + 1
        first, last = np.append(0, cuts), np.append(cuts, len(filled)) - 1
        if not len(filled):
            return []
        return list(zip(is_own[first].tolist(), begin[first].tolist(), end[last].tolist(), strict=True))

    @cached_property
    def _at(self) -> np.ndarray:
        return np.full(len(self.count), -1) if self.at is None else self.at

    @cached_property
    def _is_own(self) -> np.ndarray:
        return self._at < 0

    @cached_property
    def _own_begin(self) -> np.ndarray:
        return offsets_of(np.where(self._is_own, self.count, 0))[:-1]

    @cached_property
    def blocks_of_segments(self) -> np.ndarray:
        """The blocks of every segment."""
        blocks = np.zeros(len(self.count), np.int64)
        for is_own, begins in ((True, self._own_begin), (False, self._at)):
            chosen = np.flatnonzero(self._is_own == is_own)
            if len(chosen):
                before, begin = _block_begin(self._part(is_own)), begins[chosen]
                blocks[chosen] = before[begin + self.count[chosen]] - before[begin]
        return blocks

    # ---- choosing

    def take(self, segments: np.ndarray) -> SegmentFiles:
        """Return the files of the given segments, in that order."""
        count = self.count[segments]
        own_offsets = offsets_of(np.where(self._is_own, self.count, 0))
        chosen = elements_of(own_offsets, segments)
        owner = np.repeat(np.arange(len(segments), dtype=np.int32), np.diff(own_offsets)[segments])
        table = replace(_table_of(self.own_files).take(chosen), segment=owner)
        at = self._at[segments]
        return SegmentFiles(table, count) if (at < 0).all() else SegmentFiles(table, count, self.base, at)

    def followed_by(self, other: SegmentFiles) -> SegmentFiles:
        """Return these files, then those of other segments."""
        if self.base is not None and other.base is not None and self.base.name != other.base.name:
            other = other.without_base()
        tables = _table_of(self.own_files), _table_of(other.own_files)
        columns = {name: np.concatenate([part.column(name) for part in tables]) for name in COLUMNS}
        at, count = (np.concatenate(pair) for pair in ((self._at, other._at), (self.count, other.count)))
        owner = np.repeat(np.arange(len(count), dtype=np.int32), np.where(at < 0, count, 0))
        table = FileTable(pa.concat_arrays([part.path for part in tables]), **columns, segment=owner)
        base = self.base or other.base
        return SegmentFiles(table, count) if base is None else SegmentFiles(table, count, base, at)

    def without_base(self) -> SegmentFiles:
        """Return the same files, all of them own ones."""
        return self if self.base is None else SegmentFiles(self.table, self.count)

    def in_base(self, base: Base) -> SegmentFiles:
        """Return the same files where they are those of a base, in the same order."""
        return SegmentFiles(
            _table_of(self.own_files).take(np.zeros(0, np.int64)), self.count, base, offsets_of(self.count)[:-1]
        )

    def with_witnesses(self, witness: np.ndarray) -> SegmentFiles:
        """Return the same files with other witnesses."""
        return SegmentFiles(replace(self.table, witness=witness), self.count)

    # ---- the order of paths

    @property
    def of_base(self) -> int:
        """The number of files that stand in the base."""
        return int(self.count[~self._is_own].sum())

    @cached_property
    def own_rank(self) -> np.ndarray:
        """The position of every own file when these are ordered by path."""
        if isinstance(self.own_files, StoredFiles):
            return self.own_files.arrays["rank"]
        return inverse(pc.sort_indices(self.own_files.path).to_numpy().astype(np.int64))

    @cached_property
    def own_ordered_paths(self) -> pa.Array:
        """The paths of the own files in their order."""
        if isinstance(self.own_files, StoredFiles):
            return self.own_files.ordered_paths
        return self.own_files.path.take(from_numpy(inverse(self.own_rank)))

    @cached_property
    def own_after(self) -> np.ndarray:
        """The files of the base, used or not, whose paths are not greater than that of each own file."""
        if isinstance(self.own_files, StoredFiles):
            return self.own_files.arrays["after"]
        if self.base is None:
            return np.zeros(len(self.own_rank), np.int64)
        return positions_among(self.own_files.path, self.base.files.ordered_paths, after=True)

    @cached_property
    def rank(self) -> np.ndarray:
        """The position of every file when all are ordered by path."""
        if self.base is None:
            return self.own_rank
        of_base, total = self.base.files.arrays["rank"], len(self.base.files) + len(self.own_rank)
        before = np.cumsum(np.bincount(self.own_after, minlength=len(of_base) + 1))[:-1]
        if self.base.files.is_ordered:
            rank = self._spliced(of_base + before, self.own_rank + self.own_after)
        else:
            rank = self._spliced(of_base + before[of_base], self.own_rank + self.own_after)
        if len(rank) == total:
            return rank
        is_used = np.zeros(total, bool)
        is_used[rank] = True
        return (np.cumsum(is_used) - 1)[rank]

    @cached_property
    def by_path(self) -> np.ndarray:
        """The order of the files by path."""
        return inverse(self.rank)

    def places_among(self, paths: pa.Array) -> np.ndarray:
        """Return where every file's path is among some paths, in order; -1 where it is not.

        Where the paths are those of the files but for a few, little is compared.
        """
        if self.base is None:
            if isinstance(self.own_files, StoredFiles):
                return places_nearby(self.own_files.ordered_paths, paths, self.own_files.by_path)
            return places(self.own_files.path, paths)
        stored = self.base.files
        of_base = places_nearby(stored.ordered_paths, paths, None if stored.is_ordered else stored.by_path)
        return self._spliced(of_base, searched(self.own_files.path, paths))

    def holds(self, paths: pa.Array) -> np.ndarray:
        """Return which of some paths are among those of the files: bool of shape (n_paths,)."""
        if self.base is None or self.of_base < len(self.base.files):
            return among(paths, self.path)
        return (searched(paths, self.base.files.ordered_paths) >= 0) | among(paths, self.own_files.path)


def _block_begin(files: FileTable | StoredFiles) -> np.ndarray:
    return files.block_begin if isinstance(files, StoredFiles) else offsets_of(files.block_count)


def _table_of(files: FileTable | StoredFiles) -> FileTable:
    """Return files as a table; the segments of stored ones are not known."""
    if isinstance(files, FileTable):
        return files
    columns = {name: files.column(name) for name in COLUMNS}
    return FileTable(files.path, **columns, segment=np.zeros(len(files), np.int32))
