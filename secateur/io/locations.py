"""Locations as table formats write them, URIs as a rule, and the filesystems that they are in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import TableNotFound
from secateur.io.sent_filesystem import received, sent
from secateur.io.shown import S3, cannot_open

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


@dataclass
class FileSystems:
    """Filesystems by scheme and host, made once; in another process as :mod:`sent_filesystem` has it."""

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
