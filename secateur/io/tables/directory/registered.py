"""The partitions of a table that a catalog has registered: only their files are read, with the catalog's values.

Source: Spark's ``CatalogFileIndex`` and ``PartitioningAwareFileIndex.listFiles``: a partition has the files directly in
its directory, which need not exist.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import UnsupportedTable
from secateur.io.storage.list_files import NO_FILES, FileSystem, ListedFiles, joined, list_directories, list_files
from secateur.io.storage.locations import FileSystems
from secateur.io.tables.partition_values import typed_partitions
from secateur.io.tables.partitions import Partitions

_ELSEWHERE = "^/|://"


@dataclass(frozen=True)
class Registered:
    """The partitions of a table as a catalog has them: arrays of shape (n_partitions,)."""

    folders: pa.Array  # below the table's root, without slashes at the ends; or whole locations of others
    values: pa.StructArray  # texts, by column


@dataclass(frozen=True, eq=False)
class RegisteredFiles:
    """Files of registered partitions."""

    files: ListedFiles
    values: pa.StructArray  # texts of every file
    fields: tuple[pa.Field, ...]

    def partitions(self, zone: dt.tzinfo) -> Partitions:
        """Return the catalog's values. Raises UnsupportedTable if one is not of its column's type."""
        return typed_partitions(self.values, self.fields, zone)

    def equals(self, other: object) -> bool:
        """Return whether another listing has the same files with the same values."""
        if not isinstance(other, RegisteredFiles) or self.fields != other.fields:
            return False
        return self.files.equals(other.files) and bool(self.values.equals(other.values))


@dataclass(frozen=True)
class RegisteredPartitions:
    """The layout of a table whose partitions are registered in a catalog; `listed` asks the catalog for them."""

    listed: Callable[[], Registered]
    fields: tuple[pa.Field, ...]
    others: FileSystems

    def __call__(self, filesystem: FileSystem, root: str) -> RegisteredFiles:
        """List the files of all partitions.

        Raises OSError, UnicodeError, TableNotFound, UnsupportedTable if two partitions share a directory.
        """
        known = self.listed()
        if len(pc.unique(known.folders)) < len(known.folders):
            raise UnsupportedTable(f"two partitions of the table at {root} lie in one directory, which is read once")
        elsewhere = pc.match_substring_regex(known.folders, _ELSEWHERE)
        below = known.folders.filter(pc.invert(elsewhere))
        places = known.folders.filter(elsewhere).to_pylist()
        others = [
            list_directories(other_filesystem, [path])[0] for other_filesystem, path in map(self.others.of, places)
        ]
        files = joined([_below(filesystem, root, below), *others], ["", *(f"{place}/" for place in places)])
        numbers = pc.index_in(_folder_of(files.paths), value_set=known.folders)
        return RegisteredFiles(files, known.values.take(numbers), self.fields)


def _below(filesystem: FileSystem, root: str, folders: pa.Array) -> ListedFiles:
    """List the files directly in some folders below the root, by one walk of all that is there."""
    if not len(folders):
        return NO_FILES
    files = list_files(filesystem, root)
    is_live = pc.is_in(_folder_of(files.paths), value_set=folders)
    return files.take(np.flatnonzero(is_live.to_numpy(zero_copy_only=False)))


def _folder_of(paths: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(paths, "/?[^/]*$", "")
