"""Decode Thrift's compact protocol without a schema: bytes become ``{field id: value}``.

A bool, integer or double is itself, a binary or string is ``bytes``, a list or set is a ``list``, a map is a list of
pairs, a structure is a ``dict``. The length of every binary and the count of every collection is compared with the
remaining bytes before it is used, and an element takes at least one byte, so memory and time are linear in the input.
Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from struct import unpack_from
from typing import Generic, TypeAlias, TypeVar, cast

Struct: TypeAlias = dict[int, object]
Data: TypeAlias = bytes | memoryview
T = TypeVar("T")

_TRUE, _FALSE = 1, 2  # the types of a bool field, which are its value, and the bytes of a bool element
_MAX_DEPTH = 32  # parquet.thrift nests 9 levels deep (footer, lists, schema element, logical type, unit)


class MalformedThrift(ValueError):
    """The bytes are not the compact protocol, or a field is not what its reader expects."""


def decode_struct(data: bytes) -> Struct:
    """Decode the structure that starts at the first byte; what follows it is ignored. Raises MalformedThrift."""
    return decode_leading(data)[0]


def decode_leading(data: Data) -> tuple[Struct, int]:
    """Decode the structure that starts at the first byte, and return it with its length in bytes. Raises
    MalformedThrift.
    """
    try:
        return _struct(data, 0, _MAX_DEPTH)
    except IndexError:
        raise MalformedThrift(f"ends inside a structure, after {len(data)} bytes") from None


@dataclass(frozen=True, slots=True)
class WireField:
    """A field of a structure: its wire type, and its encoded and decoded value. A bool's type is its value."""

    kind: int
    data: bytes
    value: object


def wire_fields(data: bytes) -> dict[int, WireField]:
    """Return the fields of the structure that starts at the first byte, by id. Raises MalformedThrift."""
    fields: dict[int, WireField] = {}
    field, position = 0, 0
    try:
        while header := data[position]:
            kind = header & 0x0F
            position += 1
            if header > 0x0F:
                field += header >> 4
            else:
                field, position = _integer(data, position, _MAX_DEPTH)
            start, value = position, cast(object, kind == _TRUE)
            if not _TRUE <= kind <= _FALSE:
                value, position = _READERS[kind](data, position, _MAX_DEPTH - 1)
            fields[field] = WireField(kind, data[start:position], value)
    except IndexError:
        raise MalformedThrift(f"ends inside a structure, after {len(data)} bytes") from None
    return fields


def elements(data: bytes) -> list[bytes]:
    """Return the encoded elements of an encoded list of structures. Raises MalformedThrift."""
    try:
        count, position = data[0] >> 4, 1
        if count == 15:
            count, position = _varint(data, position)
        if data[0] & 0x0F != STRUCT:
            raise MalformedThrift("the list is not of structures")
        parts = []
        for _ in range(count):
            end = _struct(data, position, _MAX_DEPTH)[1]
            parts.append(data[position:end])
            position = end
    except IndexError:
        raise MalformedThrift(f"ends inside a list, after {len(data)} bytes") from None
    return parts


class ThriftField(Generic[T]):
    """A field of a structure: its id, wire type and Python type. Its class names it: ``ColumnMetaData.codec``."""

    __slots__ = ("id", "kind", "name", "wire")

    def __init__(self, id: int, kind: type[T], wire: int) -> None:
        self.id, self.kind, self.wire = id, kind, wire

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"


class ThriftListField(ThriftField[T]):
    """A field that is a list; the type is that of its elements."""

    __slots__ = ()


def optional(fields: Struct, field: ThriftField[T]) -> T | None:
    """Return the field's value, None if it is absent. Raises MalformedThrift for a value of another type."""
    value = fields.get(field.id)
    if value is not None and type(value) is not field.kind:
        raise MalformedThrift(f"{field.name} is a {type(value).__name__} instead of a {field.kind.__name__}")
    return value


def required(fields: Struct, field: ThriftField[T]) -> T:
    """Return the field's value. Raises MalformedThrift if it is absent or of another type."""
    value = optional(fields, field)
    if value is None:
        raise MalformedThrift(f"{field.name} is missing")
    return value


def optional_list(fields: Struct, field: ThriftListField[T]) -> list[T] | None:
    """Return the field's elements, None if it is absent. Raises MalformedThrift for an element of another type."""
    values = fields.get(field.id)
    if values is None:
        return None
    if type(values) is not list:
        raise MalformedThrift(f"{field.name} is a {type(values).__name__} instead of a list")
    for value in values:
        if type(value) is not field.kind:
            raise MalformedThrift(f"{field.name} holds a {type(value).__name__} instead of a {field.kind.__name__}")
    return values


def required_list(fields: Struct, field: ThriftListField[T]) -> list[T]:
    """Return the field's elements. Raises MalformedThrift if it is absent or an element is of another type."""
    values = optional_list(fields, field)
    if values is None:
        raise MalformedThrift(f"{field.name} is missing")
    return values


BOOL, I32, I64, BINARY, LIST, STRUCT = 1, 5, 6, 8, 9, 12  # wire types; a bool that is false has another one

# ---- for tables of fields

boolean = partial(ThriftField, kind=bool, wire=BOOL)
i32 = partial(ThriftField, kind=int, wire=I32)
i64 = partial(ThriftField, kind=int, wire=I64)
binary = partial(ThriftField, kind=bytes, wire=BINARY)
struct = partial(ThriftField[Struct], kind=dict, wire=STRUCT)
booleans = partial(ThriftListField, kind=bool, wire=LIST)
i32s = i64s = partial(ThriftListField, kind=int, wire=LIST)
binaries = partial(ThriftListField, kind=bytes, wire=LIST)
structs = partial(ThriftListField[Struct], kind=dict, wire=LIST)


def _struct(data: Data, position: int, depth: int) -> tuple[Struct, int]:
    _check_depth(position, depth)
    fields: Struct = {}
    field = 0
    while header := data[position]:
        kind = header & 0x0F
        position += 1
        if header > 0x0F:
            field += header >> 4
        else:
            field, position = _integer(data, position, depth)
        if _TRUE <= kind <= _FALSE:
            fields[field] = kind == _TRUE
        else:
            fields[field], position = _READERS[kind](data, position, depth - 1)
    return fields, position + 1


def _list(data: Data, position: int, depth: int) -> tuple[list[object], int]:
    _check_depth(position, depth)
    header = data[position]
    size, position = header >> 4, position + 1
    if size == 15:
        size, position = _varint(data, position)
    _check_size(size, data, position)
    read = _READERS[header & 0x0F]
    values = []
    for _ in range(size):
        value, position = read(data, position, depth - 1)
        values.append(value)
    return values, position


def _map(data: Data, position: int, depth: int) -> tuple[list[tuple[object, object]], int]:
    _check_depth(position, depth)
    size, position = _varint(data, position)
    _check_size(size, data, position)
    if size == 0:
        return [], position
    read_key, read_value = _READERS[data[position] >> 4], _READERS[data[position] & 0x0F]
    position += 1
    pairs = []
    for _ in range(size):
        key, position = read_key(data, position, depth - 1)
        value, position = read_value(data, position, depth - 1)
        pairs.append((key, value))
    return pairs, position


def _check_depth(position: int, depth: int) -> None:
    if depth == 0:
        raise MalformedThrift(f"more than {_MAX_DEPTH} levels of nesting at byte {position}")


def _check_size(size: int, data: Data, position: int) -> None:
    if size > len(data) - position:
        raise MalformedThrift(f"{size} bytes or elements at byte {position} of {len(data)}")


def _integer(data: Data, position: int, depth: int) -> tuple[int, int]:
    unsigned = data[position]
    if unsigned < 0x80:
        position += 1
    else:
        unsigned, position = _varint(data, position)
    return (unsigned >> 1) ^ -(unsigned & 1), position


def _varint(data: Data, position: int) -> tuple[int, int]:
    byte = data[position]
    value, shift = byte & 0x7F, 0
    while byte > 0x7F:
        position += 1
        shift += 7
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if value >> 64 or shift > 63:
            raise MalformedThrift(f"an integer of more than 64 bits at byte {position}")
    return value, position + 1


def _binary(data: Data, position: int, depth: int) -> tuple[bytes, int]:
    size, position = _varint(data, position)
    _check_size(size, data, position)
    return bytes(data[position : position + size]), position + size


def _bool(data: Data, position: int, depth: int) -> tuple[bool, int]:
    return data[position] == _TRUE, position + 1


def _byte(data: Data, position: int, depth: int) -> tuple[int, int]:
    return (data[position] ^ 0x80) - 0x80, position + 1


def _double(data: Data, position: int, depth: int) -> tuple[float, int]:
    _check_size(8, data, position)
    return float(unpack_from("<d", data, position)[0]), position + 8


def _uuid(data: Data, position: int, depth: int) -> tuple[bytes, int]:
    _check_size(16, data, position)
    return bytes(data[position : position + 16]), position + 16


def _unknown(data: Data, position: int, depth: int) -> tuple[object, int]:
    raise MalformedThrift(f"an unknown type before byte {position}")


_Reader: TypeAlias = Callable[[Data, int, int], tuple[object, int]]
_READERS: tuple[_Reader, ...] = (  # by the type of a field or element, 0 to 15
    *(_unknown, _bool, _bool, _byte, _integer, _integer, _integer, _double),
    *(_binary, _list, _list, _map, _struct, _uuid, _unknown, _unknown),
)
