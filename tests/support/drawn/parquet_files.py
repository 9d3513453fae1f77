"""Random Parquet files of pyarrow: every type that it writes, nested up to three deep, with every writer option.

Hypothesis draws schemas, options and seeds; NumPy draws the values from these seeds.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import reject
from hypothesis import strategies as st

EXACT = Context(prec=80)
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [
    *(pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal128(5, 1), pa.decimal128(16, 4), pa.decimal128(38, 10)),
    pa.decimal256(70, 3),
]
SECONDS = [pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
MOMENTS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Kolkata")]
DURATIONS = [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
EXTENSIONS = [pa.uuid(), pa.json_(), pa.bool8(), pa.opaque(pa.int32(), "kind", "vendor")]
DICTIONARIES = [
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.binary())),
    *(pa.dictionary(pa.int16(), pa.int64()), pa.dictionary(pa.int32(), pa.large_string())),
]
LEAVES = [
    *(pa.bool_(), pa.null(), pa.binary(1), pa.binary(7), pa.binary(16)),
    *(*INTEGERS, *FLOATS, *DECIMALS, *SECONDS, *MOMENTS, *DURATIONS, *TEXTS, *EXTENSIONS, *DICTIONARIES),
]
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
ENCODINGS = {  # by physical type, besides PLAIN and dictionaries
    "BOOLEAN": ["RLE"],
    "INT32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "INT64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "FLOAT": ["BYTE_STREAM_SPLIT"],
    "DOUBLE": ["BYTE_STREAM_SPLIT"],
    "BYTE_ARRAY": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "FIXED_LEN_BYTE_ARRAY": ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
    "INT96": [],
}

# ---- types -----------------------------------------------------------------------------------------------------------


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> pa.DataType:
    """A type of up to so many levels of lists, structs and maps."""
    form = draw(st.sampled_from(["leaf", "leaf", "list", "fixed", "struct", "map"])) if depth else "leaf"
    inner = types(depth - 1)
    match form:
        case "list":
            of = draw(st.sampled_from([pa.list_, pa.list_, pa.large_list, pa.list_view, pa.large_list_view]))
            return of(_field("element", draw(inner), draw(st.booleans())))
        case "fixed":
            return pa.list_(_field("element", draw(inner), draw(st.booleans())), draw(st.integers(1, 3)))
        case "struct":
            return pa.struct(draw(fields(inner, 3)))
        case "map":
            key = draw(st.sampled_from([*INTEGERS, *TEXTS, *DECIMALS]))
            return pa.map_(key, _field("value", draw(inner), draw(st.booleans())))
        case _:
            return draw(st.sampled_from(LEAVES))


def _field(name: str, type_: pa.DataType, nullable: bool, metadata: dict[str, str] | None = None) -> pa.Field:
    return pa.field(name, type_, nullable or pa.types.is_null(type_), metadata)


def fields(kinds: st.SearchStrategy[pa.DataType], most: int) -> st.SearchStrategy[list[pa.Field]]:
    """Fields with other names each, some of which need care, and with metadata now and then."""
    metadata = st.none() | st.just({"unit": "m"})
    names = st.sampled_from(["a", "b", "c.d", "Ünï", "A", "list", "element", "key", "e f"])
    one = st.builds(_field, names, kinds, st.booleans(), metadata)
    return st.lists(one, min_size=1, max_size=most, unique_by=lambda field: field.name)


# ---- values ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Maker:
    """Arrays of random values."""

    random: np.random.Generator
    distinct: int  # about so many values of a leaf
    nulls: float  # the share of NULLs where there may be some
    run: int  # rows in a row that are NULL, or not

    def column(self, field: pa.Field, n: int) -> pa.Array:
        """An array of a field."""
        return self.array(field.type, n, field.nullable)

    def array(self, type_: pa.DataType, n: int, nullable: bool) -> pa.Array:
        """An array of a type with n elements."""
        mask = self._mask(n) if nullable else np.zeros(n, bool)
        match type_:
            case pa.BaseExtensionType():
                return pa.ExtensionArray.from_storage(type_, self.array(type_.storage_type, n, nullable))
            case pa.StructType():
                children = [self.column(child, n) for child in type_]
                return pa.StructArray.from_arrays(children, fields=list(type_), mask=pa.array(mask))
            case pa.FixedSizeListType():
                values = self.column(type_.value_field, n * type_.list_size)
                return pa.FixedSizeListArray.from_arrays(values, type=type_, mask=pa.array(mask))
            case pa.MapType():
                offsets = self._offsets(mask)
                keys, items = (self.column(child, int(offsets[-1])) for child in (type_.key_field, type_.item_field))
                return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=type_, mask=pa.array(mask))
            case pa.ListType() | pa.LargeListType():
                return self._list_of(type_, mask)
            case pa.ListViewType() | pa.LargeListViewType():
                return self._view_of(type_, mask)
            case _:
                return self._leaf(type_, n, mask)

    def _list_of(self, type_: pa.DataType, mask: np.ndarray) -> pa.Array:
        of = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
        offsets = self._offsets(mask)
        values = self.column(type_.value_field, int(offsets[-1]))
        return of.from_arrays(pa.array(offsets, _offset_type(type_)), values, type=type_, mask=pa.array(mask))

    def _view_of(self, type_: pa.DataType, mask: np.ndarray) -> pa.Array:
        of = pa.LargeListViewArray if pa.types.is_large_list_view(type_) else pa.ListViewArray
        offsets = self._offsets(mask)
        values = self.column(type_.value_field, int(offsets[-1]))
        starts, sizes = (pa.array(ends, _offset_type(type_)) for ends in (offsets[:-1], np.diff(offsets)))
        return of.from_arrays(starts, sizes, values, type=type_, mask=pa.array(mask))

    def _mask(self, n: int) -> np.ndarray:
        return np.repeat(self.random.random(n // self.run + 1) < self.nulls, self.run)[:n]

    def _offsets(self, mask: np.ndarray) -> np.ndarray:
        """Of lists, short ones for the most part; those that are NULL have no elements."""
        lengths = self.random.integers(0, 4, len(mask)) * (self.random.random(len(mask)) < 0.7)
        lengths = np.where(self.random.random(len(mask)) < 0.01, 40, lengths)
        return np.append(0, np.cumsum(np.where(mask, 0, lengths))).astype(np.int32)

    def _leaf(self, type_: pa.DataType, n: int, mask: np.ndarray) -> pa.Array:
        if pa.types.is_null(type_):
            return pa.nulls(n)
        if pa.types.is_dictionary(type_):
            values = self._pool(type_.value_type, min(self.distinct, 100))
            places = self._places(len(values), n)
            indices = pa.array(places, type_.index_type, mask=mask)
            return pa.DictionaryArray.from_arrays(indices, values)
        pool = self._pool(type_, self.distinct)
        if type_ in (pa.string_view(), pa.binary_view()):
            known = pool.to_pylist()
            places = np.ma.masked_array(self._places(len(pool), n), mask).tolist()
            return pa.array([None if place is None else known[place] for place in places], type_)
        return pool.take(pa.array(self._places(len(pool), n), mask=mask))

    def _places(self, pool: int, n: int) -> np.ndarray:
        places = self.random.integers(0, pool, n)
        return np.sort(places) if self.random.random() < 0.2 else places

    def _pool(self, type_: pa.DataType, n: int) -> pa.Array:
        """Values of which those of a leaf are chosen."""
        if type_ in MOMENTS or type_ in DURATIONS or type_ in SECONDS:
            most = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(type_, "unit", "s")] * 86_400
            days = 86_400_000 if type_ == pa.date64() else 1
            return pa.array(self.random.integers(0, most, n) * days, pa.int64()).cast(_storage(type_)).view(type_)
        if pa.types.is_boolean(type_):
            return pa.array(self.random.integers(0, 2, n).astype(bool))
        if pa.types.is_decimal(type_):
            digits = [self.random.integers(0, 10, type_.precision).tolist() for _ in range(n)]
            signs = self.random.integers(0, 2, n).tolist()
            made = [
                EXACT.create_decimal((sign, digit, -type_.scale)) for sign, digit in zip(signs, digits, strict=True)
            ]
            return pa.array(made, type_)
        if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_fixed_size_binary(type_):
            few = pa.types.is_integer(type_) and self.random.random() < 0.3
            data = bytes([*self.random.integers(0, 3 if few else 256, n * type_.bit_width // 8)])
            return pa.Array.from_buffers(type_, n, [None, pa.py_buffer(data)])
        return pa.array([self._text(type_) for _ in range(n)], type_)

    def _text(self, type_: pa.DataType) -> str | bytes:
        length = int(self.random.integers(0, 12)) if self.random.random() < 0.95 else 300
        data = bytes(self.random.integers(32, 126, length, dtype=np.uint8))
        return (
            data if type_ in (pa.binary(), pa.large_binary(), pa.binary_view()) else "ü" * (length % 2) + data.decode()
        )


def _offset_type(type_: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_large_list(type_) or pa.types.is_large_list_view(type_) else pa.int32()


def _storage(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.bit_width == 32 else pa.int64()


# ---- files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ParquetFile:
    """The bytes of a file, and how it was written."""

    schema: pa.Schema
    data: bytes = field(repr=False)
    options: dict[str, Any]

    def __repr__(self) -> str:
        return f"{len(self.data)} bytes of {self.schema.to_string(truncate_metadata=True)}\n{self.options}"


@st.composite
def parquet_files(draw: st.DrawFn, kinds: st.SearchStrategy[pa.DataType] | None = None) -> ParquetFile:
    """A file with a page index, of some hundred rows in one to three row groups."""
    schema = pa.schema(
        draw(fields(types() if kinds is None else kinds, 4)), metadata=draw(st.none() | st.just({"k": "v"}))
    )
    maker = Maker(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        distinct=draw(st.sampled_from([1, 5, 60, 1000])),
        nulls=draw(st.sampled_from([0.0, 0.1, 0.6, 1.0])),
        run=draw(st.sampled_from([1, 1, 20])),
    )
    n = draw(st.sampled_from([1, 7, 150, 400, 400, 1500]))
    table = pa.Table.from_arrays([maker.column(field, n) for field in schema], schema=schema)
    try:
        options = draw(write_options(table))
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
    except pa.ArrowException:  # some views in lists; nanoseconds of an old version, in lists
        reject()
    return ParquetFile(schema, sink.getvalue(), options)


@st.composite
def write_options(draw: st.DrawFn, table: pa.Table) -> dict[str, Any]:
    """Options of pyarrow's writer; a column has an encoding of its own, a dictionary, or neither."""

    def sampled(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    physical: dict[str, Any] = {
        "version": sampled("2.6", "2.6", "1.0"),
        "use_deprecated_int96_timestamps": sampled(False, False, True),
        "store_schema": sampled(True, True, False),
        "store_decimal_as_integer": draw(st.booleans()),
        "use_compliant_nested_type": sampled(True, True, False),
        "allow_truncated_timestamps": True,
    }
    leaves = _leaves(table, physical)
    encoded = {path: sampled(None, None, "PLAIN", *ENCODINGS[kind]) for path, kind in leaves.items()}
    codec = sampled(*CODECS)
    pages: dict[str, Any] = {"max_rows_per_page": rows} if (rows := sampled(None, None, 1, 13, 100)) else {}
    return {
        **physical,
        **pages,
        "data_page_size": sampled(64, 200, 1000, 10_000, 1 << 20),
        "write_batch_size": sampled(1, 7, 32, 1024),
        "dictionary_pagesize_limit": sampled(32, 500, 1 << 20),
        "compression": sampled(codec, codec, {path: sampled(*CODECS) for path in leaves}),
        "use_dictionary": [path for path, encoding in encoded.items() if encoding is None] or False,
        "column_encoding": {path: encoding for path, encoding in encoded.items() if encoding} or None,
        "data_page_version": sampled("1.0", "2.0"),
        "row_group_size": max(1, -(-len(table) // sampled(1, 1, 3))),
        "write_page_index": True,
        "write_page_checksum": draw(st.booleans()),
        # The writer aborts the process where it would have to cut a view, or nanoseconds of an old version.
        "use_content_defined_chunking": sampled(False, False, False, True)
        and physical["version"] != "1.0"
        and "_view" not in str(table.schema),
    }


def _leaves(table: pa.Table, options: dict[str, Any]) -> dict[str, str]:
    """The physical types of the leaves, by their paths."""
    sink = io.BytesIO()
    pq.write_table(table.slice(0, 0), sink, **options)
    schema = pq.ParquetFile(sink).schema
    return {schema.column(i).path: schema.column(i).physical_type for i in range(len(schema))}


@st.composite
def chosen(draw: st.DrawFn, row_count: int) -> np.ndarray:
    """Rows of a row group: one, some ranges of them, or scattered ones; int64, ascending."""
    place = st.integers(0, row_count - 1)
    match draw(st.sampled_from(["one", "ranges", "ranges", "scattered", "share", "all", "none"])):
        case "one":
            return np.array([draw(place)])
        case "ranges":
            ends = draw(st.lists(st.tuples(place, st.sampled_from([1, 3, 30, row_count])), min_size=1, max_size=4))
            marked = np.zeros(row_count, bool)
            for start, length in ends:
                marked[start : start + length] = True
            return np.flatnonzero(marked)
        case "scattered":
            return np.array(sorted(draw(st.sets(place, min_size=1, max_size=20))))
        case "share":
            seed, share = draw(st.tuples(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.1, 0.5, 0.99])))
            return np.flatnonzero(np.random.default_rng(seed).random(row_count) < share)
        case "all":
            return np.arange(row_count)
        case _:
            return np.zeros(0, np.int64)


Read = tuple[int, Sequence[str], np.ndarray]  # row group, columns, rows


# ---- equality --------------------------------------------------------------------------------------------------------


def difference(read: pa.Table, expected: pa.Table) -> str | None:
    """What two tables differ in: schema with all metadata, rows, values; None where in nothing."""
    if not read.schema.equals(expected.schema, check_metadata=True):
        return f"schema {read.schema} instead of {expected.schema}"
    if len(read) != len(expected):
        return f"{len(read)} rows instead of {len(expected)}"
    if not len(read):
        return None
    read.validate(full=True)
    for name, ours, wanted in zip(read.schema.names, read.columns, expected.columns, strict=True):
        if not _is_same(_one(ours), _one(wanted)):
            return f"column {name}: {ours} instead of {wanted}"
    return None


def _one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):  # chunks have dictionaries of their own
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _is_same(a: pa.Array, b: pa.Array) -> bool:
    """Whether arrays of one type hold the same; bits of floats are compared, and values of dictionaries."""
    if len(a) != len(b) or not a.is_null().equals(b.is_null()):
        return False
    type_ = a.type
    match type_:
        case pa.BaseExtensionType():
            return _is_same(a.storage, b.storage)
        case pa.StructType():
            return all(map(_is_same, a.flatten(), b.flatten()))
        case pa.FixedSizeListType():
            return a.null_count == len(a) or _is_same(a.flatten(), b.flatten())
        case pa.ListType() | pa.LargeListType() | pa.ListViewType() | pa.LargeListViewType():
            length = pc.list_value_length(a)
            return length.equals(pc.list_value_length(b)) and (
                not pc.sum(length).as_py() or _is_same(a.flatten(), b.flatten())
            )
        case pa.MapType():
            (lengths, *entries), (other_lengths, *others) = _parts(a), _parts(b)
            return np.array_equal(lengths, other_lengths) and all(map(_is_same, entries, others))
        case _ if pa.types.is_dictionary(type_):
            return _is_same(a.dictionary_decode(), b.dictionary_decode())
        case _ if pa.types.is_floating(type_):
            bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
            return a.view(bits).equals(b.view(bits))
        case _:
            return a.equals(b)


def _parts(maps: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """Lengths of maps, and all their keys and items."""
    offsets = maps.offsets.to_numpy()
    first, n = int(offsets[0]), int(offsets[-1] - offsets[0])
    return np.diff(offsets), maps.keys.slice(first, n), maps.items.slice(first, n)
