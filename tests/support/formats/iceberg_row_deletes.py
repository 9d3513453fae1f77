"""Commit delete files with PyIceberg's manifest writers: PyIceberg itself does not write row-level deletes."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest_list,
)
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.typedef import Record

from tests.support.formats.iceberg_deletes import DeleteManifestWriter

FILE_PATH, POSITION = 2147483546, 2147483545  # the ids of the columns of position deletes


def with_id(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


def position_deletes(table: Table, rows: Sequence[tuple[str, int]]) -> DataFile:
    """A file that deletes some positions of data files, of an unpartitioned table."""
    schema = pa.schema([with_id("file_path", pa.string(), FILE_PATH), with_id("pos", pa.int64(), POSITION)])
    ordered = sorted(rows)
    columns = [pa.array([path for path, _ in ordered]), pa.array([position for _, position in ordered], pa.int64())]
    content = DataFileContent.POSITION_DELETES
    paths = [path.encode() for path, _ in ordered]
    bounds = {"lower_bounds": {FILE_PATH: paths[0]}, "upper_bounds": {FILE_PATH: paths[-1]}}
    return _stored(table, pa.Table.from_arrays(columns, schema=schema), content, **bounds)


def equality_deletes(table: Table, name: str, values: Sequence[Any]) -> DataFile:
    """A file that deletes the rows of older data files with some values of a column."""
    field = table.schema().find_field(name)
    schema = pa.schema([with_id(name, table.schema().as_arrow().field(name).type, field.field_id)])
    rows = pa.table([pa.array(values, schema.field(0).type)], schema=schema)
    return _stored(table, rows, DataFileContent.EQUALITY_DELETES, equality_ids=[field.field_id])


def _stored(table: Table, rows: pa.Table, content: DataFileContent, **more: Any) -> DataFile:
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    with table.io.new_output(path).create() as out:
        out.write(sink.getvalue())
    empty: Mapping[int, Any] = {}
    stored = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=len(sink.getvalue()),
        **{"lower_bounds": empty, "upper_bounds": empty, **more},
    )
    stored.spec_id = table.spec().spec_id
    return stored


def committed(table: Table, deletes: Sequence[DataFile]) -> StaticTable:
    """The table with a snapshot more, which adds delete files; its catalog does not know of it."""
    parent = table.current_snapshot()
    assert parent is not None
    number, sequence = parent.snapshot_id + 1, table.metadata.last_sequence_number + 1
    folder = f"{table.location()}/metadata/{uuid.uuid4()}"
    spec, schema = table.spec(), table.schema()
    with DeleteManifestWriter(spec, schema, table.io.new_output(f"{folder}-m.avro"), number, "null") as writer:
        for delete in deletes:
            entry = {"status": ManifestEntryStatus.ADDED, "snapshot_id": number, "data_file": delete}
            writer.add_entry(ManifestEntry.from_args(**entry))
    listed = f"{folder}-snap.avro"
    output = table.io.new_output(listed)
    with write_manifest_list(2, output, number, parent.snapshot_id, sequence, "null") as manifests:
        manifests.add_manifests([*parent.manifests(table.io), writer.to_manifest_file()])
    made = {"snapshot_id": number, "parent_snapshot_id": parent.snapshot_id, "sequence_number": sequence}
    snapshot = Snapshot(**made, manifest_list=listed, summary=Summary(Operation.DELETE), schema_id=schema.schema_id)
    main = table.metadata.refs["main"].model_copy(update={"snapshot_id": number})
    changed = {
        "snapshots": [*table.metadata.snapshots, snapshot],
        "current_snapshot_id": number,
        "last_sequence_number": sequence,
        "refs": {**table.metadata.refs, "main": main},
    }
    location = f"{folder}.metadata.json"
    ToOutputFile.table_metadata(table.metadata.model_copy(update=changed), table.io.new_output(location))
    return StaticTable.from_metadata(location)
