"""Encode Thrift's compact protocol: structures of integers, binaries, lists, and already encoded values.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.thrift import STRUCT, ThriftField, elements, wire_fields

Encoded: TypeAlias = tuple[int, int, bytes]  # a field's id, wire type and encoded value


def encoded(field: ThriftField[Any], value: bytes) -> Encoded:
    """Return a field with its encoded value."""
    return field.id, field.wire, value


def structure(values: Iterable[Encoded], behind: int = 0) -> bytes:
    """Encode a structure with fields of ascending ids, or the rest of one after the field with id `behind`."""
    return fields(values, behind) + b"\0"


def fields(values: Iterable[Encoded], behind: int = 0) -> bytes:
    """Encode fields of ascending ids that follow the field with id `behind`, without the end of their structure."""
    parts, last = [], behind
    for number, kind, value in values:
        delta = number - last
        parts += [bytes([delta << 4 | kind]) if delta < 16 else bytes([kind]) + integer(number), value]
        last = number
    return b"".join(parts)


def tag(field: ThriftField[Any], behind: int = 0) -> bytes:
    """Return what stands before the value of a field that follows the one with id `behind`, less than 16 before it."""
    return bytes([field.id - behind << 4 | field.wire])


_SHORT = tuple(bytes([value]) for value in range(0x80))  # integers of one byte


def integer(value: int) -> bytes:
    """Encode a signed integer of any width, zigzag."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    """Encode an unsigned integer, seven bits per byte, least significant first."""
    if value < len(_SHORT):
        return _SHORT[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def binary(value: bytes) -> bytes:
    """Encode bytes, preceded by their length."""
    return varint(len(value)) + value


def list_of(kind: int, values: Sequence[bytes]) -> bytes:
    """Encode a list of values of one wire type."""
    n = len(values)
    header = bytes([n << 4 | kind]) if n < 15 else bytes([0xF0 | kind]) + varint(n)
    return header + b"".join(values)


def without_file_paths(footer: bytes) -> bytes:
    """Encode a FileMetaData without the paths of its column chunks. Raises MalformedThrift."""
    return _with_elements(footer, spec.FileMetaData.row_groups, _without_paths)


def _without_paths(row_group: bytes) -> bytes:
    return _with_elements(row_group, spec.RowGroup.columns, _without_path)


def _without_path(chunk: bytes) -> bytes:
    fields_ = wire_fields(chunk)
    return structure((i, field.kind, field.data) for i, field in fields_.items() if i != spec.ColumnChunk.file_path.id)


def _with_elements(data: bytes, field: ThriftField[Any], change: Callable[[bytes], bytes]) -> bytes:
    """Encode a structure again, whose list of structures is changed one by one."""
    fields_ = wire_fields(data)
    changed = list_of(STRUCT, [change(element) for element in elements(fields_[field.id].data)])
    kept = {i: (i, kept.kind, kept.data) for i, kept in fields_.items()}
    return structure({**kept, field.id: (field.id, fields_[field.id].kind, changed)}.values())
