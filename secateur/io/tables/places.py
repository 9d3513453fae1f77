"""Where the data files of a table are: below its location, or elsewhere."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.locations import FileSystems
from secateur.io.storage.object_file import open_file
from secateur.io.storage.transfer import received, sent


@dataclass(frozen=True)
class TablePlaces:
    """The place of every file of a table: below its root, or elsewhere, as in a shallow clone."""

    filesystem: FileSystem
    root: str
    location: str
    others: FileSystems = field(default_factory=FileSystems)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "filesystem": sent(self.filesystem)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, filesystem=received(state["filesystem"]))

    def of(self, path: str) -> tuple[FileSystem, str]:
        """Return the filesystem of a file, and its path there. Raises TableNotFound for a URI of no filesystem."""
        return self.others.of(path) if is_absolute(path) else (self.filesystem, posixpath.join(self.root, path))

    def full_path(self, path: str) -> str:
        """Return a file's whole location."""
        return path if is_absolute(path) else posixpath.join(self.location, path)

    def open(self, path: str) -> pa.NativeFile:
        """Open any file of the table."""
        return open_file(*self.of(path))


def is_absolute(path: str) -> bool:
    """Return whether a path in a listing is a location by itself, elsewhere than the table's."""
    return "://" in path or path.startswith(("/", "file:"))


def any_absolute(paths: pa.Array) -> bool:
    """Return whether some of the paths in a listing are not below the table's location."""
    return bool(pc.any(pc.match_substring_regex(paths, "^/|://|^file:"), min_count=0).as_py())
