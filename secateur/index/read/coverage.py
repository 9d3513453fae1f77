"""Which live files the index covers: its entries matched with the files of the table, once per pair of snapshots.

An index entry belongs to a file *identity* (path, size, time of modification, witness). A live file without an entry of
its own identity is not covered: its blocks come from its footer. So an index that is stale, partial or broken answers
for what it knows and for nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.index.segments.segment_table import FileCounts, FileTable
from secateur.index.segments.snapshot import Snapshot
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Question
from secateur.pruning.report import Counts
from secateur.pruning.zones import Zones
from secateur.ragged import offsets_of


class LiveFiles(Protocol):
    """The files of a table snapshot, and what their names tell."""

    @property
    def id(self) -> Hashable:
        """What equal listings have in common, and no others."""

    @property
    def paths(self) -> pa.Array: ...

    @property
    def size(self) -> np.ndarray: ...

    @property
    def modified(self) -> np.ndarray: ...

    @property
    def known_as(self) -> np.ndarray:
        """The witness of every file under which the index knows it, where it does."""

    def zones(self, column: Field) -> Zones | None:
        """What stands in place of what files hold of a column, exact; None where they are asked themselves."""

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """What the table's own metadata tells of a column of all files, and more of those `among`."""

    @property
    def touched(self) -> np.ndarray | None:
        """Which files have rows that other files delete; None where none has."""

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """How many rows of some files, which ascend, may be deleted by position, at most."""

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """The deleted positions of some files, ascending; None where they cannot be read."""

    def holders(self, question: Question) -> np.ndarray | None:
        """Which files may hold what is asked for, by the table's own metadata; None where it does not tell."""


class NamesOnly:
    """Live files of which a table tells nothing but their names, and of which no row is deleted."""

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """What the table's own metadata tells of a column."""
        return None

    @property
    def touched(self) -> np.ndarray | None:
        """Which files have rows that are deleted by other files."""
        return None

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """How many rows of some files may be deleted by position."""
        return np.zeros(len(files), np.int64)

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """The deleted positions of some files."""
        return None

    def holders(self, question: Question) -> np.ndarray | None:
        """Which files may hold what is asked for."""
        return None


@dataclass(frozen=True)
class Coverage:
    """The entries of an index snapshot matched with live files."""

    size: np.ndarray  # of every live file, bytes
    uncovered: np.ndarray  # the live files that no segment covers, ascending
    live: np.ndarray  # of every entry the position of its live file; -1 where there is none of its identity
    begin: np.ndarray  # the first entry of every segment, and behind the last
    counts_of: FileCounts | None  # of every entry

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.live.nbytes + self.uncovered.nbytes

    def loose(self, files: np.ndarray | None) -> np.ndarray:
        """The surviving files (None: all survive) that no segment covers, ascending."""
        return self.uncovered if files is None else self.uncovered[files[self.uncovered]]

    @cached_property
    def everywhere(self) -> np.ndarray:
        """The segments that hold a live file, ascending."""
        return self._some(self.live >= 0)

    @cached_property
    def complete(self) -> np.ndarray:
        """Which segments hold live files only: bool of shape (n_segments,)."""
        return self._all(self.live >= 0)

    def surviving(self, files: np.ndarray) -> np.ndarray:
        """Which entries are of a surviving file; `files` says of every live file whether it survives."""
        return (self.live >= 0) & files[self.live]

    def segments(self, files: np.ndarray | None) -> np.ndarray:
        """The segments that hold a surviving file (None: all files survive), ascending."""
        return self.everywhere if files is None else self._some(self.surviving(files))

    def complete_under(self, files: np.ndarray | None) -> np.ndarray:
        """Which segments hold surviving files only: bool of shape (n_segments,)."""
        return self.complete if files is None else self._all(self.surviving(files))

    def counts(self, files: np.ndarray | None, segments: np.ndarray) -> Counts:
        """How much the surviving files hold in the given segments, and those that no segment covers."""
        loose = self.loose(files)
        sums = self._sums if files is None else self._sums_of(self.surviving(files))
        files_, blocks, rows, size = sums[:, segments].sum(axis=1).tolist()
        size += int(self.size[loose].sum())
        unknown = len(loose) > 0
        return Counts(
            segments=len(segments),
            files=files_ + len(loose),
            blocks=None if unknown else blocks,
            rows=None if unknown else rows,
            bytes=size,
        )

    @cached_property
    def _sums(self) -> np.ndarray:
        return self._sums_of(self.live >= 0)

    def _sums_of(self, entries: np.ndarray) -> np.ndarray:
        """Files, blocks, rows and bytes of chosen entries by segment: int64 of shape (4, n_segments)."""
        table = self.counts_of
        if table is None:
            return np.zeros((4, 0), np.int64)
        counts = (np.ones(len(entries), np.int64), table.block_count, table.row_count, table.byte_count)
        return np.stack([self._add(np.where(entries, each, 0)) for each in counts])

    def _add(self, values: np.ndarray) -> np.ndarray:
        return np.diff(offsets_of(values)[self.begin])

    def _some(self, entries: np.ndarray) -> np.ndarray:
        return np.flatnonzero(self._add(entries.astype(np.int64)))

    def _all(self, entries: np.ndarray) -> np.ndarray:
        return self._add(entries.astype(np.int64)) == np.diff(self.begin)


@dataclass(frozen=True)
class CoveredFiles:
    """The live files, of which the index knows some; see :class:`secateur.pruning.statistics.Files`."""

    live: LiveFiles
    coverage: Coverage

    def __len__(self) -> int:
        return len(self.coverage.size)

    @property
    def paths(self) -> pa.Array:
        return self.live.paths

    @property
    def row_count(self) -> np.ndarray:
        """Nothing is said of the rows of files; those without any have no blocks."""
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
        """Which files have one of the numbers: bool of shape (n_files,)."""
        found = np.zeros(len(self), bool)
        found[numbers] = True
        return found


def uncovered(live: LiveFiles) -> Coverage:
    """The coverage of a table without an index."""
    return Coverage(live.size, np.arange(len(live.size)), np.zeros(0, np.int64), np.zeros(1, np.int64), None)


def covered(live: LiveFiles, snapshot: Snapshot) -> Coverage:
    """The coverage of a table by a snapshot. Raises IndexFault.

    Where the live files are just those that the snapshot was made of, which their id tells, nothing is compared.
    """
    entries = snapshot.file_counts
    matched = snapshot.live if live.id == snapshot.listing_id else _matched(live, snapshot.files)
    known = np.zeros(len(live.size), bool)
    known[matched[matched >= 0]] = True
    begin = snapshot.segments.file_begin
    return Coverage(live.size, np.flatnonzero(~known), matched, begin, entries)


def _matched(live: LiveFiles, entries: FileTable) -> np.ndarray:
    """The live file of every entry; -1 where there is none of its identity."""
    candidate = alike(live, entries)
    same = candidate >= 0
    same[same] = entries.witness[same] == live.known_as[candidate[same]]
    return _first_of_each(np.where(same, candidate, -1))


def alike(live: LiveFiles, entries: FileTable) -> np.ndarray:
    """The live file of every entry by path, size and time of modification, whatever its witness; -1: there is none."""
    found = pc.index_in(entries.path, value_set=live.paths.cast(pa.large_string()))
    candidate = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    same = candidate >= 0
    same[same] = (entries.size[same] == live.size[candidate[same]]) & (
        entries.modified[same] == live.modified[candidate[same]]
    )
    return np.where(same, candidate, -1)


def _first_of_each(candidate: np.ndarray) -> np.ndarray:
    """The live file of every entry, and of entries for one file only the first: two would give its blocks twice."""
    entry = np.flatnonzero(candidate >= 0)[::-1]
    first = np.full(int(candidate.max(initial=-1)) + 1, -1, np.int64)
    first[candidate[entry]] = entry  # the last assignment, which is of the first entry, holds
    kept = np.full(len(candidate), -1, np.int64)
    entry = first[first >= 0]
    kept[entry] = candidate[entry]
    return kept
