"""Open Iceberg tables: from a PyIceberg catalog, from a metadata file, or from the table's directory."""

from __future__ import annotations

import datetime as dt
import posixpath
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable, Table
from pyiceberg.utils.config import Config

from secateur.errors import InvalidOption, TableNotFound, UnsupportedTable
from secateur.io.storage.cache_directory import disk_cache_for, memory_cache
from secateur.io.storage.index_location import INDEX_DIRECTORY
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import FileSystems, resolve_location
from secateur.io.storage.redaction import has_secrets, redacted_location, trouble, without_secrets
from secateur.io.tables.freshness import seconds_of
from secateur.io.tables.iceberg.registration import PROPERTY
from secateur.io.tables.iceberg.snapshot_selection import Selection
from secateur.io.tables.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache

METADATA_DIRECTORY = "metadata"
VERSION_HINT = "version-hint.text"
SUFFIXES = (".metadata.json", ".metadata.json.gz")

_UNKNOWN_TYPE = re.compile(r"Unsupported field type: '(\w+)'")  # of PyIceberg
_UNKNOWN_DEFAULT = re.compile(r"Cannot deserialize bytes, type (\w+) not supported")
_NUMBERED = re.compile(r"v\d+\.")  # begins the names in a Hadoop table, which another in its place uses again

Load = Callable[[], Table]


def open_iceberg(
    source: object,
    *,
    catalog: object = None,
    selection: Selection,
    index_location: str | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
) -> IcebergTable:
    """Open an Iceberg table: `source` is an identifier in a catalog, a location, or a PyIceberg table.

    A function in its place returns the current metadata file, or the table's directory.

    Raises TableNotFound, UnknownSnapshot.
    """
    load, identifier = _loader(source, catalog)
    table = load()
    files = FileSystems(partial(_file_system, dict(table.io.properties)))
    location = table.location()
    if index_location is not None:
        index, filesystem, root = resolve_location(index_location, None)
    else:
        index = table.properties.get(PROPERTY) or posixpath.join(location, INDEX_DIRECTORY)
        filesystem, root = files.of(index)
    store = FileStore(filesystem, root)
    opened = IcebergTable(
        location,
        store,
        load,
        selection,
        seconds_of(freshness),
        index,
        identifier,
        files,
        memory_cache(),
        disk_cache or disk_cache_for(store.filesystem),
    )
    opened.snapshot()
    return opened


def selection(snapshot_id: int | None, as_of: dt.datetime | str | None, ref: str | None) -> Selection:
    """Return the snapshot to read. Raises ValueError for an invalid time, or more than one choice."""
    moment = dt.datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return Selection(snapshot_id, moment, ref)


def is_metadata_file(location: str) -> bool:
    """Return whether a location is a metadata file."""
    return location.endswith(SUFFIXES)


def known_catalog(identifier: str) -> bool:
    """Return whether a name starts with the name of a catalog in PyIceberg's configuration."""
    name, dot, _ = identifier.partition(".")
    return bool(dot) and name.lower() in known_catalogs()


def known_catalogs() -> list[str]:
    """Return the names of the catalogs in PyIceberg's configuration."""
    return sorted(Config().get_known_catalogs())


def _file_system(properties: Mapping[str, Any], scheme: str, host: str) -> pafs.FileSystem:
    return PyArrowFileIO(dict(properties)).fs_by_scheme(scheme, host)


def _loader(source: object, catalog: object) -> tuple[Load, tuple[str, ...] | None]:
    """Return a loader of the table's current state, and its identifier preceded by the catalog's name.

    Raises InvalidOption for a location with credentials.
    """
    if isinstance(source, Table):
        return partial(_reloaded, source), None if isinstance(source, StaticTable) else (
            source.catalog.name,
            *source.name(),
        )
    if callable(source):
        return partial(_from_function, source), None
    location = str(source)
    if has_secrets(location):
        raise InvalidOption(
            f"the location {redacted_location(location)} carries credentials, which PyIceberg does not take there: "
            "give them in the environment, or in the properties of the catalog"
        )
    if catalog is not None:
        opened_catalog = _catalog_of(catalog)
        return partial(_from_catalog, opened_catalog, location), (opened_catalog.name, *location.split("."))
    if is_metadata_file(location):
        return _static(resolve_location(location, None)[0]), None
    if known_catalog(location):
        name, _, rest = location.partition(".")
        return partial(_from_catalog, _named_catalog(name), rest), tuple(location.split("."))
    return partial(_from_directory, resolve_location(location, None)[0]), None


def _reloaded(table: Table) -> Table:
    return table if isinstance(table, StaticTable) else table.refresh()


def _catalog_of(catalog: object) -> Catalog:
    match catalog:
        case Catalog():
            return catalog
        case str():
            return _named_catalog(catalog)
        case Mapping():
            properties = dict(catalog)
            try:
                return load_catalog(properties.pop("name", "default"), **properties)
            except ValueError as error:
                raise ValueError(without_secrets(str(error))) from None
        case _:
            kind = type(catalog).__name__  # not the value, which may contain credentials
            raise TypeError(f"catalog is a catalog of PyIceberg, its name or its properties, not a value of {kind}")


@lru_cache(maxsize=32)
def _named_catalog(name: str) -> Catalog:
    """Return a catalog of PyIceberg's configuration by name; its connections are cached. Raises TableNotFound."""
    try:
        return load_catalog(name)
    except ValueError as error:
        raise TableNotFound(f"PyIceberg has no catalog {name!r}: {without_secrets(str(error))}") from None


def _from_catalog(catalog: Catalog, identifier: str) -> Table:
    try:
        return catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise TableNotFound(f"the catalog {catalog.name!r} has no table {identifier}: {error}") from None
    except (TypeError, ValidationError) as error:
        _require_known(identifier, error)
        raise


def _static(location: str) -> Load:
    """Return a loader of a metadata file, which never changes."""
    table = _from_metadata(location)
    return lambda: table


def _from_metadata(location: str) -> Table:
    try:
        return StaticTable.from_metadata(location)
    except (OSError, TypeError, ValueError, ValidationError) as error:
        _require_known(redacted_location(location), error)
        raise trouble(f"cannot read the Iceberg metadata {location}", error, TableNotFound) from None


def _require_known(table: str, error: Exception) -> None:
    """Raise UnsupportedTable if PyIceberg cannot read a table's metadata for a column that it does not know."""
    of_pyiceberg = f"which PyIceberg {version('pyiceberg')} does not know"
    if type_ := _UNKNOWN_TYPE.search(str(error)):
        raise UnsupportedTable(f"{table} has a column of Iceberg's type {type_[1]}, {of_pyiceberg}") from None
    if type_ := _UNKNOWN_DEFAULT.search(str(error)):
        raise UnsupportedTable(f"{table} has a column of {type_[1]} with a default, {of_pyiceberg}") from None


def _from_function(metadata_file: Callable[[], str]) -> Table:
    """Load the table at the location that a function returns: a metadata file, or a directory."""
    location = metadata_file()
    if not is_metadata_file(location):
        return _from_directory(location)
    if not _NUMBERED.match(posixpath.basename(location)):
        return _metadata_once(location)
    filesystem, path = FileSystems().of(location)
    info = filesystem.get_file_info(path)
    return _cached_metadata(location, int(info.size or 0), int(info.mtime_ns or 0))


@lru_cache(maxsize=64)
def _metadata_once(location: str) -> Table:
    """Load a metadata file that never changes."""
    return _from_metadata(location)


def _from_directory(location: str) -> Table:
    """Load the table of a directory from its newest metadata file."""
    newest = newest_metadata(location)
    return _cached_metadata(*newest)


@lru_cache(maxsize=64)
def _cached_metadata(location: str, size: int, modified: int) -> Table:
    """Load a metadata file, cached by size and time: a table that is dropped and recreated may reuse the name."""
    return _from_metadata(location)


def newest_metadata(location: str) -> tuple[str, int, int]:
    """Return the current metadata file of a directory, its size and modification time. Raises TableNotFound.

    That is the version in the hint, or a later one: a writer publishes the file before the hint
    (``HadoopTableOperations``). Without a hint it is the file with the highest version number.
    """
    filesystem, root = FileSystems().of(location)
    folder = posixpath.join(root, METADATA_DIRECTORY)
    infos = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    known = {info.base_name: info for info in infos if is_metadata_file(info.base_name)}
    names = list(known)
    if not names:
        raise TableNotFound(f"{location} has no Iceberg metadata: {folder} holds no *.metadata.json")
    hinted = _hinted(filesystem, posixpath.join(folder, VERSION_HINT))
    last = max(map(_version, names))
    newest = [name for name in names if _version(name) == last]
    named = [name for name in newest if hinted is not None and name.startswith((hinted, f"v{hinted}."))] or newest
    if len(named) > 1:
        raise TableNotFound(
            f"{location} has {len(named)} metadata files of version {last}, of which a catalog knows the right one: "
            "open the table by its catalog, or name the file"
        )
    chosen = known[named[0]]
    return posixpath.join(location, METADATA_DIRECTORY, named[0]), int(chosen.size), int(chosen.mtime_ns or 0)


def _hinted(filesystem: pafs.FileSystem, path: str) -> str | None:
    try:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read()).decode().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _version(name: str) -> int:
    """Parse the version number of ``v7.metadata.json`` or ``00007-<uuid>.metadata.json``."""
    digits = name.removeprefix("v").partition(".")[0].partition("-")[0]
    return int(digits) if digits.isdigit() else -1
