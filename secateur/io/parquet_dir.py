"""A directory of Parquet files as a table: nested directories, Hive partitions, any filesystem of pyarrow."""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import TableNotFound, UnsupportedTable
from secateur.index.cache import ByteCache
from secateur.io.parquet_file import ParquetSource, open_parquet
from secateur.io.partitions import read_partitions
from secateur.io.store import FileStore
from secateur.io.table import Listing

FileSystem: TypeAlias = pafs.FileSystem

INDEX_DIRECTORY = "_secateur"  # beside the data; engines ignore names that begin with an underscore
CACHE_BYTES = 1 << 30
FOOTER_THREADS = 16


@dataclass(frozen=True)
class ParquetDirectory:
    """A directory of Parquet files; see :class:`secateur.io.table.Table`."""

    location: str  # as the user gave it, absolute
    filesystem: FileSystem
    root: str  # the same within the filesystem
    store: FileStore
    declared_schema: pa.Schema | None = None
    cache: ByteCache = field(default_factory=lambda: ByteCache(CACHE_BYTES), compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "cache": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, cache=ByteCache(CACHE_BYTES))

    def listing(self, zone: dt.tzinfo) -> Listing:
        """The live files now, by path; names that begin with ``_`` or ``.`` are not part of the table."""
        selector = pafs.FileSelector(self.root, recursive=True)
        try:
            infos = self.filesystem.get_file_info(selector)
        except OSError as error:
            raise TableNotFound(f"cannot list {self.location}: {error}") from None
        prefix = self.root.rstrip("/") + "/"
        found = sorted(
            (info.path.removeprefix(prefix), info.size, info.mtime_ns or 0)
            for info in infos
            if info.type == pafs.FileType.File and _is_data(info.path.removeprefix(prefix))
        )
        paths = pa.array([path for path, _, _ in found], pa.string())
        size = np.array([size for _, size, _ in found], np.int64)
        modified = np.array([modified for _, _, modified in found], np.int64)
        return Listing(paths, size, modified, read_partitions(paths, zone))

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """The path and the schema of the given files; footers are read in parallel, and once per file identity."""

        def schema_of(ordinal: int) -> tuple[str, pa.Schema]:
            path = listing.paths[ordinal].as_py()
            key = ("schema", path, int(listing.size[ordinal]), int(listing.modified[ordinal]))
            return path, self.cache.get(key, lambda: self.open_file(path).schema)

        with ThreadPoolExecutor(FOOTER_THREADS) as threads:
            yield from threads.map(schema_of, ordinals.tolist())

    def open_file(self, path: str) -> ParquetSource:
        """One file by its path below the table."""
        return open_parquet(self.filesystem, posixpath.join(self.root, path), self.full_path(path))

    def full_path(self, path: str) -> str:
        """The path of a file as Spark and other engines take it."""
        return posixpath.join(self.location, path)


def _is_data(path: str) -> bool:
    """Whether Spark would read a file: no part of its path is hidden (``HadoopFSUtils.shouldFilterOutPathName``)."""
    return not any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in path.split("/")
    )


def open_directory(
    location: str,
    *,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    schema: pa.Schema | None = None,
) -> ParquetDirectory:
    """The table in a directory. Raises TableNotFound where there is none, UnsupportedTable for other formats."""
    shown, resolved, root = _resolve(location, filesystem)
    info = resolved.get_file_info(root)
    if info.type == pafs.FileType.NotFound:
        raise TableNotFound(f"no such table: {shown} does not exist")
    if info.type != pafs.FileType.Directory:
        raise TableNotFound(f"{shown} is a file; open the directory that holds the table's Parquet files")
    _refuse_other_formats(resolved, root, shown)
    if index_location is None:
        store = FileStore(resolved, posixpath.join(root, INDEX_DIRECTORY))
    else:
        _, index_filesystem, index_root = _resolve(index_location, None)
        store = FileStore(index_filesystem, index_root)
    return ParquetDirectory(shown, resolved, root, store, schema)


def _refuse_other_formats(filesystem: FileSystem, root: str, shown: str) -> None:
    """Raises UnsupportedTable for a Delta, Iceberg or Hudi table, among whose files are some that are not live."""
    for name, format_ in (("_delta_log", "Delta"), (".hoodie", "Hudi")):
        if filesystem.get_file_info(posixpath.join(root, name)).type == pafs.FileType.Directory:
            raise UnsupportedTable(
                f"{shown} is a {format_} table; only plain directories of Parquet files can be opened"
            )
    metadata = pafs.FileSelector(posixpath.join(root, "metadata"), allow_not_found=True)
    if any(info.base_name.endswith(".metadata.json") for info in filesystem.get_file_info(metadata)):
        raise UnsupportedTable(f"{shown} is an Iceberg table; only plain directories of Parquet files can be opened")


def _resolve(location: str, filesystem: FileSystem | None) -> tuple[str, FileSystem, str]:
    """A location as shown, its filesystem, and the path there: a URI, or a path on this machine."""
    if filesystem is not None:
        return location, filesystem, location.rstrip("/")
    if "://" in location or location.startswith("file:"):
        try:
            resolved, root = pafs.FileSystem.from_uri(location)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise TableNotFound(f"cannot open {location}: {error}") from None
        return location.rstrip("/"), resolved, root.rstrip("/")
    absolute = str(Path(location).expanduser().absolute())
    return absolute, pafs.LocalFileSystem(), absolute
