"""Footers of Parquet files, changed to what other writers, or writers with bugs, leave in them.

Thrift's compact protocol with its types kept, so that what is written again differs only where it is meant to.
Source: Apache Thrift, "Thrift Compact protocol encoding"; Apache Parquet, "parquet.thrift".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
Typed = dict[int, tuple[int, Any]]  # by field id: type and value; of a list: type of the elements, elements
Change = Callable[[Typed], None]

ROW_GROUPS, CREATED_BY, COLUMN_ORDERS = 4, 6, 7  # of FileMetaData
TYPE_ORDER, TOTAL_ORDER = 1, 2  # of ColumnOrder
COLUMNS = 1  # of RowGroup
META_DATA = 3  # of ColumnChunk
PATH, STATISTICS, BLOOM_FILTER_OFFSET = 3, 12, 14  # of ColumnMetaData
OLD_MAX, OLD_MIN, NULL_COUNT, MAX_VALUE, MIN_VALUE, NAN_COUNT = 1, 2, 3, 5, 6, 9  # of Statistics


def edit(path: Path, change: Change) -> None:
    """Rewrites a file with a changed FileMetaData."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    metadata, _ = _struct(data, len(data) - 8 - size)
    change(metadata)
    footer = _packed(STRUCT, metadata)
    path.write_bytes(data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def statistics(metadata: Typed) -> Iterator[Typed]:
    """The Statistics of every column chunk that has them."""
    for chunk in chunks(metadata):
        if STATISTICS in chunk:
            yield chunk[STATISTICS][1]


def chunks(metadata: Typed) -> Iterator[Typed]:
    """The ColumnMetaData of all column chunks."""
    for group in metadata[ROW_GROUPS][1][1]:
        for column in group[COLUMNS][1][1]:
            yield column[META_DATA][1]


# ---- what writers do


def without(*fields: int) -> Change:
    """A change that takes fields out of all statistics."""

    def change(metadata: Typed) -> None:
        for stats in statistics(metadata):
            for field in fields:
                stats.pop(field, None)

    return change


def no_nulls_and_no_bounds(metadata: Typed) -> None:
    """Sets null counts of 0 and removes bounds, as columns of NULL only were written once."""
    for stats in statistics(metadata):
        for field in (OLD_MAX, OLD_MIN, MAX_VALUE, MIN_VALUE):
            stats.pop(field, None)
        stats[NULL_COUNT] = (I64, 0)


def signed_bounds(metadata: Typed) -> None:
    """Orders bounds of text by signed bytes, as an old writer did in the old fields: PARQUET-251 and PARQUET-686.

    Text that begins beyond ASCII is then below all other, so the bounds are swapped where one of them does.
    """
    metadata[CREATED_BY] = (BINARY, b"parquet-mr version 1.6.0 (build abcdef)")
    for stats in statistics(metadata):
        high, low = stats.pop(MAX_VALUE, None), stats.pop(MIN_VALUE, None)
        if high is not None and low is not None:
            high, low = (low, high) if high[1][:1] >= b"\x80" else (high, low)
            stats[OLD_MAX], stats[OLD_MIN] = high, low


def total_order(rows: pa.Table, row_group_size: int) -> Change:
    """A change to IEEE 754's total order, with the NaN counts that it demands, in the columns of floats.

    Bounds are the least and the greatest number, or if there is none the least and the greatest NaN.
    """

    def change(metadata: Typed) -> None:
        floats = {name for name in rows.column_names if pa.types.is_floating(rows.schema.field(name).type)}
        chosen = [chunk[PATH][1][1] in ([name.encode()] for name in floats) for chunk in _first_chunks(metadata)]
        orders: list[Typed] = [{TOTAL_ORDER if total else TYPE_ORDER: (STRUCT, {})} for total in chosen]
        metadata[COLUMN_ORDERS] = (LIST, (STRUCT, orders))
        for i, group in enumerate(metadata[ROW_GROUPS][1][1]):
            held = rows.slice(i * row_group_size, row_group_size)
            for column, total in zip(group[COLUMNS][1][1], chosen, strict=True):
                if total:
                    chunk = column[META_DATA][1]
                    _count_nans(chunk, held[chunk[PATH][1][1][0].decode()])

    return change


def _first_chunks(metadata: Typed) -> list[Typed]:
    return [column[META_DATA][1] for column in metadata[ROW_GROUPS][1][1][0][COLUMNS][1][1]]


def _count_nans(chunk: Typed, values: pa.ChunkedArray) -> None:
    array = values.drop_null().to_numpy()
    nans = np.isnan(array)
    bounded = array if nans.all() else array[~nans]
    words = bounded.view(f"i{bounded.itemsize}")
    ordered = bounded[np.argsort(np.where(words < 0, words ^ np.iinfo(words.dtype).max, words))]
    stats: Typed = {NULL_COUNT: (I64, values.null_count), NAN_COUNT: (I64, int(nans.sum()))}
    if len(ordered):
        stats |= {MIN_VALUE: (BINARY, ordered[:1].tobytes()), MAX_VALUE: (BINARY, ordered[-1:].tobytes())}
    chunk[STATISTICS] = (STRUCT, stats)


# ---- Thrift


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2:  # of a list; a field's value is its type
            return data[at] == TRUE, at + 1
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            value, at = _varint(data, at)
            return (value >> 1) ^ -(value & 1), at
        case 7:
            return data[at : at + 8], at + 8
        case 8:
            size, at = _varint(data, at)
            return data[at : at + size], at + size
        case 9 | 10:
            inner, size, at = data[at] & 15, data[at] >> 4, at + 1
            if size == 15:
                size, at = _varint(data, at)
            values = []
            for _ in range(size):
                value, at = _value(inner, data, at)
                values.append(value)
            return (inner, values), at
        case 12:
            return _struct(data, at)
    raise ValueError(f"type {kind} of Thrift at byte {at}, which no footer has")


def _struct(data: bytes, at: int) -> tuple[Typed, int]:
    fields: Typed = {}
    field = 0
    while header := data[at]:
        at += 1
        kind = header & 15
        if header >> 4:
            field += header >> 4
        else:
            value, at = _varint(data, at)
            field = (value >> 1) ^ -(value & 1)
        fields[field] = kind, None
        if kind > FALSE:
            value, at = _value(kind, data, at)
            fields[field] = kind, value
    return fields, at + 1


def _packed_varint(value: int) -> bytes:
    packed = bytearray()
    while value > 0x7F:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*packed, value])


def _packed(kind: int, value: Any) -> bytes:
    match kind:
        case 1 | 2:
            return bytes([TRUE if value else FALSE])
        case 3:
            return struct.pack("B", value)
        case 4 | 5 | 6:
            return _packed_varint((value << 1 ^ value >> 63) & 2**64 - 1)
        case 7:
            return bytes(value)
        case 8:
            return _packed_varint(len(value)) + value
        case 9 | 10:
            inner, values = value
            many = len(values) >= 15
            head = bytes([(15 if many else len(values)) << 4 | inner]) + (_packed_varint(len(values)) if many else b"")
            return head + b"".join(_packed(inner, element) for element in values)
    fields = []
    for number, (field_kind, field_value) in sorted(value.items()):
        content = _packed(field_kind, field_value) if field_kind > FALSE else b""
        fields.append(bytes([field_kind]) + _packed(I16, number) + content)
    return b"".join(fields) + b"\x00"
