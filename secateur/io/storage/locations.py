"""Locations as table formats write them (usually URIs), and their filesystems."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.errors import InvalidOption, TableNotFound
from secateur.io.storage.azure_object import only_installed_credentials, with_key_of_environment
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import S3, cannot_open, redacted_location
from secateur.io.storage.time_limit import answered
from secateur.io.storage.transfer import received, sent

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL)
_HOSTS = ("hdfs", "viewfs")  # their paths do not begin with the host, unlike those of buckets
_S3_OF_HADOOP = re.compile(r"\As3[an]://")  # Hadoop's names of the scheme, which Arrow does not know
_DBFS, _DBFS_MOUNT = "dbfs:", "/dbfs"
_NEEDS_HADOOP = (
    ". HDFS is read by Hadoop's library libhdfs: set JAVA_HOME, HADOOP_HOME, and CLASSPATH to the output of "
    "`hadoop classpath --glob`"
)

_AZURE = ("abfs", "abfss", "az", "azure", "wasb", "wasbs", "adl")
_NEEDS_ACCOUNT = ". Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"

MakeFileSystem = Callable[[str, str], pafs.FileSystem]  # from a scheme and a host


def parsed(location: str) -> tuple[str, str, str]:
    """Split a location into its scheme, its host or bucket, and its path in that filesystem.

    A path is used unchanged: engines write names with ``%``, ``#`` and ``?`` unescaped.
    """
    match = _URI.fullmatch(location)
    if match is None:
        return "file", "", location
    scheme, host, path = match["scheme"].lower(), match["host"] or "", match["path"]
    host = host.rpartition("@")[2] if scheme in S3 else host  # its user is an access key
    return scheme, host, path if scheme in ("file", *_HOSTS) else host + path


def all_below(locations: pa.Array, roots: Sequence[str]) -> bool:
    """Return whether all locations are below one of the directories `roots`, without ``..``."""
    if pc.any(pc.match_substring(locations, "/../")).as_py():
        return False
    directories = pa.array(roots, pa.string())
    return _all_in(locations, directories) or _all_in(_comparable(locations), _comparable(directories))


def _all_in(locations: pa.Array, directories: pa.Array) -> bool:
    starts = [pc.starts_with(locations, directory.rstrip("/") + "/") for directory in directories.to_pylist()]
    return bool(pc.all(reduce(pc.or_, starts), min_count=0).as_py())


def _comparable(locations: pa.Array) -> pa.Array:
    """Normalise locations: one form for local paths (``/a``, ``file:/a``, ``file:///a``), and one for S3."""
    local = pc.replace_substring_regex(locations, r"^file:/+", "/")
    return pc.replace_substring_regex(local, r"^s3[an]://", "s3://")


@dataclass
class FileSystems:
    """Filesystems by scheme and host, each made once, and opened again in another process (`SentFileSystem`)."""

    make: MakeFileSystem | None = None
    known: dict[tuple[str, str], pafs.FileSystem] = field(default_factory=dict)

    def of(self, location: str) -> tuple[pafs.FileSystem, str]:
        """Return the filesystem of a location, and the path there. Raises TableNotFound for a URI of no filesystem."""
        scheme, host, path = parsed(location)
        if scheme == "file":
            return pafs.LocalFileSystem(), path
        if (scheme, host) not in self.known:
            self.known[scheme, host] = _filesystem(location) if self.make is None else self.make(scheme, host)
        return self.known[scheme, host], path

    def __getstate__(self) -> dict[str, object]:
        return {"make": None, "known": {place: sent(filesystem) for place, filesystem in self.known.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.make = None
        self.known = {place: received(filesystem) for place, filesystem in state["known"].items()}


def _filesystem(location: str) -> pafs.FileSystem:
    """Make the filesystem of a URI. Raises TableNotFound."""
    return _opened(location)[0]


def _opened(location: str) -> tuple[pafs.FileSystem, str]:
    """Make the filesystem of a URI; return it, and the path there. Raises TableNotFound."""
    scheme = location.partition(":")[0].lower()
    try:
        with only_installed_credentials if scheme in _AZURE else nullcontext():
            filesystem, path = _from_uri(_S3_OF_HADOOP.sub("s3://", location), scheme)
    except (pa.ArrowException, OSError, ValueError) as error:
        needs = _NEEDS_HADOOP if scheme in _HOSTS else _NEEDS_ACCOUNT if scheme in _AZURE else ""
        raise TableNotFound(cannot_open(location, error).splitlines()[0] + needs) from None
    return with_key_of_environment(filesystem), path


def _from_uri(uri: str, scheme: str) -> tuple[pafs.FileSystem, str]:
    """Make a filesystem by pyarrow, which may ask the store. Raises StoreUnreachable, and what pyarrow raises."""
    make = partial(pafs.FileSystem.from_uri, uri)
    pair: tuple[pafs.FileSystem, str] = make() if scheme == "file" else answered(make, redacted_location(uri))
    return pair


def resolve_location(location: str, filesystem: FileSystem | None) -> tuple[str, FileSystem, str]:
    """Return a redacted location, its filesystem, and the path there, for a URI or a path on this machine.

    Raises TableNotFound for a URI of no filesystem, InvalidOption for no text at all.
    """
    if filesystem is not None:
        return redacted_location(location), filesystem, location.rstrip("/")
    if not location:
        raise InvalidOption("a location is empty, as that of a variable which is not set: write . for this directory")
    if location.startswith(_DBFS):
        if not os.path.isdir(_DBFS_MOUNT):
            raise TableNotFound(f"{location} is read where DBFS is mounted at {_DBFS_MOUNT}, which this machine lacks")
        return location.rstrip("/"), pafs.LocalFileSystem(), f"{_DBFS_MOUNT}/{location[len(_DBFS) :].strip('/')}"
    if "://" in location or location.startswith("file:"):
        resolved, root = _opened(location)
        return redacted_location(location).rstrip("/"), resolved, root.rstrip("/")
    absolute = str(Path(location).expanduser().absolute())
    return absolute, pafs.LocalFileSystem(), absolute
