"""Which live files the index covers: its entries matched with the files of the table, once per pair of snapshots.

An index entry belongs to a file *identity* (path, size, modification time). A live file without an entry of its own
identity is not covered: its blocks come from its footer. So an index that is stale, partial or broken answers
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

from secateur.arrays import numbers, present, text_parts
from secateur.index.segments import FileTable
from secateur.index.snapshot import Snapshot
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import Counts
from secateur.pruning.zones import Zones


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

    def zones(self, column: Field) -> Zones | None: ...


@dataclass(frozen=True)
class Coverage:
    """The entries of an index snapshot matched with live files."""

    block_count: np.ndarray  # of every live file; -1 where the index does not know it
    row_count: np.ndarray
    byte_count: np.ndarray
    live: np.ndarray  # of every entry the position of its live file; -1 where there is none of its identity
    begin: np.ndarray  # the first entry of every segment, and behind the last
    entries: FileTable | None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(a.nbytes for a in (self.live, self.block_count, self.row_count, self.byte_count))

    @cached_property
    def uncovered(self) -> np.ndarray:
        """The live files that no segment covers, ascending."""
        return np.flatnonzero(self.block_count < 0)

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
        """Which entries are of a surviving file, a mask over the live files."""
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
        size += int(self.byte_count[loose].sum())
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
        table = self.entries
        if table is None:
            return np.zeros((4, 0), np.int64)
        counts = (np.ones(len(entries), np.int64), table.block_count, table.row_count, table.byte_count)
        return np.stack([self._add(np.where(entries, each, 0)) for each in counts])

    def _add(self, values: np.ndarray) -> np.ndarray:
        total = np.concatenate([[0], np.cumsum(values)])
        return np.diff(total[self.begin])

    def _some(self, entries: np.ndarray) -> np.ndarray:
        return np.flatnonzero(self._add(entries.astype(np.int64)))

    def _all(self, entries: np.ndarray) -> np.ndarray:
        return self._add(entries.astype(np.int64)) == np.diff(self.begin)


@dataclass(frozen=True)
class CoveredFiles:
    """The live files with the counts that the index knows of them; -1 where it does not."""

    live: LiveFiles
    coverage: Coverage

    def __len__(self) -> int:
        return len(self.coverage.block_count)

    @property
    def paths(self) -> pa.Array:
        return self.live.paths

    @property
    def block_count(self) -> np.ndarray:
        return self.coverage.block_count

    @property
    def row_count(self) -> np.ndarray:
        return self.coverage.row_count

    @property
    def byte_count(self) -> np.ndarray:
        return self.coverage.byte_count

    def zones(self, column: Field) -> Zones | None:
        return self.live.zones(column)


def uncovered(live: LiveFiles) -> Coverage:
    """The coverage of a table without an index."""
    nothing = np.full(len(live.size), -1, np.int64)
    return Coverage(nothing, nothing, live.size, np.zeros(0, np.int64), np.zeros(1, np.int64), None)


def covered(live: LiveFiles, snapshot: Snapshot) -> Coverage:
    """The coverage of a table by a snapshot. Raises IndexFault."""
    entries = snapshot.files
    candidate = _positions(entries.path, live.paths)
    same = candidate >= 0
    same[same] = (entries.size[same] == live.size[candidate[same]]) & (
        entries.modified[same] == live.modified[candidate[same]]
    )
    matched = _first_of_each(np.where(same, candidate, -1))
    nothing = uncovered(live)
    known = np.flatnonzero(matched >= 0)
    counts = {}
    for name in ("block_count", "row_count", "byte_count"):
        counts[name] = getattr(nothing, name).copy()
        counts[name][matched[known]] = getattr(entries, name)[known]
    return Coverage(**counts, live=matched, begin=snapshot.segments.file_begin, entries=entries)


def _positions(paths: pa.Array, among: pa.Array) -> np.ndarray:
    """Where each path stands among others; -1 where it does not. Often they are the same, in one order."""
    if all(map(np.array_equal, text_parts(paths), text_parts(among))):
        return np.arange(len(paths))
    found = pc.index_in(paths, value_set=among.cast(pa.large_string()))
    return np.where(present(found), numbers(found, np.int32), -1).astype(np.int64)


def _first_of_each(candidate: np.ndarray) -> np.ndarray:
    """The live file of every entry, and of entries for one file only the first: two would give its blocks twice."""
    entry = np.flatnonzero(candidate >= 0)[::-1]
    first = np.full(int(candidate.max(initial=-1)) + 1, -1, np.int64)
    first[candidate[entry]] = entry  # the last assignment, which is of the first entry, holds
    kept = np.full(len(candidate), -1, np.int64)
    entry = first[first >= 0]
    kept[entry] = candidate[entry]
    return kept
