"""Hand data files on to PyIceberg, as the tasks that its own scan plans: a file with the deletes that apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, UUIDType

from secateur.errors import UnsupportedTable
from secateur.io.tables.iceberg.listing import IcebergListing
from secateur.io.tables.iceberg.manifest_arrays import Entries
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

__all__ = ["FileScanTask", "scan_tasks"]


def scan_tasks(table: IcebergSnapshot, listing: IcebergListing, ordinals: np.ndarray) -> list[FileScanTask]:
    """Return a task for each of some data files, given ascending. It reads a whole file, whose rows are to be filtered.

    Raises
    ------
    UnsupportedTable
        If equality deletes apply to a file: PyIceberg does not read them.
    """
    data = _data_files(table, listing.entries, listing.order[ordinals])
    applied = listing.deletes.matches(ordinals)
    needed = np.unique(applied.delete)
    deletes = dict(zip(needed.tolist(), _data_files(table, listing.deletes.deletes, needed), strict=True))
    for file in deletes.values():
        if file.content == DataFileContent.EQUALITY_DELETES:
            raise UnsupportedTable(f"{file.file_path} holds equality deletes, which PyIceberg does not read")
    return [
        FileScanTask(file, {deletes[i] for i in applied.of(ordinal).tolist()}, AlwaysTrue())
        for file, ordinal in zip(data, ordinals.tolist(), strict=True)
    ]


def _data_files(table: IcebergSnapshot, entries: Entries, chosen: np.ndarray) -> list[DataFile]:
    """Return some files as PyIceberg reads them from manifests, without their statistics."""
    rows = entries.files.take(pa.array(chosen)).to_pylist()
    partitions = _partitions(table, entries, chosen)
    return [_data_file(row, partition) for row, partition in zip(rows, partitions, strict=True)]


def _data_file(row: Mapping[str, Any], partition: Record) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent(row["content"]),
        file_path=row["path"],
        file_format=FileFormat(row["format"].upper()),
        partition=partition,
        record_count=row["record_count"],
        file_size_in_bytes=row["size"],
        key_metadata=row["key_metadata"],
        split_offsets=row["split_offsets"],
        equality_ids=row["equality_ids"],
        sort_order_id=row["sort_order_id"],
    )
    file.spec_id = row["spec"]
    return file


def _partitions(table: IcebergSnapshot, entries: Entries, chosen: np.ndarray) -> list[Record]:
    """Return the partition tuple of each of some files."""
    tuples = [Record()] * len(chosen)
    for number in np.unique(entries.spec[chosen]).tolist():
        fields = table.metadata.specs()[number].partition_type(table.metadata.schema()).fields
        of_spec = np.flatnonzero(entries.spec[chosen] == number)
        columns = [_values(field, *entries.partition(number, field.field_id), chosen[of_spec]) for field in fields]
        for i, place in enumerate(of_spec.tolist()):
            tuples[place] = Record(*(column[i] for column in columns))
    return tuples


def _values(field: NestedField, of_spec: np.ndarray, values: pa.Array, chosen: np.ndarray) -> list[Any]:
    """Return the values of a partition field for some of the files `of_spec`, which have `values`."""
    python = values.take(pa.array(np.searchsorted(of_spec, chosen))).to_pylist()
    if isinstance(field.field_type, UUIDType):
        return [None if value is None else UUID(bytes=value) for value in python]
    return python
