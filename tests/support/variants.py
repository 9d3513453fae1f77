"""VARIANT values as Parquet stores them, encoded one by one: what is tested decodes them many at a time."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Json = dict[str, Any]


def names_in(value: Any) -> set[str]:
    match value:
        case dict():
            return {*value, *(name for child in value.values() for name in names_in(child))}
        case list():
            return {name for child in value for name in names_in(child)}
        case _:
            return set()


def metadata_of(names: list[str], *, width: int = 1) -> bytes:
    """A dictionary of names, with numbers of `width` bytes."""
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    return b"".join([bytes([(width - 1) << 6 | 1]), *(_number(n, width) for n in (len(texts), *ends)), *texts])


def _number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little")


def value_of(value: Any, names: list[str], *, width: int = 1, is_large: bool = False) -> bytes:
    """A value; fields of objects are in the order of their names, and their bytes in the reverse one."""
    match value:
        case None:
            return b"\x00"
        case bool():
            return b"\x04" if value else b"\x08"
        case int():
            size = next(k for k in range(4) if -(1 << (8 << k) - 1) <= value < 1 << (8 << k) - 1)
            return bytes([3 + size << 2]) + value.to_bytes(1 << size, "little", signed=True)
        case float():
            return bytes([7 << 2]) + struct.pack("<d", value)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            size = 0 if len(digits) <= 9 else 1 if len(digits) <= 18 else 2
            unscaled = int(value.scaleb(-exponent))
            return bytes([8 + size << 2, -exponent]) + unscaled.to_bytes(4 << size, "little", signed=True)
        case dt.datetime():
            kind = 13 if value.tzinfo is None else 12
            return bytes([kind << 2]) + struct.pack(
                "<q", (value.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(0, 0, 1)
            )
        case dt.date():
            return bytes([11 << 2]) + struct.pack("<i", (value - EPOCH.date()).days)
        case bytes():
            return bytes([15 << 2]) + struct.pack("<I", len(value)) + value
        case str() if len(value.encode()) < 64:
            return bytes([len(value.encode()) << 2 | 1]) + value.encode()
        case str():
            return bytes([16 << 2]) + struct.pack("<I", len(value.encode())) + value.encode()
        case dict():
            children = {name: value_of(child, names, width=width, is_large=is_large) for name, child in value.items()}
            return _collection(2, children, names, width, is_large)
        case _:
            items = [value_of(item, names, width=width, is_large=is_large) for item in value]
            ends = [sum(map(len, items[:i])) for i in range(len(items) + 1)]
            offsets = b"".join(_number(end, width) for end in ends)
            header = (is_large << 2 | (width - 1)) << 2 | 3
            return b"".join([bytes([header]), _number(len(items), 4 if is_large else 1), offsets, *items])


def _collection(basic: int, children: dict[str, bytes], names: list[str], width: int, is_large: bool) -> bytes:
    header = (is_large << 4 | (width - 1) << 2 | (width - 1)) << 2 | basic
    stored, at = [], {}
    for name in sorted(children, reverse=True):
        at[name] = sum(map(len, stored))
        stored.append(children[name])
    offsets = [*(at[name] for name in sorted(children)), sum(map(len, stored))]
    ids = [_number(names.index(name), width) for name in sorted(children)]
    count = _number(len(children), 4 if is_large else 1)
    return b"".join([bytes([header]), count, *ids, *(_number(offset, width) for offset in offsets), *stored])


MISSING = object()


def shredded(value: Any, names: list[str], schema: Any) -> Json | None:
    """The `value` and `typed_value` of a value under a schema of types, of dicts and lists of such; None for none."""
    if value is MISSING:
        return {"value": None, "typed_value": None}
    if isinstance(schema, dict) and isinstance(value, dict):
        typed = {name: shredded(value.get(name, MISSING), names, below) for name, below in schema.items()}
        rest = {name: child for name, child in value.items() if name not in schema}
        return {"value": value_of(rest, names) if rest else None, "typed_value": typed}
    if isinstance(schema, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shredded(item, names, schema[0]) for item in value]}
    fits = not isinstance(schema, dict | list) and _fits(value, schema)
    return {"value": None if fits else value_of(value, names), "typed_value": value if fits else None}


def _fits(value: Any, type_: pa.DataType) -> bool:
    match value:
        case bool():
            return bool(type_ == pa.bool_())
        case int():
            return pa.types.is_integer(type_) and -(1 << type_.bit_width - 1) <= value < 1 << type_.bit_width - 1
        case float():
            return bool(type_ == pa.float64())
        case str():
            return bool(type_ == pa.string())
        case _:
            return False


def type_of(schema: Any) -> pa.DataType:
    """The type of a group of `value` and `typed_value`."""
    if isinstance(schema, dict):
        typed: pa.DataType = pa.struct({name: type_of(below) for name, below in schema.items()})
    else:
        typed = pa.list_(type_of(schema[0])) if isinstance(schema, list) else schema
    return pa.struct([("value", pa.binary()), ("typed_value", typed)])


def column_of(values: list[Any], schema: Any = None, *, width: int = 1, is_large: bool = False) -> pa.Array:
    """A VARIANT column; a Python None is VARIANT's null, and MISSING a NULL of SQL."""
    rows: list[Json | None] = []
    for value in values:
        names = sorted(names_in(value)) if value is not MISSING else []
        if value is MISSING:
            rows.append(None)
        elif schema is None:
            plain = value_of(value, names, width=width, is_large=is_large)
            rows.append({"metadata": metadata_of(names, width=width), "value": plain})
        else:
            rows.append({"metadata": metadata_of(names, width=width), **(shredded(value, names, schema) or {})})
    parts = [("value", pa.binary())] if schema is None else list(type_of(schema))
    return pa.array(rows, pa.struct([("metadata", pa.binary()), *parts]))
