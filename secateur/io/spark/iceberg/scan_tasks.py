"""Convert a plan over an Iceberg table to tasks for Iceberg's own readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyiceberg.conversions import to_json
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DateType, IcebergType, PrimitiveType, UUIDType

from secateur.io.spark.iceberg.task_json import DataFile, DeleteFile, ReadTask, Spec, byte_ranges, spec_of, task_texts
from secateur.io.tables.iceberg.listing import IcebergListing, of_iceberg
from secateur.io.tables.iceberg.manifest_arrays import EQUALITY_DELETES
from secateur.io.tables.iceberg.schema import all_fields
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

if TYPE_CHECKING:
    from secateur.io.scan.planned_scan import PlannedScan

Row = Mapping[str, Any]
PartitionTypes = Mapping[int, Mapping[int, PrimitiveType]]  # by spec and partition field


def texts_of(scan: PlannedScan, table: IcebergSnapshot) -> list[str]:
    """Return the surviving row groups of a plan, with the deletes of their files, as JSON: one text per range."""
    return list(task_texts(read_tasks(scan, table), written_specs(table)))


def whole_texts(tasks: Sequence[ReadTask], table: IcebergSnapshot) -> list[str]:
    """Return tasks as JSON, each as one that reads its file whole."""
    return list(task_texts((replace(task, ranges=((0, task.file.size),)) for task in tasks), written_specs(table)))


def read_tasks(scan: PlannedScan, table: IcebergSnapshot) -> list[ReadTask]:
    """Return a task per surviving file: its surviving row groups, or the whole file if its row groups are unknown."""
    types = {number: _types(spec, table) for number, spec in table.metadata.specs().items()}
    return list(_read_tasks(scan, of_iceberg(scan.opened.listing), types))


def written_specs(table: IcebergSnapshot) -> dict[int, Spec]:
    """Return the partition specs that a table has had, by id, as tasks have them."""
    schemas = [json.loads(schema.model_dump_json()) for schema in table.metadata.schemas]
    specs = table.metadata.specs()
    return {number: spec_of(json.loads(spec.model_dump_json()), schemas) for number, spec in specs.items()}


def _types(spec: PartitionSpec, table: IcebergSnapshot) -> dict[int, PrimitiveType]:
    """Return the type of every partition field. Days are dates, as in Java; PyIceberg has them as numbers."""
    sources: dict[int, IcebergType] = {}
    for schema in table.metadata.schemas:
        sources |= {field.field_id: field.field_type for field in all_fields(schema.fields)}
    types: dict[int, PrimitiveType] = {}
    for partition in spec.fields:
        source = sources.get(partition.source_id)
        if source is not None:
            type_ = (
                DateType() if isinstance(partition.transform, DayTransform) else partition.transform.result_type(source)
            )
            assert isinstance(type_, PrimitiveType), "transforms give primitive values"
            types[partition.field_id] = type_
    return types


def _read_tasks(scan: PlannedScan, listing: IcebergListing, types: PartitionTypes) -> Iterator[ReadTask]:
    blocks = scan.survivors.blocks
    order = scan.order()
    file, row_group = blocks.file[order], blocks.row_group[order]
    chosen = scan.file_ordinals
    rows = listing.files.take(pa.array(chosen)).to_pylist()
    partitions = _partitions(listing, chosen, types)
    matches = listing.deletes.matches(chosen)
    needed = np.unique(matches.delete)
    deletes = dict(zip(needed.tolist(), listing.deletes.files.take(pa.array(needed)).to_pylist(), strict=True))
    for ordinal, row, partition in zip(chosen.tolist(), rows, partitions, strict=True):
        row_groups = row_group[slice(*np.searchsorted(file, [ordinal, ordinal + 1]))]
        data = data_file(row, partition)
        yield ReadTask(
            data, tuple(delete_file(deletes[i]) for i in matches.of(ordinal).tolist()), _ranges(data, row_groups)
        )


def _ranges(file: DataFile, row_groups: np.ndarray) -> tuple[tuple[int, int], ...]:
    starts = file.split_offsets
    if not starts or int(row_groups.max(initial=0)) >= len(starts):
        return ((0, file.size),)
    return byte_ranges(starts, file.size, row_groups.tolist())


def data_file(row: Row, partition: Mapping[int, Any]) -> DataFile:
    """Build a data file from its manifest entry."""
    return DataFile(
        path=row["path"],
        spec_id=row["spec"],
        record_count=row["record_count"],
        size=row["size"],
        partition=partition,
        split_offsets=tuple(row["split_offsets"] or ()),
        sort_order_id=row["sort_order_id"],
        first_row_id=row["first_row_id"],
    )


def delete_file(row: Row) -> DeleteFile:
    """Build a delete file from its manifest entry."""
    return DeleteFile(
        content="equality" if row["content"] == EQUALITY_DELETES else "position",
        path=row["path"],
        record_count=row["record_count"],
        size=row["size"],
        format=row["format"].lower(),
        equality_ids=tuple(row["equality_ids"] or ()),
        sort_order_id=row["sort_order_id"],
        content_offset=row["content_offset"],
        content_size=row["content_size"],
        referenced_data_file=row["referenced"],
    )


def _partitions(listing: IcebergListing, ordinals: np.ndarray, types: PartitionTypes) -> list[dict[int, Any]]:
    """Return every file's partition in Iceberg's single-value JSON; NULL is left out."""
    partitions: list[dict[int, Any]] = [{} for _ in ordinals]
    for spec, fields in types.items():
        for number, type_ in fields.items():
            rows, values = listing.entries.partition(spec, number)
            at = np.searchsorted(rows, listing.order[ordinals])
            of_spec = np.flatnonzero(np.isin(listing.order[ordinals], rows))
            for place, value in zip(of_spec.tolist(), values.take(pa.array(at[of_spec])).to_pylist(), strict=True):
                if value is not None:
                    partitions[place][number] = to_json(
                        type_, UUID(bytes=value) if isinstance(type_, UUIDType) else value
                    )
    return partitions
