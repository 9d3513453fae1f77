"""Open a table of any format by its location."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import InvalidOption, TableNotFound, UnsupportedTable
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.redaction import redacted_location
from secateur.io.tables.directory.chosen import FileChoice, listed, matching, of_dataset
from secateur.io.tables.directory.table import ParquetDirectory, open_chosen, open_directory
from secateur.io.tables.look import TableLook, look_at
from secateur.io.tables.openers import is_of, opener_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable as DeltaLakeTable
    from pyarrow.dataset import Dataset

    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.storage.list_files import FileSystem
    from secateur.io.tables.delta.table import DeltaTable
    from secateur.io.tables.hudi.table import HudiTable
    from secateur.io.tables.iceberg.table import IcebergTable, PyIcebergTable
    from secateur.io.tables.openers import SparkFrame
    from secateur.io.tables.table import Table

    Source: TypeAlias = (
        str
        | os.PathLike[str]
        | Sequence[str | os.PathLike[str]]
        | Dataset
        | PyIcebergTable
        | DeltaLakeTable
        | SparkFrame
    )

DIRECTORY, ICEBERG, DELTA, HUDI = "directory", "iceberg", "delta", "hudi"


@dataclass(frozen=True)
class Moment:
    """The requested snapshot, for formats that have snapshots: by id or version, time, branch or tag.

    For a Hudi table also the view: its base files alone, or with what log files add to them.
    """

    snapshot_id: int | None = None
    as_of: dt.datetime | str | None = None
    ref: str | None = None
    version: int | None = None
    read_optimized: bool = False


def open_at(
    location: Source,
    catalog: object,
    moment: Moment,
    *,
    index_location: str | None,
    filesystem: FileSystem | None,
    schema: pa.Schema | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
    glob: str | None = None,
) -> ParquetDirectory | IcebergTable | DeltaTable | HudiTable:
    """Open the table at a location; see :func:`secateur.open_table`."""
    opener = opener_of(location)
    if opener is not None:
        if (catalog, moment, filesystem, schema, glob) != (None, Moment(), None, None, None):
            raise ValueError("leave out catalog, filesystem, schema, glob and a snapshot: the DataFrame tells them")
        opened: ParquetDirectory = opener(
            location, index_location=index_location, freshness=freshness, disk_cache=disk_cache
        )
        return opened
    recognition = Recognised(ICEBERG) if catalog is not None else recognised(location, filesystem)
    if glob is not None and recognition.format != DIRECTORY:
        raise ValueError(f"leave out glob: the metadata of {_redacted(location)} says which files it has")
    _require_fitting(recognition.format, location, moment, schema, filesystem)
    if recognition.format == DELTA:
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
    if recognition.format == HUDI:
        from secateur.io.tables.hudi.open import open_hudi

        return open_hudi(
            os.fspath(cast("str", location)),
            version=moment.version,
            as_of=moment.as_of,
            read_optimized=moment.read_optimized,
            index_location=index_location,
            filesystem=filesystem,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    if recognition.format == ICEBERG:
        return open_iceberg_by(
            location,
            moment,
            catalog=catalog,
            index_location=index_location,
            freshness=freshness,
            disk_cache=disk_cache,
        )
    if recognition.choice is not None:
        return open_chosen(
            recognition.choice,
            index_location=index_location,
            schema=schema,
            freshness=freshness,
            disk_cache=disk_cache,
            glob=glob,
        )
    assert isinstance(location, str | os.PathLike), "every other object is a table of a library, or some files"
    return open_directory(
        os.fspath(location),
        index_location=index_location,
        filesystem=filesystem,
        schema=schema,
        freshness=freshness,
        disk_cache=disk_cache,
        look=recognition.look,
        glob=glob,
    )


def _require_fitting(
    format: str | None, location: Source, moment: Moment, schema: pa.Schema | None, filesystem: FileSystem | None
) -> None:
    """Raise ValueError for what a table of a format cannot be opened with."""
    if format == DELTA:
        if schema is not None:
            raise ValueError("leave out schema: a Delta table has its own")
        if replace(moment, as_of=None, version=None) != Moment():
            raise ValueError("a Delta table has versions: choose one by version= or as_of=")
    elif format == HUDI:
        if schema is not None:
            raise ValueError("leave out schema: a Hudi table has its own")
        if replace(moment, as_of=None, version=None, read_optimized=False) != Moment():
            raise ValueError("a Hudi table has instants: choose one by version= or as_of=")
    elif moment.read_optimized:
        raise ValueError(f"{_redacted(location)} is no Hudi table: leave out read_optimized")
    elif format == ICEBERG:
        if schema is not None or filesystem is not None:
            raise ValueError("leave out schema and filesystem: an Iceberg table has its own")
    elif moment != Moment():
        raise ValueError(f"{_redacted(location)} is a table of Parquet files, which has no snapshots to choose from")


def as_table(source: Table | Source, glob: str | None = None) -> Table:
    """Return a table, opened by its location or from another library's object as by :func:`secateur.open_table`.

    Raises ValueError for a glob with a table that is open.
    """
    if opener_of(source) is None and hasattr(source, "snapshot") and hasattr(source, "store"):
        if glob is not None:
            raise ValueError("glob= is for a table named by its location: give it to open_table()")
        return cast("Table", source)
    return open_at(
        source,
        None,
        Moment(),
        index_location=None,
        filesystem=None,
        schema=None,
        freshness=None,
        disk_cache=None,
        glob=glob,
    )


def open_iceberg_by(
    source: object,
    moment: Moment,
    *,
    catalog: object = None,
    index_location: str | None,
    freshness: float | dt.timedelta | None,
    disk_cache: DiskCache | None,
) -> IcebergTable:
    """Open an Iceberg table by its location, its name, an object, or a function that returns its metadata file.

    Raises UnsupportedTable if PyIceberg is not installed, TableNotFound, UnknownSnapshot, ValueError.
    """
    if moment.version is not None or moment.read_optimized:
        raise ValueError("an Iceberg table has snapshots: choose one by snapshot_id=, as_of= or ref=")
    opening = _iceberg_opening()
    opened: IcebergTable = opening.open_iceberg(
        source,
        catalog=catalog,
        selection=opening.selection(moment.snapshot_id, moment.as_of, moment.ref),
        index_location=index_location,
        freshness=freshness,
        disk_cache=disk_cache,
    )
    return opened


@dataclass(frozen=True)
class Recognised:
    """The format of a table, and what recognising it has already looked up."""

    format: str
    look: TableLook | None = None  # at a directory
    choice: FileChoice | None = None  # of some files


def recognised(location: object, filesystem: FileSystem | None = None) -> Recognised:
    """Recognise the format of a table by the form of its location, or by the metadata that lies there.

    A table with a Delta log is a Delta table, whatever metadata is kept beside it for readers of other formats; one
    with Hudi's metadata is then a Hudi table. Raises TableNotFound, AccessDenied, ValueError.
    """
    if not isinstance(location, str | os.PathLike):
        return _of_object(location, filesystem)
    place = os.fspath(location)
    if ".metadata.json" in place:
        return Recognised(ICEBERG)
    choice = matching(place, filesystem)
    if choice is not None:
        return Recognised(DIRECTORY, choice=choice)
    if "/" not in place and "." in place and not os.path.exists(place) and _has_pyiceberg():
        opening = _iceberg_opening()
        is_known = opening.known_catalog(place)
        if filesystem is None and not is_known:
            raise TableNotFound(f"no such table: {place} is no path here, and {_catalogs_asked(opening)}")
        return Recognised(ICEBERG if is_known else DIRECTORY)
    redacted, resolved, root = resolve_location(place, filesystem)
    look = look_at(resolved, root, redacted)
    if look.kind == pafs.FileType.File:
        return Recognised(DIRECTORY, choice=listed([place], filesystem))
    return Recognised(_format_of(look), look)


def _catalogs_asked(opening: ModuleType) -> str:
    names = opening.known_catalogs()
    asked = f"begins with none of PyIceberg's catalogs ({', '.join(names)})" if names else "PyIceberg has no catalogs"
    return f"{asked}: give catalog=, or for a name of Spark's catalog spark= (on the command line --spark)"


def _format_of(look: TableLook) -> str:
    if look.has_commits:
        return DELTA
    if look.is_hudi:
        return HUDI
    return ICEBERG if look.is_iceberg else DIRECTORY


def _of_object(source: Any, filesystem: FileSystem | None) -> Recognised:
    if source is None:
        raise InvalidOption("None is no table: name one by its path, its URI or its identifier in a catalog")
    if isinstance(source, list | tuple):
        return Recognised(DIRECTORY, choice=listed(source, filesystem))
    if is_of(source, "pyarrow", "Dataset"):
        if filesystem is not None:
            raise ValueError("leave out filesystem: a dataset has its own")
        return Recognised(DIRECTORY, choice=of_dataset(source))
    return Recognised(DELTA if is_of(source, "deltalake", "DeltaTable") else ICEBERG)


def _redacted(location: object) -> str:
    return redacted_location(os.fspath(location)) if isinstance(location, str | os.PathLike) else "the table"


def _has_pyiceberg() -> bool:
    return find_spec("pyiceberg") is not None


def _iceberg_opening() -> ModuleType:
    """Return the module that opens Iceberg tables. Raises UnsupportedTable if PyIceberg is not installed."""
    if not _has_pyiceberg():
        raise UnsupportedTable("Iceberg tables are opened with PyIceberg: pip install 'secateur[iceberg]'")
    return import_module("secateur.io.tables.iceberg.open")
