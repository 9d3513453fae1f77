"""One version of a Delta table, behind the protocol that the package uses for tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import AccessDenied, InvalidParquet, StalePlan, UnsupportedTable
from secateur.index.naming import BY_NAME, ByFieldId, ByName
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.byte_ranges import files_at_once, is_local
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.delta.actions import PARSED, vector_ids
from secateur.io.tables.delta.data_file import DeltaReader, Naming
from secateur.io.tables.delta.deletion_vectors import read_vectors, require_pyroaring, vector_of
from secateur.io.tables.delta.listing import DeltaListing, of_delta
from secateur.io.tables.delta.log_state import LogState
from secateur.io.tables.delta.metadata_tables import DeltaTables
from secateur.io.tables.field_ids import naming_of
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.listing import Listing
from secateur.io.tables.partition_values import depends_on_zone, typed_partitions
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.file_source import OpenForIndex
    from secateur.io.tables.mapped_file import MappedFile
    from secateur.io.tables.named_file import NamedFile

_MILLISECOND = 1_000_000  # nanoseconds


def _nothing() -> None:
    """Do nothing: `expire` in another process."""


@dataclass
class DeltaSnapshot:
    """One version of a Delta table; see :class:`secateur.io.tables.table.TableSnapshot`."""

    location: str
    store: FileStore
    places: TablePlaces = field(repr=False)
    state: LogState = field(repr=False)
    cache: ByteCache = field(repr=False, compare=False)
    disk: DiskCache | None = field(repr=False, compare=False)
    expire: Callable[[], None] = field(repr=False, compare=False)  # called if a file has vanished
    _listings: dict[dt.tzinfo | None, DeltaListing] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "cache": None, "expire": _nothing, "_listings": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, cache=memory_cache())

    def snapshot(self, *, fresh: bool = False) -> DeltaSnapshot:
        """Return the snapshot itself: it does not change."""
        return self

    @property
    def id(self) -> int:
        """The version."""
        return self.state.version

    @property
    def declared_schema(self) -> pa.Schema:
        """The schema of the version."""
        return self.state.metadata.schema

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns that files hold: all but those of the partitioning."""
        return self.state.metadata.data_schema

    @cached_property
    def naming(self) -> ByName | ByFieldId:
        """The index refers to columns by id where the table maps columns, else by name."""
        return naming_of(self.declared_schema) if self.state.metadata.is_mapped else BY_NAME

    @property
    def metadata_tables(self) -> DeltaTables:
        """The metadata tables of the version."""
        return DeltaTables(self.places, self.id)

    @cached_property
    def reader(self) -> DeltaReader:
        """The reader that opens files, in this or another process."""
        return DeltaReader(self.places, Naming.of(self.state.metadata), self.expire)

    # ---- files

    def listing(self, zone: dt.tzinfo) -> DeltaListing:
        """Return the live files. Raises UnsupportedTable for a partition value that is not of its column's type."""
        fields = self.state.metadata.partition_fields
        key = zone if depends_on_zone(fields) else None
        known = self._listings.get(key)
        return known if known is not None else self._listings.setdefault(key, self._listed(zone))

    fresh_listing = listing

    def _listed(self, zone: dt.tzinfo) -> DeltaListing:
        files, metadata = self.state.files, self.state.metadata
        vectors = files["vector"].combine_chunks()
        return DeltaListing(
            paths=self.state.paths,
            size=files["size"].to_numpy(),
            stamp=files["modified"].to_numpy() * _MILLISECOND,
            witness=np.zeros(len(files), np.int64),  # data files are never written twice
            partitions=typed_partitions(files["partition"].combine_chunks(), metadata.partition_fields, zone),
            metadata=metadata,
            stats=files["stats"],
            parsed=files[PARSED] if PARSED in files.column_names else None,
            vectors=vectors if vectors.null_count < len(vectors) else None,
            read_positions=self._positions,
        )

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> None:
        """None: the log is read from its own files."""
        return

    # ---- reading

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the table's schema for every file, because files are read through it."""
        return ((listing.paths[ordinal].as_py(), self.stored_schema) for ordinal in ordinals.tolist())

    def open_file(self, path: str) -> NamedFile | MappedFile:
        """Open a data file by its path in the listing. Raises StalePlan, InvalidParquet."""
        return self.reader.open(path)

    @property
    def open_for_index(self) -> OpenForIndex:
        """A function that opens a data file with its columns named as in the index."""
        return replace(self.reader, naming=self.reader.naming.by_id()).open

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how the live rows of some files are read; their deletion vectors are read now.

        Raises InvalidParquet if one is corrupt, StalePlan if its file is gone.
        """
        positions = self._read_positions(of_delta(listing), ordinals)
        deleted = [rows.tobytes() if len(rows) else None for rows in positions]
        chosen, partitions = from_numpy(ordinals), listing.partitions
        values: pa.Array = pa.array([{}] * len(ordinals), pa.struct([]))
        if partitions.fields:
            columns = [column.take(chosen) for column in partitions.values]
            values = pa.StructArray.from_arrays(columns, fields=list(partitions.fields))
        of_files = pa.StructArray.from_arrays(
            [values, pa.array(deleted, pa.large_binary())], names=["partition", "deleted"]
        )
        filesystem = self.reader.places.filesystem
        return Delivery(of_files, self.reader.open_rows, files_at_once(filesystem), is_local(filesystem))

    def delivery_of_all(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how all rows of some files are read, deleted ones included."""
        return self.delivery(replace(of_delta(listing), vectors=None), ordinals)

    def _positions(self, listing: DeltaListing, ordinals: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None if they cannot be read."""
        try:
            return self._read_positions(listing, ordinals)
        except (UnsupportedTable, InvalidParquet, StalePlan, AccessDenied):
            return None

    def _read_positions(self, listing: DeltaListing, ordinals: np.ndarray) -> list[np.ndarray]:
        """Return the deleted positions of some files; vectors never change, so they are cached."""
        positions = [np.zeros(0, np.int64)] * len(ordinals)
        if listing.vectors is None:
            return positions
        vectors = listing.vectors.take(from_numpy(ordinals))
        touched = np.flatnonzero(pc.is_valid(vectors).to_numpy(zero_copy_only=False))
        if not len(touched):
            return positions
        require_pyroaring()
        touched_vectors = vectors.take(from_numpy(touched))
        paths = listing.paths.take(from_numpy(ordinals[touched])).to_pylist()
        keys = [
            ("deleted", path, vector_id)
            for path, vector_id in zip(paths, vector_ids(touched_vectors).to_pylist(), strict=True)
        ]
        parts = [self.cache.peek(key) for key in keys]
        missing = [i for i, part in enumerate(parts) if part is None]
        of_files = touched_vectors.take(pa.array(missing, pa.int64())).to_pylist()
        wanted = [vector_of(fields, paths[i]) for fields, i in zip(of_files, missing, strict=True)]
        for i, part in zip(missing, read_vectors(self.places.open, wanted), strict=True):
            parts[i] = self.cache.get(keys[i], lambda part=part: part)  # type: ignore[misc]
        for place, part in zip(touched.tolist(), parts, strict=True):
            positions[place] = part
        return positions

    def full_path(self, path: str) -> str:
        """Return a file's path as Spark and other engines take it."""
        return self.places.full_path(path)
