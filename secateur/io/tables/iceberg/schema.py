"""The schema of an Iceberg table as Spark reads it: Arrow types, with the id of every field in its metadata.

Source: Iceberg's ``TypeToSparkType`` and, for files without ids, ``NameMapping``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField
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
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from secateur.errors import UnsupportedTable
from secateur.io.tables.field_ids import MappedName, with_id
from secateur.io.tables.projection import IS_UUID

_PLAIN: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"),
    TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", "UTC"),
    StringType: pa.string(),
    UUIDType: pa.string(),
    BinaryType: pa.binary(),
    FixedType: pa.binary(),
    UnknownType: pa.null(),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a schema as Arrow. Raises UnsupportedTable for an unsupported type."""
    return pa.schema([_field(field) for field in schema.fields])


def _field(field: NestedField) -> pa.Field:
    return _with_id(field.name, field.field_type, field.field_id)


def _with_id(name: str, type_: IcebergType, field_id: int) -> pa.Field:
    plain = pa.field(name, arrow_type(type_), metadata=IS_UUID if isinstance(type_, UUIDType) else None)
    return with_id(plain, field_id)


def arrow_type(type_: IcebergType) -> pa.DataType:
    """Return the type as Spark reads it. Raises UnsupportedTable."""
    match type_:
        case StructType():
            return pa.struct([_field(field) for field in type_.fields])
        case ListType():
            return pa.list_(_with_id("element", type_.element_type, type_.element_id))
        case MapType():
            key = _with_id("key", type_.key_type, type_.key_id).with_nullable(False)
            return pa.map_(key, _with_id("value", type_.value_type, type_.value_id))
        case DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
    plain = _PLAIN.get(type(type_))
    if plain is None:
        raise UnsupportedTable(f"columns of Iceberg's type {type_} cannot be read here")
    return plain


def initial_defaults(schema: Schema) -> dict[int, pa.Scalar]:
    """Return, by field id, the values of fields in files that were written before these were added, except NULLs."""
    return {
        field.field_id: _default(field.initial_default, field.field_type)
        for field in all_fields(schema.fields)
        if field.initial_default is not None and field.field_type.is_primitive
    }


def _default(value: object, type_: IcebergType) -> pa.Scalar:
    return pa.scalar(str(value) if isinstance(type_, UUIDType) else value, arrow_type(type_))


def all_fields(fields: Sequence[NestedField]) -> Iterator[NestedField]:
    """Yield the fields and those nested in them."""
    for field in fields:
        yield field
        match field.field_type:
            case StructType() as struct:
                yield from all_fields(struct.fields)
            case ListType() as list_:
                yield from all_fields([list_.element_field])
            case MapType() as map_:
                yield from all_fields([map_.key_field, map_.value_field])


def name_mapping(fields: Sequence[MappedField]) -> Mapping[str, MappedName]:
    """Return the field ids for files without ids, by name."""
    return {name: MappedName(field.field_id, name_mapping(field.fields)) for field in fields for name in field.names}
