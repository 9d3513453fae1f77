"""Some Parquet files as a table: a list, the matches of a pattern, or the files of a pyarrow dataset."""

from __future__ import annotations

import datetime as dt
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.errors import IndexNotWritable, TableNotFound, UnsupportedTable
from secateur.io.storage.index_location import INDEX_DIRECTORY, index_store
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.list_files import FileSystem, ListedFiles, joined, list_directories, list_files
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.redaction import trouble
from secateur.io.storage.time_limit import in_time
from secateur.io.tables.partitions import Partitions

if TYPE_CHECKING:
    from pyarrow.dataset import FileSystemDataset

_WILDCARDS = re.compile(r"[*?\[]")
_OF_A_BUCKET = 3  # parts of s3://bucket
_NOTHING = Partitions((), ())


@dataclass(frozen=True, eq=False)
class ChosenFiles:
    """Files that were chosen, with one value per file of each partition column."""

    files: ListedFiles
    partition_values: Partitions = _NOTHING

    def partitions(self, zone: dt.tzinfo) -> Partitions:
        """Return the values that were given with the files."""
        return self.partition_values

    def equals(self, other: object) -> bool:
        """Return whether another listing has the same files; partition values never change."""
        return isinstance(other, ChosenFiles) and self.files.equals(other.files)


@dataclass(frozen=True)
class Listed:
    """The layout of a table of certain files: their paths below the root, and their partition values."""

    paths: pa.Array
    partition_values: Partitions = _NOTHING

    def __call__(self, filesystem: FileSystem, root: str) -> ChosenFiles:
        """Look the files up. Raises TableNotFound if one is gone, OSError."""
        folders = pc.unique(pc.replace_substring_regex(self.paths, "[^/]*$", "")).to_pylist()
        listings = list_directories(filesystem, [posixpath.join(root, folder).rstrip("/") for folder in folders])
        files = joined(listings, folders)
        at = pc.index_in(files.paths, value_set=self.paths)
        files = files.take(np.flatnonzero(pc.is_valid(at).to_numpy(zero_copy_only=False)))
        if len(files.size) < len(self.paths):
            gone = self.paths.filter(pc.invert(pc.is_in(self.paths, value_set=files.paths)))
            raise TableNotFound(f"no such file: {posixpath.join(root, gone[0].as_py())}")
        return ChosenFiles(files, self.partition_values.take(at.drop_null()))


@dataclass(frozen=True)
class Matching:
    """The layout of a table of the files whose paths below the root match a pattern of RE2.

    Empty files have no rows, and are left out as in Spark.
    """

    pattern: str

    def __call__(self, filesystem: FileSystem, root: str) -> ChosenFiles:
        """List the files that match now. Raises OSError, UnicodeError."""
        files = list_files(filesystem, root)
        matches = pc.match_substring_regex(files.paths, self.pattern).to_numpy(zero_copy_only=False)
        return ChosenFiles(files.take(np.flatnonzero(matches & (files.size > 0))))


@dataclass(frozen=True)
class FileChoice:
    """Chosen files: the directory below which all of them lie, which they are, and the schema if it is known."""

    location: str
    filesystem: FileSystem | None  # None: that of the location
    layout: Listed | Matching
    schema: pa.Schema | None = None


def matching(location: str, filesystem: FileSystem | None) -> FileChoice | None:
    """Return the files that a pattern matches: ``*`` and ``?`` within a name, ``**`` any directories.

    In a URI, ``?`` begins the options. None if the location has no wildcards, or if a file of just that name exists.
    Raises TableNotFound.
    """
    pattern, options = _without_options(location)
    first = _WILDCARDS.search(pattern)
    if first is None:
        return None
    folder, _, _ = pattern[: first.start()].rpartition("/")
    rest = pattern[len(folder) :].lstrip("/")
    base = (folder or ("/" if pattern.startswith("/") else ".")) + options
    _, resolved, root = resolve_location(base, filesystem)
    if _looked_up(resolved, posixpath.join(root, rest)).type != pafs.FileType.NotFound:
        return None
    return FileChoice(base, filesystem, Matching(_regex(rest)))


def _without_options(location: str) -> tuple[str, str]:
    """Split a URI before its ``?``; a path is whole."""
    begin = location.find("?") if "://" in location else -1
    return (location, "") if begin < 0 else (location[:begin], location[begin:])


def _looked_up(filesystem: FileSystem, path: str) -> pafs.FileInfo:
    try:
        return in_time(partial(filesystem.get_file_info, path), filesystem, path)
    except (OSError, pa.ArrowException) as error:
        raise trouble(f"cannot look up {path}", error, TableNotFound) from None


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*|\?|\[[^\]/]+\])", pattern)
    return rf"\A{''.join(map(_translated, parts))}\z"


def _translated(part: str) -> str:
    match part:
        case "**/":
            return "(?:[^/]+/)*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if part.startswith("[") and part.endswith("]"):
            return "[^" + part[2:] if part[1] in "!^" else part
        case _:
            return re.escape(part)


def listed(locations: Sequence[str | os.PathLike[str]], filesystem: FileSystem | None) -> FileChoice:
    """Return some files, which are all on one filesystem. Raises ValueError if there is none, TableNotFound."""
    if not locations:
        raise ValueError("a list of files has at least one")
    texts = [os.fspath(text) for text in locations]
    if filesystem is None:
        texts = [text if "://" in text else str(Path(text).expanduser().absolute()) for text in texts]
    texts, options = map(list, zip(*map(_without_options, texts), strict=True))
    if len(set(options)) > 1:
        raise ValueError("the URIs of a table's files have the same options")
    parts = posixpath.commonprefix([text.split("/")[:-1] for text in texts])  # of directories
    if any("://" in text for text in texts) and len(parts) < _OF_A_BUCKET:
        raise ValueError("the files of a table are on one filesystem, and in one bucket")
    root = "/".join(parts) or ("" if filesystem is not None else "/")
    return FileChoice(
        root + options[0], filesystem, Listed(_distinct([text[len(root) :].lstrip("/") for text in texts]))
    )


def _distinct(paths: list[str]) -> pa.Array:
    if len(set(paths)) < len(paths):
        raise ValueError("a file is named twice")
    return pa.array(paths, pa.string())


def of_dataset(dataset: FileSystemDataset) -> FileChoice:
    """Return the files of a dataset, with its schema and partition values. Raises UnsupportedTable."""
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat, get_partition_keys

    if not isinstance(dataset, FileSystemDataset) or not isinstance(dataset.format, ParquetFileFormat):
        raise UnsupportedTable(f"only datasets of Parquet files are read, not {type(dataset).__name__}")
    fragments = list(dataset.get_fragments())
    keys = [get_partition_keys(fragment.partition_expression) for fragment in fragments]
    names = list(keys[0]) if keys else []
    if any(list(key) != names for key in keys):
        raise UnsupportedTable("the files of the dataset have different partition columns")
    schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in dataset.schema])
    values = tuple(pa.array([key[name] for key in keys], schema.field(name).type) for name in names)
    paths = [fragment.path for fragment in fragments]
    root = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    below = _distinct([path[len(root) :].lstrip("/") for path in paths])
    partition_values = Partitions(tuple(schema.field(name) for name in names), values)
    return FileChoice(root, dataset.filesystem, Listed(below, partition_values), schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


@dataclass(frozen=True)
class ReadOnlyStore(FileStore):
    """The index store of a directory, for a table of some of its files: it can be read, but not written."""

    def require_writable(self) -> None:
        """Raise IndexNotWritable."""
        self._refuse()

    def create(self, name: str, data: bytes) -> None:
        """Raise IndexNotWritable."""
        self._refuse()

    def put(self, name: str, data: bytes) -> None:
        """Raise IndexNotWritable."""
        self._refuse()

    def put_aside(self, name: str, data: bytes) -> None:
        """Raise IndexNotWritable."""
        self._refuse()

    def delete(self, name: str) -> None:
        """Raise IndexNotWritable."""
        self._refuse()

    def _refuse(self) -> None:
        raise IndexNotWritable(
            f"{self.root} is the place of the index of a whole directory: give index_location= for one of these files"
        )


def chosen_store(filesystem: FileSystem, root: str, index_location: str | None) -> FileStore:
    """Return the index store of some files; without a location, the store of their directory, read-only."""
    if index_location is None:
        return ReadOnlyStore(filesystem, posixpath.join(root, INDEX_DIRECTORY))
    return index_store(filesystem, root, index_location)
