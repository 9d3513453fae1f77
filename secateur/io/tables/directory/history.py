"""Find what came between two snapshots of a directory's index. A directory has no snapshots of its own."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import TableChanged, UnknownSnapshot
from secateur.index.read.coverage import matching
from secateur.index.read.open_index import current_snapshot, numbered_snapshot
from secateur.index.segments.file_table import FileTable
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.history import ALL, AppendedFiles, NewFiles
from secateur.io.tables.listing import Listing


@dataclass(frozen=True)
class DirectoryHistory:
    """The snapshots of a directory's index; see :class:`secateur.io.tables.history.History`."""

    table: ParquetDirectory

    def identity_at(self, snapshot: int | None) -> str:
        """Return when an index snapshot was published: the numbers of an index that is rebuilt start again."""
        return "" if snapshot is None else repr(self._at(snapshot).created)

    def newest(self) -> int | None:
        """Return the number of the current index snapshot. Raises IndexFault."""
        snapshot = current_snapshot(self.table.store, self.table.cache)
        return None if snapshot is None else snapshot.number

    def snapshot_of(self, listing: Listing) -> int:
        """Return the current index snapshot, if it has exactly the files of a listing.

        It may have files that are gone. A live file that is not in the listing came later. Raises UnknownSnapshot.
        """
        snapshot = current_snapshot(self.table.store, self.table.cache)
        if snapshot is None:
            raise UnknownSnapshot(f"{self.table.location} has no index, which keeps its snapshots: call build_index()")
        file = self._matching(listing, snapshot)
        lacking = len(listing.size) - len(np.unique(file[file >= 0]))
        if lacking:
            raise UnknownSnapshot(
                f"{lacking:,} of the {len(listing.size):,} files that the plan has seen of {self.table.location} are "
                f"not in index snapshot {snapshot.number}: call refresh_index() before planning"
            )
        absent = file < 0
        if absent.any() and (self._matching(self.table.fresh_listing(dt.UTC), snapshot)[absent] >= 0).any():
            raise UnknownSnapshot(
                f"index snapshot {snapshot.number} of {self.table.location} has files that came after the plan was "
                "made: plan again"
            )
        return snapshot.number

    def _matching(self, listing: Listing, snapshot: Snapshot) -> np.ndarray:
        """Return the file of every entry; -1 if no listed file has the entry's identity."""
        return matching(recognised(self.table, listing, snapshot), snapshot.segment_files)

    def new_files(self, since: int, listing: Listing) -> NewFiles:
        """Return the live files that an index snapshot did not have. Raises UnknownSnapshot, IndexFault."""
        snapshot = self._at(since)
        was_there = np.zeros(len(listing.size), bool)
        file = self._matching(listing, snapshot)
        was_there[file[file >= 0]] = True
        return NewFiles(np.flatnonzero(~was_there), snapshot.schema)

    def appended(
        self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool, part: slice = ALL
    ) -> AppendedFiles:
        """Return the files that one index snapshot has and an earlier one lacks; without an earlier one, all that live.

        Raises TableChanged if such a file replaced an earlier one, or is gone; UnknownSnapshot, IndexFault.
        """
        listing = self.table.fresh_listing(zone)
        if upto is None:
            return AppendedFiles(self.table, listing.take(np.zeros(0, np.int64)))
        last = self._at(upto)
        file = self._matching(listing, last)
        chosen = self._new_entries(last, after, skip_changes=skip_changes)[part]
        if after is not None:
            is_gone = np.zeros(len(file), bool)
            is_gone[chosen] = file[chosen] < 0
            self._require(last.files, is_gone, "is gone, or was overwritten,", skip_changes)
        live = file[chosen]
        return AppendedFiles(self.table, listing.take(np.unique(live[live >= 0])), last.schema)

    def appended_sizes(self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool) -> np.ndarray:
        """Return the bytes of the appended files, in order, whether they are still there or not."""
        if upto is None:
            return np.zeros(0, np.int64)
        last = self._at(upto)
        return last.files.size[self._new_entries(last, after, skip_changes=skip_changes)]

    def _new_entries(self, last: Snapshot, after: int | None, *, skip_changes: bool) -> np.ndarray:
        """Return the entries of the files that an index snapshot has and an earlier one lacks, in order of their paths.

        Without an earlier one, these are all. Raises TableChanged if such a file replaced an earlier one.
        """
        entries = last.files
        by_path = pc.sort_indices(entries.path).to_numpy()
        if after is None:
            return by_path
        before = self._at(after).files
        is_new = ~_is_among(entries, before)
        has_old_name = is_new & pc.is_in(entries.path, value_set=before.path).to_numpy(zero_copy_only=False)
        self._require(entries, has_old_name, "was overwritten", skip_changes)
        return by_path[(is_new & ~has_old_name)[by_path]]

    def _require(self, entries: FileTable, changed: np.ndarray, how: str, skip_changes: bool) -> None:
        """Raise TableChanged for the first changed file, unless changes are skipped."""
        if changed.any() and not skip_changes:
            path = entries.path[int(np.flatnonzero(changed)[0])].as_py()
            raise TableChanged(
                f"{self.table.full_path(path)} {how} after the stream began: a stream cannot say which of its rows are "
                "new. Set the option skip_changes to go on without its rows, or begin anew with another checkpoint"
            )

    def _at(self, number: int) -> Snapshot:
        """Return an index snapshot by its number. Raises UnknownSnapshot, IndexFault."""
        snapshot = numbered_snapshot(self.table.store, number, self.table.cache)
        if snapshot is None:
            raise UnknownSnapshot(
                f"the index of {self.table.location} has no snapshot {number} (any more): vacuum_index removes those "
                "that were replaced longer ago than grace_seconds; its newest is "
                f"{self.newest() or 'none: build one with build_index()'}"
            )
        return snapshot


def _is_among(entries: FileTable, others: FileTable) -> np.ndarray:
    """Return which entries belong to files that `others` has, too: bool of shape (n_entries,).

    A copied file is still recognised: another witness does not matter if the last bytes are the same and the time is
    known.
    """
    is_among = np.zeros(len(entries.path), bool)
    names = ("path", "size", "stamp", "witness", "end")
    columns = [[getattr(table, name) for name in names] for table in (entries, others)]
    for by in (("path", "size", "stamp", "witness"), ("path", "size", "stamp", "end")):
        left, right = (pa.table(dict(zip(names, values, strict=True))) for values in columns)
        left = left.append_column("row", pa.array(np.arange(len(left))))
        if "end" in by:
            certain = (pc.field("end") != 0) & (pc.field("stamp") != 0)
            left, right = left.filter(certain), right.filter(certain)
        same = left.join(right.select(by), keys=list(by), join_type="left semi")
        is_among[same["row"].to_numpy()] = True
    return is_among
