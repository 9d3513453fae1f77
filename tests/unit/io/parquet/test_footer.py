"""The footer reader: its bounds hold for the files of five writers, and corruption is reported."""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secateur.errors import InvalidParquet
from secateur.io.parquet.footer import Bounds, Footer, Leaf, chunk_bounds, read_footer, read_page_index
from secateur.io.parquet.thrift import MalformedThrift, Struct, decode_struct
from secateur.io.parquet.writer_bugs import Doubt, doubts
from tests.support.profiles import examples, takes_seconds
from tests.support.stores.edited_footers import (
    chunk_of,
    edited,
    encode,
    metadata_of,
    parquet_bytes,
)

# --------------------------------------------------------------------------- the laws


def comparable(values: pa.ChunkedArray, leaf: Leaf) -> list[Any]:
    """Python values that order as the leaf's bounds do; None for NULL."""
    if leaf.type in (pa.string(), pa.binary()):
        if not pa.types.is_fixed_size_binary(values.type):
            values = values.cast(pa.binary())
    else:
        values = values.cast(leaf.type)
    if pa.types.is_timestamp(leaf.type):
        values = values.cast(pa.int64())
    return list(values.to_pylist())


def bound_values(bounds: pa.Array) -> list[Any]:
    return list((bounds.cast(pa.int64()) if pa.types.is_timestamp(bounds.type) else bounds).to_pylist())


def leaf_values(table: pa.Table, leaf: Leaf) -> pa.ChunkedArray:
    values = table.column(leaf.path[0])
    return pc.struct_field(values, list(leaf.path[1:])) if len(leaf.path) > 1 else values


def assert_within(values: list[Any], lower: Any, upper: Any, null_count: int, nan_count: int) -> None:
    held = [value for value in values if value is not None]
    assert null_count in (-1, len(values) - len(held))
    present = [value for value in held if not (isinstance(value, float) and math.isnan(value))]
    assert nan_count in (-1, len(held) - len(present))
    if present and lower is not None:
        assert lower <= min(present)
    if present and upper is not None:
        assert max(present) <= upper


def assert_lengths(bounds: Bounds, n: int, leaf: Leaf) -> None:
    expected = pa.binary() if leaf.type == pa.string() else leaf.type
    assert (len(bounds.lower), len(bounds.upper), len(bounds.null_count)) == (n, n, n)
    assert (bounds.lower.type, bounds.upper.type, bounds.null_count.dtype.str) == (expected, expected, "<i8")


def check_file(path: Path | str) -> tuple[Footer, dict[tuple[str, ...], Any]]:
    """Checks every law against the file's own data, and returns what was read."""
    with pa.memory_map(str(path)) as file:
        footer = read_footer(file)
        index = read_page_index(file, footer, footer.leaves)
    reader = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    metadata = reader.metadata
    groups = range(metadata.num_row_groups)
    assert footer.row_count.tolist() == [metadata.row_group(g).num_rows for g in groups]
    assert footer.byte_count.tolist() == [
        sum(metadata.row_group(g).column(c).total_compressed_size for c in range(metadata.num_columns)) for g in groups
    ]
    assert footer.created_by == metadata.created_by
    assert footer.head.metadata == (metadata.metadata or {})
    for leaf in footer.leaves:
        assert metadata.schema.column(leaf.ordinal).path == ".".join(leaf.path)
    tables = [reader.read_row_group(g) for g in groups]
    for leaf in footer.leaves:
        if leaf.type == pa.null():
            bounds = chunk_bounds(footer, leaf)
            assert bounds.lower.null_count == len(groups)
            assert (bounds.null_count == -1).all()
            continue
        columns = [comparable(leaf_values(table, leaf), leaf) for table in tables]
        bounds = chunk_bounds(footer, leaf)
        assert_lengths(bounds, len(groups), leaf)
        for values, *known in zip(
            columns,
            bound_values(bounds.lower),
            bound_values(bounds.upper),
            bounds.null_count,
            bounds.nan_count,
            strict=True,
        ):
            assert_within(values, *known)
        if leaf.path in index:
            check_pages(index[leaf.path], columns, leaf)
    return footer, index


def check_pages(pages: Any, columns: list[list[Any]], leaf: Leaf) -> None:
    assert len(pages.page_offsets) == len(columns) + 1
    assert pages.page_offsets[-1] == len(pages.first_row) == len(pages.offset) == len(pages.size)
    assert_lengths(pages.bounds, len(pages.first_row), leaf)
    lower, upper = bound_values(pages.bounds.lower), bound_values(pages.bounds.upper)
    for group, values in enumerate(columns):
        numbers = range(pages.page_offsets[group], pages.page_offsets[group + 1])
        starts = pages.first_row[numbers.start : numbers.stop].tolist()
        for page, start, stop in zip(numbers, starts, [*starts[1:], len(values)], strict=True):
            held = values[start:stop]
            counts = pages.bounds.null_count[page], pages.bounds.nan_count[page]
            assert_within(held, lower[page], upper[page], *counts)
            if all(value is None for value in held):
                assert lower[page] is upper[page] is None


# --------------------------------------------------------------------------- data

EXACT = Context(prec=60)
SPECIALS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    **{
        f"int{bits}": (getattr(pa, f"int{bits}")(), [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1])
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), [0, 1, 2 ** (bits - 1), 2**bits - 1]) for bits in (8, 16, 32, 64)},
    "float": (
        pa.float32(),
        [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 3.4028234663852886e38, 1e-45],
    ),
    "double": (
        pa.float64(),
        [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1.7976931348623157e308, 5e-324],
    ),
    "string": (
        pa.string(),
        ["", "a", "é", "\U0010ffff" * 40, "\U0001f600" * 30, "z" * 5000, "\uffff", "\ud7ff"],
    ),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff" * 100, b"\x7f", b"\x80", b"\xff" * 64 + b"\x00"]),
    "fixed": (pa.binary(3), [b"\x00" * 3, b"\xff" * 3, b"\x7f\xff\xff", b"\x80\x00\x00"]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]),
    "timestamp_ms": (pa.timestamp("ms"), [-(2**40), -1, 0, 1, 2**40]),
    "timestamp_us": (pa.timestamp("us", "UTC"), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "timestamp_ns": (pa.timestamp("ns"), [-(2**62), -1, 0, 1, 2**62]),
    "decimal5": (
        pa.decimal128(5, 2),
        [Decimal("-999.99"), Decimal("-0.01"), Decimal("0"), Decimal("999.99")],
    ),
    "decimal18": (
        pa.decimal128(18, 0),
        [Decimal(-(10**18) + 1), Decimal(-1), Decimal(256), Decimal(10**18 - 1)],
    ),
    "decimal38": (
        pa.decimal128(38, 10),
        [Decimal(s + "9" * 28 + "." + "9" * 10) for s in ("", "-")] + [Decimal("0E-10"), Decimal("-1E-10")],
    ),
}


def column_of(name: str, n: int, seed: int) -> pa.Array:
    """n values, drawn in clusters so that pages differ, with NULLs and a run of NULLs only."""
    kind, specials = SPECIALS[name]
    random = np.random.default_rng([seed, *name.encode()])
    picks = (random.integers(0, 2, n) + np.arange(n) * len(specials) // n) % len(specials)
    values = [specials[pick] for pick in picks]
    nulls = random.random(n) < 0.2
    nulls[n // 3 : n // 2] = True
    return pa.array([None if null else value for value, null in zip(values, nulls, strict=True)], kind)


def all_types(n: int = 400, seed: int = 0) -> pa.Table:
    columns = {name: column_of(name, n, seed) for name in SPECIALS}
    inner = pa.StructArray.from_arrays(
        [columns["int32"], columns["string"]], ["a", "b"], mask=pa.array(np.arange(n) % 7 == 3)
    )
    columns["nested"] = pa.StructArray.from_arrays(
        [inner, columns["double"]], ["in", "d"], mask=pa.array(np.arange(n) % 5 == 0)
    )
    columns["list"] = pa.array([[1, 2], None, [], [3]] * (n // 4), pa.list_(pa.int64()))
    columns["map"] = pa.array([[("k", 1)], None, [], [("a", 2)]] * (n // 4), pa.map_(pa.string(), pa.int64()))
    columns["time"] = pa.array([0, None, 1, 2] * (n // 4), pa.time64("us"))
    columns["after"] = pa.array(range(n), pa.int64())
    return pa.table(columns)


def write(table: pa.Table, path: Path, **options: Any) -> Path:
    """A file with several row groups and, where pages are indexed, several pages per row group."""
    defaults = {"row_group_size": 150, "write_page_index": True, "write_batch_size": 20, "data_page_size": 1}
    pq.write_table(table, path, **(defaults | options))
    return path


# --------------------------------------------------------------------------- files of real writers


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_page_index": False},
        {"data_page_version": "2.0"},
        {"write_statistics": False},
        {
            "version": "1.0",
            "use_dictionary": False,
            "allow_truncated_timestamps": True,
            "coerce_timestamps": "us",
        },
        {"store_decimal_as_integer": True},
        {"use_deprecated_int96_timestamps": True},
        {"store_schema": False, "compression": "none"},
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_pyarrow_files(tmp_path: Path, options: dict[str, Any]) -> None:
    footer, index = check_file(write(all_types(), tmp_path / "t.parquet", **options))
    indexed = options.get("write_page_index", True)
    assert set(index) == ({leaf.path for leaf in footer.leaves} if indexed else set())
    bounds = chunk_bounds(footer, next(leaf for leaf in footer.leaves if leaf.path == ("after",)))
    if options.get("write_statistics", True):
        assert (bounds.lower.to_pylist(), bounds.upper.to_pylist()) == ([0, 150, 300], [149, 299, 399])
        assert bounds.null_count.tolist() == [0, 0, 0]
        if indexed:
            assert index[("after",)].page_offsets.tolist() == [0, 8, 16, 21]
            assert index[("after",)].bounds.upper.to_pylist()[:2] == [19, 39]
    else:
        assert bounds.lower.null_count == 3
        assert bounds.null_count.tolist() == [-1, -1, -1]


def test_every_type_is_known_and_bounded(tmp_path: Path) -> None:
    footer, _index = check_file(write(all_types(), tmp_path / "t.parquet"))
    types = {leaf.path: leaf.type for leaf in footer.leaves}
    expected: dict[tuple[str, ...], pa.DataType]
    expected = {(name,): kind for name, (kind, _) in SPECIALS.items() if name != "fixed"}
    expected |= {
        ("fixed",): pa.binary(),
        ("nested", "in", "a"): pa.int32(),
        ("nested", "in", "b"): pa.string(),
        ("nested", "d"): pa.float64(),
        ("time",): pa.null(),
        ("after",): pa.int64(),
    }
    assert types == expected
    assert [leaf.ordinal for leaf in footer.leaves][-2:] == [
        footer.leaves[-3].ordinal + 4,
        footer.leaves[-3].ordinal + 5,
    ]  # the list and the two leaves of the map lie between
    for leaf in footer.leaves:
        if leaf.type != pa.null():
            bounds = chunk_bounds(footer, leaf)
            assert bounds.lower.null_count < 3, leaf
            assert bounds.upper.null_count < 3, leaf
            doubted = leaf.path == ("nested", "in", "b")  # Doubt.NESTED_BYTES_NULL_COUNTS
            assert ((bounds.null_count < 0) == doubted).all(), leaf


def test_all_null_pages_are_known_as_such(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([None] * 50 + list(range(50)), pa.int32())})
    _, index = check_file(write(table, tmp_path / "t.parquet", write_batch_size=10))
    bounds = index[("a",)].bounds
    assert bounds.null_count.tolist() == [10] * 5 + [0] * 5
    assert bounds.lower.to_pylist() == [None] * 5 + [0, 10, 20, 30, 40]


def test_int96_has_no_bounds(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([1, None, 3], pa.timestamp("us"))})
    footer, _ = check_file(write(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True))
    (leaf,) = footer.leaves
    assert leaf == Leaf(("t",), 0, pa.timestamp("us", "UTC"), int96=True)
    bounds = chunk_bounds(footer, leaf)
    assert bounds.lower.to_pylist() == bounds.upper.to_pylist() == [None]


def test_empty_files(tmp_path: Path) -> None:
    schema = all_types().schema
    pq.ParquetWriter(tmp_path / "none.parquet", schema, write_page_index=True).close()
    footer, index = check_file(tmp_path / "none.parquet")
    assert len(footer.row_count) == 0
    assert index[("string",)].page_offsets.tolist() == [0]
    check_file(write(schema.empty_table(), tmp_path / "empty.parquet"))
    check_file(write(pa.table({"a": [1]}).select([]), tmp_path / "no_columns.parquet"))


def test_polars_files(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    table = all_types().drop_columns(["map", "fixed"])
    path = tmp_path / "t.parquet"
    polars.from_arrow(table).write_parquet(path, row_group_size=150, data_page_size=200)
    footer, index = check_file(path)
    assert index
    by_path = {leaf.path: chunk_bounds(footer, leaf) for leaf in footer.leaves}
    assert by_path[("after",)].upper.to_pylist()[-1] == 399
    assert by_path[("decimal38",)].lower.null_count == len(footer.row_count)
    assert (by_path[("nested", "d")].null_count == -1).all()


def test_duckdb_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    written = all_types(n=8000).drop_columns(["timestamp_ns"])  # noqa: F841  (named in the query)
    for version in ("V1", "V2"):
        path = tmp_path / f"{version}.parquet"
        duckdb.sql(f"COPY written TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version})")
        footer, index = check_file(path)
        assert len(footer.row_count) > 1
        assert not index
        by_path = {leaf.path: chunk_bounds(footer, leaf) for leaf in footer.leaves}
        assert by_path[("after",)].lower.to_pylist()[0] == 0
        assert by_path[("double",)].lower.null_count > 0  # a row group with NaN
        assert (by_path[("double",)].nan_count >= 0).all()
        assert (by_path[("after",)].nan_count == -1).all()


@takes_seconds
def test_tpchgen_files(tmp_path: Path) -> None:
    tpchgen = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    if tpchgen is None:
        pytest.skip("tpchgen-cli is not installed")
    subprocess.run([tpchgen, "parquet", "-s", "0.01", "--output-dir", tmp_path, "--quiet"], check=True)
    for path in tmp_path.glob("*.parquet"):
        footer, index = check_file(path)
        assert footer.created_by.startswith("parquet-rs")
        assert set(index) == {leaf.path for leaf in footer.leaves}
        for leaf in footer.leaves:
            bounds = chunk_bounds(footer, leaf)
            assert bounds.lower.null_count == bounds.upper.null_count == 0
            assert bounds.null_count.tolist() == [0] * len(footer.row_count)


def test_spark_files(tmp_path: Path, spark: Any) -> None:
    names = [
        "after",
        "string",
        "binary",
        "double",
        "float",
        "bool",
        "int8",
        "int32",
        "date",
        "decimal5",
        "decimal38",
    ]
    write(all_types().select([*names, "nested"]), tmp_path / "in.parquet")
    frame = spark.read.parquet(str(tmp_path / "in.parquet")).selectExpr(
        "*", "timestamp_seconds(after) AS instant", "CAST(timestamp_seconds(after) AS timestamp_ntz) AS local"
    )
    options = {"parquet.page.row.count.limit": "50", "parquet.page.size.row.check.min": "10"}
    for name, stored in (("int96", "INT96"), ("micros", "TIMESTAMP_MICROS")):
        spark.conf.set("spark.sql.parquet.outputTimestampType", stored)
        frame.coalesce(1).write.options(**options).parquet(str(tmp_path / name))
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        (path,) = (tmp_path / name).glob("*.parquet")
        footer, index = check_file(path)
        assert footer.created_by.startswith("parquet-mr")
        assert len(index[("after",)].first_row) > 1
        (instant,) = (leaf for leaf in footer.leaves if leaf.path == ("instant",))
        assert instant.type == pa.timestamp("us", "UTC")
        assert instant.int96 == (stored == "INT96")


# --------------------------------------------------------------------------- random tables


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(0, 60))
    names = draw(st.lists(st.sampled_from(sorted(SPECIALS)), min_size=1, max_size=3, unique=True))
    columns = {}
    for name in names:
        kind, specials = SPECIALS[name]
        one = st.none() | st.sampled_from(specials)
        if name in ("string", "binary"):
            one |= st.text(max_size=80) if name == "string" else st.binary(max_size=80)
        if name in ("float", "double"):
            one |= st.floats(width=32 if name == "float" else 64)
        if name == "decimal38":
            one |= st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-10, EXACT))
        columns[name] = pa.array(draw(st.lists(one, min_size=n, max_size=n)), kind)
    table = pa.table(columns)
    if draw(st.booleans()):
        inner = table.to_struct_array().combine_chunks() if n else pa.array([], pa.struct(table.schema))
        table = pa.table({"s": inner})
    return table


@examples(100)
@given(tables(), st.sampled_from(["1.0", "2.0"]), st.booleans(), st.integers(1, 30), st.integers(1, 70))
def test_bounds_hold(
    tmp_path: Path, table: pa.Table, data_page: str, dictionary: bool, page_rows: int, group_rows: int
) -> None:
    write(
        table,
        tmp_path / "t.parquet",
        data_page_version=data_page,
        use_dictionary=dictionary,
        write_batch_size=page_rows,
        row_group_size=group_rows,
    )
    check_file(tmp_path / "t.parquet")


@examples(50)
@given(tables(), st.integers(1, 70), st.integers(1, 2000))
def test_bounds_of_polars_hold(tmp_path: Path, table: pa.Table, group_rows: int, page_bytes: int) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table)
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=group_rows, data_page_size=page_bytes)
    check_file(tmp_path / "t.parquet")


# --------------------------------------------------------------------------- edited footers


def with_index(data: bytes, which: str, change: Callable[[Any], None]) -> bytes:
    """The file with the first chunk's OffsetIndex or ColumnIndex changed; it follows the old footer."""
    fields = {"OffsetIndex": (4, 5), "ColumnIndex": (6, 7)}[which]
    metadata = metadata_of(data)
    chunk = metadata[4][0][1][0]
    index = decode_struct(data[chunk[fields[0]] :])
    change(index)
    raw = encode(index)
    chunk[fields[0]], chunk[fields[1]] = len(data), len(raw)
    footer = encode(metadata)
    return data + raw + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def statistics_of(metadata: Any) -> Any:
    return chunk_of(metadata)[3][12]


def read_all(data: bytes) -> tuple[Footer, list[Bounds], dict[tuple[str, ...], Any]]:
    file = pa.BufferReader(data)
    footer = read_footer(file)
    return (
        footer,
        [chunk_bounds(footer, leaf) for leaf in footer.leaves],
        read_page_index(file, footer, footer.leaves),
    )


def only_bounds(data: bytes) -> tuple[Any, Any, int]:
    (bounds,) = read_all(data)[1]
    return bound_values(bounds.lower)[0], bound_values(bounds.upper)[0], int(bounds.null_count[0])


INTEGERS = parquet_bytes(pa.array([3, None, 1, 2, 5, 4], pa.int32()))


def set_statistics(**fields: Any) -> Callable[[Any], None]:
    ids = {"max": 1, "min": 2, "nulls": 3, "max_value": 5, "min_value": 6, "nans": 9}

    def change(metadata: Any) -> None:
        for name, value in fields.items():
            if value is None:
                statistics_of(metadata).pop(ids[name], None)
            else:
                statistics_of(metadata)[ids[name]] = value

    return change


def i32(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def test_editing_keeps_what_it_does_not_change() -> None:
    assert only_bounds(edited(INTEGERS, lambda metadata: None)) == only_bounds(INTEGERS) == (1, 5, 1)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"min_value": None, "min": None}, (None, 5, 1)),
        ({"max_value": None}, (1, None, 1)),  # the deprecated pair is not mixed in
        ({"min_value": i32(6)}, (None, None, 1)),  # lower > upper
        ({"min_value": b"\x01"}, (None, 5, 1)),  # wrong width
        ({"min_value": b""}, (None, 5, 1)),
        ({"min_value": i32(-7), "max_value": i32(9)}, (-7, 9, 1)),
        ({"min_value": None, "max_value": None, "min": i32(0), "max": i32(8)}, (0, 8, 1)),
        ({"nulls": None}, (1, 5, -1)),
        ({"nulls": -1}, (1, 5, -1)),
        ({"nulls": 7}, (1, 5, -1)),
        ({"nulls": 6}, (1, 5, 6)),
        ({"nulls": 0}, (1, 5, 0)),
        ({"nulls": 0, "min": None, "max": None, "min_value": None, "max_value": None}, (None, None, -1)),
        ({"nulls": 6, "min": None, "max": None, "min_value": None, "max_value": None}, (None, None, 6)),
    ],
)
def test_statistics_are_used_or_unknown(fields: dict[str, Any], expected: tuple[Any, Any, int]) -> None:
    assert only_bounds(edited(INTEGERS, set_statistics(**fields))) == expected


def test_chunk_without_statistics_is_unknown() -> None:
    assert only_bounds(edited(INTEGERS, lambda m: chunk_of(m)[3].pop(12))) == (None, None, -1)


def test_null_count_needs_a_value_per_row() -> None:
    def change(metadata: Any) -> None:
        chunk_of(metadata)[3][5] = 5

    assert only_bounds(edited(INTEGERS, change)) == (1, 5, -1)


def without_order(metadata: Any) -> None:
    del metadata[7]


def other_order(metadata: Any) -> None:
    metadata[7] = [{2: {}}]


def too_many_orders(metadata: Any) -> None:
    metadata[7] = [{1: {}}, {1: {}}]


@pytest.mark.parametrize("change", [without_order, other_order, too_many_orders])
def test_bounds_without_type_order(change: Callable[[Any], None]) -> None:
    """min_value and max_value have no meaning then; min and max are signed, whatever the order says."""

    def only_deprecated(metadata: Any) -> None:
        change(metadata)
        set_statistics(min_value=i32(2), max_value=i32(3))(metadata)

    def only_current(metadata: Any) -> None:
        change(metadata)
        set_statistics(min=None, max=None)(metadata)

    assert only_bounds(edited(INTEGERS, only_deprecated)) == (1, 5, 1)
    assert only_bounds(edited(INTEGERS, only_current)) == (None, None, 1)
    assert read_all(edited(INTEGERS, change))[2][("x",)].bounds.lower.to_pylist() == [None] * 3


@pytest.mark.parametrize(("name", "used"), [
    *((name, True) for name in ("bool", "int8", "int16", "int32", "int64", "date", "timestamp_us")),
    *((name, False) for name in ("uint8", "uint64", "float", "double", "string", "binary", "decimal38")),
])  # fmt: skip
def test_deprecated_bounds_only_where_signed_order_is_right(name: str, used: bool) -> None:
    kind, specials = SPECIALS[name]
    data = parquet_bytes(pa.array([value for value in specials if value == value], kind))

    def deprecated(metadata: Any) -> None:
        statistics = statistics_of(metadata)
        statistics[1], statistics[2] = statistics.pop(5), statistics.pop(6)

    lower, upper, _ = only_bounds(edited(data, deprecated))
    assert (lower is not None, upper is not None) == (used, used)


def test_nan_bounds_are_unknown() -> None:
    data = parquet_bytes(pa.array([1.0, 2.0], pa.float64()))
    nan = struct.pack("<d", math.nan)
    assert only_bounds(data) == (1.0, 2.0, 0)
    for fields in ({"min_value": nan}, {"max_value": nan}, {"min_value": nan, "max_value": None}):
        assert only_bounds(edited(data, set_statistics(**fields)))[:2] == (None, None)


NAN, NEGATIVE_NAN = struct.pack("<d", math.nan), struct.pack("<d", -math.nan)
FLOATS = parquet_bytes(pa.array([1.0, None, 2.0, 3.0]))
NO_NUMBERS: dict[str, Any] = {"min": None, "max": None, "min_value": None, "max_value": None}


@pytest.mark.parametrize(("fields", "expected"), [
    ({}, (1.0, 3.0, 1, -1)),
    ({"nans": 0}, (1.0, 3.0, 1, 0)),
    ({"nans": 2}, (1.0, 3.0, 1, 2)),
    ({"nans": 3}, (1.0, 3.0, 1, -1)),  # no room for the number that the bounds tell of
    ({"nans": 3, "nulls": None}, (1.0, 3.0, -1, 3)),
    ({"nans": 4, "nulls": None}, (1.0, 3.0, -1, -1)),
    ({"nans": -1}, (1.0, 3.0, 1, -1)),
    ({"nans": 2**63 - 1}, (1.0, 3.0, 1, -1)),
    ({"nans": 3, **NO_NUMBERS}, (None, None, 1, 3)),
    ({"nans": 4, **NO_NUMBERS}, (None, None, 1, -1)),
    ({"nans": 4, "nulls": 0, **NO_NUMBERS}, (None, None, 0, 4)),
    ({"nans": 3, "min_value": NEGATIVE_NAN, "max_value": NAN}, (None, None, 1, 3)),
    ({"nans": 1, "min_value": NEGATIVE_NAN}, (None, None, 1, 1)),
])  # fmt: skip
@pytest.mark.parametrize("order", [1, 2])
def test_c58_nan_counts_in_either_order(order: int, fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    def change(metadata: Any) -> None:
        metadata[7] = [{order: {}}]
        set_statistics(**fields)(metadata)

    data = edited(FLOATS, change)
    (bounds,) = read_all(data)[1]
    assert (*only_bounds(data), int(bounds.nan_count[0])) == expected


def test_c58_other_orders_of_floats_are_unknown() -> None:
    for order in ({3: {}}, {4: {}}, {1: {}, 2: {}}, {}):
        data = edited(FLOATS, lambda metadata, order=order: metadata.update({7: [order]}))
        assert only_bounds(data) == (None, None, 1)
    integers = edited(INTEGERS, lambda metadata: (metadata.update({7: [{2: {}}]}), set_statistics(nans=0)(metadata)))
    (bounds,) = read_all(integers)[1]
    assert bounds.nan_count.tolist() == [-1]


def test_c58_nan_counts_of_a_writer_that_forgets_nans_are_unknown() -> None:
    data = edited(FLOATS, lambda m: (m.update({6: b"impala version 2.9.0"}), set_statistics(nans=0)(m)))
    (bounds,) = read_all(data)[1]
    assert bounds.nan_count.tolist() == [-1]


@pytest.mark.parametrize(("stated", "lower", "nan_count"), [
    ([0, 0], [1.0, 2.0], [0, 0]),
    ([1, 0], [1.0, 2.0], [-1, 0]),  # the first page has one value beside its NULL, and bounds
    ([0, 1], [1.0, 2.0], [0, 1]),
    ([-1, 3], [1.0, 2.0], [-1, -1]),
    ([0], [None, None], [-1, -1]),
    (None, [1.0, 2.0], [-1, -1]),
])  # fmt: skip
def test_c58_nan_counts_of_pages(stated: list[int] | None, lower: list[Any], nan_count: list[int]) -> None:
    def change(index: Any) -> None:
        if stated is not None:
            index[8] = stated

    (index,) = read_all(with_index(FLOATS, "ColumnIndex", change))[2].values()
    assert index.bounds.lower.to_pylist() == lower
    assert index.bounds.nan_count.tolist() == nan_count


def test_c58_a_page_of_nans_has_no_bounds() -> None:
    def change(index: Any) -> None:
        index[2][1], index[3][1], index[8] = NEGATIVE_NAN, NAN, [0, 2]

    data = edited(with_index(FLOATS, "ColumnIndex", change), lambda metadata: metadata.update({7: [{2: {}}]}))
    (index,) = read_all(data)[2].values()
    assert index.bounds.lower.to_pylist() == [1.0, None]
    assert index.bounds.nan_count.tolist() == [0, 2]


def test_narrow_values_out_of_range_are_unknown() -> None:
    for name, stored in (
        ("int8", i32(128)),
        ("uint16", i32(-1)),
        ("bool", b"\x02"),
        ("decimal5", b"\x7f" * 3),
    ):
        kind, specials = SPECIALS[name]
        data = parquet_bytes(pa.array(specials, kind))
        assert only_bounds(edited(data, set_statistics(max_value=stored)))[1] is None, name


def test_strings_are_bounded_by_bytes_that_need_not_be_utf8() -> None:
    data = edited(parquet_bytes(pa.array(["b"])), set_statistics(min_value=b"a\xc3", max_value=b"b\xff"))
    assert only_bounds(data) == (b"a\xc3", b"b\xff", 0)


def test_empty_string_is_a_bound() -> None:
    assert only_bounds(parquet_bytes(pa.array(["", ""]))) == (b"", b"", 0)


def test_decimals_of_any_width() -> None:
    def decimal(metadata: Any) -> None:
        metadata[2][1] |= {6: 5, 7: 2, 8: 5}
        metadata[2][1].pop(10, None)
        metadata[6] = b"parquet-mr version 1.12.0 (build x)"

    data = edited(parquet_bytes(pa.array([b"\xff", b"\x01\x00", b"\x02"])), decimal)
    stored = edited(data, set_statistics(min_value=b"\xff", max_value=b"\x00" * 20 + b"\x01\x00"))
    assert only_bounds(stored) == (Decimal("-0.01"), Decimal("2.56"), 0)
    assert only_bounds(edited(stored, lambda m: m.update({6: b"parquet-rs version 59.0.0"}))) == (
        None,
        None,
        0,
    )
    too_wide = edited(stored, set_statistics(max_value=(10**5).to_bytes(3, "big")))
    assert only_bounds(too_wide) == (Decimal("-0.01"), None, 0)


# --------------------------------------------------------------------------- types


def leaf_type(change: dict[int, Any], kind: pa.DataType) -> pa.DataType:
    """The type read for a column whose schema element is changed so, without its annotations."""

    def edit(metadata: Any) -> None:
        for field in (6, 7, 8, 10):
            metadata[2][1].pop(field, None)
        metadata[2][1] |= change

    (leaf,) = read_all(edited(parquet_bytes(pa.array([], kind)), edit))[0].leaves
    return leaf.type


@pytest.mark.parametrize(("kind", "change", "expected"), [
    (pa.int32(), {}, pa.int32()),
    (pa.int32(), {6: 6}, pa.date32()),
    (pa.int32(), {6: 13}, pa.uint32()),
    (pa.int32(), {6: 15}, pa.int8()),
    (pa.int32(), {6: 7}, pa.null()),  # TIME_MILLIS
    (pa.int32(), {6: 0}, pa.null()),  # UTF8 of an integer
    (pa.int32(), {6: 5, 7: 2, 8: 9}, pa.decimal128(9, 2)),
    (pa.int32(), {6: 5, 8: 9}, pa.decimal128(9, 0)),
    (pa.int32(), {6: 5, 7: 2, 8: 39}, pa.null()),
    (pa.int32(), {10: {5: {1: 5, 2: 4}}}, pa.null()),  # scale > precision
    (pa.int32(), {10: {10: {1: 8, 2: False}}}, pa.uint8()),
    (pa.int32(), {10: {10: {1: 64, 2: True}}}, pa.null()),  # 64 bits in an INT32
    (pa.int32(), {10: {99: {}}, 6: 6}, pa.null()),  # a type of the future
    (pa.int32(), {10: {}}, pa.null()),
    (pa.int32(), {10: {11: {}}}, pa.null()),  # UNKNOWN
    (pa.int64(), {6: 9}, pa.timestamp("ms", "UTC")),
    (pa.int64(), {6: 10}, pa.timestamp("us", "UTC")),
    (pa.int64(), {10: {8: {1: True, 2: {3: {}}}}}, pa.timestamp("ns", "UTC")),
    (pa.int64(), {10: {8: {1: False, 2: {1: {}}}}}, pa.timestamp("ms")),
    (pa.int64(), {10: {8: {1: False, 2: {4: {}}}}}, pa.null()),
    (pa.int32(), {10: {8: {1: False, 2: {1: {}}}}}, pa.null()),
    (pa.binary(), {6: 4}, pa.string()),
    (pa.binary(), {6: 20}, pa.binary()),
    (pa.binary(), {10: {12: {}}}, pa.string()),
    (pa.binary(), {10: {13: {}}}, pa.binary()),
    (pa.binary(), {10: {17: {}}}, pa.null()),  # GEOMETRY
    (pa.binary(16), {10: {14: {}}}, pa.null()),  # UUID
    (pa.binary(2), {10: {15: {}}}, pa.null()),  # FLOAT16
    (pa.binary(12), {6: 21}, pa.null()),  # INTERVAL
    (pa.binary(12), {}, pa.binary()),
])  # fmt: skip
def test_types(kind: pa.DataType, change: dict[int, Any], expected: pa.DataType) -> None:
    assert leaf_type(change, kind) == expected


def test_leaves_of_a_variant_have_the_types_of_their_own() -> None:
    inner = pa.array([{"metadata": b"a", "value": b"b"}])

    def variant(metadata: Any) -> None:
        metadata[2][1][10] = {16: {}}

    footer, bounds, _ = read_all(edited(parquet_bytes(inner), variant))
    assert [leaf.type for leaf in footer.leaves] == [pa.binary(), pa.binary()]
    assert [known.lower.to_pylist() for known in bounds] == [[b"a"], [b"b"]]


def test_leaves_of_one_path_have_no_statistics() -> None:
    """Which of them a query means is not known."""
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "a", "b"])
    footer, bounds, index = read_all(parquet_bytes(table))
    assert [leaf.type for leaf in footer.leaves] == [pa.null(), pa.null(), pa.int64()]
    assert [known.lower.to_pylist() for known in bounds] == [[None], [None], [3]]
    assert set(index) == {("b",)}


def test_leaf_of_another_footer_is_refused() -> None:
    other = Leaf(("y",), 0, pa.int32(), False)
    footer = read_footer(pa.BufferReader(INTEGERS))
    with pytest.raises(ValueError, match="leaf y, ordinal 0, is not of this footer"):
        chunk_bounds(footer, other)


# --------------------------------------------------------------------------- known bugs of writers


COUNTS_OF_BYTES = {"BYTES_NULL_COUNTS", "NESTED_BYTES_NULL_COUNTS"}


@pytest.mark.parametrize(("created_by", "expected"), [
    ("parquet-mr version 1.17.0 (build abc)", set()),
    ("parquet-mr", set()),
    ("parquet-cpp-arrow version 26.0.1", {"VARIABLE_DECIMALS", "NESTED_BYTES_NULL_COUNTS"}),
    ("parquet-cpp-arrow version 11.0.0", {"VARIABLE_DECIMALS", "BYTES", *COUNTS_OF_BYTES}),
    ("parquet-cpp-arrow version 3.9.9", {"VARIABLE_DECIMALS", "DECIMAL_BYTES", "BYTES", *COUNTS_OF_BYTES}),
    ("parquet-cpp version 1.5.1-SNAPSHOT", {"VARIABLE_DECIMALS", "DECIMAL_BYTES", *COUNTS_OF_BYTES}),
    ("parquet-cpp version 1.3.1", {"VARIABLE_DECIMALS", "DECIMAL_BYTES", "FLOATS", *COUNTS_OF_BYTES}),
    ("parquet-cpp", {"VARIABLE_DECIMALS", "DECIMAL_BYTES", "FLOATS", *COUNTS_OF_BYTES}),
    ("parquet-rs version 4.0.0 (build x)", {"VARIABLE_DECIMALS", "FLOATS"}),
    ("parquet-rs version 59.0.0", {"VARIABLE_DECIMALS"}),
    ("impala version 2.9.0-cdh5.12.0 (build x)", {"VARIABLE_DECIMALS", "FLOATS"}),
    ("Polars (python) version 2.1.0 (build x)", {"VARIABLE_DECIMALS", "DECIMAL_BYTES", "NESTED_NULL_COUNTS"}),
    ("github.com/parquet-go/parquet-go version 0.20.0(build )", {"VARIABLE_DECIMALS", "FLOATS", "BYTES"}),
    ("parquet-mr-trino version 460 (build n/a)", {"VARIABLE_DECIMALS", "BLOOM_FILTERS"}),
    ("parquet-mr-trino version 461 (build n/a)", {"VARIABLE_DECIMALS"}),
    ("parquet-mr-trino version 480-e.5 (build n/a)", {"VARIABLE_DECIMALS"}),
    ("parquet-mr-trino", {"VARIABLE_DECIMALS", "BLOOM_FILTERS"}),
    ("parquet-rs version 4", {"VARIABLE_DECIMALS", "FLOATS"}),
    ("github.com/segmentio/parquet-go version 1.0.0", {"VARIABLE_DECIMALS", "FLOATS", "BYTES", "BLOOM_FILTERS"}),
    ("Arrow2 - Native Rust implementation of Arrow", {doubt.name for doubt in Doubt}),
    ("", {"VARIABLE_DECIMALS"}),
])  # fmt: skip
def test_doubts(created_by: str, expected: set[str]) -> None:
    assert {doubt.name for doubt in doubts(created_by)} == expected


def test_doubted_statistics_are_unknown() -> None:
    def by(writer: bytes) -> Callable[[Any], None]:
        return lambda metadata: metadata.update({6: writer})

    assert only_bounds(edited(INTEGERS, by(b"Arrow2"))) == (None, None, -1)
    index = read_all(edited(INTEGERS, by(b"Arrow2")))[2][("x",)]
    assert index.bounds.lower.null_count == 3
    assert index.bounds.null_count.tolist() == [-1] * 3
    floats = parquet_bytes(pa.array([1.0, None]))
    assert only_bounds(edited(floats, by(b"impala version 2.9.0"))) == (None, None, 1)


# --------------------------------------------------------------------------- the page index, edited


def test_page_index_of_the_unedited_file() -> None:
    (index,) = read_all(with_index(INTEGERS, "ColumnIndex", lambda index: None))[2].values()
    assert index.first_row.tolist() == [0, 2, 4]
    assert index.page_offsets.tolist() == [0, 3]
    assert index.bounds.lower.to_pylist() == [3, 1, 4]
    assert index.bounds.upper.to_pylist() == [3, 2, 5]
    assert index.bounds.null_count.tolist() == [1, 0, 0]


@pytest.mark.parametrize(("change", "lower", "null_count"), [
    ({5: None}, [3, 1, 4], [-1, -1, -1]),
    ({5: [1, -1, 3]}, [3, 1, 4], [1, -1, -1]),
    ({5: [1, 0]}, [None] * 3, [-1] * 3),
    ({1: [False] * 2}, [None] * 3, [-1] * 3),
    ({2: [i32(3)] * 4}, [None] * 3, [-1] * 3),
    ({1: [True, False, False]}, [None, 1, 4], [-1, 0, 0]),  # null_counts says one NULL in two rows
    ({1: [True, False, False], 5: None}, [None, 1, 4], [2, -1, -1]),
    ({5: [2, 0, 0]}, [3, 1, 4], [-1, 0, 0]),  # all NULL, says only null_counts
    ({2: [i32(3), i32(9), b"\x01"]}, [3, None, None], [1, 0, 0]),
])  # fmt: skip
def test_column_index_is_used_or_unknown(change: dict[int, Any], lower: list[Any], null_count: list[int]) -> None:
    def edit(index: Any) -> None:
        index |= change
        for field in [field for field, value in change.items() if value is None]:
            del index[field]

    (index,) = read_all(with_index(INTEGERS, "ColumnIndex", edit))[2].values()
    assert index.bounds.lower.to_pylist() == lower
    assert index.bounds.null_count.tolist() == null_count


def test_empty_upper_bound_of_a_page_is_unknown() -> None:
    def emptied(index: Any) -> None:
        index[2][0] = index[3][0] = b""

    data = with_index(parquet_bytes(pa.array(["a", "b", "c", "d"])), "ColumnIndex", emptied)
    (index,) = read_all(data)[2].values()
    assert index.bounds.lower.to_pylist() == [b"", b"c"]
    assert index.bounds.upper.to_pylist() == [None, b"d"]


def test_chunk_without_column_index_has_pages_of_unknown_bounds() -> None:
    def without(metadata: Any) -> None:
        del chunk_of(metadata)[6]

    (index,) = read_all(edited(INTEGERS, without))[2].values()
    assert index.first_row.tolist() == [0, 2, 4]
    assert index.bounds.lower.null_count == 3
    assert index.bounds.null_count.tolist() == [-1] * 3


@pytest.mark.parametrize(("page", "field", "value"), [
    (0, 3, 1), (1, 3, 0), (1, 3, 5), (2, 3, 6), (2, 3, -1), (2, 3, -(2**63)), (2, 3, 2**63 - 1),
    (0, 1, 0), (0, 1, -(2**63)), (2, 1, 10**6), (2, 1, 2**63 - 1), (1, 1, 4),
    (0, 2, 0), (0, 2, -5), (2, 2, 10**6), (0, 2, 2**63 - 1), (0, 2, 200),
])  # fmt: skip
def test_insane_offset_index_is_left_out(page: int, field: int, value: int) -> None:
    def edit(index: Any) -> None:
        index[1][page][field] = value

    _footer, bounds, index = read_all(with_index(INTEGERS, "OffsetIndex", edit))
    assert index == {}
    assert bounds[0].lower.to_pylist() == [1]


def test_offset_index_without_pages_is_left_out() -> None:
    assert read_all(with_index(INTEGERS, "OffsetIndex", lambda index: index[1].clear()))[2] == {}


def test_leaf_without_offset_index_in_some_row_group_is_left_out() -> None:
    table = pa.table({"a": [1, 2], "b": [1, 2]})

    def without(metadata: Any) -> None:
        del metadata[4][1][1][0][4]

    assert set(read_all(edited(parquet_bytes(table, row_group_size=1), without))[2]) == {("b",)}


@pytest.mark.parametrize(("field", "value", "message"), [
    (4, 10**9, "do not lie in the file"),
    (5, 2, "malformed"),
    (7, 2, "malformed"),
    (6, 4, "malformed"),
])  # fmt: skip
def test_unreadable_index_is_an_error(field: int, value: int, message: str) -> None:
    def edit(metadata: Any) -> None:
        chunk_of(metadata)[field] = value

    with pytest.raises(InvalidParquet, match=message):
        read_all(edited(INTEGERS, edit))


# --------------------------------------------------------------------------- reads


class CountingFile:
    """A Python file that records what is read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position, self.reads, self.closed = data, 0, list[tuple[int, int]](), False

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, len(self.data))[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        data = self.data[self.position : self.position + size]
        self.reads.append((self.position, size))
        self.position += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def test_few_reads() -> None:
    narrow, wide = (
        parquet_bytes(pa.table({f"c{i}": range(100) for i in range(n)}), row_group_size=50, write_batch_size=10)
        for n in (3, 300)
    )
    for data, reads in ((narrow, 1), (wide, 2)):
        counted = CountingFile(data)
        file = pa.PythonFile(counted, mode="r")
        footer = read_footer(file)
        assert len(counted.reads) == reads
        counted.reads.clear()
        index = read_page_index(file, footer, footer.leaves)
        assert len(index) == len(footer.leaves)
        assert 1 <= len(counted.reads) <= 4


def test_no_read_without_an_index() -> None:
    counted = CountingFile(parquet_bytes(pa.array([1]), write_page_index=False))
    file = pa.PythonFile(counted, mode="r")
    footer = read_footer(file)
    counted.reads.clear()
    assert read_page_index(file, footer, footer.leaves) == {}
    assert counted.reads == []


# --------------------------------------------------------------------------- errors


@pytest.mark.parametrize(("data", "message"), [
    (b"", r"not a Parquet file: ends with b'' instead of b'PAR1'"),
    (b"PAR1", r"truncated: footer length"),
    (b"x" * 100, r"not a Parquet file: ends with b'xxxx' instead of b'PAR1'"),
    (b"PAR1" + b"\x00" * 8 + b"PARE", r"encrypted footer \(PARE\) is not supported"),
    (b"PAR1" + bytes(8) + b"\x40\xe2\x01\x00PAR1", "truncated: footer length 123456 exceeds the file's 20"),
    (b"PAR1" + b"\xff" * 12 + b"\x0c\x00\x00\x00PAR1", r"the footer is malformed: .*"),
    (b"PAR1\x00" + b"\x01\x00\x00\x00PAR1", r"the footer is malformed: FileMetaData.schema is missing"),
])  # fmt: skip
def test_what_is_not_parquet(data: bytes, message: str) -> None:
    with pytest.raises(InvalidParquet, match=message):
        read_footer(pa.BufferReader(data))


def change_chunk(field: int, value: Any) -> Callable[[Any], None]:
    return lambda metadata: chunk_of(metadata).update({field: value})


def change_described(field: int, value: Any) -> Callable[[Any], None]:
    return lambda metadata: chunk_of(metadata)[3].update({field: value})


def change_element(field: int, value: Any) -> Callable[[Any], None]:
    return lambda metadata: metadata[2][1].update({field: value})


@pytest.mark.parametrize(("change", "message"), [
    (change_chunk(1, b"other.parquet"), "column x has its data in another file, b'other.parquet'"),
    (lambda m: chunk_of(m).pop(3), "column x has no metadata: encrypted columns are not supported"),
    (change_described(3, [b"y"]), "the column chunk of x says that it is of y"),
    (change_described(1, 2), "column x has physical type 1, its chunk 2"),
    (change_described(7, -1), "the column chunk of x has -1 bytes"),
    (lambda m: m[4][0][1].append(chunk_of(m)), "a row group has 2 column chunks for 1 columns"),
    (lambda m: m[4][0].update({3: -1}), "a row group has -1 rows"),
    (lambda m: m[4].extend([m[4][0] | {3: 2**63 - 1}] * 2), "the row groups have"),
    (change_element(4, b"\xff"), r"the column name \\xff is not UTF-8"),
    (change_element(1, 9), "column x has the unknown physical type 9"),
    (change_element(1, 7), "SchemaElement.type_length is missing"),
    (change_element(5, 1), "a schema element has 1 children and type 1"),
    (lambda m: m[2][0].update({5: 2}), "the schema ends 1 nodes too early"),
    (lambda m: m[2][0].update({5: 0}), "the schema goes on after the last child of its root"),
    (lambda m: m[2].clear(), "the schema is empty"),
    (lambda m: m.update({2: [{4: b"g", 5: 1, 3: 0}] * 200}), "the schema has more than 100 levels of groups"),
    (lambda m: m.update({4: 7}), "FileMetaData.row_groups is a int instead of a list"),
    (lambda m: m.update({4: [7]}), "FileMetaData.row_groups holds a int instead of a dict"),
])  # fmt: skip
def test_contradictory_metadata(change: Callable[[Any], None], message: str) -> None:
    with pytest.raises(InvalidParquet, match=message):
        read_footer(pa.BufferReader(edited(INTEGERS, change)))


def test_encrypted_column_with_plain_metadata_is_unknown() -> None:
    data = edited(INTEGERS, change_chunk(8, {1: {}}))
    assert only_bounds(data) == (None, None, -1)
    assert read_all(data)[2] == {}


# --------------------------------------------------------------------------- corruption


@functools.cache
def small_files() -> list[tuple[bytes, int]]:
    """Files and where their page index or footer starts."""
    files = [
        parquet_bytes(all_types(60), row_group_size=40, write_batch_size=15, store_schema=False),
        parquet_bytes(all_types(20), write_page_index=False, store_schema=False),
        INTEGERS,
    ]
    starts = []
    for data in files:
        chunks = [chunk for group in metadata_of(data)[4] for chunk in group[1]]
        offsets = [chunk[field] for chunk in chunks for field in (4, 6) if field in chunk]
        starts.append(min(offsets, default=len(data) - 8 - int.from_bytes(data[-8:-4], "little")))
    return list(zip(files, starts, strict=True))


def read_or_refuse(data: bytes) -> None:
    with contextlib.suppress(InvalidParquet):
        read_all(data)


@settings(examples(400), deadline=5000)
@given(st.data())
def test_corrupt_files_are_read_or_refused(data: st.DataObject) -> None:
    original, start = data.draw(st.sampled_from(small_files()))
    corrupt = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(start, len(corrupt) - 1))
        corrupt[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    read_or_refuse(bytes(corrupt))


def test_every_byte_flipped_is_read_or_refused() -> None:
    start = small_files()[2][1]
    for position in range(start, len(INTEGERS)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            corrupt = bytearray(INTEGERS)
            corrupt[position] ^= flip
            read_or_refuse(bytes(corrupt))


def test_truncated_files_are_refused() -> None:
    data, start = small_files()[1]
    for length in range(0, len(data), 7):
        with pytest.raises(InvalidParquet):
            read_footer(pa.BufferReader(data[:length]))
    for length in range(start, len(data) - 8, 7):  # with a new ending, so that only the footer is short
        cut = data[:length] + (length - start).to_bytes(4, "little") + b"PAR1"
        read_or_refuse(cut)


@given(st.binary(max_size=200))
def test_random_footers_are_refused(footer: bytes) -> None:
    read_or_refuse(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


# --------------------------------------------------------------------------- Thrift

scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=200) | st.floats(allow_nan=False)
field_ids = st.integers(-(2**15), 2**15 - 1)
structs: st.SearchStrategy[Any] = st.recursive(
    st.dictionaries(field_ids, scalars, max_size=5),
    lambda inner: st.dictionaries(
        field_ids,
        scalars
        | inner
        | st.lists(inner, max_size=20)
        | st.lists(st.integers(-(2**63), 2**63 - 1))
        | st.lists(st.booleans())
        | st.lists(st.binary()),
        max_size=5,
    ),
    max_leaves=20,
)


@given(structs, st.binary(max_size=3))
def test_thrift_round_trip(value: Struct, rest: bytes) -> None:
    assert decode_struct(encode(value) + rest) == value


@given(structs, st.data())
def test_thrift_prefixes_are_refused(value: Struct, data: st.DataObject) -> None:
    encoded = encode(value)
    with pytest.raises(MalformedThrift):
        decode_struct(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


def test_thrift_types_outside_parquet() -> None:
    """Short field headers, i8, a set, maps and a UUID, as Thrift's specification has them."""
    uuid = bytes(range(16))
    pairs = b"\x1b\x01\x86\x01a\x06"  # one pair of binary and i64
    data = b"\x13\xff" + b"\x1a\x23\x01\x02" + pairs + b"\x1b\x00" + b"\x1d" + uuid + b"\x00"
    assert decode_struct(data) == {1: -1, 2: [1, 2], 3: [(b"a", 3)], 4: [], 5: uuid}


@pytest.mark.parametrize(("data", "message"), [
    (b"", "ends inside a structure, after 0 bytes"),
    (b"\x1c" * 40, "more than 32 levels of nesting"),
    (b"\x19" * 40, "more than 32 levels of nesting"),
    (b"\x18\xff\xff\xff\xff\x0fabc", r"4294967295 bytes or elements at byte 6 of 9"),
    (b"\x19\xfc\xff\xff\xff\xff\x0f\x00", "4294967295 bytes or elements"),
    (b"\x1b\xff\xff\xff\xff\x0f\x88\x00", "4294967295 bytes or elements"),
    (b"\x16" + b"\xff" * 9 + b"\x02\x00", "more than 64 bits"),
    (b"\x16" + b"\x80" * 20, "more than 64 bits"),
    (b"\x1e\x00", "unknown type"),
    (b"\x10\x00", "unknown type"),
    (b"\x17\x00\x00", "8 bytes or elements"),
])  # fmt: skip
def test_malformed_thrift(data: bytes, message: str) -> None:
    with pytest.raises(MalformedThrift, match=message):
        decode_struct(data)


def test_integers_of_64_bits() -> None:
    assert decode_struct(b"\x16" + b"\xff" * 9 + b"\x01\x00") == {1: -(2**63)}
