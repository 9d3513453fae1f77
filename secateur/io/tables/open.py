"""Open a table of any format by its location."""

from __future__ import annotations

import datetime as dt
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import UnsupportedTable
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.redaction import redacted_location
from secateur.io.tables.directory.table import (
    ParquetDirectory,
    has_entries,
    has_iceberg_metadata,
    open_directory,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaLakeTable

    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.storage.list_files import FileSystem
    from secateur.io.tables.delta.table import DeltaTable
    from secateur.io.tables.iceberg.table import IcebergTable, PyIcebergTable

DIRECTORY, ICEBERG, DELTA = "directory", "iceberg", "delta"
_DELTA_LOG = "_delta_log"


@dataclass(frozen=True)
class Moment:
    """The requested snapshot, for formats that have snapshots: by id or version, time, branch or tag."""

    snapshot_id: int | None = None
    as_of: dt.datetime | str | None = None
    ref: str | None = None
    version: int | None = None


def open_at(
    location: str | os.PathLike[str] | PyIcebergTable | DeltaLakeTable,
    catalog: object,
    moment: Moment,
    *,
    index_location: str | None,
    filesystem: FileSystem | None,
    schema: pa.Schema | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> ParquetDirectory | IcebergTable | DeltaTable:
    """Open the table at a location; see :func:`secateur.open_table`."""
    format_ = ICEBERG if catalog is not None else format_of(location, filesystem)
    if format_ == DELTA:
        if schema is not None:
            raise ValueError("leave out schema: a Delta table has its own")
        if replace(moment, as_of=None, version=None) != Moment():
            raise ValueError("a Delta table has versions: choose one by version= or as_of=")
        from secateur.io.tables.delta.open import open_delta

        return open_delta(
            location,
            version=moment.version,
            as_of=moment.as_of,
            index_location=index_location,
            filesystem=filesystem,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    if format_ == ICEBERG:
        if schema is not None or filesystem is not None:
            raise ValueError("leave out schema and filesystem: an Iceberg table has its own")
        if moment.version is not None:
            raise ValueError("an Iceberg table has snapshots: choose one by snapshot_id=, as_of= or ref=")
        opening = _iceberg_opening()
        return opening.open_iceberg(
            location,
            catalog=catalog,
            selection=opening.selection(moment.snapshot_id, moment.as_of, moment.ref),
            index_location=index_location,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    assert isinstance(location, str | os.PathLike), "format_of takes every other object for a table of a library"
    place = os.fspath(location)
    if moment != Moment():
        raise ValueError(
            f"{redacted_location(place)} is a directory of Parquet files, which has no snapshots to choose from"
        )
    return open_directory(
        place,
        index_location=index_location,
        filesystem=filesystem,
        schema=schema,
        freshness=freshness,
        disk_cache=disk_cache,
    )


def format_of(location: object, filesystem: FileSystem | None = None) -> str:
    """Return the format of the table at a location: by its form, or by the metadata that lies there.

    A table with a Delta log is a Delta table, whatever metadata is kept beside it for readers of Iceberg.
    """
    if not isinstance(location, str | os.PathLike):
        return DELTA if _is_delta_object(location) else ICEBERG
    place = os.fspath(location)
    if ".metadata.json" in place:
        return ICEBERG
    if "/" not in place and "." in place and not os.path.exists(place) and _has_pyiceberg():
        return ICEBERG if _iceberg_opening().known_catalog(place) else DIRECTORY
    shown, resolved, root = resolve_location(place, filesystem)
    with ThreadPoolExecutor(1) as thread:  # wait for an object store once, not twice
        is_iceberg = thread.submit(has_iceberg_metadata, resolved, root)
        is_delta = has_entries(resolved, root, _DELTA_LOG, shown)
        return DELTA if is_delta else ICEBERG if is_iceberg.result() else DIRECTORY


def _is_delta_object(source: object) -> bool:
    """Return whether something is an open table of the library `deltalake`, which need not be installed."""
    kinds = type(source).__mro__
    return any(kind.__module__.partition(".")[0] == "deltalake" and kind.__name__ == "DeltaTable" for kind in kinds)


def _has_pyiceberg() -> bool:
    return find_spec("pyiceberg") is not None


def _iceberg_opening() -> ModuleType:
    """Return the module that opens Iceberg tables. Raises UnsupportedTable if PyIceberg is not installed."""
    if not _has_pyiceberg():
        raise UnsupportedTable("Iceberg tables are opened with PyIceberg: pip install 'secateur[iceberg]'")
    return import_module("secateur.io.tables.iceberg.open")
