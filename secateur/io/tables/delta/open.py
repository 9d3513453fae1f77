"""Open Delta tables, by their location or from an open table of the library `deltalake`."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

from secateur.io.storage.cache_directory import disk_cache_for
from secateur.io.storage.index_location import index_store
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.locations import resolve_location
from secateur.io.tables.delta.table import DeltaTable, VersionSelection
from secateur.io.tables.freshness import seconds_of
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache


def open_delta(
    source: object,
    *,
    version: int | None = None,
    as_of: dt.datetime | str | None = None,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
) -> DeltaTable:
    """Open a Delta table: `source` is its location, or a table of `deltalake`, whose version is read.

    Raises TableNotFound, UnknownSnapshot, UnsupportedTable, ValueError for an invalid time or two versions.
    """
    location, selection = _selected(source, version, as_of)
    redacted, resolved, root = resolve_location(location, filesystem)
    store = index_store(resolved, root, index_location)
    disk = disk_cache or disk_cache_for(store.filesystem)
    table = DeltaTable(redacted, store, TablePlaces(resolved, root, redacted), selection, seconds_of(freshness), disk)
    table.snapshot()
    return table


def _selected(source: object, version: int | None, as_of: dt.datetime | str | None) -> tuple[str, VersionSelection]:
    moment = dt.datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    if not isinstance(source, str | os.PathLike):
        known: Any = source
        loaded = known.version if version is None and moment is None else None
        return str(known.table_uri), VersionSelection(version, moment, loaded)
    return os.fspath(source), VersionSelection(version, moment)
