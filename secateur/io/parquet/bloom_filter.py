"""Read and check the bloom filters of a Parquet file; skip those that are unreliable or of little use.

Every doubt counts against a filter, because one that lacks a value loses rows: a header that is not understood, a
writer that is known to leave values out, bits that no values can have set, and a filter without the lowest or highest
value of its row group. Source: parquet.thrift, BloomFilterHeader, ColumnMetaData.bloom_filter_offset; "Apache Parquet
format, Bloom Filter".
"""

from __future__ import annotations

from math import isinf

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from secateur.errors import InvalidParquet
from secateur.index.filters import parquet_bloom
from secateur.index.filters.parquet_bloom import MOST_LOG2_BITS, MOST_WIDTH, Encoding, NativeFilters, NativeForm
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.column_chunk import Chunk
from secateur.io.parquet.footer import Footer, Leaf, stored_chunks
from secateur.io.parquet.schema import INT32, INT64, SchemaColumn
from secateur.io.parquet.thrift import MalformedThrift, Struct, decode_leading, required
from secateur.io.parquet.writer_bugs import Doubt, doubts
from secateur.pruning.report import human_bytes

MOST_NATIVE_FPR = 0.1  # above it, building our own filter (at most 1 %) is worth reading the column
_HEADER = 64  # bytes that contain any header; headers have 15 to 19
_BLOCK = 32  # bytes
_MOST_BYTES = 128 << 20  # per filter: the most that parquet-java, Arrow and arrow-rs write
_FORMS = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.date32()), NativeForm.INT32),
    **{pa.int64(): NativeForm.INT64, pa.uint32(): NativeForm.UINT32, pa.uint64(): NativeForm.UINT64},
    **{
        pa.float32(): NativeForm.FLOAT,
        pa.float64(): NativeForm.DOUBLE,
        pa.string(): NativeForm.BYTES,
        pa.binary(): NativeForm.BYTES,
    },
    **{pa.timestamp("ms", zone): NativeForm.MILLIS for zone in (None, "UTC")},
    **{pa.timestamp("us", zone): NativeForm.INT64 for zone in (None, "UTC")},
}
_INTEGER_FORMS = {INT32: NativeForm.INT32, INT64: NativeForm.INT64}  # for decimals
_EXACT = {
    NativeForm.INT32,
    NativeForm.INT64,
    NativeForm.UINT32,
    NativeForm.UINT64,
    NativeForm.MILLIS,
    NativeForm.FIXED,
}  # bounds are values of the chunk


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_filter(file: pa.NativeFile, offset: int, length: int | None) -> np.ndarray:
    """Read the filter at an offset of a file: uint32 of shape (z, 8), where z need not be a power of two.

    `length` is that of header and filter together, if recorded; then one read suffices, else two are made. Raises
    InvalidParquet for a filter that is outside the file, differs in length from its header, is longer than 128 MiB, or
    is of another kind.
    """
    available = file.size() - offset
    if not 0 < offset < file.size() or (length is not None and not 0 < length <= available):
        raise InvalidParquet(f"a bloom filter at {offset} of {length or 'unknown'} bytes lies outside of the file")
    if length is not None and length > _MOST_BYTES + _HEADER:
        raise InvalidParquet(f"a bloom filter has {length} bytes")
    data = file.read_at(min(_HEADER, available) if length is None else length, offset)
    try:
        fields, header = decode_leading(data[:_HEADER])
        size = _size(fields)
    except MalformedThrift as error:
        raise InvalidParquet(f"the header of a bloom filter is malformed: {error}") from error
    if header + size > available or length not in (None, header + size):
        raise InvalidParquet(f"a bloom filter of {size} bytes has room for {(length or available) - header}")
    bits = file.read_at(size, offset + header) if length is None else data[header:]
    if len(bits) != size:
        raise InvalidParquet(f"truncated: {len(bits)} bytes of a bloom filter of {size}")
    return np.frombuffer(bits, "<u4").reshape(-1, parquet_bloom.WORDS)


def _size(header: Struct) -> int:
    """Return the bytes of a filter, from its BloomFilterHeader, whose unions have one known member each."""
    of_header = spec.BloomFilterHeader
    for field in (of_header.algorithm, of_header.hash, of_header.compression):
        if required(header, field).keys() != {1}:
            raise InvalidParquet(f"a bloom filter has an unknown {field.name.partition('.')[2]}")
    size = required(header, spec.BloomFilterHeader.numBytes)
    if size % _BLOCK or not _BLOCK <= size <= _MOST_BYTES:
        raise InvalidParquet(f"a bloom filter has {size} bytes")
    return size


# ---- hashed values ---------------------------------------------------------------------------------------------------


def encoding_of(column: SchemaColumn) -> Encoding | None:
    """Return the encoding that a filter of this column hashes; None if it is not certain.

    Unknown are columns under a repeated node, types without an order, booleans, INT96, timestamps in ns (which Spark
    does not read), and decimals of variable length (which writers may pad with sign bytes).
    """
    leaf = column.leaf
    if leaf is None or leaf.int96:
        return None
    if pa.types.is_decimal128(leaf.type):
        return _decimal_encoding(column)
    form = _FORMS.get(leaf.type)
    return None if form is None else Encoding(form)


def _decimal_encoding(column: SchemaColumn) -> Encoding | None:
    if column.physical in _INTEGER_FORMS:
        return Encoding(_INTEGER_FORMS[column.physical])
    return Encoding(NativeForm.FIXED, column.width) if 0 < column.width <= MOST_WIDTH else None


# ---- useful filters --------------------------------------------------------------------------------------------------


def native_filters(file: pa.NativeFile, footer: Footer, leaf: Leaf, fpr: float) -> NativeFilters:
    """Return the filters of a leaf that serve an index, each folded as long as its false-positive rate is within `fpr`.

    Sound: a returned filter holds every value of its row group, unless its writer has an unlisted bug that the checks
    miss. Raises ValueError for a leaf of another footer.
    """
    column, chunks = stored_chunks(footer, leaf)
    encoding = encoding_of(column)
    if encoding is None:
        return no_filters(len(chunks), "what a bloom filter of such a column hashes is not known")
    if Doubt.BLOOM_FILTERS in doubts(footer.created_by):
        return no_filters(len(chunks), f"bloom filters by {footer.created_by[:99]} may lack values")
    rows = footer.row_count.tolist()
    results = [_filter_or_reason(file, chunk, n, encoding, fpr) for chunk, n in zip(chunks, rows, strict=True)]
    filters = [result if isinstance(result, np.ndarray) else None for result in results]
    return NativeFilters(encoding, filters, [result if isinstance(result, str) else "" for result in results])


def no_filters(row_groups: int, reason: str) -> NativeFilters:
    """Return a result without a filter in any row group."""
    return NativeFilters(None, [None] * row_groups, [reason] * row_groups)


def _filter_or_reason(
    file: pa.NativeFile, chunk: Chunk, row_count: int, encoding: Encoding, fpr: float
) -> np.ndarray | str:
    """Return the filter of a chunk, or the reason why it is not used."""
    if chunk.bloom_filter is None:
        return "no bloom filter"
    try:
        filter_ = read_filter(file, *chunk.bloom_filter)
    except InvalidParquet as error:
        return str(error)
    log2_bits = parquet_bloom.log2_bits_of(filter_)
    if log2_bits is None:
        return f"a bloom filter of {len(filter_):,} blocks, no power of two, cannot be sliced"
    if objection := _objection(filter_, chunk, row_count, encoding):
        return objection
    for _ in range(log2_bits - MOST_LOG2_BITS):
        filter_ = parquet_bloom.halve(filter_)
    rate = parquet_bloom.expected_fpr(filter_)
    if rate > MOST_NATIVE_FPR:
        values = parquet_bloom.distinct_values(filter_)
        return f"{100 * rate:.0f} % false positives: {_about(values)} distinct values in {human_bytes(filter_.nbytes)}"
    return parquet_bloom.fold(filter_, fpr)


def _objection(filter_: np.ndarray, chunk: Chunk, row_count: int, encoding: Encoding) -> str | None:
    """Return how a filter contradicts itself or the chunk's metadata; None if it does not."""
    if not parquet_bloom.is_possible(filter_):
        return "a bloom filter has bits that no value sets"
    if not filter_.any() and chunk.null_count != row_count:
        return "an empty bloom filter, and the row group is not known to be empty"
    bounds = [bound for bound in (chunk.lower, chunk.upper) if bound is not None] if encoding.form in _EXACT else []
    hashes = np.array([xxh64_intdigest(bound) for bound in bounds], np.uint64)
    if not parquet_bloom.holds(filter_, hashes).all():
        return "a bloom filter lacks the least or the greatest value of its row group"
    return None


def _about(values: float) -> str:
    return "countless" if isinf(values) else f"about {float(f'{values:.2g}'):,.0f}"
