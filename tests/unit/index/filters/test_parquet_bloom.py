"""Parquet's own bloom filters: no value that a file holds is ever refuted, whoever wrote it, and most others are.

The writers are those of C++ (pyarrow), Rust (arro3), DuckDB and Java, whose file Spark wrote once
(make_spark_bloom.py). Polars writes no filters.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import arro3.io
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from secateur.errors import IndexFault, InvalidParquet
from secateur.index.filters.parquet_bloom import (
    MOST_LOG2_BITS,
    Encoding,
    NativeFilters,
    NativeForm,
    bit_vector,
    byte_forms,
    distinct_values,
    encoding_of_code,
    expected_fpr,
    fold,
    halve,
    hashes_of,
    holds,
    is_possible,
    log2_bits_of,
    positions,
    widen,
)
from secateur.io.parquet.bloom_filter import MOST_NATIVE_FPR, encoding_of, native_filters, read_filter
from secateur.io.parquet.footer import read_footer, stored_chunks
from secateur.io.parquet.parquet_file import ParquetFile, with_footer
from secateur.io.storage.byte_ranges import LOCAL_GAP
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, NAN_KEY, Key, float_key
from tests.support.drawn.strategies import BY_NAME, KINDS, array_of
from tests.support.profiles import examples
from tests.support.programs.make_spark_bloom import FILE
from tests.support.stores.edited_footers import chunk_of, edited, encode, metadata_of, parquet_bytes

hashes = st.integers(0, 2**64 - 1)

# --------------------------------------------------------------------------- the specification, word by word

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def reference_bits(hashed: int, blocks: int) -> list[tuple[int, int, int]]:
    """Block, word and bit of a hash in every word of its block."""
    block = (hashed >> 32) * blocks >> 32
    return [(block, word, ((hashed & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27) for word, salt in enumerate(SALT)]


def reference_filter(hashed: Sequence[int], blocks: int) -> np.ndarray:
    native = np.zeros((blocks, 8), np.uint32)
    for value_hash in hashed:
        for block, word, bit in reference_bits(value_hash, blocks):
            native[block, word] |= np.uint32(1 << bit)
    return native


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)],
)
def test_c36_hashes_golden(data: bytes, expected: int) -> None:
    """The values of the reference implementation of XXH64 with seed 0."""
    assert hashes_of(data, pa.binary(), Encoding(NativeForm.BYTES)) == [expected]


@given(st.lists(hashes, max_size=20), st.integers(0, 6))
def test_positions_are_those_of_the_specification(hashed: list[int], log2_blocks: int) -> None:
    blocks = 1 << log2_blocks
    bit_positions = positions(np.array(hashed, np.uint64), 256 << log2_blocks)
    expected = [[block * 256 + word * 32 + bit for block, word, bit in reference_bits(h, blocks)] for h in hashed]
    assert (bit_positions.dtype, bit_positions.shape, bit_positions.tolist()) == (np.int64, (len(hashed), 8), expected)
    assert all(positions(h, 256 << log2_blocks).tolist() == [e] for h, e in zip(hashed, expected, strict=True))
    bits = np.unpackbits(bit_vector(reference_filter(hashed, blocks)), bitorder="little")
    assert np.flatnonzero(bits).tolist() == sorted({position for row in expected for position in row})


@given(st.lists(hashes, max_size=60), st.lists(hashes, max_size=20), st.integers(0, 5), st.integers(0, 3))
def test_a_widened_filter_answers_alike(held: list[int], others: list[int], log2_blocks: int, wider: int) -> None:
    narrow = reference_filter(held, 1 << log2_blocks)
    wide = widen(narrow, log2_blocks + wider + 8)
    assert log2_bits_of(wide) == log2_blocks + wider + 8
    asked = np.array(held + others, np.uint64)
    assert holds(wide, asked).tolist() == holds(narrow, asked).tolist()
    assert holds(wide, asked)[: len(held)].all()
    assert is_possible(wide)
    assert expected_fpr(wide) == pytest.approx(expected_fpr(narrow))


def test_a_filter_is_not_widened_into_less() -> None:
    with pytest.raises(ValueError, match="4 blocks cannot be widened to 2\\^9 bits"):
        widen(np.zeros((4, 8), np.uint32), 9)
    with pytest.raises(ValueError, match="3 blocks"):
        widen(np.zeros((3, 8), np.uint32), 10)


@given(st.lists(hashes, max_size=80), st.integers(1, 6), st.floats(0, 1))
def test_a_folded_filter_is_one_built_at_its_size(held: list[int], log2_blocks: int, fpr: float) -> None:
    whole = reference_filter(held, 1 << log2_blocks)
    assert halve(whole).tolist() == reference_filter(held, 1 << (log2_blocks - 1)).tolist()
    folded = fold(whole, fpr)
    assert folded.tolist() == reference_filter(held, len(folded)).tolist()
    assert len(folded) == len(whole) or expected_fpr(folded) <= fpr
    assert len(folded) == 1 or expected_fpr(halve(folded)) > fpr


@given(st.lists(hashes, max_size=80), st.integers(0, 3))
def test_the_rate_is_the_mean_over_blocks(held: list[int], log2_blocks: int) -> None:
    native = reference_filter(held, 1 << log2_blocks)
    rates = [math.prod(word.bit_count() / 32 for word in block) for block in native.tolist()]
    assert expected_fpr(native) == pytest.approx(sum(rates) / len(rates))


def test_what_no_values_can_have_set() -> None:
    native = reference_filter([1 << 63, 5], 4)
    assert is_possible(native)
    native[3, 2] = 1
    assert not is_possible(native)


@pytest.mark.parametrize("distinct", [1, 500, 20_000])
def test_the_number_of_values_is_estimated(distinct: int) -> None:
    random = np.random.default_rng(distinct)
    native = reference_filter(random.integers(0, 2**64, distinct, np.uint64).tolist(), 1024)
    assert distinct_values(native) == pytest.approx(distinct, rel=0.05)
    assert distinct_values(np.full((4, 8), 2**32 - 1, np.uint32)) == math.inf


# --------------------------------------------------------------------------- the bytes of a key

DECIMALS = [pa.decimal128(4, 2), pa.decimal128(18, 4), pa.decimal128(38, 10)]
MOMENTS = [pa.timestamp("us"), pa.timestamp("us", "UTC")]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), *DECIMALS]
Decode = Callable[[bytes], Key]


def little(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


ENCODINGS: list[tuple[Encoding, int, Decode, list[pa.DataType]]] = [
    (Encoding(NativeForm.INT32), 4, little, INTEGERS),
    (Encoding(NativeForm.INT64), 8, little, [pa.int64(), *MOMENTS, *DECIMALS]),
    (Encoding(NativeForm.UINT32), 4, lambda data: int.from_bytes(data, "little"), [pa.int64()]),
    (Encoding(NativeForm.UINT64), 8, lambda data: int.from_bytes(data, "little"), [pa.decimal128(20, 0)]),
    (Encoding(NativeForm.FLOAT), 4, lambda data: float_key(*struct.unpack("<f", data)), [pa.float32(), pa.float64()]),
    (Encoding(NativeForm.DOUBLE), 8, lambda data: float_key(*struct.unpack("<d", data)), [pa.float64()]),
    (Encoding(NativeForm.BYTES), 9, bytes, [pa.string(), pa.binary()]),
    (Encoding(NativeForm.MILLIS), 8, lambda data: little(data) * 1000, MOMENTS),
    *(
        (Encoding(NativeForm.FIXED, width), width, lambda data: int.from_bytes(data, "big", signed=True), DECIMALS)
        for width in (1, 5, 13, 16)
    ),
]
ALL_TYPES = {type_ for _, _, _, types in ENCODINGS for type_ in types} | {pa.large_string(), pa.bool_(), pa.null()}


@given(st.sampled_from(ENCODINGS), st.data())
def test_stored_bytes_are_among_the_forms_of_their_key(encoded: Any, data: st.DataObject) -> None:
    """Whatever a column holds is found by its key, and no form belongs to another key."""
    encoding, width, decode, types = encoded
    stored = data.draw(st.binary(min_size=width, max_size=width) | st.sampled_from([bytes(width), b"\xff" * width]))
    key = decode(stored)
    forms = byte_forms(key, data.draw(st.sampled_from(types)), encoding)
    if key == NAN_KEY and encoding.form in (NativeForm.FLOAT, NativeForm.DOUBLE):
        assert forms is None
    else:
        assert forms is not None
        assert stored in forms
        assert {decode(form) for form in forms} == {key}


@given(st.sampled_from(ENCODINGS), st.integers(INT64_MIN, INT64_MAX) | st.integers(-(2**33), 2**33))
def test_every_form_is_of_the_key_and_as_wide_as_the_column(encoded: Any, key: int) -> None:
    encoding, width, decode, types = encoded
    assume(encoding.form is not NativeForm.BYTES)
    for type_ in types:
        forms = byte_forms(key, type_, encoding)
        assert forms is not None or abs(key) > 0x7FF0_0000_0000_0000
        assert all(len(form) == width and decode(form) == key for form in forms or [])


def forms_of(key: Key, type_: pa.DataType, form: NativeForm, width: int = 0) -> list[bytes] | None:
    return byte_forms(key, type_, Encoding(form, width))


def test_keys_that_a_column_cannot_hold_have_no_form() -> None:
    assert forms_of(2**31, pa.int64(), NativeForm.INT32) == []
    assert forms_of(-(2**31), pa.int64(), NativeForm.INT32) == [b"\x00\x00\x00\x80"]
    assert forms_of(-1, pa.int64(), NativeForm.UINT32) == []
    assert forms_of(1_500, MOMENTS[0], NativeForm.MILLIS) == []
    assert forms_of(-1_000, MOMENTS[0], NativeForm.MILLIS) == [b"\xff" * 8]
    assert forms_of(float_key(0.1), pa.float64(), NativeForm.FLOAT) == []
    assert forms_of(float_key(1e300), pa.float64(), NativeForm.FLOAT) == []
    assert forms_of(128, pa.decimal128(3, 0), NativeForm.FIXED, 1) == []
    assert hashes_of(2**31, pa.int64(), Encoding(NativeForm.INT32)) == []


def test_c17_zeros_and_nans() -> None:
    assert forms_of(float_key(-0.0), pa.float64(), NativeForm.FLOAT) == [bytes(4), b"\x00\x00\x00\x80"]
    assert forms_of(0, pa.float64(), NativeForm.DOUBLE) == [bytes(8), bytes(7) + b"\x80"]
    assert forms_of(NAN_KEY, pa.float32(), NativeForm.FLOAT) is None
    assert hashes_of(NAN_KEY, pa.float64(), Encoding(NativeForm.DOUBLE)) is None
    assert forms_of(float_key(math.inf), pa.float64(), NativeForm.FLOAT) == [struct.pack("<f", math.inf)]


@pytest.mark.parametrize("encoded", ENCODINGS, ids=lambda encoded: str(encoded[0].code))
def test_types_that_are_read_otherwise_tell_nothing(encoded: Any) -> None:
    """A column narrower than what is stored, or of another kind: its keys do not say what was hashed."""
    encoding, _, _, types = encoded
    for type_ in ALL_TYPES - set(types):
        if encoding.form is NativeForm.UINT64 or not (
            encoding.form is NativeForm.BYTES or type_ == pa.decimal128(20, 0)
        ):
            assert byte_forms(1, type_, encoding) is None, type_


def test_codes_are_stable() -> None:
    expected = [1, 2, 3, 4, 5, 6, 7, 8, 17, 21, 29, 32]
    assert [encoding.code for encoding, *_ in ENCODINGS] == expected
    assert [encoding_of_code(code) for code in expected] == [encoding for encoding, *_ in ENCODINGS]


@pytest.mark.parametrize("code", [-1, 0, 9, 15, 16, 33, 127])
def test_codes_without_meaning(code: int) -> None:
    with pytest.raises(IndexFault, match=f"unknown encoding {code}"):
        encoding_of_code(code)


# --------------------------------------------------------------------------- files of real writers


def opened(data: bytes) -> ParquetFile:
    return with_footer(pa.BufferReader(data), "t.parquet", LOCAL_GAP, None)


def may_hold(filters: NativeFilters, row_group: int, key: Key, type_: pa.DataType) -> bool:
    """The answer of one row group's filter, by the bits of its vector."""
    native = filters.filters[row_group]
    assert native is not None
    assert filters.encoding is not None
    asked = hashes_of(key, type_, filters.encoding)
    if asked is None:
        return True
    log2_bits = log2_bits_of(native)
    assert log2_bits is not None
    bits = np.unpackbits(bit_vector(native), bitorder="little")
    return bool(bits[positions(np.array(asked, np.uint64), 1 << log2_bits)].all(axis=1).any())


def keys_in(source: ParquetFile, row_group: int, path: tuple[str, ...], field: pa.Field) -> list[Key]:
    """The keys of all non-null values of a row group."""
    present: list[Key] = []
    for batch in source.read(row_group, [field]):
        values = batch.column(0)
        for name in path[1:]:
            values = pc.struct_field(values, name)
        keys = keys_of(values.drop_null())
        present += [keys.at(i) for i in range(len(keys))]
    return present


def leaf_type(field: pa.Field, path: tuple[str, ...]) -> pa.DataType:
    type_ = field.type
    for name in path[1:]:
        type_ = type_.field(name).type
    return type_


def check_file(data: bytes, schema: pa.Schema | None = None) -> dict[tuple[str, ...], NativeFilters]:
    """Checks that no filter, as it is or folded, refutes a value of its row group; the filters by path.

    The table has the schema given, or that of the file.
    """
    source = opened(data)
    schema = schema or source.schema
    answers = {}
    for leaf in source.footer.leaves:
        field = schema.field(leaf.path[0])
        type_ = leaf_type(field, leaf.path)
        filters = source.native_filters(leaf.path, type_, 0.0)
        folded = source.native_filters(leaf.path, type_, 0.05)
        assert [native is None for native in filters.filters] == [bool(reason) for reason in filters.reasons]
        assert folded.reasons == filters.reasons
        for row_group, native in enumerate(filters.filters):
            if native is not None:
                for key in keys_in(source, row_group, leaf.path, field):
                    assert may_hold(filters, row_group, key, type_), (leaf, row_group, key)
                    assert may_hold(folded, row_group, key, type_), (leaf, row_group, key)
        answers[leaf.path] = filters
    return answers


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    leaves = {".".join(leaf.path): {"ndv": 100} for leaf in opened(parquet_bytes(table)).footer.leaves}
    flags = {name for name in leaves if pa.types.is_boolean(leaf_of(table, name))}
    chosen = {name: of for name, of in leaves.items() if name not in flags}
    pq.write_table(table, sink, bloom_filter_options=chosen, **{"row_group_size": 8, "write_batch_size": 3} | options)
    return sink.getvalue()


def leaf_of(table: pa.Table, name: str) -> pa.DataType:
    path = tuple(name.split("."))
    return leaf_type(table.schema.field(path[0]), path)


def by_rust(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    arro3.io.write_parquet(table, sink, bloom_filter_enabled=True, bloom_filter_ndv=100, max_row_group_size=8)
    return sink.getvalue()


def by_duckdb(table: pa.Table, directory: Path) -> bytes:
    """DuckDB writes filters for columns with a dictionary, so every row comes many times."""
    rows = pa.concat_tables([table] * 40).combine_chunks()  # noqa: F841  (named in the query)
    duckdb.sql(f"COPY rows TO '{directory}/t.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return (directory / "t.parquet").read_bytes()


STORED = {
    f"{kind.name}-{i}": (kind, type_)
    for kind in KINDS
    if kind.name != "flag"
    for i, type_ in enumerate([kind.type, *kind.stored])
}


@st.composite
def stored_tables(draw: st.DrawFn, without: Sequence[str] = ()) -> tuple[pa.Table, pa.Schema]:
    """A file's data, and the schema of a table to which it belongs: its columns may be wider."""
    names = sorted(name for name, (kind, _) in STORED.items() if kind.name not in without)
    n = draw(st.integers(1, 24))
    columns, fields = {}, []
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)):
        kind, type_ = STORED[name]
        values = [value for value in draw(st.lists(kind.values, min_size=1, max_size=n)) if fits(value, type_)]
        chosen = draw(st.lists(st.none() | st.sampled_from(values), min_size=n, max_size=n)) if values else [None] * n
        columns[f"c{len(columns)}"] = array_of(chosen, type_)
        fields.append(pa.field(f"c{len(fields)}", kind.type))
    if draw(st.booleans()):
        struct_type = pa.struct(fields)
        inner = pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=pa.array(np.arange(n) % 5 == 3))
        return pa.table({"s": inner}), pa.schema([pa.field("s", struct_type)])
    return pa.table(columns), pa.schema(fields)


def fits(value: Any, type_: pa.DataType) -> bool:
    try:
        array_of([value], type_)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


MAYBE_ALL_NULL = "an empty bloom filter, and the row group is not known to be empty"
OPTIONS = [
    {},
    {"use_dictionary": False},
    {"store_decimal_as_integer": True},
    {"data_page_version": "2.0", "use_dictionary": False, "store_decimal_as_integer": True},
    {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    {"store_schema": False},
]


@examples(100)
@given(stored_tables(), st.sampled_from(OPTIONS))
def test_pyarrow_files(tables: tuple[pa.Table, pa.Schema], options: dict[str, Any]) -> None:
    for filters in check_file(by_pyarrow(tables[0], **options), tables[1]).values():
        assert set(filters.reasons) <= {"", MAYBE_ALL_NULL}


@examples(100)
@given(stored_tables())
def test_rust_files(tables: tuple[pa.Table, pa.Schema]) -> None:
    for filters in check_file(by_rust(tables[0]), tables[1]).values():
        assert set(filters.reasons) <= {"", MAYBE_ALL_NULL}


@examples(40)
@given(stored_tables(without=("far_day", "far_ts")))
def test_duckdb_files(tmp_path: Path, tables: tuple[pa.Table, pa.Schema]) -> None:
    """Days and instants at the ends of their range are left out, as DuckDB has none there."""
    for filters in check_file(by_duckdb(tables[0], tmp_path), tables[1]).values():
        assert set(filters.reasons) <= {"", "no bloom filter", MAYBE_ALL_NULL}


def test_duckdb_writes_filters_for_dictionaries(tmp_path: Path) -> None:
    names = ("i", "od.d `name", "x", "money", "price", "huge", "s", "day", "ts", "local")
    values = {"s": [str(i) for i in range(20)], "x": [i / 4 for i in range(20)]}
    columns = {name: array_of(values.get(name, range(20)), BY_NAME[name].type) for name in names}
    by_path = check_file(by_duckdb(pa.table(columns), tmp_path))
    assert {path[0] for path, filters in by_path.items() if filters.filters[0] is not None} == {*names} - {"huge"}


def test_spark_files() -> None:
    by_path = check_file(FILE.read_bytes())
    full = by_path.pop(("full",))
    assert full.filters == [None]
    assert full.reasons == ["100 % false positives: countless distinct values in 32 B"]
    assert {
        path: len(filters.filters[0]) for path, filters in by_path.items() if filters.filters[0] is not None
    } == dict.fromkeys(by_path, 16)
    codes = {path[-1]: filters.encoding.code for path, filters in by_path.items() if filters.encoding}
    assert (codes["decimal9"], codes["decimal18"], codes["decimal30"], codes["inner"]) == (1, 2, 29, 2)


def test_dictionaries_of_several_batches() -> None:
    """Arrow's dictionaries, which are written without decoding, and slices of arrays with NULLs."""
    first, second = (pa.array(values).dictionary_encode() for values in (["a", None, "b"], ["c", "a", None]))
    chunks = pa.chunked_array([first, second.slice(1), pa.array(["x", "d", "e"]).dictionary_encode().slice(1)])
    numbers = pa.chunked_array([pa.array([7, 1, None, 2]).slice(1), pa.array([3, None, 9, 4]).slice(0, 2)])
    words, integers = pa.table({"s": chunks}), pa.table({"n": numbers})
    for table in (words, integers):
        for data in (by_pyarrow(table, row_group_size=100), by_rust(table)):
            (filters,) = check_file(data).values()
            assert filters.reasons == [""]
            assert filters.filters[0] is not None
            assert round(distinct_values(filters.filters[0])) == len(
                table.column(0).combine_chunks().drop_null().unique()
            )


def columns_of(numbers: np.ndarray) -> dict[str, pa.Array]:
    """Numbers as columns of several types."""
    return {
        "i": pa.array(numbers.astype(np.int32)),
        "n": pa.array(numbers),
        "x": pa.array(numbers / 8),
        "s": pa.array([f"name-{number}" for number in numbers]),
        "d": pa.array([f"{number}.00" for number in numbers]).cast(pa.decimal128(30, 2)),
    }


@pytest.mark.parametrize("write", [by_pyarrow, by_rust])
def test_absent_values_are_refuted_as_expected(write: Callable[..., bytes]) -> None:
    random = np.random.default_rng(1)
    present = random.choice(10**9, 90, replace=False)
    columns = columns_of(present)
    data = write(pa.table(columns), row_group_size=100) if write is by_pyarrow else write(pa.table(columns))
    source = opened(data)
    tried = columns_of(random.integers(10**9, 2 * 10**9, 4000))
    for leaf in source.footer.leaves:
        type_ = columns[leaf.path[0]].type
        filters = source.native_filters(leaf.path, type_, 0.0)
        native = fold(filters.filters[0], 0.2)  # type: ignore[arg-type]
        expected = expected_fpr(native)
        keys = keys_of(tried[leaf.path[0]])
        asked = [hashes_of(keys.at(i), type_, filters.encoding) for i in range(len(keys))]  # type: ignore[arg-type]
        rate = np.mean([holds(native, np.array(value_hashes, np.uint64)).any() for value_hashes in asked])
        assert expected / 2 - 0.002 < rate < 2 * expected + 0.002, (leaf, rate, expected)


# --------------------------------------------------------------------------- what is hashed


def encodings(data: bytes) -> dict[str, int | None]:
    footer = read_footer(pa.BufferReader(data))
    by_name = {leaf.path[-1]: encoding_of(stored_chunks(footer, leaf)[0]) for leaf in footer.leaves}
    return {name: None if encoding is None else encoding.code for name, encoding in by_name.items()}


def test_encodings_of_columns() -> None:
    types = {
        **{f"int{bits}": pa.int32() if bits == 32 else getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
        **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
        **{"bool": pa.bool_(), "float": pa.float32(), "double": pa.float64(), "half": pa.float16()},
        **{"string": pa.string(), "binary": pa.binary(), "fixed": pa.binary(3), "day": pa.date32()},
        **{unit: pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
        **{"local": pa.timestamp("us"), "time": pa.time64("us"), "list": pa.list_(pa.int64())},
        **{f"decimal{p}": pa.decimal128(p, 2) for p in (4, 9, 18, 38)},
    }
    table = pa.table({name: pa.nulls(1, type_) for name, type_ in types.items()})
    expected = {
        **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16", "day"), 1),
        **dict.fromkeys(("int64", "us", "local"), 2),
        **{"uint32": 3, "uint64": 4, "float": 5, "double": 6, "string": 7, "binary": 7, "fixed": 7, "s": 8, "ms": 8},
        **dict.fromkeys(("bool", "half", "time", "ns"), None),
        **{"decimal4": 18, "decimal9": 20, "decimal18": 24, "decimal38": 32},
    }
    assert encodings(parquet_bytes(table)) == expected
    as_integers = encodings(parquet_bytes(table, store_decimal_as_integer=True))
    assert as_integers == expected | {"decimal4": 1, "decimal9": 1, "decimal18": 2}
    int96 = encodings(parquet_bytes(table, use_deprecated_int96_timestamps=True))
    assert int96 == expected | dict.fromkeys(("s", "ms", "us", "ns", "local"), None)


def test_decimals_of_variable_length_tell_nothing() -> None:
    """Their values have one minimal form, and longer ones that are as good."""

    def variable(metadata: Any) -> None:
        metadata[2][1] |= {6: 5, 7: 0, 8: 9}
        metadata[2][1].pop(10, None)

    data = edited(parquet_bytes(pa.array([b"\x01", b"\x00\x01"])), variable)
    (leaf,) = read_footer(pa.BufferReader(data)).leaves
    assert leaf.type == pa.decimal128(9, 0)
    assert encodings(data) == {"x": None}


# --------------------------------------------------------------------------- filters that are of no use

ONE: dict[int, Any] = {1: {}}


def with_filter(values: pa.Array, native: np.ndarray, *, with_length: bool = True) -> bytes:
    """A file of some values with this filter, which lies behind the old footer."""
    data = parquet_bytes(values)
    raw = encode({1: native.nbytes, 2: ONE, 3: ONE, 4: ONE}) + native.tobytes()
    metadata = metadata_of(data)
    chunk_of(metadata)[3][14] = len(data)
    if with_length:
        chunk_of(metadata)[3][15] = len(raw)
    footer = encode(metadata)
    return data + raw + footer + len(footer).to_bytes(4, "little") + b"PAR1"


VALUES = pa.array([3, None, 1, 2, 5, 4], pa.int64())
HELD = [xxh64_intdigest(value.to_bytes(8, "little")) for value in (1, 2, 3, 4, 5)]


def native_of(data: bytes, fpr: float = 0.0) -> NativeFilters:
    """What the only column of a file with an edited footer, which pyarrow does not read, has by itself."""
    file = pa.BufferReader(data)
    footer = read_footer(file)
    (leaf,) = footer.leaves
    return native_filters(file, footer, leaf, fpr)


def of_no_use(filters: NativeFilters) -> str:
    """Why the only row group of a file has no filter; "" where it has."""
    (native,), (reason,) = filters.filters, filters.reasons
    assert (native is None) == bool(reason)
    assert native is None or filters.encoding is not None
    return reason


@pytest.mark.parametrize("with_length", [True, False])
def test_a_good_filter_serves(with_length: bool) -> None:
    native = reference_filter(HELD, 4)
    data = with_filter(VALUES, native, with_length=with_length)
    assert of_no_use(native_of(data)) == ""
    filters = native_of(data)
    assert filters.filters[0] is not None
    assert filters.filters[0].tolist() == native.tolist()
    assert bit_vector(filters.filters[0]).tobytes() in data


SUSPECT = [
    ({2: {2: {}}}, "unknown algorithm"),
    ({3: {2: {}}}, "unknown hash"),
    ({4: {1: {}, 2: {}}}, "unknown compression"),
    ({3: {}}, "unknown hash"),
    ({1: 127}, "has 127 bytes"),
    ({1: 0}, "has 0 bytes"),
    ({1: -32}, "has -32 bytes"),
    ({1: 2**27 + 32}, "has 134217760 bytes"),
    ({1: 96}, "96 bytes has room for 128"),
    ({1: 160}, "160 bytes has room for 128"),
    ({1: 2**27}, "134217728 bytes has room for 128"),
    ({1: b"x"}, "numBytes is a bytes instead of a int"),
    ({1: None}, "numBytes is missing"),
    ({2: None}, "algorithm is missing"),
]


@pytest.mark.parametrize(("header", "reason"), SUSPECT, ids=lambda value: str(value))
def test_c36_unknown_headers_are_left_alone(header: dict[int, Any], reason: str) -> None:
    full = {1: 128, 2: ONE, 3: ONE, 4: ONE} | header
    kept = {field: value for field, value in full.items() if value is not None}
    native = reference_filter(HELD, 4)
    data = parquet_bytes(VALUES)
    raw = encode(kept) + native.tobytes()
    file = pa.BufferReader(data + raw)
    with pytest.raises(InvalidParquet, match=reason):
        read_filter(file, len(data), len(raw))
    if "room" not in reason or header[1] > 128:  # without a recorded length, a shorter filter is as good
        with pytest.raises(InvalidParquet):
            read_filter(file, len(data), None)


@pytest.mark.parametrize(("offset", "length"), [
    (0, None), (-1, None), (2**62, None), (-(2**63), 2**63 - 1), (10**6, 10), (4, 2**62), (4, 0), (4, -1), (4, 10),
])  # fmt: skip
def test_places_outside_of_the_file(offset: int, length: int | None) -> None:
    with pytest.raises(InvalidParquet):
        read_filter(pa.BufferReader(with_filter(VALUES, reference_filter(HELD, 4))), offset, length)


@given(st.binary(max_size=150), st.integers(-5, 200), st.none() | st.integers(-5, 200))
def test_random_bytes_are_read_or_refused(data: bytes, offset: int, length: int | None) -> None:
    try:
        native = read_filter(pa.BufferReader(data), offset, length)
    except InvalidParquet:
        return
    assert native.tobytes() in data


@given(st.data())
def test_corrupt_files_are_read_or_refused(data: st.DataObject) -> None:
    good = with_filter(VALUES, reference_filter(HELD, 4))
    start = len(parquet_bytes(VALUES))
    corrupt = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(start, start + 24) | st.integers(start, len(good) - 9))
        corrupt[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    file = pa.BufferReader(bytes(corrupt))
    with contextlib.suppress(InvalidParquet):
        footer = read_footer(file)
        for leaf in footer.leaves:
            filters = native_filters(file, footer, leaf, 0.0)
            assert [native is None for native in filters.filters] == [bool(reason) for reason in filters.reasons]


def test_filters_that_contradict_themselves_or_the_chunk() -> None:
    good = reference_filter(HELD, 4)
    assert of_no_use(native_of(with_filter(VALUES, good))) == ""
    torn = good.copy()
    torn[tuple(np.argwhere(torn)[0])] = 0
    assert of_no_use(native_of(with_filter(VALUES, torn))) == "a bloom filter has bits that no value sets"
    assert of_no_use(native_of(with_filter(VALUES, np.zeros((4, 8), np.uint32)))) == MAYBE_ALL_NULL
    for missing in (HELD[1:], HELD[:-1]):
        reason = of_no_use(native_of(with_filter(VALUES, reference_filter(missing, 4))))
        assert reason == "a bloom filter lacks the least or the greatest value of its row group"
    big_endian = [xxh64_intdigest(value.to_bytes(8, "big")) for value in (1, 2, 3, 4, 5)]
    assert "lacks the least" in of_no_use(native_of(with_filter(VALUES, reference_filter(big_endian, 4))))


def test_an_empty_filter_serves_a_row_group_of_nulls() -> None:
    data = with_filter(pa.nulls(3, pa.int64()), np.zeros((4, 8), np.uint32))
    assert of_no_use(native_of(data)) == ""
    assert not may_hold(native_of(data), 0, 1, pa.int64())


def test_filters_that_cannot_be_sliced() -> None:
    native = reference_filter(HELD, 6)
    data = with_filter(VALUES, native)
    file = pa.BufferReader(data)
    assert read_filter(file, len(parquet_bytes(VALUES)), None).tolist() == native.tolist()
    assert of_no_use(native_of(data)) == "a bloom filter of 6 blocks, no power of two, cannot be sliced"


def test_filters_that_are_too_full() -> None:
    random = np.random.default_rng(0)
    for values, serves in ((10, True), (60, True), (150, False)):  # in 2 blocks
        native = reference_filter(HELD + random.integers(0, 2**64, values - 5, np.uint64).tolist(), 2)
        assert (expected_fpr(native) <= MOST_NATIVE_FPR) == serves
        reason = of_no_use(native_of(with_filter(VALUES, native)))
        assert (reason == "") == serves
    assert re.fullmatch(r"\d+ % false positives: about 1[3-7]0 distinct values in 64 B", reason)


def test_a_filter_is_folded_as_far_as_asked() -> None:
    data = with_filter(VALUES, reference_filter(HELD, 1024))
    for fpr in (0.0, 1e-6, 0.01, 0.5):
        (native,) = native_of(data, fpr).filters
        assert native is not None
        assert native.tolist() == reference_filter(HELD, len(native)).tolist()
        assert len(native) == 1024 or expected_fpr(native) <= fpr
    assert len(native) == 1


def test_a_filter_longer_than_an_index_takes_is_folded() -> None:
    native = widen(reference_filter(HELD, 4), MOST_LOG2_BITS + 1)
    (folded,) = native_of(with_filter(VALUES, native)).filters
    assert folded is not None
    assert log2_bits_of(folded) == MOST_LOG2_BITS
    assert holds(folded, np.array(HELD, np.uint64)).all()


def test_c36_filters_of_writers_with_bugs_are_left_alone() -> None:
    good = with_filter(VALUES, reference_filter(HELD, 4))
    for version, reason in ((460, "bloom filters by parquet-mr-trino version 460 may lack values"), (461, "")):
        writer = f"parquet-mr-trino version {version}".encode()
        data = edited(good, lambda metadata, writer=writer: metadata.update({6: writer}))
        assert of_no_use(native_of(data)) == reason


def test_an_offset_of_zero_is_no_filter() -> None:
    data = edited(
        with_filter(VALUES, reference_filter(HELD, 4)), lambda metadata: chunk_of(metadata)[3].update({14: 0})
    )
    assert of_no_use(native_of(data)) == "no bloom filter"
    assert of_no_use(native_of(parquet_bytes(VALUES))) == "no bloom filter"


def test_columns_of_which_the_key_does_not_tell() -> None:
    """Values that the table reads otherwise than they are stored, and columns without one value per row."""

    def asked(column: pa.Array, type_: pa.DataType, path: tuple[str, ...] = ("x",)) -> str:
        return of_no_use(opened(by_pyarrow(pa.table({"x": column}))).native_filters(path, type_, 0.0))

    integers = pa.array([1, 2])
    assert asked(integers, pa.int64()) == ""
    assert asked(integers, pa.float64()) == "the file has the column as int64, the table as double"
    assert asked(integers, pa.decimal128(20, 0)) == "the file has the column as int64, the table as decimal128(20, 0)"
    decimals = integers.cast(pa.decimal128(21, 2))
    assert asked(decimals, pa.decimal128(21, 2)) == asked(decimals, pa.decimal128(38, 2)) == ""
    assert asked(decimals.cast(pa.decimal128(9, 2)), pa.decimal128(38, 2)) == ""
    assert asked(decimals, pa.decimal128(21, 3)).startswith("the file has the column as decimal128(21, 2)")
    local = pa.array([1, 2], pa.timestamp("ms"))
    assert asked(local, pa.timestamp("us")) == ""
    assert asked(local, pa.timestamp("us", "UTC")).startswith("the file has the column as timestamp[ms]")
    assert asked(pa.array([1, 2], pa.timestamp("ns")), pa.timestamp("ns")) == UNKNOWN
    assert asked(integers, pa.int64(), ("y",)) == ABSENT
    assert asked(pa.array([[1], [2, 3]]), pa.int64()) == ABSENT
    assert asked(pa.array([[1], [2, 3]]), pa.int64(), ("x", "list", "element")) == ABSENT


UNKNOWN = "what a bloom filter of such a column hashes is not known"
ABSENT = "the file does not have the column outside of lists and maps"


def test_the_calendar_of_spark_2() -> None:
    """Days are hashed as they are stored, which is not as they are read."""
    days = pa.table({"x": pa.array([-800_000, 5], pa.date32())})
    old = days.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    reasons = [of_no_use(opened(by_pyarrow(table)).native_filters(("x",), pa.date32(), 0.0)) for table in (days, old)]
    assert reasons == ["", "days and instants are of the calendar of Spark 2"]
