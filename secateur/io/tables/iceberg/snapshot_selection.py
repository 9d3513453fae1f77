"""Select the snapshot of an Iceberg table to read, and its schema."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.snapshots import Snapshot

from secateur.errors import (
    UnknownSnapshot,
)


@dataclass(frozen=True)
class Selection:
    """The snapshot to read: the current one, a past one, or that of a branch or tag."""

    snapshot_id: int | None = None
    as_of: dt.datetime | None = None
    ref: str | None = None

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.snapshot_id, self.as_of, self.ref)) > 1:
            raise ValueError("snapshot_id, as_of and ref each name a snapshot: give one of them")


def selected(table: PyIcebergTable, selection: Selection) -> tuple[Snapshot | None, Schema]:
    """Return the selected snapshot of a table and its read schema. Raises UnknownSnapshot.

    A branch, like the table, uses the table's current schema; a tag or past snapshot has the schema of its time
    (``SnapshotUtil.schemaFor``).
    """
    if selection.snapshot_id is not None:
        chosen = table.metadata.snapshot_by_id(selection.snapshot_id)
        if chosen is None:
            raise UnknownSnapshot(f"{table.location()} has no snapshot {selection.snapshot_id}: {_known(table)}")
        return chosen, _schema_at(table, chosen)
    if selection.as_of is not None:
        milliseconds = int(selection.as_of.timestamp() * 1000)
        chosen = table.snapshot_as_of_timestamp(milliseconds)
        if chosen is None:
            raise UnknownSnapshot(f"{table.location()} had no snapshot at {selection.as_of}: {_known(table)}")
        return chosen, _schema_at(table, chosen)
    if selection.ref is not None:
        ref = table.metadata.refs.get(selection.ref)
        if ref is None:
            names = ", ".join(sorted(table.metadata.refs)) or "none"
            raise UnknownSnapshot(f"the table has no branch or tag {selection.ref!r}: there are {names}")
        chosen = table.metadata.snapshot_by_id(ref.snapshot_id)
        assert chosen is not None, "PyIceberg rejects metadata whose refs name no snapshot"
        return chosen, _schema_at(table, chosen) if ref.snapshot_ref_type == "tag" else table.schema()
    return table.current_snapshot(), table.schema()


def _schema_at(table: PyIcebergTable, snapshot: Snapshot) -> Schema:
    schemas = table.schemas()
    return schemas.get(snapshot.schema_id, table.schema()) if snapshot.schema_id is not None else table.schema()


def _known(table: PyIcebergTable) -> str:
    """Return the names of some existing snapshots, newest first."""
    latest = sorted(table.metadata.snapshots, key=lambda snapshot: -snapshot.timestamp_ms)[:5]
    moments = [dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC) for snapshot in latest]
    texts = [
        f"{snapshot.snapshot_id} of {moment:%Y-%m-%d %H:%M:%S} UTC"
        for snapshot, moment in zip(latest, moments, strict=True)
    ]
    return f"there are {'; '.join(texts)}" if texts else "there are none"
