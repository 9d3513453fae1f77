"""One snapshot of an Iceberg table, behind the protocol that the package uses for tables."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from secateur.concurrency import at_once
from secateur.errors import (
    AccessDenied,
    IndexFault,
    InvalidParquet,
    SecateurError,
    StalePlan,
    TableNotFound,
    UnsupportedTable,
)
from secateur.index.naming import ByFieldId
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.open_index import current_snapshot
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import FileSystems, all_below
from secateur.io.storage.redaction import trouble
from secateur.io.tables.field_ids import called_by_id, fields_by_id, names_by_id, naming_of
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.iceberg.delete_file_index import DeleteFileIndex
from secateur.io.tables.iceberg.listing import IcebergListing, of_iceberg
from secateur.io.tables.iceberg.manifest_arrays import DATA, Entries, Manifest
from secateur.io.tables.iceberg.manifest_cache import ManifestKey, decode_manifests, manifest_bytes, shared_manifests
from secateur.io.tables.iceberg.manifests import first_row_id, read_manifest, read_manifest_list
from secateur.io.tables.iceberg.metadata_tables import IcebergTables
from secateur.io.tables.iceberg.partition_transforms import IDENTITY, PartitionField, partition_field
from secateur.io.tables.iceberg.row_deletes import DeleteFiles, IcebergReader, delivered
from secateur.io.tables.iceberg.schema import all_fields, arrow_schema, initial_defaults, name_mapping
from secateur.io.tables.listing import Listing
from secateur.io.tables.mapped_file import MappedFile, View
from secateur.io.tables.partitions import Partitions

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.file_source import OpenForIndex

MANIFEST_THREADS = 16
_DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


@dataclass(frozen=True)
class IcebergSnapshot:
    """One snapshot of an Iceberg table; see :class:`secateur.io.tables.table.TableSnapshot`."""

    location: str
    identifier: tuple[str, ...] | None  # in its catalog, with the catalog's name first
    store: FileStore
    metadata_location: str
    metadata: TableMetadata = field(repr=False)
    snapshot_of: Snapshot | None  # None for a table without snapshots
    schema_of: Schema = field(repr=False)
    io: FileIO = field(repr=False, compare=False)
    files: FileSystems = field(repr=False, compare=False)
    cache: ByteCache = field(repr=False, compare=False)
    disk: DiskCache | None = field(repr=False, compare=False)
    expire: Callable[[], None] = field(repr=False, compare=False)  # called if a file has vanished
    read: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []), init=False, repr=False, compare=False)
    # manifests of data and of deletes that were neither in memory nor stored beside the index

    def snapshot(self, *, fresh: bool = False) -> IcebergSnapshot:
        """Return the snapshot itself: it does not change."""
        return self

    def is_of(self, table: PyIcebergTable) -> bool:
        """Return whether this has the same metadata: a recreated table may have files of the same names."""
        then, now = self.metadata, table.metadata
        same = then.table_uuid == now.table_uuid and then.last_updated_ms == now.last_updated_ms
        return same and self.metadata_location == table.metadata_location

    @property
    def id(self) -> int | None:
        """The id of the snapshot."""
        return None if self.snapshot_of is None else self.snapshot_of.snapshot_id

    @property
    def sequence_number(self) -> int:
        """The sequence number of the snapshot; 0 in version 1."""
        return 0 if self.snapshot_of is None else self.snapshot_of.sequence_number or 0

    @cached_property
    def declared_schema(self) -> pa.Schema:
        """The schema of the snapshot. Raises UnsupportedTable."""
        return arrow_schema(self.schema_of)

    @property
    def stored_schema(self) -> pa.Schema:
        """The whole schema: files hold the columns that they are partitioned by, too."""
        return self.declared_schema

    @cached_property
    def naming(self) -> ByFieldId:
        """The index refers to columns by id."""
        return naming_of(self.declared_schema)

    @cached_property
    def specs(self) -> dict[int, Sequence[PartitionField]]:
        """The partition fields of every spec that the table has had."""
        return {spec.spec_id: _partition_fields(spec) for spec in self.metadata.specs().values()}

    @cached_property
    def view(self) -> View:
        """How a query sees the files."""
        from_partitions = {
            partition.source
            for fields in self.specs.values()
            for partition in fields
            if partition.transform == IDENTITY
        }
        mapping = self.metadata.name_mapping()
        return View(
            self.declared_schema,
            initial_defaults(self.schema_of),
            frozenset(from_partitions),
            None if mapping is None else name_mapping(mapping.root),
        )

    @cached_property
    def _remapped(self) -> frozenset[int]:
        """Ids of columns (and their children) whose former names the name mapping no longer gives to them.

        In files without ids, manifest statistics of these columns may belong to another column.
        """
        if self.view.mapping is None:
            return frozenset()
        names = names_by_id(self.view.mapping)
        fields = [old_field for schema in self.metadata.schemas for old_field in all_fields(schema.fields)]
        remapped = [old_field for old_field in fields if old_field.name not in names.get(old_field.field_id, ())]
        return frozenset(old_field.field_id for old_field in all_fields(remapped))

    @property
    def _mapping_code(self) -> int:
        """A number for the name mapping; 0 for none.

        If a column is renamed and another takes its name, the mapping gives the data of files without ids to the other
        column. Then the index's knowledge of a file no longer holds.
        """
        text = self.metadata.properties.get(TableProperties.DEFAULT_NAME_MAPPING)
        if text is None:
            return 0
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)

    @cached_property
    def reader(self) -> IcebergReader:
        """The reader that opens files, in this or another process."""
        return IcebergReader(self.view, self.files, expire=self.expire)

    @cached_property
    def _index_reader(self) -> IcebergReader:
        view = self.view
        by_id = View(called_by_id(view.schema), view.defaults, view.from_partitions, view.mapping)
        return IcebergReader(by_id, self.files)

    # ---- files

    def listing(self, zone: dt.tzinfo) -> IcebergListing:
        """Return the data files. Raises TableNotFound if manifests cannot be read, UnsupportedTable."""
        return self._listing

    fresh_listing = listing

    @cached_property
    def _listing(self) -> IcebergListing:
        return self.listing_of(*self.entries)

    def listing_of(self, data: Entries, deletes: Entries) -> IcebergListing:
        """Return the listing of some data files with some delete files. Raises UnsupportedTable."""
        paths = data.files.column("path")
        order = pc.sort_indices(paths).to_numpy().astype(np.int64)
        chosen = data.files.take(pa.array(order))
        stamp = pc.fill_null(chosen.column("snapshot_id"), -1).to_numpy() ^ self._mapping_code
        listing = IcebergListing(
            paths=chosen.column("path"),
            size=chosen.column("size").to_numpy(),
            stamp=stamp,
            witness=np.zeros(len(stamp), np.int64),  # data files are never written twice
            partitions=Partitions((), ()),
            has_metadata_column=True,
            schema=self.declared_schema,
            entries=data,
            order=order,
            specs=self.specs,
            deletes=DeleteFileIndex(deletes, data, order, self.specs),
            read_positions=self._positions,
            remapped=self._remapped,
            has_row_ids=self.metadata.format_version >= 3,
        )
        _require_parquet(chosen)
        return listing

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """Return the manifests of the snapshot. Raises TableNotFound."""
        if self.snapshot_of is None:
            return []
        listed = self.snapshot_of.manifest_list
        if not listed:
            raise UnsupportedTable(f"snapshot {self.id} of {self.location} has no manifest list: rewrite its manifests")
        with _naming(f"the manifest list {listed}"):
            return list(read_manifest_list(self.io.new_input(listed)))

    @cached_property
    def entries(self) -> tuple[Entries, Entries]:
        """The live data files and the live delete files. Raises TableNotFound, UnsupportedTable."""
        manifests = self._read_manifests
        data = [manifest for key, manifest in manifests.items() if not key.is_deletes]
        return Entries(data), Entries([manifest for key, manifest in manifests.items() if key.is_deletes])

    def entries_added_by(self, snapshot_id: int) -> Entries:
        """Return the live data files that one snapshot added; only manifests that it wrote are read."""
        written = [
            entry for entry in self.manifests if entry.content == DATA and entry.added_snapshot_id == snapshot_id
        ]
        manifests = self._contents(written).values()
        return Entries(
            [manifest.where(manifest.files.column("snapshot_id").to_numpy() == snapshot_id) for manifest in manifests]
        )

    @cached_property
    def _read_manifests(self) -> dict[ManifestKey, Manifest]:
        """The content of every manifest."""
        return self._contents(self.manifests)

    def _contents(self, manifests: Sequence[ManifestFile]) -> dict[ManifestKey, Manifest]:
        """Return the content of manifests: from memory, from the copy beside the index, or read in parallel."""
        listed = {_key(manifest): manifest for manifest in manifests}
        kept = self._kept([key for key in listed if not self.cache.holds(key)])

        def load(key: ManifestKey) -> Manifest:
            return self.cache.get(key, lambda: kept[key] if key in kept else self._read_manifest(listed[key]))

        return dict(zip(listed, at_once(load, [*listed], MANIFEST_THREADS), strict=True))

    def _kept(self, wanted: Sequence[ManifestKey]) -> dict[ManifestKey, Manifest]:
        """Return the wanted manifests that are stored beside the index, if they name only files of the table.

        Index errors only cost time: the manifests themselves are then read.
        """
        if wanted:
            with suppress(IndexFault):
                snapshot = current_snapshot(self.store, self.cache)
                if snapshot is not None and snapshot.made_of is not None:
                    return self._kept_in(snapshot.made_of.manifests, wanted)
        return {}

    def _kept_in(self, files: Sequence[tuple[str, int]], wanted: Sequence[ManifestKey]) -> dict[ManifestKey, Manifest]:
        """Return the wanted manifests that are in some index files, the one written last first.

        Those with doubles may have been read as floats when they were written there: these are read again.
        """
        kept: dict[ManifestKey, Manifest] = {}
        for name, size in reversed(files):
            left = [key for key in wanted if key not in kept]
            if left:
                with suppress(IndexFault):
                    kept |= decode_manifests(name, size, partial(self.store.read, name), left)
        return {key: cached for key, cached in kept.items() if not cached.has_doubles and self._is_within_table(cached)}

    def _is_within_table(self, manifest: Manifest) -> bool:
        """Return whether a stored manifest's files are within the table's own locations: an index must not lead
        elsewhere.
        """
        paths = (self.metadata.properties.get(name) for name in _DATA_PATHS)
        return all_below(manifest.files.column("path"), [self.location, *(path for path in paths if path)])

    def _read_manifest(self, manifest: ManifestFile) -> Manifest:
        self.read[int(manifest.content)].append(manifest.manifest_path)
        with _naming(f"the manifest {manifest.manifest_path}"):
            return read_manifest(self.io, manifest)

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> tuple[Sequence[int], bytes | None] | None:
        """Return the manifests' content to store beside the index, for the next process that opens the table."""
        if self.snapshot_of is None:
            return None
        in_files = [manifest_bytes(name, size, partial(self.store.read, name)) for name, size in before]
        return shared_manifests(in_files, self._read_manifests)

    @property
    def metadata_tables(self) -> IcebergTables:
        """The metadata tables of the snapshot."""
        return IcebergTables(self)

    # ---- reading

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the table's schema for every file, because files are read through it."""
        return ((listing.paths[ordinal].as_py(), self.declared_schema) for ordinal in ordinals.tolist())

    def open_file(self, path: str) -> MappedFile:
        """Open a data file by its path in manifests. Raises StalePlan, InvalidParquet."""
        return self.reader.open(path)

    @property
    def open_for_index(self) -> OpenForIndex:
        """A function that opens a data file with its columns named by id."""
        return self._index_reader.open

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how the live rows of some files are read; applicable delete files are read now."""
        return delivered(of_iceberg(listing), ordinals, self.reader, self._historical_fields, self.cache)

    def delivery_of_all(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how all rows of some files are read, deleted ones included."""
        iceberg_listing = of_iceberg(listing)
        return self.delivery(replace(iceberg_listing, deletes=iceberg_listing.deletes.emptied), ordinals)

    def _positions(self, listing: IcebergListing, ordinals: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None if they cannot be read here (Spark may be able
        to).
        """
        files = DeleteFiles(listing, ordinals, self.reader, self._historical_fields, self.cache)
        try:
            return [np.zeros(0, np.int64) if positions is None else positions for positions in files.positions()]
        except (UnsupportedTable, InvalidParquet, StalePlan, AccessDenied):
            return None

    @cached_property
    def _historical_fields(self) -> Mapping[int, pa.Field]:
        """The columns of every schema that the table has had, newest version by id: those that deletes may use."""
        historical: dict[int, pa.Field] = {}
        for schema in sorted(self.metadata.schemas, key=lambda old_schema: int(old_schema.schema_id)):
            historical |= {field.field_id: arrow_schema(Schema(field))[0] for field in schema.fields}
        return historical | {
            number: current for number, current in fields_by_id(self.declared_schema).items() if number in historical
        }

    def full_path(self, path: str) -> str:
        """Return a file's path as Spark and other engines take it: as in manifests."""
        return path


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Name what could not be read in the error raised: PyIceberg's readers raise arbitrary errors on corrupt bytes."""
    try:
        yield
    except SecateurError:
        raise
    except Exception as error:
        cause = error if str(error) else ValueError(type(error).__name__)
        raise trouble(f"cannot read {what}", cause, TableNotFound) from None


def _key(manifest: ManifestFile) -> ManifestKey:
    is_deletes = manifest.content != DATA
    identity = (manifest.manifest_path, manifest.manifest_length, manifest.sequence_number)
    return ManifestKey(*identity, is_deletes, first_row_id(manifest))


def _partition_fields(spec: PartitionSpec) -> list[PartitionField]:
    return [
        partition_field(partition.field_id, partition.source_id, str(partition.transform)) for partition in spec.fields
    ]


def _require_parquet(files: pa.RecordBatch) -> None:
    """Raise UnsupportedTable if a data file is not Parquet, or is encrypted."""
    formats = pc.utf8_upper(files.column("format"))
    other = pc.index(pc.not_equal(formats, "PARQUET"), True).as_py()
    if other >= 0:
        path, format_ = files.column("path")[other].as_py(), formats[other].as_py()
        raise UnsupportedTable(f"{path} is a file of {format_}; only tables of Parquet files are read here: use Spark")
    if files.column("key_metadata").null_count < files.num_rows:
        raise UnsupportedTable("the table's files are encrypted, and cannot be read here: use Spark")
