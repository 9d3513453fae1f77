"""Which Parquet files make up a table, and what their partition values are: by directories, or by a catalog.

A layout is a function that lists the files. This module has the layout by directories; the others are in
:mod:`.registered` and :mod:`.chosen`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np

from secateur.arrays import from_numpy
from secateur.errors import TableNotFound
from secateur.io.storage.list_files import FileSystem, ListedFiles, list_files
from secateur.io.tables.directory.hive_partitions import read_partitions
from secateur.io.tables.partitions import Partitions


class FoundFiles(Protocol):
    """The files of a table at one moment."""

    @property
    def files(self) -> ListedFiles:
        """The files: paths below the table's root, or whole locations of files elsewhere."""

    def partitions(self, zone: dt.tzinfo) -> Partitions:
        """Return the values of the partition columns; timestamps are read in `zone`. Raises IncompatibleSchemas."""

    def equals(self, other: object) -> bool:
        """Return whether another listing has the same files, unchanged, with the same partitions."""


Layout: TypeAlias = Callable[[FileSystem, str], FoundFiles]  # of a filesystem, and the table's root there


@dataclass(frozen=True, eq=False)
class FilesInDirectories:
    """Files below a directory, with partition values in the names of directories.

    Empty files have no rows, and are left out as in Spark. As in Spark, the names of their directories still count when
    the types of partition columns are inferred.
    """

    listed: ListedFiles

    @cached_property
    def files(self) -> ListedFiles:
        """The files that are not empty."""
        return self.listed.take(self._live) if len(self._live) < len(self.listed.size) else self.listed

    @cached_property
    def _live(self) -> np.ndarray:
        return np.flatnonzero(self.listed.size)

    def partitions(self, zone: dt.tzinfo) -> Partitions:
        """Return the values in the names of directories."""
        every = read_partitions(self.listed.paths, zone)
        if len(self._live) == len(self.listed.size):
            return every
        return every.take(from_numpy(self._live))

    def equals(self, other: object) -> bool:
        """Return whether another listing has the same files."""
        return isinstance(other, FilesInDirectories) and self.listed.equals(other.listed)


def in_directories(filesystem: FileSystem, root: str) -> FilesInDirectories:
    """List all files below the root. Raises OSError, UnicodeError."""
    return FilesInDirectories(list_files(filesystem, root))


def listed_where_opened(filesystem: FileSystem, root: str) -> FoundFiles:
    """Raise TableNotFound: only the process that opened the table can ask its catalog."""
    raise TableNotFound(f"the files of {root} are listed only by the process that opened the table")
