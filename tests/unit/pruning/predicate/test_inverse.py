"""Conditions on functions of a column become conditions on the column, or are evaluated: the same rows as Spark."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.functions.text import first_characters
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.interval import Interval, key_range, points
from secateur.pruning.node_outcomes import ColumnSubset, interval_of
from secateur.pruning.predicate.binding import bind as binding
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Field, Operand, Within
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.inverse import pull_back
from secateur.pruning.predicate.nodes import IsNull
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from secateur.values.conversion import keys_of
from secateur.values.key import Key, float_key, successor
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of
from tests.support.checks.bound_form import bound_form
from tests.support.checks.oracle import ask
from tests.support.profiles import examples

SCHEMA = pa.schema(
    [
        ("ts", INSTANT),
        ("tn", LOCAL),
        ("d", pa.date32()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("w", pa.decimal128(30, 4)),
        ("s", pa.string()),
    ]
)
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "+05:30"]
OUTCOME = {True: TRUE, False: FALSE, None: NULL}
PREDICATES = [
    "CAST(ts AS DATE) = '2021-03-28'",
    "to_date(ts) BETWEEN '2021-03-28' AND '2021-10-31'",
    "date(ts) IN ('2020-02-29', '2021-10-31', NULL)",
    "NOT (to_date(ts) = DATE '2021-03-28')",
    "to_date(ts) <=> DATE '2021-03-28'",
    "year(ts) = 2021",
    "year(ts) > 2021 OR year(ts) IS NULL",
    "year(d) IN (1999, 2021)",
    "year(tn) <> 2021",
    "year(d) >= 2020.5",
    "to_date(tn) < '2021-03-28'",
    "to_date(d) = '2021-03-28'",
    "date_trunc('MONTH', ts) = TIMESTAMP '2021-03-01 00:00:00'",
    "date_trunc('day', ts) >= '2021-03-28'",
    "date_trunc('WEEK', ts) = TIMESTAMP '2021-03-29 00:00:00'",
    "date_trunc('quarter', ts) < TIMESTAMP '2021-04-01 00:00:00'",
    "trunc(d, 'MM') = '2021-03-01'",
    "trunc(d, 'year') = '2021-01-01'",
    "trunc(d, 'MM') = '2021-03-02'",
    "2021 <= year(ts)",
    "year(to_date(ts)) = 2021",
    "year(ts) < 20000",
    "date_trunc('HOUR', ts) = TIMESTAMP '2021-03-28 01:00:00'",
    "date_trunc('HOUR', ts) >= TIMESTAMP '2021-10-31 02:00:00'",
    "date_trunc('DAY', tn) = '2021-03-28'",
    "TRY_CAST(ts AS DATE) = '2021-03-28'",
    "quarter(ts) = 1",
    "month(ts) = 3",
    "month(d) IN (3, 10)",
    "day(ts) = 28",
    "day(tn) > 30",
    "hour(ts) = 2",
    "hour(tn) BETWEEN 1 AND 3",
    "minute(ts) = 30",
    "dayofweek(d) = 1",
    "last_day(ts) = '2021-03-31'",
    "datediff(ts, DATE '2021-03-27') = 1",
    "datediff(DATE '2021-03-29', d) <= 1",
    "date_add(ts, 4) = '2021-04-01'",
    "date_sub(d, 28) >= '2021-03-01'",
    "add_months(d, 1) = '2021-04-28'",
    "unix_timestamp(ts) >= 1616893200",
    "unix_timestamp(d) < 1616893200",
    "unix_millis(ts) = 1616893200000",
    "CAST(ts AS BIGINT) > 1616893199",
    "CAST(ts AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '2021-03-28 03:00:00'",
    "CAST(tn AS TIMESTAMP) = TIMESTAMP '2021-10-31 02:30:00'",
    "CAST(d AS TIMESTAMP) = TIMESTAMP '2021-03-28 00:00:00'",
    "CAST(d AS STRING) < '2021-03-28'",
    "CAST(ts AS STRING) >= '2021-03-28 02'",
    "from_unixtime(l) >= '2021-03-28 03'",
    "timestamp_seconds(l) < TIMESTAMP '2021-03-28 03:00:00'",
    "tn < TIMESTAMP '2021-03-28 02:30:00'",
    "ts > tn",
    "i + 5 > 10",
    "10 - i * 3 <= 4",
    "(i + 1) / 2 = 2.5",
    "-i < 3",
    "CAST(i AS DOUBLE) >= 3.5D",
    "CAST(x AS INT) = 2",
    "floor(x) = -1",
    "x * 2D > 3D",
    "round(m, 1) = 1.5",
    "CAST(m AS INT) = 0",
    "m / 3 >= 0.5",
    "w * 2 = 3",
    "left(s, 2) = 'ab'",
]


def moments() -> list[dt.datetime | None]:
    """Instants around the ends of days, months and years, and around changes of clocks, in several zones."""
    around = [dt.datetime(2021, 3, 28), dt.datetime(2021, 10, 31), dt.datetime(2018, 2, 18), dt.datetime(2018, 11, 4)]
    around += [dt.datetime(y, m, 1) for y in (1999, 2020, 2021, 2022) for m in (1, 3, 4)] + [dt.datetime(2020, 2, 29)]
    offsets = [dt.timedelta(minutes=m) for m in range(-15 * 60, 15 * 60 + 1, 30)]
    steps = (dt.timedelta(0), -dt.timedelta(microseconds=1))
    return [None, *(base + offset + step for base in around for offset in offsets for step in steps)]


def cycled(values: list[object], n: int, type_: pa.DataType) -> pa.Array:
    return pa.array((values * (n // len(values) + 1))[:n], type_)


def table() -> pa.Table:
    """Many moments beside a few numbers and texts."""
    times = moments()
    n = len(times)
    seconds = [m and int(m.replace(tzinfo=dt.UTC).timestamp()) for m in times]
    money = [Decimal(cents) / 100 for cents in (-150, -1, 0, 1, 99, 144, 145, 150, 155, 10**7)]
    columns = [
        pa.array([m and m.replace(tzinfo=dt.UTC) for m in times], INSTANT),
        pa.array(times, LOCAL),
        pa.array([m and m.date() for m in times], pa.date32()),
        cycled([None, *range(-6, 9), 10**6], n, pa.int32()),
        pa.array(seconds, pa.int64()),
        cycled([None, -1.0, -0.5, -0.0, 0.0, 1.5, 1.5000000000000002, 2.0, 2.9, 3.0, 1e9], n, pa.float64()),
        cycled([None, *money], n, pa.decimal128(9, 2)),
        cycled([None, *money], n, pa.decimal128(30, 4)),
        cycled([None, "", "a", "ab", "abc", "aé", "b", "aba"], n, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.mark.parametrize("zone", ZONES)
def test_rows_are_those_of_spark(spark: SparkSession, zone: str) -> None:
    """Every row of every predicate: none is left to Spark but by substring, whose prefix alone is known."""
    rows = table().add_column(0, "rid", pa.array(range(len(moments())), pa.int64()))
    spark.conf.set("spark.sql.session.timeZone", zone)
    answers = ask(spark.createDataFrame(rows, spark_schema(rows.schema)).repartition(1), PREDICATES)
    (batch,) = rows.combine_chunks().to_batches()
    for predicate in PREDICATES:
        outcomes = truth(bind(parse(predicate), SCHEMA, session_time_zone=zone), batch).tolist()
        assert outcomes == [OUTCOME[answers.truth[predicate][rid]] for rid in range(len(rows))], predicate


# ---- what is pulled back, and what is not ----------------------------------------------------------------------------

PULLED_BACK = [
    ("year(ts) = 2021", "ts in [2021-01-01T00:00:00Z, 2022-01-01T00:00:00Z)"),
    ("year(ts) = 2021.5", "ts in {}"),
    ("year(to_date(ts)) = 2021", "ts in [2021-01-01T00:00:00Z, 2022-01-01T00:00:00Z)"),
    (
        "date_trunc('HOUR', ts) = TIMESTAMP '2021-03-28 01:00:00'",
        "ts in [2021-03-28T01:00:00Z, 2021-03-28T02:00:00Z), fails in (, #-9223372036800000000)",
    ),
    ("unix_timestamp(ts) = 1616893200", "ts in [2021-03-28T01:00:00Z, 2021-03-28T01:00:01Z)"),
    ("date_add(d, 3) > '2021-01-01'", "d in [2020-12-30, ), fails in [#2147483645, )"),
    ("i + 5 = 10", "i in {5}, fails in [2147483643, )"),
    ("3 - i >= 10", "i in (, -6), fails in (, -2147483644)"),
    ("i * -2 IN (4, 5)", "i in {-2}, fails in (, -1073741823) + [1073741825, )"),
    ("10 - (i + 5) * 3 < 1", "i in [-1, ), fails in (, -715827884) + [715827878, )"),
    ("CAST(i AS TINYINT) != 5", "not i in {5}, fails in (, -128) + [128, )"),
    ("round(m, 1) = 1.5", "m in [1.45, 1.55)"),
    ("left(s, 2) = 'ab'", "s in ['ab', 'ac')"),
    ("left(s, 2) > 'ab'", "s in ['ac', )"),
    ("left(s, 1) = 'ab'", "s in {}"),
    ("hour(ts) = 2", "hour(ts) in {2}"),
    ("i * i = 4", "(i * i) in {4}"),
    ("abs(i) = 4", "abs(i) in {4}"),
    ("TRY_CAST(i AS TINYINT) = 5", "i in {5} or (i in (, -128) + [128, ) and try_cast[int8](i) in {5})"),
    ("-x > 0D", "negative(x) in (0, )"),
]


@pytest.mark.parametrize(("predicate", "form"), PULLED_BACK, ids=[predicate for predicate, _ in PULLED_BACK])
def test_thresholds_are_pulled_back(predicate: str, form: str) -> None:
    assert bound_form(bind(parse(predicate), SCHEMA)) == form


def test_a_day_that_comes_twice_is_evaluated_in_lists(spark: SparkSession) -> None:
    """In St John's the clock went from 2008-11-02 00:01 back to 2008-11-01 23:01: the second came, went and came.

    Beside one literal Spark compares with the first midnight, so that the second does not go again.
    """
    zone = "America/St_Johns"
    texts = ["to_date(ts) IN ('2008-11-02', '2008-11-04')", "to_date(ts) >= '2008-11-02'"]
    listed, compared = (next(leaves(bind(parse(text), SCHEMA, session_time_zone=zone))) for text in texts)
    assert isinstance(listed, Within) and not isinstance(listed.operand, Field)
    assert isinstance(compared, Within) and isinstance(compared.operand, Field)
    start = dt.datetime(2008, 11, 2, 2, 0, tzinfo=dt.UTC)
    instants = [start + dt.timedelta(seconds=30 * n) for n in range(200)]
    second = [instant.astimezone(ZoneInfo(zone)).date() >= dt.date(2008, 11, 2) for instant in instants]
    assert sum(a != b for a, b in itertools.pairwise(second)) == 3
    since = [i >= second.index(True) for i in range(200)]
    batch = pa.record_batch([pa.array(range(200), pa.int64()), pa.array(instants, INSTANT)], names=["rid", "ts"])
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = spark.createDataFrame(pa.Table.from_batches([batch]), spark_schema(batch.schema)).repartition(1)
    answers = ask(frame, texts).truth
    for leaf, text, expected in zip((listed, compared), texts, (second, since), strict=True):
        assert truth(leaf, batch).tolist() == np.where(expected, TRUE, FALSE).tolist()
        assert [answers[text][i] for i in range(200)] == expected


@given(
    st.datetimes(dt.datetime(1972, 1, 1), dt.datetime(2037, 1, 1)),
    st.dates(dt.date(1972, 1, 1), dt.date(2037, 1, 1)),
    st.sampled_from(ZONES[:5]),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
)
def test_dates_of_instants_by_the_definition(moment: dt.datetime, day: dt.date, zone: str, op: str) -> None:
    bound = bind(parse(f"to_date(ts) {op} DATE '{day}'"), SCHEMA, session_time_zone=zone)
    instant = moment.replace(tzinfo=dt.UTC)
    local = instant.astimezone(ZoneInfo(zone)).date()
    expected = {"=": local == day, "<": local < day, "<=": local <= day, ">": local > day, ">=": local >= day}[op]
    batch = pa.record_batch([pa.array([instant], INSTANT)], names=["ts"])
    assert truth(bound, batch).tolist() == np.where(expected, [TRUE], [FALSE]).tolist()


# ---- the inverse, by its definition ----------------------------------------------------------------------------------

FUNCTIONS = """
i: i + 5; i - 7; 3 - i; i * 3; i * -2; i / 4; i / -3; -i; ceil(i); round(i); i + 3000000000; i * 0.5
i: i - 1.25; CAST(i AS TINYINT); CAST(i AS SMALLINT); CAST(i AS BIGINT) * 5000000000; CAST(i AS DOUBLE)
i: CAST(i AS DECIMAL(5,2)); CAST(i AS TIMESTAMP); (i + 1) * 2; 10 - (i + 5) * 3; CAST(i * 2 AS TINYINT) + 1Y
i: i / 0; i + 1e0
l: l + 1; l - 1; -l; l * 2; 1 - l; l / 7; timestamp_seconds(l); timestamp_millis(l); timestamp_micros(l)
l: from_unixtime(l); CAST(l AS DOUBLE); CAST(l AS INT); CAST(l AS TIMESTAMP); year(timestamp_seconds(l))
l: CAST(l AS DECIMAL(18,0)) + 1
x: x + 1D; x - 1D; 1D - x; x * 2D; x * -2D; x / 3; CAST(x AS INT); CAST(x AS BIGINT); floor(x); ceil(x)
x: x + 1e300
m: m + 1; 1 - m; m * 2; m * -0.5; m / 3; m / -7; -m; ceil(m); floor(m); round(m, 1); round(m)
m: CAST(m AS INT); CAST(m AS TINYINT); CAST(m AS DECIMAL(5,1)); CAST(m AS DOUBLE)
m: CAST(m AS DECIMAL(30,5)) * 3
w: w + 1; w * 2; -w; w / 3; CAST(w AS DECIMAL(10,2)); CAST(w AS BIGINT); ceil(w); round(w, 2)
w: CAST(w AS DOUBLE); w * 1000000000000
d: year(d); date_add(d, 3); date_sub(d, 40); add_months(d, 1); add_months(d, -13); last_day(d)
d: trunc(d, 'MM'); trunc(d, 'week'); datediff(d, DATE '2024-01-01'); datediff(DATE '2024-01-01', d)
d: unix_date(d); CAST(d AS TIMESTAMP); unix_timestamp(d); CAST(d AS STRING); d + 5; date_trunc('MONTH', d)
d: CAST(d AS TIMESTAMP_NTZ)
ts: to_date(ts); year(ts); date_trunc('HOUR', ts); date_trunc('DAY', ts); date_trunc('WEEK', ts)
ts: unix_timestamp(ts); unix_millis(ts); unix_seconds(ts); CAST(ts AS BIGINT); CAST(ts AS INT)
ts: CAST(ts AS DOUBLE); CAST(ts AS TIMESTAMP_NTZ); CAST(ts AS STRING); trunc(ts, 'YEAR'); last_day(ts)
ts: date_add(ts, 1); date_trunc('MILLISECOND', ts); unix_micros(ts) + 1
tn: to_date(tn); year(tn); CAST(tn AS TIMESTAMP); CAST(tn AS STRING); unix_timestamp(tn)
tn: date_trunc('DAY', tn); tn + INTERVAL 1 MONTH; tn - INTERVAL 36 HOURS
ts: ts + INTERVAL 1 DAY; ts - INTERVAL 1 HOUR; ts + INTERVAL 1 MONTH; ts + INTERVAL 36 HOURS
ts: ts - INTERVAL '2 00:30' DAY TO MINUTE; timestampadd(HOUR, 24, ts); next_day(ts, 'MO'); date_format(ts, 'yyyy-MM-dd')
ts: from_utc_timestamp(ts, 'America/New_York'); to_utc_timestamp(ts, 'Europe/Paris')
ts: timestampdiff(HOUR, TIMESTAMP '2021-10-30 00:00:00', ts)
tn: timestampadd(DAY, 2, tn); date_format(tn, 'yyyyMMdd')
d: next_day(d, 'sunday'); d + INTERVAL 36 HOURS; date_format(d, 'yyyy-MM')
d: d + INTERVAL 1 MONTH; d - INTERVAL 3 DAYS; d + INTERVAL -2 YEARS
"""  # of a column, one after the other
CASES = [
    (line.partition(": ")[0], text.strip())
    for line in FUNCTIONS.strip().splitlines()
    for text in line.partition(": ")[2].split(";")
]
SECOND, DAY = 1_000_000, 86_400_000_000
WINTER = 1_635_642_000 * SECOND  # when the clock of Paris went back in 2021


def operand_of(text: str, zone: str) -> Operand:
    tree = parse(f"({text}) IS NULL")
    assert isinstance(tree, IsNull)
    return binding.operand_of(tree.operand, Binder(SCHEMA, zone_of(zone) or dt.UTC))


def keys_near(type_: pa.DataType) -> st.SearchStrategy[int]:
    """Keys of a type: small, at its ends, around changes of clocks, anywhere."""
    least, greatest = key_range(type_)
    if is_float(type_):
        numbers = st.sampled_from([0.0, 0.5, -0.5, 1e9, 2.0**31, 2.0**63, 1e300]) | st.integers(-9, 9).map(float)
        return (numbers | st.floats()).map(float_key)
    unit = DAY // 4 if pa.types.is_timestamp(type_) else 1
    near = [0, WINTER] if unit > 1 else [0, WINTER // DAY]
    around = st.tuples(st.sampled_from(near), st.integers(-40, 40), st.sampled_from([1, unit, 60 * unit]))
    ends = st.integers(0, 9).flatmap(lambda k: st.sampled_from([least + k, greatest - k]))
    usual = st.one_of(around.map(lambda t: t[0] + t[1] * t[2]), st.integers(-(10**6), 10**6))
    return st.one_of(usual, usual, ends, st.integers(least, greatest)).map(lambda k: min(max(k, least), greatest))


def keys(type_: pa.DataType, numbers: list[int]) -> Keys:
    if kind_of(type_) is Kind.WORD:
        return Keys(Kind.WORD, (np.array(numbers, np.int64),))
    high, low = [k >> 64 for k in numbers], [k & (2**64 - 1) for k in numbers]
    return Keys(Kind.WIDE, (np.array(high, np.int64), np.array(low, np.uint64)))


def on_points(operand: Operand, column: str, numbers: list[int]) -> Interval:
    """The operand on rows with these keys."""
    type_ = SCHEMA.field(column).type
    values = points(type_, keys(type_, numbers))
    zones = Zones(values.lower, values.upper, values.value, values.null)
    return interval_of(operand, ColumnSubset(len(numbers), {Field((column,), type_): zones}, single=True))


def ranges_near(values: list[Key], kind: Kind) -> st.SearchStrategy[RangeSet]:
    """Sets with thresholds at some of the values and just after them."""
    after = [successor(value, kind) for value in values]
    ends: list[Any] = sorted({*values, *(end for end in after if end is not None)})
    picked = st.lists(st.sampled_from(ends), min_size=1, max_size=3, unique=True).map(sorted)
    return picked.flatmap(
        lambda p: st.sampled_from(
            [
                rangeset.between(kind, p[0], p[-1] if len(p) > 1 else None),
                rangeset.complement(rangeset.between(kind, p[0], p[-1] if len(p) > 1 else None)),
                rangeset.points(kind, p),
            ]
        )
    )


@examples(400)
@given(st.data(), st.sampled_from(CASES), st.sampled_from([*ZONES, "America/St_Johns"]))
def test_a_set_pulled_back_is_where_the_function_lies_in_it(
    data: st.DataObject, case: tuple[str, str], zone: str
) -> None:
    """On every key: in `ranges` exactly where the function's value is in the set, in `fails` where it fails."""
    column, text = case
    type_, operand = SCHEMA.field(column).type, operand_of(text, zone)
    some = data.draw(st.lists(keys_near(type_), min_size=3, max_size=3))
    seen = on_points(operand, column, some)
    kind = kind_of(operand.type)
    assume(kind is not None and not seen.fails.all())
    assert kind is not None
    values = [seen.lower.at(i) for i in range(len(some)) if not seen.fails[i]]
    ranges = data.draw(ranges_near(values, kind))
    pulled = pull_back(operand, ranges)
    event("pulled back" if pulled else f"not pulled back: {text}")
    if pulled is None:
        return
    least, greatest = key_range(type_)
    edges = [*pulled.ranges.thresholds.tolist(), *([] if pulled.fails is None else pulled.fails.thresholds.tolist())]
    near = [min(max(edge + step, least), greatest) for edge in edges for step in (-1, 0, 1)]
    asked = list(dict.fromkeys([*some, *near, least, greatest]))
    if is_float(type_):
        asked = [key for key in asked if keys_of(pa.array([float_of(key)])).at(0) == key]
    result, where = on_points(operand, column, asked), keys(type_, asked)
    fails = np.zeros(len(asked), bool) if pulled.fails is None else pulled.fails.contains(where)
    assert fails.tolist() == result.fails.tolist(), (text, asked)
    known = result.is_point & ~fails
    inside = ranges.contains(result.lower)
    assert (pulled.ranges.contains(where) == inside)[known].all(), (text, zone, asked, ranges.thresholds.tolist())


def float_of(key: int) -> float:
    """The number of a key; some keys beyond infinity are none."""
    word = np.array([key], np.int64)
    return float(np.where(word >= 0, word, word ^ np.int64(2**63 - 1)).view(np.float64)[0])


@given(
    st.lists(st.text(st.sampled_from("ab\0é\U0010ffff"), max_size=4), min_size=4, max_size=4),
    st.text(st.sampled_from("abé\U0010ffff"), max_size=3),
    st.integers(0, 3),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
)
def test_prefixes_by_the_definition(texts: list[str], threshold: str, length: int, op: str) -> None:
    (leaf,) = leaves(bind(parse(f"left(s, {length}) {op} '{threshold}'"), SCHEMA))
    assert isinstance(leaf, Within)
    for text in texts:
        first, other = text[:length].encode(), threshold.encode()
        assert first_characters(text.encode(), length) == first
        expected = {
            "=": first == other, "<": first < other, "<=": first <= other, ">": first > other, ">=": first >= other
        }[op]  # fmt: skip
        assert bool(leaf.ranges.contains(keys_of(pa.array([text.encode()], pa.binary())))[0]) == expected, text
