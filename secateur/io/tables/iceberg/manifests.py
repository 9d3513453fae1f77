"""Read Iceberg manifests in columnar form: one array row per live file.

A manifest is immutable, so its content is cached under its path. Source: Iceberg's specification, "Manifests".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.avro.file import AvroFile, AvroFileHeader
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from secateur.errors import UnsupportedTable
from secateur.io.tables.iceberg.manifest_arrays import DATA, FILES, ByField, Manifest

_DELETED = 2  # status of an entry whose file the snapshot removed

_STATUS, _SNAPSHOT, _DATA_FILE, _SEQUENCE = 0, 1, 2, 3  # field ids of an entry
_PARTITION = 102  # field id within the data file
_NULL_COUNTS, _NAN_COUNTS, _LOWER, _UPPER = 110, 137, 125, 128

_COLUMNS = {  # field ids of files
    134: "content",
    100: "path",
    101: "format",
    103: "record_count",
    104: "size",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced",
    144: "content_offset",
    145: "content_size",
}

_PARTITION_TYPES: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.int32(),
    TimeType: pa.int64(),
    TimestampType: pa.int64(),
    TimestamptzType: pa.int64(),
    TimestampNanoType: pa.int64(),
    TimestamptzNanoType: pa.int64(),
    StringType: pa.string(),
    UUIDType: pa.binary(),
    BinaryType: pa.binary(),
    FixedType: pa.binary(),
}


def read_manifest(io: FileIO, manifest: ManifestFile) -> Manifest:
    """Read the live files of a manifest. Raises OSError, ValueError, UnsupportedTable for an encrypted one."""
    if manifest.key_metadata:
        raise UnsupportedTable(f"{manifest.manifest_path} is encrypted, and cannot be read here")
    with _SpeltOut(io.new_input(manifest.manifest_path)) as reader:
        places = _places(reader.schema)
        status = places[_STATUS]
        entries = [entry for entry in reader if entry[status] != _DELETED]
        return _columnar(entries, places, reader.schema, manifest)


class _SpeltOut(AvroFile[Any]):
    """An Avro file whose schema may refer to a previously defined type by name.

    Java writes such names if two partition fields are decimals of one precision, or UUIDs; PyIceberg rejects them.
    """

    def _read_header(self) -> AvroFileHeader:
        header = super()._read_header()
        if "avro.schema" in header.meta:
            header.meta["avro.schema"] = json.dumps(_spelt_out(json.loads(header.meta["avro.schema"]), {}))
        return header


def _spelt_out(schema: Any, known: dict[str, Any]) -> Any:
    """Replace the names of fixed types in an Avro schema by their definitions; `known` holds those seen so far."""
    match schema:
        case str():
            return known.get(schema, schema)
        case list():
            return [_spelt_out(part, known) for part in schema]
        case {"type": "fixed", "name": name}:
            known[name] = schema
        case {}:
            within = ("type", "items", "values", "fields")
            return {key: _spelt_out(value, known) if key in within else value for key, value in schema.items()}
    return schema


def _places(schema: Schema) -> dict[int, int]:
    """Return the positions of an entry's fields."""
    return {field.field_id: i for i, field in enumerate(schema.fields)}


def _columnar(entries: Sequence[Any], places: Mapping[int, int], schema: Schema, manifest: ManifestFile) -> Manifest:
    struct = schema.find_field(_DATA_FILE).field_type
    assert isinstance(struct, StructType), "by the specification"
    files = [entry[places[_DATA_FILE]] for entry in entries]
    place_of = {field.field_id: i for i, field in enumerate(struct.fields)}

    def column(field_id: int) -> Iterable[Any]:
        at = place_of.get(field_id)
        return (None for _ in files) if at is None else (file[at] for file in files)

    columns = {name: list(column(field_id)) for field_id, name in _COLUMNS.items()}
    columns |= _inherited(entries, places, manifest)
    arrays = {field.name: pa.array(columns[field.name], field.type) for field in FILES}
    arrays["content"] = pc.fill_null(arrays["content"], DATA)  # version 1 has data files only
    return Manifest(
        pa.RecordBatch.from_pydict(arrays, schema=FILES),
        _partition(struct, place_of, files),
        *(_by_field(column(field_id), pa.int64()) for field_id in (_NULL_COUNTS, _NAN_COUNTS)),
        *(_by_field(column(field_id), pa.binary()) for field_id in (_LOWER, _UPPER)),
    )


def _inherited(entries: Sequence[Any], places: Mapping[int, int], manifest: ManifestFile) -> dict[str, list[Any]]:
    """Return snapshot, sequence number and partition spec of every entry, inherited from the manifest if missing.

    Source: the specification, "Sequence Number Inheritance". Manifests of version 1 have the number 0.
    """

    def inherited(field_id: int, otherwise: int | None) -> list[Any]:
        at = places.get(field_id)
        stored = [None] * len(entries) if at is None else [entry[at] for entry in entries]
        return [otherwise if value is None else value for value in stored]

    return {
        "snapshot_id": inherited(_SNAPSHOT, manifest.added_snapshot_id),
        "sequence": inherited(_SEQUENCE, manifest.sequence_number or 0),
        "spec": [manifest.partition_spec_id] * len(entries),
    }


def _partition(struct: StructType, place_of: Mapping[int, int], files: Sequence[Any]) -> dict[int, pa.Array]:
    tuple_type = struct.fields[place_of[_PARTITION]].field_type
    assert isinstance(tuple_type, StructType), "by the specification"
    tuples = [file[place_of[_PARTITION]] for file in files]
    return {
        field.field_id: _partition_values(field.field_type, [values[i] for values in tuples])
        for i, field in enumerate(tuple_type.fields)
    }


def _partition_values(type_: IcebergType, values: list[Any]) -> pa.Array:
    if isinstance(type_, UUIDType):
        values = [None if value is None else value.bytes for value in values]
    if isinstance(type_, DecimalType):
        return pa.array(values, pa.decimal128(type_.precision, type_.scale))
    return pa.array(values, _PARTITION_TYPES[type(type_)])


def _by_field(maps: Iterable[Mapping[int, Any] | None], type_: pa.DataType) -> ByField:
    known = [of_file or {} for of_file in maps]
    counts = np.fromiter(map(len, known), np.int64, len(known))
    ids = np.fromiter(chain.from_iterable(known), np.int32, int(counts.sum()))
    values = pa.array(list(chain.from_iterable(of_file.values() for of_file in known)), type_)
    return ByField(np.repeat(np.arange(len(known), dtype=np.int32), counts), ids, values)
