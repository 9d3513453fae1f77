"""The live files of one Iceberg snapshot, with the statistics from its manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import present
from secateur.errors import UnsupportedTable
from secateur.index.zones import zonemap
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.tables.field_ids import fields_by_id, paths
from secateur.io.tables.iceberg.bounds import decoded
from secateur.io.tables.iceberg.delete_file_index import DeleteFileIndex
from secateur.io.tables.iceberg.manifest_arrays import Entries
from secateur.io.tables.iceberg.partition_transforms import (
    IDENTITY,
    VOID,
    PartitionField,
    in_buckets,
    source_bounds,
    typed,
)
from secateur.io.tables.listing import ConstantColumn, DeleteCounts, Listing
from secateur.io.tables.projection import is_uuid, uuid_texts
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Question, Values
from secateur.values.combination import concatenate, greatest_per_group, least_per_group
from secateur.values.kinds import is_float, kind_of

Specs = Mapping[int, Sequence[PartitionField]]


@dataclass(frozen=True)
class IcebergListing(Listing):
    """The data files of a snapshot, ordered by path. `stamp` is the id of the snapshot that added a file, mixed with
    a number for the table's name mapping if it has one.

    Files are named as in manifests: usually by URI. An index entry belongs to a path, a size and the snapshot that
    added the file; rewriting manifests does not change these.
    """

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    entries: Entries = field(default_factory=lambda: Entries(()))
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of the entries, by path
    specs: Specs = field(default_factory=dict)
    deletes: DeleteFileIndex = field(
        default_factory=lambda: DeleteFileIndex(Entries(()), Entries(()), np.zeros(0, np.int64), {})
    )
    read_positions: Callable[[IcebergListing, np.ndarray], list[np.ndarray] | None] | None = None
    remapped: frozenset[int] = frozenset()  # columns whose manifest statistics may be those of another column

    def take(self, files: np.ndarray) -> Self:
        """Return some files, given by ascending ordinals, with their entries and all delete files."""
        entry = self.order[files]
        kept = np.zeros(len(self.entries), bool)
        kept[entry] = True
        entries, order = self.entries.where(kept), (np.cumsum(kept) - 1)[entry]
        deletes = replace(self.deletes, data=entries, order=order)
        return replace(super().take(files), entries=entries, order=order, deletes=deletes)

    @cached_property
    def files(self) -> pa.RecordBatch:
        """The manifest fields of every file, in order."""
        return self.entries.files.take(pa.array(self.order))

    @cached_property
    def row_count(self) -> np.ndarray:
        """The rows of every file, deleted ones included."""
        counts: np.ndarray = self.files.column("record_count").to_numpy()
        return counts

    def row_ids(self, ordinals: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Return the id of the first row of some files, NULL for none, and the sequence number of their rows."""
        entries = pa.array(self.order[ordinals])
        return self.entries.files.column("first_row_id").take(entries), self.entries.files.column("sequence").take(
            entries
        )

    @cached_property
    def _position(self) -> np.ndarray:
        """The position of every entry in the order."""
        position = np.empty(len(self.order), np.int64)
        position[self.order] = np.arange(len(self.order))
        return position

    @cached_property
    def _ids(self) -> dict[tuple[str, ...], int]:
        return {names: ids[-1] for names, ids in paths(self.schema)}

    @property
    def row_state(self) -> tuple[pa.Array, ...]:
        """Also the delete files, and the sequence numbers that say to which files they apply."""
        if not len(self.deletes.deletes):
            return super().row_state
        return (*super().row_state, *self.deletes.files.columns, self.files.column("sequence"))

    @property
    def touched(self) -> np.ndarray | None:
        """Which files some delete file applies to."""
        return self.deletes.touched if len(self.deletes.deletes) else None

    def delete_counts(self, ordinals: np.ndarray) -> DeleteCounts:
        """Return the delete files of the snapshot, and how far they apply to some files, given ascending."""
        return self.deletes.counts(ordinals)

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """Return an upper bound of the rows deleted by position in some files, given ascending, from record counts
        only.
        """
        return self.deletes.most_deleted(files)

    def deleted_by_value(self, files: np.ndarray) -> np.ndarray:
        """Return to which files, given ascending, an equality delete may apply: bool, like `files`."""
        return self.deletes.deleted_by_value(files)

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None if they cannot be read.

        A delete file is read for all files `among` that it applies to, and their positions are cached: the reader of
        the plan will need them.
        """
        if self.read_positions is None:
            return None
        wanted = self.deletes.sharing(files, among)
        positions = self.read_positions(self, wanted)
        return None if positions is None else [positions[i] for i in np.searchsorted(wanted, files).tolist()]

    def zones(self, column: Field) -> Zones | None:
        """None: manifests do not replace the files' own statistics of a column."""
        return None

    def bounds(self, column: Field, among: np.ndarray) -> Zones | None:
        """Return bounds of a column from partition values and, for files `among`, manifest bounds and counts."""
        field_id = self._ids.get(column.path)
        if field_id is None or kind_of(column.type) is None:
            return None
        known = self._zones.get((field_id, column.type))
        if known is None or known[0] is not among:  # the same array as long as the index is the same
            known = self._zones[field_id, column.type] = (among, self._bounds(field_id, column.type, among))
        return known[1]

    @cached_property
    def _zones(self) -> dict[tuple[int, pa.DataType], tuple[np.ndarray, Zones | None]]:
        return {}

    def _bounds(self, field_id: int, type_: pa.DataType, among: np.ndarray) -> Zones | None:
        by_partition = self._remembered("partition", field_id, type_)
        by_metrics = self._remembered("metrics", field_id, type_) if len(among) else None
        if by_metrics is not None:
            chosen = np.zeros(len(self.order), bool)
            chosen[among] = True
            by_metrics = _where(chosen, by_metrics)
        zone_maps = [zone_map for zone_map in (by_partition, by_metrics) if zone_map is not None]
        return tightest(zone_maps).zones(self.row_count) if zone_maps else None

    def _remembered(self, name: str, field_id: int, type_: pa.DataType) -> ZoneMap | None:
        key = (name, field_id, type_)
        if key not in self._known:
            make = self._by_partition if name == "partition" else self._by_metrics
            self._known[key] = make(field_id, type_)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, int, pa.DataType], ZoneMap | None]:
        return {}

    def _by_partition(self, field_id: int, type_: pa.DataType) -> ZoneMap | None:
        """Return the column bounds implied by partition values of any spec."""
        zone_maps = [
            zone_map
            for spec, fields in self.specs.items()
            for partition_field in fields
            if partition_field.source == field_id and partition_field.transform != VOID
            if (zone_map := self._of_field(spec, partition_field, type_)) is not None
        ]
        return tightest(zone_maps) if zone_maps else None

    def _of_field(self, spec: int, partition: PartitionField, type_: pa.DataType) -> ZoneMap | None:
        rows, values = self.entries.partition(spec, partition.id)
        if not len(rows):
            return None
        at = self._position[rows]
        total = self.row_count[at]
        null_count = np.where(present(values), 0, total)
        nan_count = np.full(len(rows), -1 if is_float(type_) else 0)
        bounds = source_bounds(partition, values, type_)
        nothing = pa.nulls(len(rows), type_)
        lower, upper = (nothing, nothing) if bounds is None else (bounds.lower, bounds.upper)
        if bounds is not None and bounds.exact and is_float(type_):
            nan = pc.fill_null(pc.is_nan(lower), False)
            nan_count = np.where(nan.to_numpy(zero_copy_only=False), total, 0)
            lower = upper = pc.if_else(nan, pa.scalar(None, type_), lower)
        of_spec = zonemap.from_bounds(type_, lower, upper, null_count, nan_count, total)
        return _scattered(of_spec, at, len(self.order))

    def _by_metrics(self, field_id: int, type_: pa.DataType) -> ZoneMap | None:
        """Return the manifest bounds and counts of a column, where known."""
        if field_id in self.remapped:
            return None
        n = len(self.order)
        lower, upper = (self._metric(name, field_id, type_) for name in ("lower", "upper"))
        null_count, nan_count = (self._counts(name, field_id) for name in ("null_counts", "nan_counts"))
        if pa.types.is_string(type_):
            if is_uuid(self._fields[field_id]):
                lower = upper = pa.nulls(n, type_)
            else:
                upper = _without_replaced_ends(upper)
        if not is_float(type_):
            nan_count = np.zeros(n, np.int64)
        if field_id in self._nested:  # manifests repeat footers: see Doubt.NESTED_NULL_COUNTS
            null_count = np.full(n, -1)
        return zonemap.from_bounds(type_, lower, upper, null_count, nan_count, self.row_count)

    def _metric(self, name: str, field_id: int, type_: pa.DataType) -> pa.Array:
        rows, values = self.entries.values(name, field_id)
        known = decoded(values, type_)
        at = np.full(len(self.order), -1)
        at[self._position[rows]] = np.arange(len(rows))
        return known.take(pa.array(at, mask=at < 0)) if len(known) else pa.nulls(len(at), type_)

    def _counts(self, name: str, field_id: int) -> np.ndarray:
        rows, values = self.entries.values(name, field_id)
        counts = np.full(len(self.order), -1)
        counts[self._position[rows]] = values.to_numpy(zero_copy_only=False) if len(rows) else 0
        return counts

    @cached_property
    def _nested(self) -> frozenset[int]:
        """The fields inside structs."""
        return frozenset(field_id for path, field_id in self._ids.items() if len(path) > 1)

    @cached_property
    def _fields(self) -> dict[int, pa.Field]:
        return fields_by_id(self.schema)

    def holders(self, question: Question) -> np.ndarray | None:
        """Return which files may hold one of some values, by their partition buckets."""
        if not isinstance(question, Values) or (field_id := self._ids.get(question.column.path)) is None:
            return None
        may_hold = None
        for spec, fields in self.specs.items():
            for partition_field in fields:
                of_field = (
                    self._in_buckets(spec, partition_field, question) if partition_field.source == field_id else None
                )
                if of_field is not None:
                    may_hold = of_field if may_hold is None else may_hold & of_field
        return may_hold

    def _in_buckets(self, spec: int, partition: PartitionField, question: Values) -> np.ndarray | None:
        rows, values = self.entries.partition(spec, partition.id)
        keys = question.points.tolist()
        uuids = is_uuid(self._fields[partition.source])
        in_bucket = in_buckets(partition, values, keys, question.type, is_uuid=uuids) if len(rows) else None
        if in_bucket is None:
            return None
        may_hold = np.ones(len(self.order), bool)
        may_hold[self._position[rows]] = in_bucket
        return may_hold

    def constants(self, ordinals: np.ndarray) -> pa.StructArray:
        """Return the identity-partition values of some files, for columns that a file lacks.

        A struct with one field per such column, named by its id, holding a struct of `value`; null if the file's spec
        has no identity partition on the column.
        """
        if not self._partition_constants:
            return pa.nulls(len(ordinals), pa.struct([]))
        chosen = pa.array(ordinals)
        return pa.StructArray.from_arrays(
            [values.take(chosen) for values in self._partition_constants.values()],
            [*map(str, self._partition_constants)],
        )

    @property
    def constant_columns(self) -> list[ConstantColumn]:
        """The columns of identity partitions."""
        path_of = {field_id: path for path, field_id in self._ids.items()}
        return [
            ConstantColumn(path_of[field_id], pc.struct_field(values, 0), present(values))
            for field_id, values in self._partition_constants.items()
        ]

    @cached_property
    def _partition_constants(self) -> dict[int, pa.StructArray]:
        """Identity-partition values by column id."""
        constants: dict[int, pa.StructArray] = {}
        for spec, fields in self.specs.items():
            for partition_field in fields:
                if partition_field.transform == IDENTITY and partition_field.source in self._fields:
                    values = self._constants_of(spec, partition_field, self._fields[partition_field.source])
                    if values is not None:
                        known = constants.get(partition_field.source)
                        constants[partition_field.source] = values if known is None else pc.coalesce(known, values)
        return constants

    def _constants_of(self, spec: int, partition: PartitionField, column: pa.Field) -> pa.StructArray | None:
        rows, values = self.entries.partition(spec, partition.id)
        if not len(rows):
            return None
        plain = uuid_texts(values.cast(pa.binary(16))) if is_uuid(column) else typed(values, column.type)
        if plain is None:
            raise UnsupportedTable(f"partition values of {column.name} are {values.type}, and the column {column.type}")
        as_struct = pa.StructArray.from_arrays([plain], names=["value"])
        at = np.full(len(self.order), -1)
        at[self._position[rows]] = np.arange(len(rows))
        return as_struct.take(pa.array(at, mask=at < 0))


def of_iceberg(listing: Listing) -> IcebergListing:
    """Return the listing of an Iceberg table by its own type."""
    assert isinstance(listing, IcebergListing), "a listing is given to the table that made it"
    return listing


def _scattered(zone_map: ZoneMap, at: np.ndarray, n: int) -> ZoneMap:
    """Return zone maps of n units, known only at the given places."""
    nothing = zonemap.unknown(zone_map.lower.kind, 1)
    where = np.full(n, len(zone_map))
    where[at] = np.arange(len(zone_map))
    return zonemap.concat([zone_map, nothing]).take(where)


def _where(known: np.ndarray, zone_map: ZoneMap) -> ZoneMap:
    """Return the zone maps of the known units; the others are unknown."""
    rows = np.flatnonzero(known)
    return _scattered(zone_map.take(rows), rows, len(known))


def tightest(parts: Sequence[ZoneMap]) -> ZoneMap:
    """Combine several zone maps of the same units into the tightest one: all of them hold."""
    if len(parts) == 1:
        return parts[0]
    n, k = len(parts[0]), len(parts)
    side_by_side = np.arange(n * k).reshape(k, n).T.ravel()
    starts = np.arange(0, n * k, k)
    lower = concatenate([part.lower for part in parts]).take(side_by_side)
    upper = concatenate([part.upper for part in parts]).take(side_by_side)
    numbers_upper = concatenate([part.numbers_upper for part in parts]).take(side_by_side)
    null_count, nan_count = (np.max([getattr(p, name) for p in parts], axis=0) for name in ("null_count", "nan_count"))
    low, high = greatest_per_group(lower, starts), least_per_group(upper, starts)
    if all(part.top is None for part in parts):
        return ZoneMap(low, high, null_count, nan_count)
    top = np.maximum(least_per_group(numbers_upper, starts).words[0], low.words[0])  # units whose only value is NaN
    return ZoneMap(low, high, null_count, nan_count, top=top)


def _without_replaced_ends(upper: pa.Array) -> pa.Array:
    """Return upper bounds of texts, unknown if they end in a question mark.

    Up to version 1.7 Iceberg cut a bound within a surrogate pair and wrote a question mark for the half, which sorts
    below the original (pull request 11161).
    """
    data = upper.cast(pa.binary())
    lengths = pc.binary_length(data)
    last = pc.binary_slice(data, -1, None) if len(data) else data
    replaced = pc.and_(pc.equal(last, b"?"), pc.greater(lengths, 0))
    return pc.if_else(pc.fill_null(replaced, False), pa.scalar(None, data.type), data)
