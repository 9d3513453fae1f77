"""Locations as table formats write them, URIs as a rule, and the filesystems that they are in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow.fs as pafs

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
    return scheme, host, path if scheme in ("file", *_HOSTS) else host + path


@dataclass
class FileSystems:
    """Filesystems by scheme and host, made once; in another process those that were made here."""

    make: MakeFileSystem | None = None
    known: dict[tuple[str, str], pafs.FileSystem] = field(default_factory=dict)

    def of(self, location: str) -> tuple[pafs.FileSystem, str]:
        """The filesystem of a location, and the path there."""
        scheme, host, path = parsed(location)
        if scheme == "file":
            return pafs.LocalFileSystem(), path
        if (scheme, host) not in self.known:
            made = pafs.FileSystem.from_uri(location)[0] if self.make is None else self.make(scheme, host)
            self.known[scheme, host] = made
        return self.known[scheme, host], path

    def __getstate__(self) -> dict[str, object]:
        return {"make": None, "known": self.known}
