"""A Parquet file of one row group, put together in memory from pages of another file, copied byte for byte.

Pages of different columns end at different rows. So that all columns of the small file have the same rows, a column
whose chosen pages do not reach as far as those of another is filled up with pages of NULLs, a few bytes for any number
of rows; what they stand for is never part of the answer. Pages of both versions and filling ones mix in one chunk.
Source: parquet.thrift, RowGroup, ColumnChunk, ColumnMetaData.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io import thrift_encoding as thrift
from secateur.io.head import MAGIC, Head, opened_small_file
from secateur.io.nested import joined
from secateur.io.page_header import PLAIN, RLE, null_page
from secateur.io.parquet_schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
    Column,
)

_WIDTH = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 4}  # of a PLAIN zero, or an empty text


@dataclass(frozen=True)
class ChunkBytes:
    """The bytes of one column chunk of a small file."""

    codec: int
    parts: Sequence[bytes | memoryview]  # the dictionary page, if there is one, then data pages
    dictionary: int  # bytes of the dictionary page
    value_count: int

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(map(len, self.parts))


def small_file(head: Head, row_count: int, chunks: Mapping[int, ChunkBytes]) -> bytes:
    """A file with one row group of so many rows, in which the leaves of the given ordinals have values.

    The other columns have chunks without values, and cannot be read.
    """
    parts: list[bytes | memoryview] = [MAGIC]
    described = []
    position, total = len(MAGIC), 0
    for ordinal, column in enumerate(head.columns):
        chunk = chunks.get(ordinal, _NOTHING)
        size = chunk.size
        described.append(_column_chunk(column, chunk, position, size))
        parts += chunk.parts
        position += size
        total += size
    group = thrift.structure(
        [
            (1, thrift.LIST, thrift.list_of(thrift.STRUCT, described)),
            (2, thrift.I64, thrift.integer(total)),
            (3, thrift.I64, thrift.integer(row_count)),
        ]
    )
    return b"".join([*parts, head.footer(row_count, [group])])


_NOTHING = ChunkBytes(0, (), 0, 0)


def _column_chunk(column: Column, chunk: ChunkBytes, position: int, size: int) -> bytes:
    encodings = [thrift.integer(PLAIN), thrift.integer(RLE)]
    metadata = [
        (1, thrift.I32, thrift.integer(column.physical)),
        (2, thrift.LIST, thrift.list_of(thrift.I32, encodings)),
        (3, thrift.LIST, thrift.list_of(thrift.BINARY, [thrift.binary(name) for name in column.names])),
        (4, thrift.I32, thrift.integer(chunk.codec)),
        (5, thrift.I64, thrift.integer(chunk.value_count)),
        (6, thrift.I64, thrift.integer(size)),
        (7, thrift.I64, thrift.integer(size)),
        (9, thrift.I64, thrift.integer(position + chunk.dictionary)),
    ]
    if chunk.dictionary:
        metadata.append((11, thrift.I64, thrift.integer(position)))
    fields = [
        (2, thrift.I64, thrift.integer(position)),
        (3, thrift.STRUCT, thrift.structure(metadata)),
    ]
    return thrift.structure(fields)


def filling(column: Column, rows: int) -> bytes:
    """A page of so many rows of nothing: NULLs, or zeros of a column that has none."""
    plain = b"" if column.definition else _zeros(column, rows)
    return null_page(rows, column.definition, column.repetition, plain)


def decoded(
    head: Head, data: bytes, leaves: Sequence[int], row_count: int, cut: Callable[[pa.Table], pa.Table]
) -> pa.Table:
    """The top-level columns of a small file that some of its leaves make up, in the order of the file.

    `cut` leaves of a table the rows that no filling page stands for. Raises InvalidParquet where a column has another
    number of rows, and what pyarrow raises.
    """
    file = opened_small_file(data)
    roots: dict[bytes, list[int]] = {}
    for leaf in leaves:
        roots.setdefault(head.columns[leaf].names[0], []).append(leaf)
    apart = [own for own in roots.values() if len(own) > 1 and any(head.columns[leaf].repetition for leaf in own)]
    together = [leaf for own in roots.values() if own not in apart for leaf in own]
    found: dict[str, pa.ChunkedArray] = {}
    if together:
        table = cut(_read(file, together, row_count))
        found = dict(zip(table.column_names, table.columns, strict=True))
    for own in apart:
        parts = [cut(_read(file, [leaf], row_count)) for leaf in own]
        name = parts[0].column_names[0]
        arrays = [part.column(0).combine_chunks() for part in parts]
        found[name] = pa.chunked_array([joined(head.schema.field(name).type, arrays)])
    return pa.table({name: found[name] for name in head.schema.names if name in found})


def _read(file: pq.ParquetFile, leaves: Sequence[int], row_count: int) -> pa.Table:
    table = file.reader.read_row_group(0, column_indices=leaves, use_threads=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if len(column) != row_count:
            raise InvalidParquet(f"the pages of column {name} hold {len(column)} rows instead of {row_count}")
    return table


def _zeros(column: Column, rows: int) -> bytes:
    if column.physical == BOOLEAN:
        return bytes((rows + 7) // 8)
    return bytes(rows * (column.width if column.physical == FIXED_LEN_BYTE_ARRAY else _WIDTH[column.physical]))
