"""Iceberg's metadata as Arrow tables: a table's snapshots, and the manifests and files of one of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import ManifestFile, PartitionFieldSummary
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, UnknownType

from secateur.arrays import from_numpy
from secateur.io.tables.iceberg import partition_transforms
from secateur.io.tables.iceberg.listing import of_iceberg
from secateur.io.tables.iceberg.manifest_arrays import DATA, Entries
from secateur.io.tables.iceberg.partition_transforms import typed
from secateur.io.tables.iceberg.schema import all_fields, arrow_type
from secateur.io.tables.listing import Listing
from secateur.io.tables.metadata_tables import (
    CONTENTS,
    MANIFESTS,
    SNAPSHOTS,
    ManifestCounts,
    files_table,
    partition_struct,
)
from secateur.io.tables.projection import uuid_texts

_MANIFEST_CONTENTS = ("data", "deletes")


class SnapshotMetadata(Protocol):
    """The metadata and manifests of one snapshot of a table."""

    @property
    def id(self) -> int | None: ...
    @property
    def metadata(self) -> TableMetadata: ...
    @property
    def schema_of(self) -> Schema: ...
    @property
    def manifests(self) -> list[ManifestFile]: ...
    @property
    def specs(self) -> Mapping[int, Sequence[partition_transforms.PartitionField]]: ...
    @property
    def read(self) -> tuple[list[str], list[str]]: ...


@dataclass(frozen=True)
class IcebergTables:
    """See :class:`secateur.io.tables.metadata_tables.MetadataTables`."""

    snapshot: SnapshotMetadata

    @property
    def manifest_counts(self) -> ManifestCounts:
        """The number of manifests of the snapshot."""
        contents = [manifest.content == DATA for manifest in self.snapshot.manifests]
        return ManifestCounts(sum(contents), len(contents) - sum(contents))

    @property
    def manifests_read(self) -> ManifestCounts:
        """The number of manifests found neither in memory nor beside the index when the snapshot was listed."""
        return ManifestCounts(*map(len, self.snapshot.read))

    def snapshots(self) -> pa.Table:
        """Return all snapshots in the handle's metadata, in metadata order."""
        metadata = self.snapshot.metadata
        refs: dict[int, list[str]] = {}
        for name, ref in sorted(metadata.refs.items()):
            refs.setdefault(ref.snapshot_id, []).append(name)
        rows = [
            {
                "snapshot_id": snapshot.snapshot_id,
                "parent_id": snapshot.parent_snapshot_id,
                "sequence_number": snapshot.sequence_number,
                "committed_at": dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC),
                "operation": None if snapshot.summary is None else snapshot.summary.operation.value,
                "summary": None if snapshot.summary is None else list(snapshot.summary.additional_properties.items()),
                "refs": refs.get(snapshot.snapshot_id, []),
                "schema_id": snapshot.schema_id,
                "manifest_list": snapshot.manifest_list,
                "selected": snapshot.snapshot_id == self.snapshot.id,
            }
            for snapshot in metadata.snapshots
        ]
        return pa.Table.from_pylist(rows, SNAPSHOTS)

    def manifests(self) -> pa.Table:
        """Return the manifests in the snapshot's manifest list, in its order."""
        return pa.Table.from_pylist([self._manifest(manifest) for manifest in self.snapshot.manifests], MANIFESTS)

    def _manifest(self, manifest: ManifestFile) -> dict[str, Any]:
        spec = self.snapshot.metadata.specs()[manifest.partition_spec_id]
        return {
            "manifest": manifest.manifest_path,
            "content": _MANIFEST_CONTENTS[int(manifest.content)],
            "bytes": manifest.manifest_length,
            "spec_id": manifest.partition_spec_id,
            "sequence_number": manifest.sequence_number,
            "min_sequence_number": manifest.min_sequence_number,
            "snapshot_id": manifest.added_snapshot_id,
            "added_files": manifest.added_files_count,
            "existing_files": manifest.existing_files_count,
            "deleted_files": manifest.deleted_files_count,
            "added_rows": manifest.added_rows_count,
            "existing_rows": manifest.existing_rows_count,
            "deleted_rows": manifest.deleted_rows_count,
            "partitions": list(self._summaries(spec, manifest.partitions or [])),
        }

    def _summaries(self, spec: PartitionSpec, summaries: Sequence[PartitionFieldSummary]) -> Iterator[dict[str, Any]]:
        for field, summary in zip(spec.fields, summaries, strict=False):
            type_ = self._result_type(field)
            yield {
                "field": field.name,
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower": _human(field, type_, summary.lower_bound),
                "upper": _human(field, type_, summary.upper_bound),
            }

    # ---- files

    def files(self, listing: Listing) -> pa.Table:
        """Return the manifest entries of the live files."""
        listed = of_iceberg(listing)
        deletes, n = listed.deletes.deletes, len(listed.size)
        of_each = np.bincount(listed.deletes.matches(np.arange(n)).data, minlength=n)
        data = self._files(listed.entries, listed.order, from_numpy(of_each))
        rest = self._files(deletes, np.arange(len(deletes)), pa.nulls(len(deletes)))
        return pa.concat_tables([data, rest]).combine_chunks()

    def _files(self, entries: Entries, order: np.ndarray, delete_files: pa.Array) -> pa.Table:
        files = entries.files.take(pa.array(order))
        known = {
            "file": files.column("path"),
            "content": pa.array(CONTENTS).take(files.column("content").cast(pa.int64())),
            "format": pc.utf8_upper(files.column("format")),
            "bytes": files.column("size"),
            "row_count": files.column("record_count"),
            "spec_id": files.column("spec"),
            "sequence_number": files.column("sequence"),
            "snapshot_id": files.column("snapshot_id"),
            "delete_files": delete_files,
        }
        columns = [_of_field(entries, self.snapshot.specs, number, type_) for number, _, type_ in self._partition_types]
        fields = tuple(pa.field(name, type_) for _, name, type_ in self._partition_types)
        values = tuple(column.take(pa.array(order)) for column in columns)
        return files_table(known, partition_struct(fields, values, len(order)))

    @property
    def _partition_types(self) -> list[tuple[int, str, pa.DataType]]:
        """The id, name and type of every partition field of any spec, by id, with its newest name."""
        partition_fields = {
            field.field_id: field for spec in self.snapshot.metadata.specs().values() for field in spec.fields
        }
        return [
            (number, partition_fields[number].name, arrow_type(self._result_type(partition_fields[number])))
            for number in sorted(partition_fields)
        ]

    def _result_type(self, field: PartitionField) -> IcebergType:
        """Return the type of a partition field; unknown if no schema of the table has its source column."""
        source = self._source_types.get(field.source_id)
        return UnknownType() if source is None else field.transform.result_type(source)

    @property
    def _source_types(self) -> Mapping[int, IcebergType]:
        """The type of every column: from the snapshot's schema, or from the newest schema that has it."""
        others = sorted(self.snapshot.metadata.schemas, key=lambda old_schema: old_schema.schema_id)
        schemas = [*others, self.snapshot.schema_of]
        return {field.field_id: field.field_type for schema in schemas for field in all_fields(schema.fields)}


def _human(field: PartitionField, type_: IcebergType, bound: bytes | None) -> str | None:
    """Return a bound as Iceberg prints it."""
    if bound is None or isinstance(type_, UnknownType):
        return None
    return field.transform.to_human_string(type_, from_bytes(type_, bound))  # type: ignore[arg-type]


def _of_field(entries: Entries, specs: Mapping[int, Any], field_id: int, type_: pa.DataType) -> pa.Array:
    """Return the value of a partition field for every file; null if the file's spec lacks it."""
    at = np.full(len(entries), -1)
    parts, count = [pa.nulls(0, type_)], 0
    for spec in specs:
        rows, values = entries.partition(spec, field_id)
        if len(rows):
            at[rows] = count + np.arange(len(rows))
            parts.append(_readable(values, type_))
            count += len(rows)
    return pa.concat_arrays(parts).take(pa.array(at, mask=at < 0))


def _readable(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert partition values to a type; null if they cannot be converted."""
    if pa.types.is_string(type_) and pa.types.is_binary(values.type):
        return uuid_texts(values.cast(pa.binary(16)))
    if pa.types.is_time64(type_) and pa.types.is_int64(values.type):
        return values.view(type_)
    readable = None if pa.types.is_null(type_) else typed(values, type_)
    return pa.nulls(len(values), type_) if readable is None else readable
