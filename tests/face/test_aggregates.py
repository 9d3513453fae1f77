"""Aggregates are those of all matching rows, whatever is answered by metadata and whatever is read."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import EvaluationError, InvalidAggregate, InvalidOption, UnknownColumn, UnsupportedPredicate
from secateur.index.model import BuildOptions
from secateur.pruning.aggregates.distinct import DistinctValues
from secateur.values.conversion import key_of, scalar_of
from tests.support.profiles import examples
from tests.support.small_tables import LONG, POOLS, SUMMED, TYPES, WHERE, Row, Where, files, rows_of, written
from tests.support.stores.local_build import index_here
from tests.support.tables import WriteTable, write_file

CALLS = st.sampled_from(
    ["count(*)", "count(p)", "min(p)", "max(p)", "count(DISTINCT p)"]
    + [f"{function}({name})" for name in TYPES for function in ("count", "min", "max")]
    + [f"count(DISTINCT {name})" for name in TYPES]
    + [f"{function}({name})" for name in SUMMED for function in ("sum", "avg") if (function, name) != ("sum", "i")]
)
AVERAGED = {"i": pa.float64(), "small": pa.float64(), "d": pa.decimal128(16, 6), "wide": pa.decimal128(34, 7)}


def expected(call: str, rows: list[Row]) -> Any:
    """The aggregate as Spark has it: NULLs are left out, and NaN is the greatest."""
    function, name = call[:-1].split("(")
    if name == "*":
        return len(rows)
    column = name.removeprefix("DISTINCT ")
    values = [row[column] for row in rows if row[column] is not None]
    if name != column:
        return len({group_of(row, [column]) for row in rows if row[column] is not None})
    if function == "count":
        return len(values)
    if not values:
        return None
    if function == "sum":
        return sum(values)
    if function == "avg":
        return average(values, AVERAGED[name])
    return (min if function == "min" else max)(values, key=lambda v: (v != v, 0 if v != v else v))


def average(values: list[Any], type_: pa.DataType) -> Any:
    """The average as Spark has it: of integers a double, of decimals rounded half up."""
    exact = Fraction(sum(map(Fraction, values))) / len(values)
    if pa.types.is_floating(type_):
        return float(sum(values)) / len(values)
    units = math.floor(abs(exact) * 10**type_.scale + Fraction(1, 2))
    return Decimal(units if exact >= 0 else -units).scaleb(-type_.scale)


def type_of(call: str) -> pa.DataType | None:
    """The type of an aggregate; None of a partition column's."""
    function, name = call[:-1].split("(")
    if function == "count":
        return pa.int64()
    if function == "avg":
        return AVERAGED[name]
    if function == "sum":
        return {"small": pa.int64(), "d": pa.decimal128(22, 2), "wide": pa.decimal128(38, 3)}[name]
    return TYPES.get(name)


def canonical(value: Any, values: list[Any]) -> Any:
    """What tells values apart: the sign of zero too, unless both zeros are among the values."""
    if not isinstance(value, float):
        return value
    zeros = {math.copysign(1, v) for v in values if v == 0}
    return "NaN" if value != value else 0.0 if value == 0 and len(zeros) == 2 else struct.pack("<d", value)


@examples(150)
@given(files(), WHERE, st.lists(CALLS, min_size=1, max_size=4), st.data())
def test_aggregates_are_those_of_the_rows(
    chosen: list[tuple[str, pa.Table, int]], where: Where, calls: list[str], data: st.DataObject
) -> None:
    rows = [row for row in rows_of(chosen) if where.holds(row)]
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        result = sec.aggregate(table, ", ".join(calls), where.sql, strict=True)
        blocks = len(sec.prune(table, where.sql or "true").blocks)
    assert result.column_names == calls
    for call, column in zip(calls, result.columns, strict=True):
        name = call[:-1].split("(")[1]
        values = [row.get(name) for row in rows]
        assert canonical(column[0].as_py(), values) == canonical(expected(call, rows), values), call
        assert type_of(call) in (None, column.type)
    counts = [int(result.schema.metadata[name]) for name in (b"blocks_by_metadata", b"blocks_read")]
    assert sum(counts) == blocks


def group_of(row: Row, names: list[str]) -> tuple[Any, ...]:
    """The group of a row, as Spark has it: zeros of either sign are one value, and so is NaN."""
    values = [row.get(name) for name in names]
    return tuple("NaN" if value != value else 0.0 if value == 0 else value for value in values)


@examples(150)
@given(files(), WHERE, st.lists(CALLS, min_size=1, max_size=3), st.data())
def test_groups_are_those_of_the_rows(
    chosen: list[tuple[str, pa.Table, int]], where: Where, calls: list[str], data: st.DataObject
) -> None:
    """C49: each row is counted once, in its group, whether its block is read or not."""
    names = data.draw(st.lists(st.sampled_from(["p", *TYPES]), min_size=1, max_size=3, unique=True))
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in filter(where.holds, rows_of(chosen)):
        groups.setdefault(group_of(row, names), []).append(row)
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        result = sec.aggregate(table, ", ".join(calls), where.sql, group_by=names, strict=True)
        blocks = len(sec.prune(table, where.sql or "true").blocks)
    assert result.column_names == [*names, *calls]
    keys = [group_of(row, names) for row in result.select(names).to_pylist()]
    assert sorted(map(repr, keys)) == sorted(map(repr, groups))
    for key, row in zip(keys, result.select(range(len(names), len(names) + len(calls))).to_pylist(), strict=True):
        rows = groups[key]
        for call in calls:
            values = [r.get(call[:-1].split("(")[1]) for r in rows]
            assert canonical(row[call], values) == canonical(expected(call, rows), values), (call, key)
    counts = [int(result.schema.metadata[name]) for name in (b"blocks_by_metadata", b"blocks_read")]
    assert sum(counts) == blocks


def test_groups_of_partitions_and_of_blocks_with_one_value_cost_no_reading(tmp_path: Path) -> None:
    days = [dt.date(2026, 1, 1 + i // 20) for i in range(60)]
    for country in ("de", "fr"):
        rows = {"day": days, "n": range(60), "mixed": [i % 7 for i in range(60)]}
        write_file(tmp_path / f"country={country}" / "a.parquet", rows, row_group_size=10)
    table = sec.open_table(str(tmp_path))
    result = sec.aggregate(table, "count(*) AS rows, max(n) AS last", "n < 40", group_by="country, day")
    assert result.to_pylist() == [
        {"country": country, "day": dt.date(2026, 1, day), "rows": 20, "last": 20 * day - 1}
        for country in ("de", "fr")
        for day in (1, 2)
    ]
    assert result.schema.metadata[b"blocks_read"] == b"0"
    mixed = sec.aggregate(table, "count(*)", group_by=["mixed"])
    assert mixed["count(*)"].to_pylist() == [18, 18, 18, 18, 16, 16, 16]
    assert mixed.schema.metadata[b"blocks_read"] == b"12"
    assert sec.aggregate(table, "count(*)", "n > 100", group_by="day").num_rows == 0


@pytest.mark.parametrize("text", ["n + 1", "", "country DESC", "1"])
def test_only_columns_are_grouped_by(tmp_path: Path, text: str) -> None:
    write_file(tmp_path / "a.parquet", {"n": [1], "country": ["de"]})
    table = sec.open_table(str(tmp_path))
    with pytest.raises(InvalidAggregate, match="group by"):
        sec.aggregate(table, "count(*)", group_by=text)
    with pytest.raises(UnknownColumn, match="nn"):
        sec.aggregate(table, "count(*)", group_by="nn")


@pytest.mark.parametrize("name", list(TYPES))
@given(st.data())
def test_a_key_tells_its_value(name: str, data: st.DataObject) -> None:
    value = data.draw(POOLS[name])
    type_ = TYPES[name]
    scalar = scalar_of(key_of(value, type_), type_)
    assert scalar.type == type_
    assert scalar.as_py() == value or (value != value and scalar.as_py() != scalar.as_py())


EXTREMES = "count(x), min(x), max(x)"


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        (pa.array([-0.0, -0.0]), "-0.0", "-0.0"),
        (pa.array([0.0, None]), "0.0", "0.0"),
        (pa.array([math.nan, None]), "nan", "nan"),
        (pa.array([math.nan, 1.0]), "1.0", "nan"),
        (pa.array([math.nan, 1.0], pa.float32()), "1.0", "nan"),
        (pa.array([-(2**63), 2**63 - 1]), str(-(2**63)), str(2**63 - 1)),
        (pa.array([b"\xff" * 66, b"\xff" * 65]), str(b"\xff" * 65), str(b"\xff" * 66)),
        (pa.array([LONG + "a", LONG + "\U0010ffff"]), LONG + "a", LONG + "\U0010ffff"),
        (pa.array([None, None], pa.string()), "None", "None"),
    ],
)
def test_values_that_bounds_do_not_tell(
    write_table: WriteTable, indexed: bool, values: pa.Array, least: str, greatest: str
) -> None:
    table = sec.open_table(str(write_table({"a.parquet": {"x": values}})))
    if indexed:
        index_here(table, BuildOptions())
    answer = sec.aggregate(table, EXTREMES, strict=True)
    assert [str(column[0].as_py()) for column in answer.columns] == [str(len(values.drop_null())), least, greatest]


def test_a_column_without_bounds(write_table: WriteTable) -> None:
    days = pa.array([dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (2, 1, 3)], pa.timestamp("us", "UTC"))
    for options in ({"use_deprecated_int96_timestamps": True}, {"write_statistics": False}):
        table = sec.open_table(str(write_table({"a.parquet": {"x": days}}, **options)))
        assert list(sec.aggregate(table, EXTREMES).to_pylist()[0].values()) == [3, days[1].as_py(), days[2].as_py()]


# ---- what is read ----------------------------------------------------------------------------------------------------


def blocks_read(table: Any, calls: str, where: str | None = None, **options: Any) -> int:
    return int(sec.aggregate(table, calls, where, **options).schema.metadata[b"blocks_read"])


@pytest.fixture
def events(write_table: WriteTable) -> Any:
    """Ten blocks of a hundred rows."""
    n = 1000
    data = {
        "i": range(n),
        "some": [None if i % 3 else i for i in range(n)],
        "s": [f"{i:05d}" for i in range(n)],
        "f": pa.array([math.nan if i % 400 == 399 else float(i) for i in range(n)]),
        "zero": [0.0] * n,
        "st": [{"x": i} if i % 2 else None for i in range(n)],
    }
    return sec.open_table(str(write_table({"a.parquet": data}, row_group_size=100)))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("calls", "where", "most"),
    [
        ("count(*), min(i), max(i), count(i), count(some), min(some)", None, 0),
        ("count(*), min(i), max(i)", "i >= 300", 0),
        ("count(*), min(i), max(i)", "i >= 250", 1),
        ("min(i), max(i)", "i <> 555", 0),
        ("count(st.x), max(st.x)", None, 0),
        ("count(st)", None, 10),
        ("max(s)", None, 1),
        ("min(s), max(s)", None, 2),
        ("min(f)", "i >= 1", 1),
        ("min(zero)", None, 1),
        ("count(*)", "i < 0", 0),
    ],
)
def test_only_blocks_in_doubt_are_read(events: Any, indexed: bool, calls: str, where: str | None, most: int) -> None:
    if indexed:
        index_here(events, BuildOptions())
    assert blocks_read(events, calls, where) <= most


def test_counts_of_nan_settle_the_greatest_float(events: Any) -> None:
    """Without an index any block may hold NaN, and the first that does ends the search; with one it is known which."""
    assert blocks_read(events, "max(f)", "i < 300") == 3
    index_here(events, BuildOptions())
    assert blocks_read(events, "max(f)", "i < 300") == 0
    assert blocks_read(events, "max(f)") == 1


def test_a_bound_that_is_said_to_be_loose_is_not_taken_for_a_value(
    write_table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from secateur.io.parquet import column_chunk

    root = write_table({"a.parquet": {"i": [1, 2, 3]}})
    real = column_chunk._bounds

    def loose(statistics: Any, *rest: Any) -> Any:
        return real({**statistics, 5: (9).to_bytes(8, "little"), 7: False}, *rest)

    monkeypatch.setattr(column_chunk, "_bounds", loose)
    table = sec.open_table(str(root))
    result = sec.aggregate(table, "max(i)")
    assert result.to_pylist() == [{"max(i)": 3}]
    assert result.schema.metadata == {b"blocks_by_metadata": b"0", b"blocks_read": b"1"}
    assert blocks_read(table, "min(i)") == 0


def test_different_values_of_blocks_that_have_one_are_not_read(tmp_path: Path) -> None:
    days = [dt.date(2026, 1, 1 + i // 20) if i // 20 != 1 else None for i in range(60)]
    for country in ("de", "fr"):
        rows = {"day": days, "mixed": [i // 7 for i in range(60)], "zero": [-0.0, 0.0, math.nan] * 20}
        write_file(tmp_path / f"country={country}" / "a.parquet", rows, row_group_size=10)
    table = sec.open_table(str(tmp_path))
    asked = "count(DISTINCT country) AS c, count(DISTINCT day), COUNT(distinct day) AS d, max(day)"
    result = sec.aggregate(table, asked)
    assert [column[0].as_py() for column in result.columns] == [2, 2, 2, dt.date(2026, 1, 3)]
    assert result.schema.metadata[b"blocks_read"] == b"0"
    assert not result.schema.field("c").nullable
    mixed = sec.aggregate(table, "count(DISTINCT mixed), count(DISTINCT zero), count(*)", "mixed >= 1")
    assert list(mixed.to_pylist()[0].values()) == [8, 2, 106]
    assert mixed.schema.metadata[b"blocks_read"] == b"12"
    by = sec.aggregate(table, "count(DISTINCT mixed) AS n", group_by="country, day")
    assert by["n"].to_pylist() == [4, 3, 4] * 2
    assert sec.aggregate(table, "count(DISTINCT mixed) AS n", "mixed > 100").to_pylist() == [{"n": 0}]


@given(st.lists(st.lists(st.none() | st.integers(0, 30), max_size=20), max_size=12))
def test_different_values_of_parts_are_those_of_the_whole(parts: list[list[int | None]]) -> None:
    whole = DistinctValues()
    for part in parts:
        whole = whole.joined(DistinctValues.of(pa.array(part, pa.int64())))
    assert whole.count == len({value for part in parts for value in part} - {None})


def test_sums_that_are_kept_are_not_read(events: Any) -> None:
    """C59: a block is added once, and only one that matches whole counts by its sum."""
    assert blocks_read(events, "sum(i)") == 10
    sec.build_index(events, sums=["i", "st.x"])
    asked = "sum(i) AS s, avg(i) AS a, count(*) AS n, sum(st.x) AS x, max(i) AS m"
    for where, read in (("true", 0), ("i < 250", 1), ("i % 2 = 0", 10), ("i < 0", 0)):
        rows = [i for i in range(1000) if where in ("true",) or eval(where.replace(" = ", " == "))]
        odd = [i for i in rows if i % 2]
        total, mean = (sum(rows), sum(rows) / len(rows)) if rows else (None, None)
        known = {"s": total, "a": mean, "n": len(rows), "x": sum(odd) if odd else None, "m": max(rows, default=None)}
        assert sec.aggregate(events, asked, where).to_pylist() == [known]
        assert blocks_read(events, asked, where) == read
        assert sec.aggregate(events, "sum(i) AS s", where).to_pylist() == [{"s": total}]  # no count asks for blocks
        assert sec.aggregate(events, "avg(i) AS a", where).to_pylist() == [{"a": mean}]
    assert blocks_read(events, "sum(some)") == 10
    sec.refresh_index(events, sums=["some"])
    assert sec.aggregate(events, "sum(some)").to_pylist() == [{"sum(some)": sum(range(0, 1000, 3))}]
    assert blocks_read(events, "sum(some), avg(some), sum(i)") == 0


def test_sums_that_overflow(write_table: WriteTable) -> None:
    digits = Decimal("9" * 38)
    wide = pa.array([digits, digits], pa.decimal128(38, 0))
    table = sec.open_table(str(write_table({"a.parquet": {"i": [2**63 - 1, 1], "w": wide, "j": [2**63 - 1, -1]}})))
    for indexed in (False, True):
        if indexed:
            sec.build_index(table, sums=["i", "w", "j"])
        assert sec.aggregate(table, "sum(j), avg(i)").to_pylist() == [{"sum(j)": 2**63 - 2, "avg(i)": 2.0**62}]
        for call in ("sum(i)", "sum(w)", "avg(w)"):
            with pytest.raises(EvaluationError, match="overflows"):
                sec.aggregate(table, call)


def test_sums_that_cannot_be_kept(events: Any) -> None:
    for name, words in (("f", "double"), ("s", "string"), ("st", "struct")):
        with pytest.raises(InvalidOption, match=words):
            sec.build_index(events, sums=[name])
    with pytest.raises(UnknownColumn):
        sec.build_index(events, sums=["ii"])


# ---- what is asked ---------------------------------------------------------------------------------------------------


def test_columns_are_named_as_written(events: Any) -> None:
    result = sec.aggregate(events, "COUNT( * ), max(`i`) AS last, min(ST.x) first, count(1), Max(i)")
    assert result.column_names == ["COUNT( * )", "last", "first", "count(1)", "Max(i)"]
    assert [column[0].as_py() for column in result.columns] == [1000, 999, 1, 1000, 999]


def test_an_expression_says_which_rows(events: Any) -> None:
    assert sec.aggregate(events, "count(*)", sec.col("i") < 10).to_pylist() == [{"count(*)": 10}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "sum(i + 1)",
            ["'sum(i + 1)'", "min(column), max(column), sum(column) and avg(column)"],
        ),
        ("sum(DISTINCT i)", ["'sum(DISTINCT i)'"]),
        ("sum(*)", ["'sum(*)'"]),
        ("sum(f)", ["f", "double", "integers and decimals"]),
        ("avg(s)", ["s", "string", "integers and decimals"]),
        ("count(*), min(i + 1)", ["'min(i + 1)'"]),
        ("count(DISTINCT i, s)", ["'count(DISTINCT i, s)'"]),
        ("min(DISTINCT i)", ["'min(DISTINCT i)'"]),
        ("count(DISTINCT *)", ["'count(DISTINCT *)'"]),
        ("count(DISTINCT st)", ["st", "struct"]),
        ("count(i, s)", ["'count(i, s)'"]),
        ("max(i) FILTER (WHERE i > 1)", ["'max(i) FILTER (WHERE i > 1)'"]),
        ("max(i) OVER ()", ["'max(i) OVER ()'"]),
        ("i", ["'i'"]),
        ("min(*)", ["'min(*)'"]),
        ("count()", ["'count()'"]),
        ("", ["''"]),
        ("count(*),", ["'count(*),'"]),
        ("max(i", ["'max(i'"]),
        ("max(st)", ["st", "struct"]),
    ],
)
def test_what_is_not_answered_is_named(events: Any, text: str, words: list[str]) -> None:
    with pytest.raises(InvalidAggregate) as caught:
        sec.aggregate(events, text)
    assert all(word in str(caught.value) for word in words)


def test_mistakes_in_names_and_rows_are_told(events: Any) -> None:
    with pytest.raises(UnknownColumn, match="some"):
        sec.aggregate(events, "max(som)")
    with pytest.raises(UnsupportedPredicate):
        sec.aggregate(events, "count(*)", "hash(i) = 1")
    with pytest.raises(EvaluationError):
        sec.aggregate(events, "count(*)", "1 / i > 1")


def test_a_table_of_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    result = sec.aggregate(sec.open_table(str(tmp_path)), "count(*), count(i), max(i)")
    assert [column[0].as_py() for column in result.columns] == [0, 0, None]
