"""A Hudi table at one instant, behind the protocol that the package uses for tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.index.naming import BY_NAME, ByName
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.byte_ranges import files_at_once, is_local
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.hudi.data_file import HudiReader
from secateur.io.tables.hudi.metadata_tables import HudiTables
from secateur.io.tables.hudi.state import HudiState
from secateur.io.tables.listing import Listing
from secateur.io.tables.partition_values import depends_on_zone, typed_partitions
from secateur.io.tables.partitions import Partitions
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.file_source import OpenForIndex
    from secateur.io.tables.named_file import NamedFile


def _nothing() -> None:
    """Do nothing: `expire` in another process."""


@dataclass
class HudiSnapshot:
    """A Hudi table at one instant; see :class:`secateur.io.tables.table.TableSnapshot`."""

    location: str
    store: FileStore
    places: TablePlaces = field(repr=False)
    state: HudiState = field(repr=False)
    cache: ByteCache = field(repr=False, compare=False)
    disk: DiskCache | None = field(repr=False, compare=False)
    expire: Callable[[], None] = field(repr=False, compare=False)  # called if a file has vanished
    _listings: dict[dt.tzinfo | None, Listing] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "cache": None, "expire": _nothing, "_listings": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, cache=memory_cache())

    def snapshot(self, *, fresh: bool = False) -> HudiSnapshot:
        """Return the snapshot itself: it does not change."""
        return self

    @property
    def id(self) -> int:
        """The instant of the last commit."""
        return self.state.instant

    @property
    def declared_schema(self) -> pa.Schema:
        """The schema of the last commit, with Hudi's meta columns."""
        return self.state.schema

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns that files hold: all, unless the table drops its partition columns."""
        return self.state.stored_schema

    @property
    def naming(self) -> ByName:
        """The index refers to columns by name."""
        return BY_NAME

    @property
    def metadata_tables(self) -> HudiTables:
        """The timeline, and the live files."""
        return HudiTables(self.state)

    @cached_property
    def reader(self) -> HudiReader:
        """The reader that opens files, in this or another process."""
        return HudiReader(self.places, self.stored_schema, self.expire)

    # ---- files

    def listing(self, zone: dt.tzinfo) -> Listing:
        """Return the live files. Raises UnsupportedTable for a partition value that is not of its column's type."""
        fields = self.state.partition_fields
        key = zone if depends_on_zone(fields) else None
        known = self._listings.get(key)
        return known if known is not None else self._listings.setdefault(key, self._listed(fields, zone))

    fresh_listing = listing

    def _listed(self, fields: tuple[pa.Field, ...], zone: dt.tzinfo) -> Listing:
        state = self.state
        return Listing(
            paths=state.files.paths,
            size=state.size,
            stamp=state.stamp,
            witness=np.zeros(len(state.size), np.int64),  # base files are never written twice
            partitions=typed_partitions(state.partition_texts(), fields, zone) if fields else Partitions((), ()),
        )

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> None:
        """None: the timeline is read from its own files."""
        return

    # ---- reading

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the table's schema for every file, because files are read through it."""
        return ((listing.paths[ordinal].as_py(), self.stored_schema) for ordinal in ordinals.tolist())

    def open_file(self, path: str) -> NamedFile:
        """Open a base file by its path in the listing. Raises StalePlan, InvalidParquet."""
        return self.reader.open(path)

    @property
    def open_for_index(self) -> OpenForIndex:
        """A function that opens a base file with its columns named as in the index."""
        return self.reader.open

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how the rows of some files are read; the reader options are the values of columns that they lack."""
        chosen, partitions = from_numpy(ordinals), listing.partitions
        options: pa.Array = pa.array([{}] * len(ordinals), pa.struct([]))
        if partitions.fields:
            values = [column.take(chosen) for column in partitions.values]
            options = pa.StructArray.from_arrays(values, fields=list(partitions.fields))
        filesystem = self.reader.places.filesystem
        return Delivery(options, self.reader.open_rows, files_at_once(filesystem), is_local(filesystem))

    delivery_of_all = delivery

    def full_path(self, path: str) -> str:
        """Return a file's path as Spark and other engines take it."""
        return self.places.full_path(path)
