"""Locations as table formats write them, URIs as a rule, and the filesystems that they are in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.errors import TableNotFound
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import S3, cannot_open, shown_location
from secateur.io.storage.transfer import received, sent

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL)
_HOSTS = ("hdfs", "viewfs")  # whose paths do not begin with the host, as those of buckets do

MakeFileSystem = Callable[[str, str], pafs.FileSystem]  # of a scheme and a host


def parsed(location: str) -> tuple[str, str, str]:
    """The scheme of a location, its host or bucket, and its path in that filesystem.

    A path is taken as it stands: engines write names with ``%``, ``#`` and ``?`` unescaped.
    """
    found = _URI.fullmatch(location)
    if found is None:
        return "file", "", location
    scheme, host, path = found["scheme"].lower(), found["host"] or "", found["path"]
    host = host.rpartition("@")[2] if scheme in S3 else host  # whose user is an access key
    return scheme, host, path if scheme in ("file", *_HOSTS) else host + path


def all_below(locations: pa.Array, roots: Sequence[str]) -> bool:
    """Whether all locations are below some of the directories `roots`, and none goes up again."""
    if pc.any(pc.match_substring(locations, "/../")).as_py():
        return False
    directories = pa.array(roots, pa.string())
    return _all_in(locations, directories) or _all_in(_comparable(locations), _comparable(directories))


def _all_in(locations: pa.Array, directories: pa.Array) -> bool:
    starts = [pc.starts_with(locations, each.rstrip("/") + "/") for each in directories.to_pylist()]
    return bool(pc.all(reduce(pc.or_, starts), min_count=0).as_py())


def _comparable(locations: pa.Array) -> pa.Array:
    """Locations with one form for local paths, of three (``/a``, ``file:/a``, ``file:///a``), and one for S3."""
    local = pc.replace_substring_regex(locations, r"^file:/+", "/")
    return pc.replace_substring_regex(local, r"^s3[an]://", "s3://")


@dataclass
class FileSystems:
    """Filesystems by scheme and host, made once; in another process opened anew (`sent_filesystem`)."""

    make: MakeFileSystem | None = None
    known: dict[tuple[str, str], pafs.FileSystem] = field(default_factory=dict)

    def of(self, location: str) -> tuple[pafs.FileSystem, str]:
        """The filesystem of a location, and the path there. Raises TableNotFound for a URI of no filesystem."""
        scheme, host, path = parsed(location)
        if scheme == "file":
            return pafs.LocalFileSystem(), path
        if (scheme, host) not in self.known:
            self.known[scheme, host] = _made(location) if self.make is None else self.make(scheme, host)
        return self.known[scheme, host], path

    def __getstate__(self) -> dict[str, object]:
        return {"make": None, "known": {place: sent(filesystem) for place, filesystem in self.known.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.make = None
        self.known = {place: received(filesystem) for place, filesystem in state["known"].items()}


def _made(location: str) -> pafs.FileSystem:
    """The filesystem of a URI. Raises TableNotFound."""
    try:
        return pafs.FileSystem.from_uri(location)[0]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableNotFound(cannot_open(location, error)) from None


def resolve_location(location: str, filesystem: FileSystem | None) -> tuple[str, FileSystem, str]:
    """A location as shown, its filesystem, and the path there: a URI, or a path on this machine.

    Raises TableNotFound for a URI of no filesystem.
    """
    if filesystem is not None:
        return shown_location(location), filesystem, location.rstrip("/")
    if "://" in location or location.startswith("file:"):
        try:
            resolved, root = pafs.FileSystem.from_uri(location)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise TableNotFound(cannot_open(location, error)) from None
        return shown_location(location).rstrip("/"), resolved, root.rstrip("/")
    absolute = str(Path(location).expanduser().absolute())
    return absolute, pafs.LocalFileSystem(), absolute
