"""A table that is only a listing and an index.

Nothing is imported here but what a query imports anyway, so that a new process can be timed
(:mod:`benchmarks.planning.cold`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.index.naming import BY_NAME, ByName
from secateur.index.read.memory_cache import ByteCache
from secateur.io.parquet.parquet_file import ParquetFile
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.disk_cache import DiskCache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import DirectoryTables
from secateur.io.tables.partitions import Partitions

FILE_BLOCKS = 4
BLOCK_BYTES = 128 << 20
MODIFIED = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class SyntheticTable:
    """A listing and an index without data; see :class:`secateur.io.tables.table.Table`.

    Every query gets the same listing, made beforehand with its id: neither is part of what is measured.
    """

    location: str
    store: FileStore
    files: Listing
    declared_schema: pa.Schema | None = None
    disk: DiskCache | None = None
    cache: ByteCache = field(default_factory=memory_cache, compare=False, repr=False)

    id: None = None
    stored_schema: None = None
    naming: ByName = BY_NAME
    metadata_tables: DirectoryTables = field(default_factory=DirectoryTables)

    def snapshot(self, *, fresh: bool = False) -> SyntheticTable:
        """The table itself: it does not change."""
        return self

    def expire(self) -> None:
        """Do nothing: the table never changes."""

    def listing(self, zone: dt.tzinfo) -> Listing:
        """The files, from memory: what listing a directory costs is not secateur's."""
        return self.files

    fresh_listing = listing

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """The schemas of files that the index does not cover: there are none."""
        assert not len(ordinals)
        return iter(())

    def open_file(self, path: str) -> ParquetFile:
        """There is no data."""
        raise FileNotFoundError(path)

    open_for_index = open_file

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> None:
        """It has no metadata of its own."""
        return

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """There is no data."""
        raise NotImplementedError

    delivery_of_all = delivery

    def full_path(self, path: str) -> str:
        """The path below the location."""
        return f"{self.location}/{path}"


def table_at(directory: Path, files: int) -> SyntheticTable:
    """The table of so many files whose index is in a directory; the id of its listing is known."""
    size = np.full(files, FILE_BLOCKS * BLOCK_BYTES, np.int64)
    listing = Listing(_paths(files), size, MODIFIED + np.arange(files), np.zeros(files, np.int64), Partitions((), ()))
    _ = listing.id
    return SyntheticTable(str(directory), FileStore(pafs.LocalFileSystem(), str(directory)), listing)


def _paths(n: int) -> pa.Array:
    numbers = pc.utf8_lpad(pa.array(np.arange(n)).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise("part-", numbers, ".parquet", "")
