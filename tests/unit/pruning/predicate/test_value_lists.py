"""Lists of values beside IN: an array means what its values mean as literals, one by one, and is read at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncomparableLiteral, InvalidPredicate
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Within
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.nodes import Column, In, Literal, Predicate
from secateur.pruning.predicate.python_values import literal
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.predicate.value_lists import FEW, ValueList, listed
from secateur.pruning.rows.truth import truth
from tests.support.checks.bound_form import bound_form
from tests.support.checks.oracle import ask
from tests.support.drawn.strategies import BINARIES, DAYS, MOMENTS, TEXTS
from tests.support.profiles import examples, takes_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
COLUMNS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.decimal128(9, 2), pa.decimal128(18, 0), pa.decimal128(18, 18), pa.decimal128(38, 10), pa.decimal128(38, 0)),
    *(pa.string(), pa.binary(), pa.date32(), INSTANT, LOCAL, pa.list_(pa.int64())),
]
ZONES = ["UTC", "Europe/Paris", "+05:30", "America/New_York", "Etc/GMT+3"]

# ---- arrays of every type --------------------------------------------------------------------------------------------

FLOATS = [0.0, -0.0, 0.5, 1.0, -3.0, 2.0**53, 2.0**53 - 1, -(2.0**60), 2.0**63, -(2.0**63), 1e300, float("nan")]
floats = st.sampled_from([*FLOATS, float("inf"), float("-inf")]) | st.floats()


def integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    ends = st.sampled_from([least, least + 1, 0, 1, greatest - 1, greatest])
    return ends | st.integers(max(least, -300), min(greatest, 300)) | st.integers(least, greatest)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    unscaled = st.sampled_from([0, 1, 10**precision - 1, 1 - 10**precision, 10**scale, 150]) | st.integers(-999, 999)
    return unscaled.filter(lambda n: abs(n) < 10**precision).map(lambda n: Decimal((n < 0, digits(n), -scale)))


def digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


moments = st.sampled_from([*MOMENTS, dt.datetime.min, dt.datetime.max]) | st.datetimes()
whole_seconds = moments.map(lambda moment: moment.replace(microsecond=0))
days = st.sampled_from([*DAYS, dt.date.min, dt.date.max]) | st.dates()
texts = st.sampled_from(["1", "2024-01-01", "true", "a", "a\0", "a\0\0"]) | st.text(max_size=4)
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((getattr(pa, f"int{bits}")(), integers(bits)) for bits in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{bits}")(), integers(bits, signed=False)) for bits in (8, 16, 32, 64)),
    (pa.float64(), floats),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    *((pa.decimal128(p, s), decimals(p, s)) for p, s in ((9, 2), (18, 0), (18, 18), (20, 2), (38, 10), (38, 0))),
    *((type_, texts) for type_ in (pa.string(), pa.large_string(), pa.string_view())),
    *((type_, st.sampled_from(BINARIES) | st.binary(max_size=3)) for type_ in (pa.binary(), pa.large_binary())),
    (pa.date32(), days),
    (pa.date64(), days),
    (LOCAL, moments),
    (pa.timestamp("s"), whole_seconds),
    (pa.timestamp("ms"), whole_seconds),
    (INSTANT, moments),
    (pa.timestamp("ns", "UTC"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    (pa.timestamp("us", "Europe/Paris"), st.sampled_from(MOMENTS[3:-1])),
    (pa.null(), st.none()),
]


@st.composite
def arrays(draw: st.DrawFn, beside: pa.DataType | None = None) -> pa.Array:
    """Arrays of any type, mostly of those that compare with a column."""
    related = [(type_, values) for type_, values in VALUES if family(type_) == family(beside or type_)] or VALUES
    type_, values = draw(st.sampled_from(related if draw(st.integers(0, 4)) else VALUES))
    drawn = draw(st.lists(values | st.none() if draw(st.booleans()) else values, max_size=5))
    return pa.array(drawn, type_)


def family(type_: pa.DataType) -> str:
    name = str(type_)
    return next((part for part in ("time", "date", "bin", "str", "bool") if part in name), "number").replace(
        "date", "time"
    )


def long(array: pa.Array) -> pa.Array:
    """The same values often enough not to be kept as literals."""
    return pa.concat_arrays([array] * (FEW + 1)) if len(array) else array


def python_values(array: pa.Array) -> list[object]:
    values = array.cast(pa.timestamp("us", array.type.tz)) if pa.types.is_timestamp(array.type) else array
    return list(values.to_pylist())


def in_utc(value: object) -> object:
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


def shown(literals: Iterable[Literal]) -> list[str]:
    """NaN included, which does not equal itself."""
    return list(map(str, literals))


def asked(predicate: Predicate, type_: pa.DataType, zone: str) -> object:
    """What a predicate on the column x asks for, or that it is refused."""
    try:
        bound = bind(predicate, pa.schema([("x", type_)]), session_time_zone=zone)
    except IncomparableLiteral:
        return "refused"
    sets = [(leaf.operand, leaf.ranges, leaf.fails) for leaf in leaves(bound) if isinstance(leaf, Within)]
    return bound_form(bound), bound_form(rewrite(bound)), sets


@pytest.mark.parametrize("column", COLUMNS, ids=str)
@examples(150)
@given(st.data(), st.sampled_from(ZONES), st.booleans())
def test_an_array_asks_for_what_its_literals_ask_for(
    column: pa.DataType, data: st.DataObject, zone: str, negated: bool
) -> None:
    array = data.draw(arrays(column))
    given_array = In(Column(("x",)), listed(long(array)))
    literals = In(Column(("x",)), tuple(map(literal, python_values(array))))
    assert isinstance(given_array.literals, ValueList) or not len(array) or pa.types.is_uint64(array.type)
    predicates = (~given_array, ~literals) if negated else (given_array, literals)
    by_array, expected = (asked(predicate, column, zone) for predicate in predicates)
    assert by_array == expected


@given(arrays())
def test_the_literals_of_an_array_are_those_of_its_values(array: pa.Array) -> None:
    expected = [str(literal(in_utc(value))) for value in python_values(array)]
    assert shown(listed(array)) == expected
    assert shown(listed(long(array))) == expected * (FEW + 1 if expected else 0)
    assert shown(listed(pa.chunked_array([array, array[1:], array[:0]]))) == [*expected, *expected[1:]]


@given(st.lists(st.sampled_from(TEXTS) | st.none(), max_size=9))
def test_dictionaries_are_their_values(values: list[str | None]) -> None:
    array = long(pa.array(values, pa.string()))
    assert listed(array.dictionary_encode()) == listed(array)


# ---- numpy -----------------------------------------------------------------------------------------------------------

DTYPES = ["i1", "i2", "i4", "i8", ">i4", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", "U3", "S3"]
TIMES = ["M8[Y]", "M8[M]", "M8[W]", "M8[D]", "M8[h]", "M8[m]", "M8[s]", "M8[ms]", "M8[us]", ">M8[us]", "M8[ns]"]


@given(st.sampled_from(DTYPES), st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=5))
def test_numpy_arrays_are_their_values(dtype: str, drawn: list[bytes]) -> None:
    if dtype in ("U3", "S3", "?"):
        values = np.array([data[:3].decode("latin-1") if dtype == "U3" else data[:3] for data in drawn], dtype)
    else:
        size = np.dtype(dtype).itemsize
        values = np.frombuffer(b"".join(data[:size] for data in drawn), dtype)
    expected = [str(literal(value)) for value in values]
    assert shown(listed(values)) == expected
    assert shown(listed(np.tile(values, 99))) == expected * 99
    assert shown(listed(np.repeat(values, 2)[::2])) == expected
    assert shown(listed(values.astype(object))) == expected
    assert shown(listed(list(values) * 99)) == expected * 99


@given(st.sampled_from(TIMES), st.lists(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), max_size=4))
def test_numpy_times_are_dates_or_times_without_zone(dtype: str, moments: list[dt.datetime]) -> None:
    values = np.array([*moments, "NaT"], "M8[us]").astype(dtype)
    is_day = dtype[-2] in "YMWD"
    python = values.astype("M8[D]" if is_day else "M8[us]").tolist()
    assert list(listed(values)) == [literal(value) for value in python]
    assert listed(values)[-1] == Literal(None, "null")


def test_masked_values_are_null() -> None:
    values = np.ma.array(np.arange(3 * FEW), mask=[False, True, False] * FEW)  # type: ignore[no-untyped-call]
    literals = listed(values)
    assert isinstance(literals, ValueList)
    assert {entry.value for entry in literals} == {None, *(i for i in range(3 * FEW) if i % 3 != 1)}
    assert listed(np.ma.array([1, 2], mask=[True, False])) == (  # type: ignore[no-untyped-call]
        Literal(2, "int"),
        Literal(None, "null"),
    )


def test_an_array_that_changes_later_changes_nothing() -> None:
    for values in (np.arange(1000), np.arange(1000).astype("M8[us]"), np.arange(1000).astype("M8[D]"), np.ones(99)):
        predicate = sec.col("x").isin(values)
        text = str(predicate)
        values[:] = values[0]
        assert str(predicate) == text


# ---- Python values ---------------------------------------------------------------------------------------------------

PLAIN: list[st.SearchStrategy[Any]] = [
    integers(70),
    integers(64),
    floats,
    st.booleans(),
    st.text(max_size=3) | st.just("\ud800"),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([dt.UTC])),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-999, max_value=999),
]


@given(
    st.lists(st.sampled_from(PLAIN), min_size=1, max_size=2).flatmap(
        lambda kinds: st.lists(st.one_of(*kinds, st.none()), max_size=9)
    )
)
def test_python_values_are_literals_one_by_one(values: list[object]) -> None:
    expected = shown(map(literal, values))
    assert shown(listed(values)) == expected
    assert shown(listed(values * FEW)) == expected * FEW
    assert shown(listed(iter(values))) == expected


def test_a_long_list_of_one_type_is_kept_as_an_array() -> None:
    for values in ([1, None], [1.5], ["a"], [b"a"], [True], [dt.date(2024, 1, 1)], [dt.datetime(2024, 1, 1)]):
        assert isinstance(listed(values * 100), ValueList), values
        assert isinstance(listed(values), tuple), values
    for mixed in ([1, 1.5], [1, True], [2**63], ["\ud800"], [dt.datetime(2024, 1, 1), dt.datetime.now(dt.UTC)]):
        assert isinstance(listed(mixed * 100), tuple), mixed


def test_an_instant_that_comes_twice_is_the_one_that_its_offset_says() -> None:
    """2:30 was twice on that day in Paris: at 0:30 and, with `fold`, at 1:30 of UTC."""
    paris = ZoneInfo("Europe/Paris")
    for fold, hour in ((0, 0), (1, 1)):
        moment = dt.datetime(2024, 10, 27, 2, 30, tzinfo=paris, fold=fold)
        expected = asked(sec.col("x") == dt.datetime(2024, 10, 27, hour, 30, tzinfo=dt.UTC), INSTANT, "UTC")
        for predicate in (sec.col("x") == moment, sec.col("x").isin([moment]), sec.col("x").isin([moment] * 100)):
            assert asked(predicate, INSTANT, "UTC") == expected
            assert asked(parse(str(predicate)), INSTANT, "UTC") == expected


@pytest.mark.parametrize(
    "values",
    [
        np.array([[1, 2]]),
        np.array([1j]),
        np.array([1], "m8[s]"),
        np.array([1], np.longdouble),
        np.array(["2024-01-01"], "M8[25s]"),
        np.array([object()]),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("s")),
        pa.array([[1]]),
        [1, object()] * 100,
    ],
    ids=lambda values: str(getattr(values, "dtype", getattr(values, "type", "list"))),
)
def test_other_values_are_no_literals(values: Any) -> None:
    with pytest.raises(TypeError, match=r"not (a )?literal|one dimension"):
        sec.col("x").isin(values)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([2**63 - 1], pa.int64()).cast(LOCAL),
        pa.array([1001], pa.int64()).cast(pa.timestamp("ns")),
        pa.array([b"\xff"]).view(pa.string()),
        np.array([2**62], "M8[D]"),
        np.array([2**30], "M8[D]"),
        np.array([2**62], "M8[s]"),
        np.array([1001], "M8[ns]"),
        np.array([-70_000], "M8[Y]"),
    ],
    ids=lambda values: str(getattr(values, "dtype", getattr(values, "type", None))),
)
def test_values_that_sql_has_no_literal_for_are_refused(values: Any) -> None:
    with pytest.raises(InvalidPredicate):
        sec.col("x").isin(values)


# ---- rows ------------------------------------------------------------------------------------------------------------

BIG = np.arange(-100, 200_000, 3)


def test_values_beyond_the_column_match_nothing() -> None:
    batch = pa.record_batch({"x": pa.array([-128, 0, 2, 127, None], pa.int8())})
    outcomes = truth(bind(sec.col("x").isin(BIG), batch.schema), batch)
    assert outcomes.tolist() == [FALSE, FALSE, TRUE, FALSE, NULL]


def test_null_in_a_long_list() -> None:
    """``x NOT IN (..., NULL)`` is TRUE nowhere."""
    batch = pa.record_batch({"x": pa.array([2, 3, None])})
    with_null = pa.concat_arrays([pa.array(BIG), pa.nulls(1, pa.int64())])
    for values, inside, outside in ((BIG, TRUE, FALSE), (with_null, TRUE, NULL)):
        within = sec.col("x").isin(values)
        assert truth(bind(within, batch.schema), batch).tolist() == [inside, outside, NULL]
        opposite = {TRUE: FALSE, FALSE: TRUE, NULL: NULL}[outside]
        assert truth(bind(~within, batch.schema), batch).tolist() == [FALSE, opposite, NULL]


@pytest.mark.parametrize("values", [np.array([]), pa.array([], pa.string()), [], np.array([], "M8[s]")], ids=str)
def test_an_empty_list_is_false_on_null_too(values: Any) -> None:
    batch = pa.record_batch({"x": pa.array([1, None])})
    assert str(sec.col("x").isin(values)) == "FALSE"
    assert truth(bind(sec.col("x").isin(values), batch.schema), batch).tolist() == [FALSE, FALSE]


def test_nan_and_both_zeros() -> None:
    batch = pa.record_batch({"x": [0.0, -0.0, float("nan"), 1.0]})
    for listed_float in (float("nan"), -0.0, 0.0):
        outcomes = truth(bind(sec.col("x").isin(np.full(100, listed_float)), batch.schema), batch).tolist()
        expected = [FALSE, FALSE, TRUE, FALSE] if listed_float != listed_float else [TRUE, TRUE, FALSE, FALSE]
        assert outcomes == expected


def test_spark_reads_the_text_of_lists_as_they_are_meant(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    n = 1000
    rows = pa.table(
        {
            "rid": pa.array(range(n)),
            "small": pa.array([i % 100 for i in range(n)], pa.int8()),
            "x": pa.array([float("nan") if i % 7 == 0 else i / 4 for i in range(n)]),
            "money": pa.array([Decimal(i) / 4 for i in range(n)], pa.decimal128(12, 2)),
            "s": [None if i % 5 == 0 else f"it's \\ {i}" for i in range(n)],
            "day": pa.array(range(19_600, 19_600 + n), pa.int32()).cast(pa.date32()),
            "ts": pa.array([1_700_000_000_000_000 + i * 3_600_000_000 for i in range(n)]).cast(INSTANT),
            "local": pa.array([1_700_000_000_000_000 + i * 3_600_000_000 for i in range(n)]).cast(LOCAL),
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    (batch,) = rows.to_batches()
    some = list(range(0, n, 13))
    lists = {
        "rid": [np.array(some), rows["rid"].take(some), np.array(some, float), np.array([2**40, *some])],
        "small": [np.array(some), np.array(some, np.uint64)],
        "x": [rows["x"].take(some), np.array(some), rows["x"].take(some).cast(pa.float32())],
        "money": [rows["money"].take(some), np.array(some)],
        "s": [rows["s"].take(some), np.array([f"it's \\ {i}" for i in some])],
        "day": [rows["day"].take(some), rows["day"].take(some).to_numpy(), rows["day"].take(some).cast(LOCAL)],
        "ts": [rows["ts"].take(some), rows["local"].take(some), rows["day"].take(some)],
        "local": [rows["local"].take(some), rows["local"].take(some).to_numpy(), rows["day"].take(some)],
    }
    predicates = [sec.col(name).isin(values) for name in lists for values in lists[name]]
    asked = {str(predicate): predicate for predicate in predicates}
    answers = ask(spark.read.parquet(str(tmp_path)), list(asked)).truth
    for text, predicate in asked.items():
        assert isinstance(predicate, In)
        assert isinstance(predicate.literals, ValueList)
        bound = bind(predicate, rows.schema, session_time_zone="Europe/Paris")
        expected = [{True: TRUE, False: FALSE, None: NULL}[answers[text][rid]] for rid in range(n)]
        assert truth(bound, batch).tolist() == expected, brief(predicate)


# ---- text ------------------------------------------------------------------------------------------------------------


@takes_seconds
def test_the_text_of_a_long_list_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": np.arange(1000)}), tmp_path / "rows.parquet", row_group_size=100)
    table = sec.open_table(str(tmp_path))
    plan = sec.prune(table, sec.col("k").isin(BIG) & (sec.col("k") > 5))
    assert "sql" not in vars(plan)
    assert plan.report.predicate == "(`k` IN (-100, -97, -94, ... 66,697 more) AND `k` > 5)"
    assert "66,697 more" in plan.explain()
    assert "66,697 more" in repr(plan)
    assert plan.sql == f"(`k` IN ({', '.join(map(str, BIG.tolist()))}) AND `k` > 5)"
    assert plan.count() == 331
    left = sec.prune(table, sec.col("k").isin(np.array(BIG, str)))
    assert left.residual is None or "IN ('-100'" in left.residual


def test_only_long_lists_are_cut_short() -> None:
    short, long_list = sec.col("a").isin(range(20)), sec.col("b").isin(range(21))
    assert brief(short) == str(short)
    assert brief(~(short | long_list)) == f"(NOT ({short} OR `b` IN (0, 1, 2, ... 18 more)))"
    chosen = sec.when(long_list, 1).otherwise(2) == 1
    assert brief(chosen) == "CASE WHEN `b` IN (0, 1, 2, ... 18 more) THEN 1 ELSE 2 END = 1"
    assert brief("a IN (1)") == "a IN (1)"


def test_what_is_not_used_for_pruning_is_named_in_short() -> None:
    zone_maps = pa.table({"row_count": [1], "s.lower": ["a"], "s.upper": ["b"]})
    with pytest.raises(IncomparableLiteral, match=r"more"):
        sec.evaluate(((sec.call_function("length", sec.col("s")) + 1).isin(np.array([True] * 100))), zone_maps)


@pytest.mark.parametrize(
    "values", [BIG[:500], -(2**40) - BIG[:100], [f"it's {i}" for i in range(100)]], ids=["int", "bigint", "string"]
)
def test_text_arrays_and_lists_give_one_tree(values: Any) -> None:
    predicate = sec.col("x").isin(values)
    assert isinstance(predicate, In)
    assert isinstance(predicate.literals, ValueList)
    assert sec.col("x").isin(list(values)) == predicate
    assert hash(sec.col("x").isin(list(values))) == hash(predicate)
    assert parse(str(predicate)) == predicate
    assert parse(str(predicate)) != sec.col("x").isin(values[1:])
    typed = parse("x IN (" + ", ".join(f"{i}L" for i in range(100)) + ", NULL)")
    assert isinstance(typed, In)
    assert isinstance(typed.literals, tuple)


def test_a_value_list_is_a_sequence() -> None:
    values = listed(pa.array([*range(100), None]))
    assert values[0] == Literal(0, "int")
    assert values[-1] == Literal(None, "null")
    assert list(values[98:]) == [Literal(98, "int"), Literal(99, "int"), Literal(None, "null")]
    assert Literal(7, "int") in values
    assert Literal(100, "int") not in values
