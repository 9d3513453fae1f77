"""Find what came between two snapshots of an Iceberg table.

A file's manifest entry names the snapshot that added it, and a snapshot's summary says what it did. Source: Iceberg's
specification, "Snapshots" and "Manifest Entry Fields".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Operation, Snapshot

from secateur.arrays import truths
from secateur.errors import MixedRewrite, TableChanged, UnknownSnapshot
from secateur.io.tables.history import ALL, AppendedFiles, NewFiles
from secateur.io.tables.iceberg.listing import of_iceberg
from secateur.io.tables.iceberg.manifest_arrays import Entries, Manifest
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from secateur.io.tables.listing import Listing

_OLD, _NEW = frozenset({False}), frozenset({True})  # whether the rows of a file are new; both is possible
_UNKNOWN = -1  # no manifest names the snapshot: its files count as new, since a row read twice beats a lost one
_MOST_NAMED = 5  # snapshots in a message


@dataclass(frozen=True)
class IcebergHistory:
    """The ancestors of one snapshot; see :class:`secateur.io.tables.history.History`."""

    table: IcebergSnapshot

    def identity_at(self, snapshot: int | None) -> str:
        """Return when a snapshot was made. (Tables of version 1 need not have a UUID.) Raises UnknownSnapshot."""
        known = self._known(snapshot)
        return "" if known is None else str(known.timestamp_ms)

    def newest(self) -> int | None:
        """Return the id of the snapshot that is read."""
        return self.table.id

    def snapshot_of(self, listing: Listing) -> int | None:
        """Return the snapshot itself: every listing belongs to one."""
        return self.table.id

    def new_files(self, since: int, listing: Listing) -> NewFiles:
        """Return the live files that were added after a snapshot, by appends and overwrites.

        Files that a `replace` wrote hold no new rows if all files that it replaced were there before, and only new rows
        if none of them was.
        """
        between = {snapshot.snapshot_id: snapshot for snapshot in self._between(since, self.table.snapshot_of)}
        origins = _Origins(self.table, between)
        added_by = _added_by(of_iceberg(listing).files)
        ids = [snapshot for snapshot in np.unique(added_by).tolist() if snapshot in between]
        for snapshot in ids:
            if len(origins.of(snapshot)) > 1:
                parent = between[snapshot].parent_snapshot_id
                raise MixedRewrite(
                    f"snapshot {snapshot} of {self.table.location} rewrote rows from before and from after snapshot "
                    f"{since} into the same files: read up to the one before it, by "
                    f"prune(open_table(..., snapshot_id={parent}), ..., since={since}), and go on with since={snapshot}"
                )
        new = [snapshot for snapshot in ids if origins.of(snapshot) == _NEW]
        return NewFiles(np.flatnonzero(np.isin(added_by, [*new, _UNKNOWN])))

    def appended(
        self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool, part: slice = ALL
    ) -> AppendedFiles:
        """Return the files that the appends between two snapshots added; without a first one, all of the table."""
        last = self._known(upto)
        at_last = replace(self.table, snapshot_of=last)
        if after is None or last is None:
            return AppendedFiles(at_last, at_last.listing_of(*at_last.entries)).take(part)
        manifests: list[Manifest] = []
        for snapshot in self._between(after, last):
            match _operation(snapshot):
                case Operation.APPEND:
                    at_append = replace(self.table, snapshot_of=snapshot)
                    manifests += at_append.entries_added_by(snapshot.snapshot_id).manifests
                case Operation.REPLACE:
                    pass
                case operation if not skip_changes:
                    raise TableChanged(
                        f"snapshot {snapshot.snapshot_id} of {self.table.location} is no append but "
                        f"{operation.value!r}: a stream cannot say which rows it changed. Set the option "
                        "skip_changes to go on without the rows of such snapshots, or begin anew with another "
                        f"checkpoint and since={snapshot.snapshot_id}"
                    )
        listing = at_last.listing_of(Entries(manifests), Entries(()))
        return AppendedFiles(at_last, replace(listing, left_out=_bytes(last))).take(part)

    def appended_sizes(self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool) -> np.ndarray:
        """Return the bytes of the appended files, in order."""
        return self.appended(after, upto, zone, skip_changes=skip_changes).listing.size

    def _known(self, snapshot: int | None) -> Snapshot | None:
        """Return a snapshot by its id. Raises UnknownSnapshot."""
        if snapshot is None:
            return None
        known = self.table.metadata.snapshot_by_id(snapshot)
        if known is None:
            raise UnknownSnapshot(
                f"{self.table.location} has no snapshot {snapshot} (any more): "
                f"{self._ancestors(self.table.snapshot_of)}"
            )
        return known

    def _between(self, since: int, last: Snapshot | None) -> list[Snapshot]:
        """Return the snapshots after one up to another, oldest first. Raises UnknownSnapshot."""
        self._known(since)
        path, snapshot = [], last
        while snapshot is not None and snapshot.snapshot_id != since:
            path.append(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.metadata.snapshot_by_id(parent)
        if snapshot is None:
            current = "no snapshot" if last is None else f"snapshot {last.snapshot_id}"
            raise UnknownSnapshot(
                f"snapshot {since} of {self.table.location} is no known ancestor of {current}, which is read: the "
                f"table was rolled back, or snapshots between them have expired; {self._ancestors(last)}"
            )
        return path[::-1]

    def _ancestors(self, last: Snapshot | None) -> str:
        """Return the names of a snapshot's known ancestors, the nearest first."""
        names: list[str] = []
        while last is not None and len(names) < _MOST_NAMED:
            names.append(str(last.snapshot_id))
            parent = last.parent_snapshot_id
            last = None if parent is None else self.table.metadata.snapshot_by_id(parent)
        return f"since= can be {', '.join(names)}" if names else "the table has no snapshot"


@dataclass(frozen=True)
class _Origins:
    """Whether the files that each snapshot added hold rows that came after a given snapshot."""

    table: IcebergSnapshot
    between: Mapping[int, Snapshot]

    def of(self, snapshot_id: int) -> frozenset[bool]:
        """Return whether the rows in a snapshot's added files are new; those of an earlier snapshot are old."""
        if snapshot_id == _UNKNOWN:
            return _NEW
        snapshot = self.between.get(snapshot_id)
        if snapshot is None:
            return _OLD
        if _operation(snapshot) is not Operation.REPLACE:
            return _NEW
        if snapshot_id not in self._rewritten:
            self._rewritten[snapshot_id] = self._of_rewrite(snapshot)
        return self._rewritten[snapshot_id]

    @cached_property
    def _rewritten(self) -> dict[int, frozenset[bool]]:
        return {}

    def _of_rewrite(self, snapshot: Snapshot) -> frozenset[bool]:
        """Return whether the rows that a rewrite moved are new: they are if those of the files that it removed are.

        If it removed no files, its files count as new, because a row read twice is better than a lost one.
        """
        assert snapshot.parent_snapshot_id is not None, "it comes after another one"
        parent = self.table.metadata.snapshot_by_id(snapshot.parent_snapshot_id)
        before, after = (replace(self.table, snapshot_of=end).entries[0].files for end in (parent, snapshot))
        is_gone = ~truths(pc.is_in(before.column("path"), value_set=after.column("path")))
        sources = np.unique(_added_by(before)[is_gone]).tolist()
        return frozenset().union(*map(self.of, sources)) if sources else _NEW


def _added_by(files: pa.RecordBatch) -> np.ndarray:
    """Return the id of the snapshot that added each file, int64 of shape (n_files,)."""
    added_by: np.ndarray = pc.fill_null(files.column("snapshot_id"), _UNKNOWN).to_numpy()
    return added_by


def _operation(snapshot: Snapshot) -> Operation:
    """Return what a snapshot did; "append" if it does not say, because a row read twice is better than a lost one."""
    return Operation.APPEND if snapshot.summary is None else snapshot.summary.operation


def _bytes(snapshot: Snapshot) -> int:
    """Return the bytes of a snapshot's data files by its summary; 0 if the summary does not have them."""
    size = None if snapshot.summary is None else snapshot.summary.additional_properties.get("total-files-size")
    return int(size) if size is not None and size.isdigit() else 0
