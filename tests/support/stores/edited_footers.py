"""Edit the footers of Parquet files field by field."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.io.parquet.thrift import decode_struct


def varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def kind_of(value: object) -> int:
    return {bool: 1, int: 6, float: 7, bytes: 8, list: 9, dict: 12}[type(value)]


def encode(value: Any) -> bytes:
    """The compact form of a value as decode_struct gives it: all integers become i64."""
    match value:
        case bool():
            return b"\x01" if value else b"\x02"
        case int():
            return varint((value << 1 ^ value >> 63) & 2**64 - 1)
        case float():
            return struct.pack("<d", value)
        case bytes():
            return varint(len(value)) + value
        case list():
            kind = kind_of(value[0]) if value else 12
            head = bytes([len(value) << 4 | kind]) if len(value) < 15 else bytes([0xF0 | kind]) + varint(len(value))
            return head + b"".join(map(encode, value))
        case _:
            return b"".join(map(encode_field, value.items())) + b"\x00"


def encode_field(item: tuple[int, Any]) -> bytes:
    field, value = item
    if isinstance(value, bool):
        return bytes([1 if value else 2]) + encode(field)
    return bytes([kind_of(value)]) + encode(field) + encode(value)


def metadata_of(data: bytes) -> Any:
    length = int.from_bytes(data[-8:-4], "little")
    return decode_struct(data[-8 - length : -8])


def with_metadata(data: bytes, metadata: Any) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    footer = encode(metadata)
    return data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def edited(data: bytes, change: Callable[[Any], None]) -> bytes:
    """The file with its FileMetaData changed in place, as field ids and values."""
    metadata = metadata_of(data)
    change(metadata)
    return with_metadata(data, metadata)


def chunk_of(metadata: Any) -> Any:
    return metadata[4][0][1][0]


def parquet_bytes(values: pa.Array | pa.Table, **options: Any) -> bytes:
    table = values if isinstance(values, pa.Table) else pa.table({"x": values})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **({"write_page_index": True, "write_batch_size": 2, "data_page_size": 1} | options))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
