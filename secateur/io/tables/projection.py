"""Project a file's data to a table's fields by field id: renamed, reordered, widened, dropped and added ones.

Source: Iceberg's specification, "Column Projection": a field that a file lacks has the value of an identity partition
if there is one, else its initial default, else NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import InvalidParquet
from secateur.io.parquet.arrow_types import conform_array, with_entries, with_items
from secateur.io.tables.field_ids import id_of
from secateur.pruning.predicate.variant_paths import is_variant

IS_UUID = {b"secateur:stored": b"uuid"}  # metadata of a string field stored as 16 bytes in files
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 12, 16, 20)  # number of digits before each dash
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)


def projected(array: pa.Array, stored: pa.Field, field: pa.Field, defaults: Mapping[int, pa.Scalar]) -> pa.Array:
    """Project an array from the file's field to the table's field. Raises InvalidParquet."""
    type_ = field.type
    match type_:
        case pa.StructType() if is_variant(type_):  # its parts have names and no ids
            return conform_array(array, type_)
        case pa.StructType() if pa.types.is_struct(stored.type):
            stored_children = {id_of(child): (array.field(i), child) for i, child in enumerate(stored.type)}
            children = [
                projected(*stored_children[id_of(child)], child, defaults)
                if id_of(child) in stored_children
                else absent(child, len(array), defaults)
                for child in type_
            ]
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=pc.is_null(array))
        case pa.ListType() if isinstance(stored.type, _LISTS):
            plain = array.cast(pa.list_(stored.type.value_field))
            values = projected(plain.values, stored.type.value_field, type_.value_field, defaults)
            return with_items(plain, type_, values)
        case pa.MapType() if pa.types.is_map(stored.type):
            keys = projected(array.keys, stored.type.key_field, type_.key_field, defaults)
            items = projected(array.items, stored.type.item_field, type_.item_field, defaults)
            return with_entries(array, type_, keys, items)
        case _ if pa.types.is_nested(type_) or pa.types.is_nested(stored.type):
            raise InvalidParquet(f"field {field.name} is {stored.type} in the file, and {type_} in the table")
        case _ if is_uuid(field):
            return uuid_texts(array)
        case _:
            return conform_array(array, type_)


def absent(field: pa.Field, n: int, defaults: Mapping[int, pa.Scalar]) -> pa.Array:
    """Return n values of a field that a file lacks."""
    number = id_of(field)
    value = None if number is None else defaults.get(number)
    if value is None or not value.is_valid:
        return pa.nulls(n, field.type)
    return conform_array(pa.repeat(value, n), field.type)


def is_uuid(field: pa.Field) -> bool:
    """Return whether a string field is stored as 16 bytes."""
    return bool(field.metadata) and field.metadata.get(b"secateur:stored") == b"uuid"


def uuid_texts(array: pa.Array) -> pa.Array:
    """Format UUIDs of 16 bytes as Spark shows them: 32 hexadecimal digits with four dashes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_string(array.type):
        return array
    if not pa.types.is_fixed_size_binary(array.type) or array.type.byte_width != 16:
        raise InvalidParquet(f"UUIDs are 16 bytes, and the file has {array.type}")
    n = len(array)
    data = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + n)].reshape(n, 16)
    digits = np.stack([_HEX[data >> 4], _HEX[data & 15]], axis=-1).reshape(n, 32)
    texts = np.insert(digits, _DASHES, ord("-"), axis=1)
    offsets = np.arange(0, 36 * (n + 1), 36, dtype=np.int32)
    buffers = [pa.py_buffer(offsets.tobytes()), pa.py_buffer(texts.astype(np.uint8).tobytes())]
    whole = pa.StringArray.from_buffers(n, *buffers)
    return whole if not array.null_count else pc.if_else(pc.is_valid(array), whole, None)
