"""Column types as Spark reads them from Parquet, the schema shared by several files, and conversion of data to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IncompatibleSchemas, InvalidParquet, UnsupportedTable
from secateur.pruning.predicate.variant_paths import is_variant
from secateur.values.kinds import COLLATED

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INSTANT = pa.timestamp("us", "UTC")
VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])  # as it is stored if nothing is shredded


def file_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return a Parquet file's schema as Spark reads it (``ParquetToSparkSchemaConverter``), all columns nullable."""
    leaves = (file.schema.column(i) for i in range(len(file.schema)))
    int96 = frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")
    collations = _collations(file.metadata.metadata or {})
    return pa.schema(
        [
            pa.field(f.name, _with_collations(spark_type(f.type, f.name, int96), f.name, collations))
            for f in file.schema_arrow
        ]
    )


_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def _collations(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """Return the struct that Spark recorded as the file's schema, if any of its strings has a collation."""
    text = metadata.get(_SPARK_SCHEMA, b"")
    return json.loads(text) if b'"__COLLATIONS"' in text else {"fields": []}


def _with_collations(type_: pa.DataType, name: str, struct: dict[str, Any]) -> pa.DataType:
    """Return the type of a field, COLLATED (at any depth) where Spark's own schema gives it a collation."""
    described = next((field for field in struct["fields"] if field["name"] == name), None)
    if described is None:
        return type_
    if pa.types.is_struct(type_) and isinstance(described["type"], dict):
        return pa.struct([pa.field(f.name, _with_collations(f.type, f.name, described["type"])) for f in type_])
    return _collated(type_) if "__COLLATIONS" in described.get("metadata", {}) else type_


def _collated(type_: pa.DataType) -> pa.DataType:
    """Return a type with all its strings COLLATED: for arrays and maps Spark gives collations only as free text."""
    match type_:
        case pa.ListType():
            return pa.list_(pa.field("element", _collated(type_.value_type)))
        case pa.MapType():
            return pa.map_(_collated(type_.key_type), _collated(type_.item_type))
        case pa.StructType():
            return pa.struct([pa.field(f.name, _collated(f.type)) for f in type_])
        case _:
            return COLLATED if pa.types.is_string(type_) else type_


def spark_type(type_: pa.DataType, path: str = "", int96: Set[str] = frozenset()) -> pa.DataType:
    """Return Spark's type of a column that pyarrow reads with this type; `int96` are the paths of such leaves."""
    match type_:
        case pa.StructType() if _is_shredded(type_):
            return VARIANT
        case pa.StructType():
            return pa.struct([pa.field(f.name, spark_type(f.type, f"{path}.{f.name}", int96)) for f in type_])
        case pa.MapType():
            return pa.map_(spark_type(type_.key_type, path, int96), spark_type(type_.item_type, path, int96))
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            return pa.list_(pa.field("element", spark_type(type_.value_type, path, int96)))
        case pa.DictionaryType():
            return spark_type(type_.value_type, path, int96)
        case pa.TimestampType():
            return _timestamp(type_, any(leaf == path or leaf.startswith(path + ".") for leaf in int96))
        case _ if pa.types.is_decimal(type_) and type_.precision <= 38:
            return pa.decimal128(type_.precision, type_.scale)
        case _:
            return _PLAIN.get(type_, pa.binary() if pa.types.is_fixed_size_binary(type_) else type_)


def _is_shredded(struct: pa.StructType) -> bool:
    """Return whether a struct is a VARIANT of which some values lie in columns of their own; files differ in which."""
    return is_variant(struct) and struct.get_field_index("typed_value") >= 0


_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def _timestamp(type_: pa.TimestampType, int96: bool) -> pa.DataType:
    if int96:
        return _INSTANT
    if type_.unit == "ns":
        return type_  # Spark refuses nanoseconds: such a column is returned unchanged and never prunes
    return pa.timestamp("us", "UTC" if type_.tz else None)


def merge_schemas(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema with the columns of all named files, each in its widest type, in order of appearance.

    Names are matched without regard to case, as in Spark. Raises IncompatibleSchemas, naming the file and the column.
    """
    merged: dict[str, pa.Field] = {}
    for name, schema in schemas:
        for field in schema:
            known = merged.setdefault(field.name.lower(), field)
            if known.type != field.type:
                try:
                    type_ = _widest(known.type, field.type)
                except TypeError:
                    raise IncompatibleSchemas(
                        f"{name} has column {field.name} as {field.type}, other files as {known.type}"
                    ) from None
                merged[field.name.lower()] = pa.field(known.name, type_)
    return pa.schema(list(merged.values()))


_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_FLOATS = [pa.float32(), pa.float64()]


def _widest(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """Return the type that Spark's reader gives both. Raises TypeError if it refuses one of them."""
    if a == b:
        return a
    for family in (_INTEGERS, _FLOATS):
        if a in family and b in family:
            return max(a, b, key=family.index)
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    match a, b:
        case pa.Decimal128Type(), pa.Decimal128Type() if a.scale == b.scale:
            return max(a, b, key=lambda type_: type_.precision)
        case pa.StructType(), pa.StructType():
            merged = {f.name.lower(): f for f in a}
            for f in b:
                known = merged.get(f.name.lower(), f)
                merged[f.name.lower()] = pa.field(known.name, _widest(known.type, f.type))
            return pa.struct(list(merged.values()))
        case pa.ListType(), pa.ListType():
            return pa.list_(pa.field("element", _widest(a.value_type, b.value_type)))
        case pa.MapType(), pa.MapType():
            return pa.map_(_widest(a.key_type, b.key_type), _widest(a.item_type, b.item_type))
        case _:
            raise TypeError


def conform(batch: pa.RecordBatch | pa.Table, fields: Sequence[pa.Field]) -> list[pa.Array]:
    """Convert the columns of a file's batch to the table's fields; a column that the file lacks is NULL.

    Fields of dictionary types become values of either that type or its value type.
    """
    names = batch.schema.names
    if names == [field.name for field in fields]:
        return [conform_array(column, field.type) for column, field in zip(batch.columns, fields, strict=True)]
    by_name = {name.lower(): i for i, name in enumerate(names)}
    columns = []
    for field in fields:
        position = by_name.get(field.name.lower())
        missing = position is None
        columns.append(
            pa.nulls(batch.num_rows, field.type) if missing else conform_array(batch.column(position), field.type)
        )
    return columns


def conformed(batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Return a file's batch with the table's fields; see :func:`conform`. One that has them is not built anew."""
    plain = batch.replace_schema_metadata()
    has_fields = plain.schema.equals(pa.schema(fields), check_metadata=True)
    return plain if has_fields else batch_of(conform(batch, fields), fields)


def batch_of(arrays: Sequence[pa.Array], fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Return a batch of arrays, which may have other types than the fields."""
    types = zip(fields, arrays, strict=True)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_type(array.type) for field, array in types]))


def conform_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Widen an array to a type: casts, and missing struct fields as NULL. Raises InvalidParquet, UnsupportedTable."""
    if array.type == type_:
        return array
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([conform_array(chunk, type_) for chunk in array.chunks], type_)
    match type_:
        case pa.DictionaryType():
            is_kept = pa.types.is_dictionary(array.type) and array.type.value_type == type_.value_type
            return array if is_kept else conform_array(array, type_.value_type)
        case pa.StructType() if pa.types.is_struct(array.type) and _is_shredded(array.type):
            raise UnsupportedTable(
                "only Spark reads a VARIANT of which some values lie in columns of their own: leave the column out, or "
                "use to_spark(spark, via='native')"
            )
        case pa.StructType():
            names = [f.name.lower() for f in array.type]
            children = []
            for f in type_:
                position = names.index(f.name.lower()) if f.name.lower() in names else None
                child = (
                    pa.nulls(len(array), f.type) if position is None else conform_array(array.field(position), f.type)
                )
                children.append(child)
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=pc.is_null(array))
        case pa.ListType():
            plain = array.cast(pa.list_(array.type.value_type))
            return with_items(plain, type_, conform_array(plain.values, type_.value_type))
        case pa.MapType():
            keys, items = (
                conform_array(array.keys, type_.key_type),
                conform_array(array.items, type_.item_type),
            )
            return with_entries(array, type_, keys, items)
        case _:
            return _cast(array, type_)


def with_items(lists: pa.Array, type_: pa.DataType, items: pa.Array) -> pa.Array:
    """Return lists of other items, as many; pyarrow's from_arrays() refuses NULLs in an array that is a slice."""
    buffers = lists.buffers()[:2]
    return pa.Array.from_buffers(type_, len(lists), buffers, offset=lists.offset, children=[items])


def with_entries(maps: pa.MapArray, type_: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.Array:
    """Return maps of other keys and items, as many; see :func:`with_items`."""
    entries = pa.StructArray.from_arrays([keys, items], fields=[type_.key_field, type_.item_field])
    return with_items(maps, type_, entries)


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return array.cast(type_)
    except pa.ArrowException as error:
        raise InvalidParquet(f"cannot read values of type {array.type} as {type_}: {error}") from None
