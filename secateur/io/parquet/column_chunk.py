"""One column chunk of a footer: the statistics that can be used, and their bytes.

Source: parquet.thrift, ColumnChunk, ColumnMetaData, Statistics, ColumnOrder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.bounds import bounds_type, offers_bounds
from secateur.io.parquet.schema import INT32, INT64, Leaf, SchemaColumn, display
from secateur.io.parquet.thrift import Struct, ThriftField, optional, optional_list, required, required_list
from secateur.io.parquet.writer_bugs import Doubt
from secateur.io.storage.byte_ranges import Range

_DATA_PAGES = frozenset((0, 3))  # PageType: DATA_PAGE, DATA_PAGE_V2
_DICTIONARIES = frozenset((2, 8))  # Encoding: PLAIN_DICTIONARY, RLE_DICTIONARY
_FIELDS = spec.ColumnMetaData
_STORED = (_FIELDS.codec, _FIELDS.num_values, _FIELDS.total_uncompressed_size, _FIELDS.data_page_offset)
_EXACT = (spec.Statistics.is_max_value_exact, spec.Statistics.is_min_value_exact)
_EITHER = (spec.Statistics.max, spec.Statistics.min, spec.Statistics.max_value, spec.Statistics.min_value)
_COUNTED = frozenset(either.id for either in (*_EITHER, spec.Statistics.nan_count))  # one of them: NULLs were counted
FilterPlace: TypeAlias = tuple[
    int, int | None
]  # offset and bytes of a bloom filter with its header; None = not recorded


@dataclass(frozen=True)
class Trust:
    """Which statistics of a column are used, in every row group and page."""

    bounds: bool  # min_value and max_value, and ColumnIndex.min_values and .max_values
    signed_bounds: bool  # the deprecated min and max
    null_counts: bool
    nan_counts: bool


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """The location of a column chunk according to its metadata, unchecked."""

    data: int  # stated byte offset of its first data page
    dictionary: int  # byte offset of its dictionary page; 0 if none is stated
    size: int  # bytes
    uncompressed: int  # bytes of its decompressed pages, with their headers
    codec: int
    value_count: int
    by_dictionary: int  # stated number of data pages that need the dictionary; -1 = not recorded
    page_count: int  # data pages; -1 = not recorded


@dataclass(frozen=True, slots=True)
class Chunk:
    """The metadata kept for one column chunk."""

    byte_count: int  # as stored
    lower: bytes | None  # PLAIN; None = unknown
    upper: bytes | None
    null_count: int  # -1 = unknown
    nan_count: int  # as stated; -1 = unknown
    offset_index: Range | None
    column_index: Range | None
    bloom_filter: FilterPlace | None
    stored: StoredChunk | None  # None if its pages cannot be read singly: encrypted, or no location


def column_trust(column: SchemaColumn, ordered: bool, doubted: frozenset[Doubt]) -> Trust:
    """Decide what to use of a column, from whether its ColumnOrder is known and from its writer's bugs."""
    leaf = column.leaf
    if leaf is None or leaf.type == pa.null():
        return Trust(False, False, False, False)
    doubt = _doubt(column, leaf)
    trusted = offers_bounds(leaf) and doubt not in doubted
    # Statistics.min and .max are ordered as signed whatever the type, so bytes and unsigned integers are excluded.
    # Floats are excluded because writers of that time let one NaN hide the other values of its page when they merged
    # pages (PARQUET-1246), which leaves finite bounds that do not hold.
    signed = doubt is Doubt.NUMBERS and not pa.types.is_unsigned_integer(leaf.type)
    null_counts = not (_count_doubts(leaf, doubt) & doubted)
    return Trust(trusted and ordered, trusted and signed, null_counts, trusted and doubt is Doubt.FLOATS)


def _count_doubts(leaf: Leaf, doubt: Doubt) -> set[Doubt]:
    """Return the kinds of bug that would make the null counts of a leaf wrong."""
    doubts = {Doubt.NULL_COUNTS}
    if len(leaf.path) > 1:
        doubts.add(Doubt.NESTED_NULL_COUNTS)
    if doubt is Doubt.BYTES:
        doubts.add(Doubt.BYTES_NULL_COUNTS if len(leaf.path) == 1 else Doubt.NESTED_BYTES_NULL_COUNTS)
    return doubts


def _doubt(column: SchemaColumn, leaf: Leaf) -> Doubt:
    """Return the kind of bug that would make the bounds of this column wrong."""
    if pa.types.is_floating(leaf.type):
        return Doubt.FLOATS
    if pa.types.is_string(leaf.type) or pa.types.is_binary(leaf.type):
        return Doubt.BYTES
    if pa.types.is_decimal(leaf.type) and column.physical not in (INT32, INT64):
        return Doubt.DECIMAL_BYTES if column.width else Doubt.VARIABLE_DECIMALS
    return Doubt.NUMBERS


def read_chunk(chunk: Struct, column: SchemaColumn, trust: Trust, row_count: int) -> Chunk:
    """Read the chunk of a column in a row group of ``row_count`` rows.

    Raises InvalidParquet if it is in another file, is encrypted or belongs to another column, MalformedThrift for a
    field that is missing or of the wrong type.
    """
    metadata = _metadata(chunk, column)
    byte_count = required(metadata, spec.ColumnMetaData.total_compressed_size)
    if byte_count < 0:
        raise InvalidParquet(f"the column chunk of {display(column.names)} has {byte_count} bytes")
    if spec.ColumnChunk.crypto_metadata.id in chunk:  # its pages and indexes are encrypted
        return Chunk(byte_count, None, None, -1, -1, None, None, None, None)
    stored = _stored(metadata, byte_count)
    offset_index, column_index = _ranges(chunk)
    if column.leaf is None:  # repeated: statistics count elements, not rows
        return Chunk(byte_count, None, None, -1, -1, offset_index, None, None, stored)
    bloom_filter = _filter_place(metadata) if spec.ColumnMetaData.bloom_filter_offset.id in metadata else None
    statistics = optional(metadata, spec.ColumnMetaData.statistics)
    if statistics is None:
        return Chunk(byte_count, None, None, -1, -1, offset_index, column_index, bloom_filter, stored)
    lower, upper = _bounds(statistics, trust, column.leaf)
    value_count = required(metadata, spec.ColumnMetaData.num_values)
    counted = value_count == row_count  # not repeated: one value or NULL per row
    null_count = _null_count(statistics, column.leaf, row_count) if counted and trust.null_counts else -1
    nan_count = optional(statistics, spec.Statistics.nan_count) if counted and trust.nan_counts else None
    nans = -1 if nan_count is None else nan_count
    return Chunk(byte_count, lower, upper, null_count, nans, offset_index, column_index, bloom_filter, stored)


def _stored(metadata: Struct, size: int) -> StoredChunk | None:
    """Return the location of the chunk; None if it is not recorded."""
    codec, value_count, uncompressed, data = (metadata.get(field.id) for field in _STORED)
    dictionary = metadata.get(spec.ColumnMetaData.dictionary_page_offset.id, 0)
    if not (
        isinstance(codec, int)
        and isinstance(value_count, int)
        and isinstance(uncompressed, int)
        and isinstance(data, int)
        and isinstance(dictionary, int)
    ):
        return None
    by_dictionary, page_count = _page_counts(metadata)
    return StoredChunk(data, dictionary, size, uncompressed, codec, value_count, by_dictionary, page_count)


def _page_counts(metadata: Struct) -> tuple[int, int]:
    """Return how many data pages need the dictionary, and how many there are, by PageEncodingStats; -1 = not
    recorded.
    """
    stats = optional_list(metadata, spec.ColumnMetaData.encoding_stats)
    if stats is None:
        return -1, -1
    pages = [
        (required(entry, spec.PageEncodingStats.encoding), required(entry, spec.PageEncodingStats.count))
        for entry in stats
        if entry.get(spec.PageEncodingStats.page_type.id) in _DATA_PAGES
    ]
    return sum(count for encoding, count in pages if encoding in _DICTIONARIES), sum(count for _, count in pages)


def _metadata(chunk: Struct, column: SchemaColumn) -> Struct:
    """Return ColumnChunk.meta_data, after checking that it belongs to this column and this file."""
    name = display(column.names)
    if file_path := optional(chunk, spec.ColumnChunk.file_path):
        raise InvalidParquet(f"column {name} has its data in another file, {file_path[:99]!r}: not supported")
    metadata = optional(chunk, spec.ColumnChunk.meta_data)
    if metadata is None:
        raise InvalidParquet(f"column {name} has no metadata: encrypted columns are not supported")
    names = required_list(metadata, spec.ColumnMetaData.path_in_schema)
    if tuple(names) != column.names:
        raise InvalidParquet(f"the column chunk of {name} says that it is of {display(names)}")
    physical = required(metadata, spec.ColumnMetaData.type)
    if physical != column.physical:
        raise InvalidParquet(f"column {name} has physical type {column.physical}, its chunk {physical}")
    return metadata


def _bounds(statistics: Struct, trust: Trust, leaf: Leaf) -> tuple[bytes | None, bytes | None]:
    """Return the bounds of a chunk. For numbers, days and instants a side declared inexact is None.

    So known bounds of these types are values of the chunk and answer min and max (pruning/aggregates/answers.py). No
    writer is known that loosens them.
    """
    lower = optional(statistics, spec.Statistics.min_value)
    upper = optional(statistics, spec.Statistics.max_value)
    if trust.bounds and not (lower is upper is None):
        if bounds_type(leaf) == pa.binary():
            return lower, upper
        is_upper_loose, is_lower_loose = (statistics.get(field.id) is False for field in _EXACT)
        return None if is_lower_loose else lower, None if is_upper_loose else upper
    if trust.signed_bounds:
        lower = optional(statistics, spec.Statistics.min)
        upper = optional(statistics, spec.Statistics.max)
        return lower, upper
    return None, None


def _null_count(statistics: Struct, leaf: Leaf, row_count: int) -> int:
    """Return the NULLs of a chunk, -1 if unknown or impossible."""
    count = optional(statistics, spec.Statistics.null_count)
    if count is None or not 0 <= count <= row_count:
        return -1
    # Old CDH files record 0 if nothing was counted, and have no bounds either (apache/iceberg#1635).
    unbounded = statistics.keys().isdisjoint(_COUNTED)
    return -1 if count == 0 and unbounded and row_count > 0 and offers_bounds(leaf) else count


def _ranges(chunk: Struct) -> tuple[Range | None, Range | None]:
    """Return where the OffsetIndex and the ColumnIndex lie."""
    fields = spec.ColumnChunk
    offset_index = _range(chunk, fields.offset_index_offset, fields.offset_index_length)
    return offset_index, _range(chunk, fields.column_index_offset, fields.column_index_length)


def _range(chunk: Struct, offset_field: ThriftField[int], length_field: ThriftField[int]) -> Range | None:
    offset, length = optional(chunk, offset_field) or 0, optional(chunk, length_field) or 0
    return (offset, length) if offset > 0 and length > 0 else None


def _filter_place(metadata: Struct) -> FilterPlace | None:
    """Return the location of the bloom filter; some writers without one record offset 0 (PARQUET-1979)."""
    offset = required(metadata, spec.ColumnMetaData.bloom_filter_offset)
    length = optional(metadata, spec.ColumnMetaData.bloom_filter_length)
    return (offset, length) if offset > 0 else None
