"""Read Iceberg manifests in columnar form: one array row per live file.

A manifest is immutable, so its content is cached under its path. Source: Iceberg's specification, "Manifests".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile, AvroFileHeader
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, ManifestContent, ManifestFile, PartitionFieldSummary
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

_DOUBLE = Struct("<d")
_DELETED = 2  # status of an entry whose file the snapshot removed

_LIST_SCHEMA = MANIFEST_LIST_FILE_SCHEMAS[3]  # older lists lack its `first_row_id`
_FIRST_ROW_ID = [field.field_id for field in _LIST_SCHEMA.fields].index(520)

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


def read_manifest_list(file: InputFile) -> Iterator[ManifestFile]:
    """Yield the manifests of a list of any version. PyIceberg's own function leaves out their first row ids."""
    with AvroFile[ManifestFile](
        file,
        _LIST_SCHEMA,
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        yield from reader


def first_row_id(manifest: ManifestFile) -> int | None:
    """Return the id from which the rows of a manifest's files are numbered; None if they have no ids."""
    number: int | None = manifest[_FIRST_ROW_ID]
    return number


def read_manifest(io: FileIO, manifest: ManifestFile) -> Manifest:
    """Read the live files of a manifest. Raises OSError, ValueError, UnsupportedTable for an encrypted one."""
    if manifest.key_metadata:
        raise UnsupportedTable(f"{manifest.manifest_path} is encrypted, and cannot be read here")
    with _ManifestFile(io.new_input(manifest.manifest_path)) as reader:
        places = _places(reader.schema)
        status = places[_STATUS]
        entries = [entry for entry in reader if entry[status] != _DELETED]
        return _columnar(entries, places, reader.schema, manifest)


class _ExactDoubles:
    """A decoder of PyIceberg's that reads doubles: its compiled one gives them as floats (0.12)."""

    def __init__(self, decoder: BinaryDecoder) -> None:
        self._decoder = decoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def read_double(self) -> float:
        """Read a double of 8 bytes."""
        (value,) = _DOUBLE.unpack(self._decoder.read(_DOUBLE.size))
        return float(value)


class _ManifestFile(AvroFile[Any]):
    """An Avro file whose schema may refer to a previously defined type by name, and whose doubles are read as such.

    Java writes such names if two partition fields are decimals of one precision, or UUIDs; PyIceberg rejects them.
    """

    def _read_block(self) -> int:
        count = super()._read_block()
        if self.block is not None and '"double"' in self.header.meta["avro.schema"]:
            decoder: Any = _ExactDoubles(self.block.block_decoder)
            self.block.block_decoder = decoder
        return count

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
    columns["first_row_id"] = _row_ids(columns["first_row_id"], columns["record_count"], first_row_id(manifest))
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


def _row_ids(stored: Sequence[int | None], row_count: Sequence[int], first: int | None) -> list[int | None]:
    """Return the id of every file's first row, inherited from the manifest if missing.

    Source: the specification, "First Row ID Inheritance". Without ids in the manifest, files have none either.
    """
    if first is None:
        return [None] * len(stored)
    counted = accumulate((n if value is None else 0 for value, n in zip(stored, row_count, strict=True)), initial=first)
    return [number if value is None else value for value, number in zip(stored, counted, strict=False)]


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
