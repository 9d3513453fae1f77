"""Schemas of Iceberg tables: made from Arrow's with field ids, and widened."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StructType,
)


def id_metadata(number: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(number)}


def stored_type(type_: pa.DataType) -> pa.DataType:
    """The nearest type that Iceberg has."""
    match type_:
        case _ if pa.types.is_dictionary(type_):
            return stored_type(type_.value_type)
        case _ if pa.types.is_struct(type_):
            return pa.struct([field.with_type(stored_type(field.type)) for field in type_])
        case _ if type_ in (pa.int8(), pa.int16()):
            return pa.int32()
        case _ if pa.types.is_timestamp(type_):
            return pa.timestamp("us", type_.tz)
    return type_


def with_ids(field: pa.Field, table_field: NestedField | None) -> pa.Field:
    """A column as a file stores it: of the table's type, or a dictionary of it, and with the ids of its fields."""
    assert table_field is not None, f"the table has no column {field.name}"
    type_ = _with_ids(field.type, table_field.field_type)
    return pa.field(field.name, type_, metadata=id_metadata(table_field.field_id))


def _with_ids(type_: pa.DataType, table_type: IcebergType) -> pa.DataType:
    match table_type:
        case StructType():
            return pa.struct([with_ids(field, table_type.field_by_name(field.name)) for field in type_])
        case ListType():
            return pa.list_(with_ids(type_.value_field, table_type.element_field))
        case _ if pa.types.is_dictionary(type_):
            return type_
        case LongType():
            return pa.int64()
        case DoubleType():
            return pa.float64()
        case DecimalType():
            return pa.decimal128(table_type.precision, table_type.scale)
    return stored_type(type_)


def fresh(schema: pa.Schema) -> Schema:
    """The Iceberg schema of an Arrow schema, with new ids."""
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))


def merged(old: StructType, new: StructType, numbers: Iterator[int]) -> StructType:
    """The fields of both, with the ids that the old ones have."""
    fields = []
    for field in old.fields:
        other = new.field_by_name(field.name)
        type_ = field.field_type if other is None else _wider(field.field_type, other.field_type, numbers)
        fields.append(field.model_copy(update={"field_type": type_}))
    known = {field.name for field in old.fields}
    fields += [field.model_copy(update={"field_id": next(numbers)}) for field in new.fields if field.name not in known]
    return StructType(*fields)


def _wider(old: IcebergType, new: IcebergType, numbers: Iterator[int]) -> IcebergType:
    match old, new:
        case StructType(), StructType():
            return merged(old, new, numbers)
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return new
        case DecimalType(), DecimalType():
            return max(old, new, key=lambda decimal: decimal.precision)
    return old
