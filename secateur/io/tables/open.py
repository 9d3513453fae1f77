"""Open a table of any format by its location."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import UnsupportedTable
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.redaction import shown_location
from secateur.io.tables.directory.table import ParquetDirectory, has_iceberg_metadata, open_directory

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.storage.list_files import FileSystem
    from secateur.io.tables.iceberg.table import IcebergTable, PyIcebergTable


@dataclass(frozen=True)
class Moment:
    """The requested snapshot, for formats that have snapshots: by id, time, branch or tag."""

    snapshot_id: int | None = None
    as_of: dt.datetime | str | None = None
    ref: str | None = None


def open_at(
    location: str | os.PathLike[str] | PyIcebergTable,
    catalog: object,
    moment: Moment,
    *,
    index_location: str | None,
    filesystem: FileSystem | None,
    schema: pa.Schema | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> ParquetDirectory | IcebergTable:
    """Open the table at a location; see :func:`secateur.open_table`."""
    if catalog is not None or not isinstance(location, str | os.PathLike) or is_iceberg(location, filesystem):
        if schema is not None or filesystem is not None:
            raise ValueError("leave out schema and filesystem: an Iceberg table has its own")
        opening = _iceberg_opening()
        return opening.open_iceberg(
            location,
            catalog=catalog,
            selection=opening.selection(moment.snapshot_id, moment.as_of, moment.ref),
            index_location=index_location,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    place = os.fspath(location)
    if moment != Moment():
        raise ValueError(
            f"{shown_location(place)} is a directory of Parquet files, which has no snapshots to choose from"
        )
    return open_directory(
        place,
        index_location=index_location,
        filesystem=filesystem,
        schema=schema,
        freshness=freshness,
        disk_cache=disk_cache,
    )


def is_iceberg(location: str | os.PathLike[str], filesystem: FileSystem | None = None) -> bool:
    """Return whether a location is an Iceberg table: by its form, or by the metadata that lies there."""
    place = os.fspath(location)
    if ".metadata.json" in place:
        return True
    if "/" not in place and "." in place and not os.path.exists(place) and _has_pyiceberg():
        return bool(_iceberg_opening().known_catalog(place))
    _, resolved, root = resolve_location(place, filesystem)
    return has_iceberg_metadata(resolved, root)


def _has_pyiceberg() -> bool:
    return find_spec("pyiceberg") is not None


def _iceberg_opening() -> ModuleType:
    """Return the module that opens Iceberg tables. Raises UnsupportedTable if PyIceberg is not installed."""
    if not _has_pyiceberg():
        raise UnsupportedTable("Iceberg tables are opened with PyIceberg: pip install 'secateur[iceberg]'")
    return import_module("secateur.io.tables.iceberg.open")
