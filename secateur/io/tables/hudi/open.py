"""Open Hudi tables by their location."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from secateur.io.storage.cache_directory import disk_cache_for
from secateur.io.storage.index_location import index_store
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.locations import resolve_location
from secateur.io.tables.freshness import seconds_of
from secateur.io.tables.hudi.instants import TEXT
from secateur.io.tables.hudi.table import HudiTable, InstantSelection
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache


def open_hudi(
    location: str,
    *,
    version: int | None = None,
    as_of: dt.datetime | str | None = None,
    read_optimized: bool = False,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
) -> HudiTable:
    """Open a Hudi table at its latest instant, at that of a commit, or at a time or any instant.

    Raises TableNotFound, UnknownSnapshot, UnsupportedTable, ValueError for an invalid time or two instants.
    """
    is_time = isinstance(as_of, str) and not TEXT.fullmatch(as_of)
    selection = InstantSelection(version, dt.datetime.fromisoformat(str(as_of)) if is_time else as_of)
    redacted, resolved, root = resolve_location(location, filesystem)
    store = index_store(resolved, root, index_location)
    disk = disk_cache or disk_cache_for(store.filesystem)
    places = TablePlaces(resolved, root, redacted)
    table = HudiTable(redacted, store, places, selection, read_optimized, seconds_of(freshness), disk)
    table.snapshot()
    return table
