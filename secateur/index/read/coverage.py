"""Which live files the index covers: its entries matched with the table's files, once per pair of snapshots.

An index entry belongs to a file *identity* (path, size, modification time, witness). A live file without an entry for
its own identity is not covered: its blocks come from its footer. So a stale, partial or broken index is used only for
the files that it covers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.segments.file_table import LEAST_BLOCK, FileCounts
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.snapshot import Snapshot
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Question
from secateur.pruning.report import Counts
from secateur.ragged import offsets_of

MOST_GONE = 1 << 16  # blocks of files that are gone: so many are accepted for any table, however small it is now


class LiveFiles(Protocol):
    """The files of a table snapshot, with statistics from their names and the table's metadata."""

    @property
    def id(self) -> Hashable:
        """Equal for equal listings only."""

    @property
    def paths(self) -> pa.Array: ...

    @property
    def size(self) -> np.ndarray: ...

    @property
    def stamp(self) -> np.ndarray: ...

    @property
    def known_as(self) -> np.ndarray:
        """The witness of every file, as in its index entry if it has one."""

    @property
    def left_out(self) -> int:
        """Bytes of the table's other live files, which the query does not ask for."""

    def zones(self, column: Field) -> Zones | None:
        """Return exact values that replace a column of the files; None where the files themselves are read."""

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """Return the table metadata's bounds of a column for all files, with more detail for those `among`."""

    @property
    def touched(self) -> np.ndarray | None:
        """Which files have rows deleted by other files; None where none has."""

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """Return an upper bound on the rows deleted by position in some files (ascending)."""

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None where they cannot be read."""

    def holders(self, question: Question) -> np.ndarray | None:
        """Return which files may hold a match, by the table's own metadata; None if that does not say."""


class NamesOnly:
    """Live files known by name only, without deleted rows."""

    left_out: int = 0

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """Return None: the table has no metadata on columns."""
        return None

    @property
    def touched(self) -> np.ndarray | None:
        """None: no file has deleted rows."""
        return None

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """Return zeros: no rows are deleted by position."""
        return np.zeros(len(files), np.int64)

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """Return None: there are no deleted positions to read."""
        return None

    def holders(self, question: Question) -> np.ndarray | None:
        """Return None: the table has no metadata that answers."""
        return None


def is_survivor(files: np.ndarray, live: np.ndarray) -> np.ndarray:
    """Return which numbers of live files, -1 for none, are of marked `files`: bool, of the shape of `live`."""
    return (live >= 0) & files[live] if len(files) else np.zeros(live.shape, bool)


@dataclass(frozen=True)
class Coverage:
    """Index entries of a snapshot matched with live files."""

    size: np.ndarray  # bytes of every live file
    uncovered: np.ndarray  # live files that no segment covers, ascending
    live: np.ndarray  # position of every entry's live file; -1 where no live file has its identity
    begin: np.ndarray  # first entry of every segment, and the end of the last
    counts_of: FileCounts | None  # counts of every entry

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.live.nbytes + self.uncovered.nbytes

    def loose(self, files: np.ndarray | None) -> np.ndarray:
        """Return the surviving files (None: all survive) that no segment covers, ascending."""
        return self.uncovered if files is None else self.uncovered[files[self.uncovered]]

    @cached_property
    def everywhere(self) -> np.ndarray:
        """The segments that hold a live file, ascending."""
        return self._some(self._is_live)

    @cached_property
    def complete(self) -> np.ndarray:
        """Which segments hold live files only: bool of shape (n_segments,)."""
        return self._all(self._is_live)

    @cached_property
    def _is_live(self) -> np.ndarray:
        return self.live >= 0

    def surviving(self, files: np.ndarray) -> np.ndarray:
        """Mark the entries of surviving files; `files` marks the surviving live files."""
        return is_survivor(files, self.live)

    def segments(self, files: np.ndarray | None) -> np.ndarray:
        """Return the segments that hold a surviving file (None: all files survive), ascending."""
        return self.everywhere if files is None else self._some(self.surviving(files))

    def complete_under(self, files: np.ndarray | None) -> np.ndarray:
        """Mark the segments that hold surviving files only: bool of shape (n_segments,)."""
        return self.complete if files is None else self._all(self.surviving(files))

    def counts(self, files: np.ndarray | None, segments: np.ndarray) -> Counts:
        """Count what the surviving files hold in the given segments, plus those that no segment covers."""
        loose = self.loose(files)
        sums = self.of_segments if files is None else self._sums_of(self.surviving(files))
        is_whole = files is None and len(segments) == sums.shape[1]
        files_, blocks, rows, size = (self._total if is_whole else sums[:, segments].sum(axis=1)).tolist()
        size += int(self.size[loose].sum())
        unknown = len(loose) > 0
        return Counts(
            segments=len(segments),
            files=files_ + len(loose),
            blocks=None if unknown else blocks,
            rows=None if unknown else rows,
            bytes=size,
        )

    def row_counts(self, files: np.ndarray | None) -> np.ndarray:
        """Return the rows that some live files (None: all) hold in every segment: int64 of shape (n_segments,)."""
        if files is None or self.counts_of is None:
            return self.of_segments[2]
        return self._add(np.where(self.surviving(files), self.counts_of.row_count, 0))

    @cached_property
    def of_segments(self) -> np.ndarray:
        """The files, blocks, rows and bytes that are live in every segment: int64 of shape (4, n_segments)."""
        return self._sums_of(self._is_live)

    @cached_property
    def _total(self) -> np.ndarray:
        return self.of_segments.sum(axis=1)

    def _sums_of(self, entries: np.ndarray) -> np.ndarray:
        """Sum files, blocks, rows and bytes of chosen entries by segment: int64 of shape (4, n_segments)."""
        table = self.counts_of
        if table is None:
            return np.zeros((4, 0), np.int64)
        counts, every = (table.block_count, table.row_count, table.byte_count), bool(entries.all())
        sums = [self._add(values if every else np.where(entries, values, 0)) for values in counts]
        return np.stack([np.diff(self.begin) if every else self._add(entries), *sums])

    def _add(self, values: np.ndarray) -> np.ndarray:
        return np.diff(offsets_of(values)[self.begin])

    def _some(self, entries: np.ndarray) -> np.ndarray:
        return np.flatnonzero(self._add(entries))

    def _all(self, entries: np.ndarray) -> np.ndarray:
        return self._add(entries) == np.diff(self.begin)


@dataclass(frozen=True)
class CoveredFiles:
    """The live files, some of them in the index; see :class:`secateur.pruning.statistics.Files`."""

    live: LiveFiles
    coverage: Coverage

    def __len__(self) -> int:
        return len(self.coverage.size)

    @property
    def paths(self) -> pa.Array:
        return self.live.paths

    @property
    def row_count(self) -> np.ndarray:
        """Row counts of files are not given (-1): a file without rows has no blocks."""
        return np.broadcast_to(np.int64(-1), len(self))

    def zones(self, column: Field) -> Zones | None:
        known = self.live.zones(column)
        return self.live.bounds(column, self.coverage.uncovered) if known is None else known

    @property
    def touched(self) -> np.ndarray | None:
        return self.live.touched

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        return self.live.most_deleted(files)

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        return self.live.deleted(files, among)

    def holders(self, question: Question) -> np.ndarray | None:
        return self.live.holders(question)

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Mark the files in `numbers`: bool of shape (n_files,)."""
        is_among = np.zeros(len(self), bool)
        is_among[numbers] = True
        return is_among


def uncovered(live: LiveFiles) -> Coverage:
    """Return the coverage of a table without an index."""
    return Coverage(live.size, np.arange(len(live.size)), np.zeros(0, np.int64), np.zeros(1, np.int64), None)


def covered(live: LiveFiles, snapshot: Snapshot) -> Coverage:
    """Return the coverage of a table by a snapshot. Raises IndexFault.

    If the live files' id equals the snapshot's listing id, the stored match is used without comparing.
    """
    entries = snapshot.file_counts
    matched = snapshot.live if live.id == snapshot.listing_id else matching(live, snapshot.segment_files)
    known = np.zeros(len(live.size) + 1, bool)
    known[matched] = True  # the last stands for no file, -1
    _require_room(live, entries, matched)
    begin = snapshot.segments.file_begin
    return Coverage(live.size, np.flatnonzero(~known[:-1]), matched, begin, entries)


def _require_room(live: LiveFiles, entries: FileCounts, matched: np.ndarray) -> None:
    """Raise IndexFault where entries have more blocks than the listed files can describe; those that are gone too.

    The size that an entry claims is bounded by nothing if no file has it, and arrays are allocated for its blocks.
    Files that the query does not ask for count as gone, and their bytes as room.
    """
    room, is_live = live.size // LEAST_BLOCK, matched >= 0
    if is_live.all():
        most, blocks = room[matched], entries.block_count
    else:
        most, blocks = room[matched[is_live]], entries.block_count[is_live]
    if (blocks > most).any():
        raise IndexFault("a file of the table has more blocks in the index than its bytes can describe")
    gone = float(entries.block_count[~is_live].sum(dtype=np.float64))
    if gone > max(MOST_GONE, float(room.sum(dtype=np.float64)) + live.left_out // LEAST_BLOCK):
        raise IndexFault(
            f"{gone:,.0f} blocks in the index are of files that are gone, more than the table can have had"
        )


def matching(live: LiveFiles, entries: SegmentFiles) -> np.ndarray:
    """Return the live file of every entry; -1 where no live file has its identity, or an earlier entry has it, too."""
    return _first_of_each(file_of_entry(live, entries))


def file_of_entry(live: LiveFiles, entries: SegmentFiles) -> np.ndarray:
    """Return the live file of every entry: int64; -1 where no live file has its identity."""
    return _where_equal(alike(live, entries), (entries.witness, live.known_as))


def alike(live: LiveFiles, entries: SegmentFiles) -> np.ndarray:
    """Match every entry with a live file by path, size and modification time, ignoring the witness; -1: no match."""
    candidate = entries.places_among(live.paths.cast(pa.large_string()))
    return _where_equal(candidate, (entries.size, live.size), (entries.stamp, live.stamp))


def _where_equal(file: np.ndarray, *pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the file of every entry where it has what the entry has in each of some pairs of arrays; else -1."""
    if len(file) and file.min() >= 0:
        same = np.ones(len(file), bool)
        for of_entries, of_files in pairs:
            same &= of_entries == of_files[file]
    else:
        same = file >= 0
        for of_entries, of_files in pairs:
            same[same] = of_entries[same] == of_files[file[same]]
    return file if same.all() else np.where(same, file, -1)


def _first_of_each(candidate: np.ndarray) -> np.ndarray:
    """Keep the match of the first entry for each file only: a second one would return its blocks twice."""
    entry = np.flatnonzero(candidate >= 0)[::-1]
    first = np.full(int(candidate.max(initial=-1)) + 1, -1, np.int64)
    first[candidate[entry]] = entry  # the last assignment wins, which is that of the first entry
    kept = np.full(len(candidate), -1, np.int64)
    entry = first[first >= 0]
    kept[entry] = candidate[entry]
    return kept
