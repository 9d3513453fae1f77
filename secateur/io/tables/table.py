"""The protocol of a table format: a table, its snapshots, their live files, and how they are opened and read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.index.naming import ColumnNaming
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.disk_cache import DiskCache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.file_source import OpenedFile, OpenForIndex
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import MetadataTables


class Table(Protocol):
    """A table of any format, which may change over time."""

    @property
    def location(self) -> str:
        """The absolute location, as the user gave it."""

    @property
    def store(self) -> FileStore:
        """The store of its index."""

    def snapshot(self, *, fresh: bool = False) -> TableSnapshot:
        """Return the current table; `fresh` ignores the allowed age, for builds and checks."""

    def expire(self) -> None:
        """Discard the cached listing; the next query lists again."""


class TableSnapshot(Table, Protocol):
    """A table at one moment. A table of a format without snapshots is its own snapshot."""

    @property
    def cache(self) -> ByteCache:
        """Cached bytes of its index and footers."""

    @property
    def disk(self) -> DiskCache | None:
        """The local disk cache of its index, if any."""

    @property
    def id(self) -> int | None:
        """The format's number of the snapshot; None if it has none."""

    @property
    def declared_schema(self) -> pa.Schema | None:
        """The schema given by the user (data and partition columns) or the format; None if only files have it."""

    @property
    def stored_schema(self) -> pa.Schema | None:
        """The declared columns that an index may have: without those whose values come from the table's metadata."""

    @property
    def metadata_tables(self) -> MetadataTables:
        """The snapshot's metadata besides its live files."""

    @property
    def naming(self) -> ColumnNaming:
        """How the index refers to columns."""

    def listing(self, zone: dt.tzinfo) -> Listing:
        """Return the live files, as old as the table allows; timestamps in partition values are read in `zone`.

        The same object may be returned many times, to any thread; anything derived from it can be cached by its id.
        """

    def fresh_listing(self, zone: dt.tzinfo) -> Listing:
        """List the live files now, whatever age :meth:`listing` allows: for builds and checks."""

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the path and schema of the given files."""

    def open_file(self, path: str) -> OpenedFile:
        """Open one file by its path, with columns named as in the table's schema."""

    @property
    def open_for_index(self) -> OpenForIndex:
        """A function that opens one file by its path, with columns named as in the index."""

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> tuple[Sequence[int], bytes | None] | None:
        """Return what to store of the table's own metadata beside the index; None if there is nothing.

        That is: which of the files from `before`, by name and size, to keep, and the bytes of one more, if any.
        """

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how the rows of some files are read."""

    def delivery_of_all(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how all rows of some files are read, deleted ones included, since the index covers those too."""

    def full_path(self, path: str) -> str:
        """Return the path of a file as Spark and other engines take it."""
