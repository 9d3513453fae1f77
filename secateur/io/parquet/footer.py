"""Parquet's footer and page index: the metadata of row groups and pages, without reading any data.

A bound read here may be loose, never wrong: anything missing, contradictory, of an undefined order or from a writer
with a known bug is unknown (a null bound, a null count of -1). Bounds of float and double exclude NaN. Source:
parquet.thrift, FileMetaData, RowGroup; "Apache Parquet format, ColumnIndex".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.bounds import Bounds, bounds_of
from secateur.io.parquet.column_chunk import Chunk, Trust, column_trust, read_chunk
from secateur.io.parquet.file_metadata import FileMetadata, head_of
from secateur.io.parquet.page_index import (
    PageIndex,
    PageLocations,
    PageStatistics,
    assemble,
    read_page_statistics,
    read_pages,
    unknown_statistics,
)
from secateur.io.parquet.schema import DOUBLE, FLOAT, Leaf, SchemaColumn, display, read_columns
from secateur.io.parquet.thrift import (
    MalformedThrift,
    Struct,
    WireField,
    decode_struct,
    optional,
    optional_list,
    required,
    required_list,
    wire_fields,
)
from secateur.io.parquet.writer_bugs import doubts
from secateur.io.storage.byte_ranges import LOCAL_GAP, Range, read_ranges
from secateur.io.storage.object_file import AFTER_FOOTER

__all__ = [
    "Bounds",
    "Footer",
    "Leaf",
    "PageIndex",
    "chunk_bounds",
    "footer_bytes",
    "footer_of",
    "read_footer",
    "read_page_index",
    "stored_chunks",
]

_CHUNK_BYTES = 1 << 10  # of a column chunk, decoded
_TAIL = 64 << 10  # bytes of the first read; enough for the footer of some hundred column chunks
_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_MAX_INT32, _MAX_INT64 = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, eq=False)
class Footer:
    """The decoded footer of a Parquet file."""

    row_count: npt.NDArray[np.int64]  # per row group
    byte_count: npt.NDArray[np.int64]  # per row group, of all its column chunks as stored
    placed: npt.NDArray[np.int64]  # shape (2, n_row_groups): start and bytes of each, as readers of splits see it
    leaves: tuple[Leaf, ...]  # without those under a repeated node, which the file has but this does not
    created_by: str
    head: FileMetadata = field(repr=False)
    _columns: tuple[SchemaColumn, ...] = field(repr=False)  # by ordinal
    _trust: tuple[Trust, ...] = field(repr=False)  # by ordinal
    _chunks: tuple[tuple[Chunk, ...], ...] = field(repr=False)  # by row group, then ordinal
    _file_size: int = field(repr=False)  # bytes

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        return _CHUNK_BYTES * len(self._columns) * len(self._chunks)

    def chunks(self, row_group: int) -> tuple[Chunk, ...]:
        """Return the column chunks of a row group, by leaf ordinal."""
        return self._chunks[row_group]


def read_footer(file: pa.NativeFile) -> Footer:
    """Read the footer of an open Parquet file: one read of up to 64 KiB, and a second one if it is longer.

    Raises InvalidParquet for anything that is not a complete, unencrypted footer with all data in this file.
    """
    size = file.size()
    return footer_of(footer_bytes(file, size), size)


def footer_of(data: bytes, file_size: int) -> Footer:
    """Decode the footer that starts at the first byte, of a file of some size. Raises as :func:`read_footer`."""
    try:
        return _file_metadata(wire_fields(data), file_size)
    except MalformedThrift as error:
        raise InvalidParquet(f"the footer is malformed: {error}") from error


def chunk_bounds(footer: Footer, leaf: Leaf) -> Bounds:
    """Return bounds of a leaf over the row groups: every value that is neither NULL nor NaN lies within.

    Raises ValueError for a leaf of another footer.
    """
    column = _column(footer, leaf)
    chunks = [group[leaf.ordinal] for group in footer._chunks]
    stored = [chunk.lower for chunk in chunks], [chunk.upper for chunk in chunks]
    null_count = np.array([chunk.null_count for chunk in chunks], np.int64)
    nan_count = np.array([chunk.nan_count for chunk in chunks], np.int64)
    return bounds_of(column, leaf, stored, (null_count, nan_count), footer.row_count)


def read_page_index(
    file: pa.NativeFile, footer: Footer, leaves: Sequence[Leaf], gap: int = LOCAL_GAP
) -> dict[tuple[str, ...], PageIndex]:
    """Read the page index of those leaves that have a usable OffsetIndex in every row group, by path.

    If a row group has no usable ColumnIndex, the leaf's pages in it have unknown bounds and null counts. Byte ranges at
    most `gap` bytes apart are read together. Raises InvalidParquet if an index is outside the file or cannot be
    decoded, ValueError for a leaf of another footer.
    """
    paths = Counter(leaf.path for leaf in footer.leaves)
    wanted = {
        leaf.path: leaf
        for leaf in leaves
        if all(chunk.offset_index for chunk in _chunks(footer, leaf)) and paths[leaf.path] == 1
    }
    chunks = [chunk for leaf in wanted.values() for chunk in _chunks(footer, leaf)]
    located = chain.from_iterable((chunk.offset_index, chunk.column_index) for chunk in chunks)
    places = [place for place in located if place is not None]
    if sum(length for _, length in places) > footer._file_size:
        raise InvalidParquet(f"the page indexes are together longer than the file's {footer._file_size} bytes")
    data = dict(zip(places, map(bytes, read_ranges(file, places, gap)), strict=True))
    indexes = {path: _leaf_page_index(footer, leaf, data) for path, leaf in wanted.items()}
    return {path: index for path, index in indexes.items() if index is not None}


def stored_chunks(footer: Footer, leaf: Leaf) -> tuple[SchemaColumn, list[Chunk]]:
    """Return how a leaf is stored, and its chunk in every row group. Raises ValueError for a leaf of another footer."""
    return _column(footer, leaf), _chunks(footer, leaf)


def _column(footer: Footer, leaf: Leaf) -> SchemaColumn:
    columns = footer._columns
    if leaf.ordinal >= len(columns) or columns[leaf.ordinal].leaf != leaf:
        raise ValueError(f"leaf {'.'.join(leaf.path)}, ordinal {leaf.ordinal}, is not of this footer")
    return columns[leaf.ordinal]


def _chunks(footer: Footer, leaf: Leaf) -> list[Chunk]:
    _column(footer, leaf)
    return [group[leaf.ordinal] for group in footer._chunks]


def footer_bytes(file: pa.NativeFile, size: int) -> bytes:
    """Return the encoded footer of an open file of some size. Raises InvalidParquet."""
    tail = _read(file, max(0, size - _TAIL), min(size, _TAIL))
    if tail[-4:] == _ENCRYPTED_MAGIC:
        raise InvalidParquet("encrypted footer (PARE) is not supported")
    if tail[-4:] != _MAGIC:
        raise InvalidParquet(f"not a Parquet file: ends with {tail[-4:]!r} instead of {_MAGIC!r}")
    length = int.from_bytes(tail[-AFTER_FOOTER:-4], "little")
    if len(_MAGIC) + length + AFTER_FOOTER > size:
        raise InvalidParquet(f"truncated: footer length {length} exceeds the file's {size} bytes")
    if length > _MAX_INT32:
        raise InvalidParquet(f"footer length {length} exceeds {_MAX_INT32} bytes")
    if length + AFTER_FOOTER <= len(tail):
        return tail[len(tail) - AFTER_FOOTER - length : -AFTER_FOOTER]
    return _read(file, size - AFTER_FOOTER - length, length)


def _read(file: pa.NativeFile, offset: int, length: int) -> bytes:
    return bytes(read_ranges(file, [(offset, length)])[0])


def _file_metadata(fields: Mapping[int, WireField], file_size: int) -> Footer:
    metadata = {number: field.value for number, field in fields.items()}
    columns = read_columns(required_list(metadata, spec.FileMetaData.schema))
    created_by = (optional(metadata, spec.FileMetaData.created_by) or b"").decode(errors="replace")
    doubted = doubts(created_by)
    ordered = _ordered(metadata, columns)
    trust = tuple(column_trust(column, known, doubted) for column, known in zip(columns, ordered, strict=True))
    groups = required_list(metadata, spec.FileMetaData.row_groups)
    row_counts = [_row_count(group) for group in groups]
    chunks = tuple(_row_group(*group, columns, trust) for group in zip(groups, row_counts, strict=True))
    byte_counts = [sum(chunk.byte_count for chunk in group) for group in chunks]
    if max(sum(row_counts), sum(byte_counts)) > _MAX_INT64:
        raise InvalidParquet(f"the row groups have {sum(row_counts)} rows and {sum(byte_counts)} bytes")
    return Footer(
        row_count=np.array(row_counts, np.int64),
        byte_count=np.array(byte_counts, np.int64),
        placed=np.array([_place(*group) for group in zip(groups, byte_counts, strict=True)], np.int64).reshape(-1, 2).T,
        leaves=tuple(column.leaf for column in columns if column.leaf is not None),
        created_by=created_by,
        head=head_of(fields),
        _columns=columns,
        _trust=trust,
        _chunks=chunks,
        _file_size=file_size,
    )


def _row_count(group: Struct) -> int:
    count = required(group, spec.RowGroup.num_rows)
    if count < 0:
        raise InvalidParquet(f"a row group has {count} rows")
    return count


def _row_group(
    group: Struct, row_count: int, columns: Sequence[SchemaColumn], trust: Sequence[Trust]
) -> tuple[Chunk, ...]:
    chunks = required_list(group, spec.RowGroup.columns)
    if len(chunks) != len(columns):
        raise InvalidParquet(f"a row group has {len(chunks)} column chunks for {len(columns)} columns")
    return tuple(read_chunk(*chunk, row_count) for chunk in zip(chunks, columns, trust, strict=True))


def _place(group: Struct, byte_count: int) -> tuple[int, int]:
    """Return the start and bytes of a row group, as parquet-mr computes them to assign row groups to splits by middle.

    Source: ``ParquetMetadataConverter.filterFileMetaDataByMidpoint`` and ``getOffset``: the first page of the first
    column chunk, and the row group's own size if it is stated.
    """
    size = optional(group, spec.RowGroup.total_compressed_size)
    chunks = required_list(group, spec.RowGroup.columns)
    if not chunks:
        return 0, 0
    first = required(chunks[0], spec.ColumnChunk.meta_data)
    data = required(first, spec.ColumnMetaData.data_page_offset)
    dictionary = optional(first, spec.ColumnMetaData.dictionary_page_offset)
    return data if dictionary is None else min(data, dictionary), byte_count if size is None else size


def _ordered(metadata: Struct, columns: Sequence[SchemaColumn]) -> list[bool]:
    """Return per column whether the order of its bounds is known here.

    That is ColumnOrder.TYPE_ORDER, field 1, and for floats IEEE_754_TOTAL_ORDER, field 2. Both order numbers alike, but
    for zeros, which are one key here, and leave NaN out unless there is nothing else.
    """
    orders = optional_list(metadata, spec.FileMetaData.column_orders) or []
    if len(orders) != len(columns):
        return [False] * len(columns)
    return [
        order.keys() == {1} or (order.keys() == {2} and column.physical in (FLOAT, DOUBLE))
        for order, column in zip(orders, columns, strict=True)
    ]


def _leaf_page_index(footer: Footer, leaf: Leaf, data: dict[Range, bytes]) -> PageIndex | None:
    column, trust = footer._columns[leaf.ordinal], footer._trust[leaf.ordinal]
    pages: list[PageLocations] = []
    statistics: list[PageStatistics] = []
    for chunk, rows in zip(_chunks(footer, leaf), footer.row_count.tolist(), strict=True):
        assert chunk.offset_index is not None, "checked by read_page_index"
        try:
            leaf_pages = read_pages(decode_struct(data[chunk.offset_index]), rows, footer._file_size)
            if leaf_pages is None:
                return None
            pages.append(leaf_pages)
            statistics.append(_page_statistics(chunk, column, trust, leaf_pages, data))
        except MalformedThrift as error:
            raise InvalidParquet(f"the page index of {display(column.names)} is malformed: {error}") from error
    return assemble(column, leaf, pages, statistics)


def _page_statistics(
    chunk: Chunk, column: SchemaColumn, trust: Trust, pages: PageLocations, data: dict[Range, bytes]
) -> PageStatistics:
    unknown = unknown_statistics(pages)
    if chunk.column_index is None:
        return unknown
    stated = read_page_statistics(decode_struct(data[chunk.column_index]), column, pages)
    if stated is None:
        return unknown
    bounds = stated if trust.bounds else unknown
    null_count = stated.null_count if trust.null_counts else unknown.null_count
    nan_count = stated.nan_count if trust.nan_counts else unknown.nan_count
    return PageStatistics(bounds.lower, bounds.upper, null_count, nan_count)
