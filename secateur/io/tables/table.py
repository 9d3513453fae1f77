"""The protocol of a table format: a table, its snapshots, their live files, and how to open and read one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.index.naming import ColumnNaming
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.disk_cache import DiskCache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.file_source import OpenedFile
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import MetadataTables


class Table(Protocol):
    """A table of any format, as it is from moment to moment."""

    @property
    def location(self) -> str:
        """Where the table is, as the user gave it, absolute."""

    @property
    def store(self) -> FileStore:
        """Where its index is."""

    def snapshot(self, *, fresh: bool = False) -> TableSnapshot:
        """The table as it is now: with `fresh` whatever age it allows, for builds and checks."""

    def expire(self) -> None:
        """Forget how old it is what is known of the table: the next query looks anew."""


class TableSnapshot(Table, Protocol):
    """A table at one moment; one of a format without snapshots stands for itself."""

    @property
    def cache(self) -> ByteCache:
        """What was read of its index and footers."""

    @property
    def disk(self) -> DiskCache | None:
        """Where pieces of its index are kept on local disk, if anywhere."""

    @property
    def id(self) -> int | None:
        """The number that the format gives the snapshot; None where it has none."""

    @property
    def declared_schema(self) -> pa.Schema | None:
        """The schema that the user gave, data and partition columns, or the format; None where files tell."""

    @property
    def metadata_tables(self) -> MetadataTables:
        """What the format tells of the snapshot besides its live files."""

    @property
    def naming(self) -> ColumnNaming:
        """How an index calls the columns."""

    def listing(self, zone: dt.tzinfo) -> Listing:
        """The live files, as old as the table allows; timestamps in partition values are read in `zone`.

        The same object may be given many times, to any thread; what is derived from it can be cached by its id.
        """

    def fresh_listing(self, zone: dt.tzinfo) -> Listing:
        """The live files now, whatever age :meth:`listing` allows: for builds and checks."""

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """The path and the schema of the given files."""

    def open_file(self, path: str) -> OpenedFile:
        """One file by its path, its columns called as in the table's schema."""

    def open_for_index(self, path: str) -> OpenedFile:
        """One file by its path, its columns called as an index calls them."""

    def kept_manifests(self) -> bytes | None:
        """What to keep of the table's own metadata beside the index; None where there is nothing."""

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """How the rows of some files are read."""

    def delivery_of_all(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """How all rows of some files are read, deleted ones too, of which an index tells as well."""

    def full_path(self, path: str) -> str:
        """The path of a file as Spark and other engines take it."""
