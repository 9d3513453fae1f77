"""Functions of dates and timestamps: on single values they are Spark's, and on intervals they hold their values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.functions import clocks, temporal
from secateur.pruning.functions.registry import RULES
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.interval import Argument, Function, Interval, at_least, constant, key_range, points
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.keys import Keys
from secateur.values.kinds import Kind
from tests.support.profiles import one_in, takes_seconds
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATE = pa.date32()
SECOND = 1_000_000
DAY = 86_400 * SECOND
ZONES = [
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "+05:30",
    "Africa/Casablanca",
    "America/Sao_Paulo",  # skips midnight
    "America/Havana",  # repeats it
    "America/St_Johns",  # went back a minute after it
    "Pacific/Apia",  # skipped a day
    "Africa/Monrovia",  # was off by minutes and seconds
]
COLUMNS = {DATE: "d", INSTANT: "ts", LOCAL: "tn", pa.int8(): "i8", pa.int32(): "i", pa.int64(): "l"}
NAMES = {INSTANT: "TIMESTAMP", LOCAL: "TIMESTAMP_NTZ", DATE: "DATE", pa.string(): "STRING", pa.int8(): "TINYINT"}
NAMES |= {
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
UNITS = ("yyyy", "quarter", "MON", "WEEK", "DD", "hour", "MINUTE", "SECOND", "MILLISECOND", "microsecond")


@dataclass(frozen=True)
class Case:
    """A function as Spark is asked for it, and what its rule is asked for."""

    sql: str
    name: str
    arguments: tuple[Argument, ...]
    target: pa.DataType | None = None

    def function(self, zone: str) -> Function | None:
        """The function in a zone."""
        return _function(self, zone)


@cache
def _function(case: Case, zone: str) -> Function | None:
    if case.target is not None:
        return temporal.cast(case.arguments[0].type, case.target, zone_of(zone))
    return RULES[case.name](case.arguments, zone_of(zone))


def cases() -> list[Case]:
    """Every function on every type of argument that it may have a rule for, and every cast."""
    moments = (DATE, INSTANT, LOCAL)
    collected = []
    for name in temporal.RULES:
        types: Sequence[pa.DataType] = (*moments, pa.int8(), pa.int32(), pa.int64())
        match name:
            case "trunc" | "date_trunc":
                for type_ in moments:
                    for unit in UNITS:
                        both = [(f"'{unit}'", Argument(pa.string(), unit.encode())), (COLUMNS[type_], Argument(type_))]
                        ordered = both if name == "date_trunc" else both[::-1]
                        sql = f"{name}({', '.join(text for text, _ in ordered)})"
                        collected.append(Case(sql, name, tuple(argument for _, argument in ordered)))
            case "datediff" | "date_add" | "date_sub" | "add_months":
                others = moments if name == "datediff" else (pa.int8(), pa.int32())
                pairs = [(a, b) for a in moments for b in others]
                collected += [
                    Case(f"{name}({COLUMNS[a]}, {COLUMNS[b]})", name, (Argument(a), Argument(b))) for a, b in pairs
                ]
            case _:
                collected += [Case(f"{name}({COLUMNS[t]})", name, (Argument(t),)) for t in types]
    collected += [case for type_ in moments for case in _with_constants(type_, COLUMNS[type_])]
    for a in moments:
        for b in moments:
            pair = Argument(a), Argument(b)
            collected += [
                Case(f"timestampdiff({u}, {COLUMNS[a]}, {COLUMNS[b]})", "timestampdiff", (_text(u), *pair))
                for u in ("HOUR", "WEEK", "MONTH", "QUARTER", "YEAR")
            ]
            collected.append(Case(f"months_between({COLUMNS[a]}, {COLUMNS[b]})", "months_between", pair))
    collected.append(Case("make_date(i, i8, i8)", "make_date", (Argument(pa.int32()), *[Argument(pa.int8())] * 2)))
    for source in (*moments, pa.int8(), pa.int32(), pa.int64()):
        for target in (*moments, pa.string(), pa.float32(), pa.float64(), *INTEGERS):
            if source in moments or target in moments:
                sql = f"CAST({COLUMNS[source]} AS {NAMES[target]})"
                collected.append(Case(sql, "cast", (Argument(source),), target))
    return [case for case in collected if case.function("Europe/Paris") is not None]


def _text(text: str) -> Argument:
    return Argument(pa.string(), text.encode())


def _with_constants(type_: pa.DataType, column: str) -> list[Case]:
    """Functions of one moment and constants."""
    moment = Argument(type_)
    collected = [
        Case(f"timestampadd({unit}, {n}, {column})", "timestampadd", (_text(unit), Argument(pa.int32(), n), moment))
        for unit, n in (("HOUR", 24), ("MICROSECOND", -5), ("DAY", -1), ("WEEK", 2), ("MONTH", 1), ("QUARTER", -5))
    ]
    for pattern in ("yyyy", "yyyyMM", "yyyy-MM-dd HH:mm", "yyyy-MM-dd'T'HH:mm:ss"):
        quoted = '"' + pattern + '"'
        collected.append(Case(f"date_format({column}, {quoted})", "date_format", (moment, _text(pattern))))
    collected += [Case(f"next_day({column}, '{day}')", "next_day", (moment, _text(day))) for day in ("MO", "sunday")]
    for name in ("from_utc_timestamp", "to_utc_timestamp"):
        collected.append(Case(f"{name}({column}, 'America/St_Johns')", name, (moment, _text("America/St_Johns"))))
    for unit, amount, sql in INTERVALS:
        arguments = (_text(unit), Argument(pa.int64(), amount), moment)
        collected.append(Case(f"({column} + {sql})", "plus_interval", arguments))
    return collected


INTERVALS = [
    ("MONTH", 13, "INTERVAL 13 MONTHS"),
    ("DAY", -1, "INTERVAL '-1' DAY"),
    ("MICROSECOND", 36 * 3600 * SECOND, "INTERVAL 36 HOURS"),
    ("MICROSECOND", -DAY - SECOND // 2, "INTERVAL '-1 00:00:00.5' DAY TO SECOND"),
]
CASES = cases()


def interval(type_: pa.DataType, lower: Sequence[int], upper: Sequence[int]) -> Interval:
    """Units that hold values between these keys, and no NULL."""
    n = len(lower)
    low, high = (Keys(Kind.WORD, (np.array(keys, np.int64),)) for keys in (lower, upper))
    return Interval(type_, low, high, np.full(n, TRUE | FALSE, np.uint8), np.zeros(n, np.uint8), np.zeros(n, bool))


def on(function: Function, case: Case, arguments: Sequence[Interval]) -> Interval:
    """The function of the arguments that are no constants, the others in their places."""
    n, rest = len(arguments[0]), iter(arguments)
    return function.bounds([constant(a.type, a.key, n) if a.key is not None else next(rest) for a in case.arguments])


# ---- intervals hold their values -------------------------------------------------------------------------------------


def _around(unit: int) -> list[int]:
    """Instants in units of so many microseconds: the ends of everything, and the changes of clocks."""
    dates = [
        dt.date(y, 1, 1) for y in (1, 1582, 1900, 1969, 1970, 1971, 1972, 2000, 2020, 2021, 2037, 2040, 2100, 9999)
    ]
    seconds = [(date - dt.date(1970, 1, 1)).days * 86_400 for date in dates] + [253_402_300_800, 300_000_000_000]
    for zone in ZONES:
        local = clocks.clock(zone_of(zone)).local
        if local.constant is None:
            starts = local.long.starts[1:]
            seconds += [
                *starts[::31].tolist(),
                *(starts[-3:] + 8 * clocks.CYCLE).tolist(),
                *local.near.starts[1:][-2:].tolist(),
            ]
    return [s * SECOND // unit for s in seconds]


def keys(type_: pa.DataType) -> st.SearchStrategy[int]:
    """Keys of a type: near ends and changes of clocks, anywhere, and the extremes."""
    least, greatest = key_range(type_)
    unit = {DATE: DAY, INSTANT: 1, LOCAL: 1}.get(type_, SECOND)
    spans = [
        0,
        1,
        -1,
        *(sign * s * SECOND // unit for s in (1800, 3600, 5400, 86_400, 31 * 86_400) for sign in (1, -1)),
    ]
    near = st.tuples(st.sampled_from(_around(unit)), st.sampled_from(spans), st.integers(-3, 3)).map(sum)
    centuries = st.integers(-300 * 365 * DAY // unit, 600 * 365 * DAY // unit)
    ends = st.one_of(st.integers(0, 10).map(lambda k: least + k), st.integers(0, 10).map(lambda k: greatest - k))
    usual = st.one_of(near, near, near, centuries)
    if type_ in INTEGERS[:3]:
        usual = st.integers(-1000, 1000)
    return st.one_of(usual, usual, usual, ends, st.integers(least, greatest)).map(
        lambda k: min(max(k, least), greatest)
    )


def neighbours(type_: pa.DataType) -> st.SearchStrategy[list[int]]:
    """Six keys of a type within hours or days."""
    least, greatest = key_range(type_)
    hour = {INSTANT: 3600 * SECOND, LOCAL: 3600 * SECOND, pa.int64(): 3600}.get(type_, 1)
    steps = st.lists(st.integers(-8, 8).map(lambda k: k * hour // 4), min_size=6, max_size=6)
    several = st.tuples(keys(type_), steps, st.sampled_from([1, 1, 24, 7 * 24]))
    return several.map(lambda t: [min(max(t[0] + step * t[2], least), greatest) for step in t[1]])


@given(st.data(), st.sampled_from(CASES), st.sampled_from(ZONES))
def test_an_interval_holds_its_values(data: st.DataObject, case: Case, zone: str) -> None:
    function = case.function(zone)
    assert function is not None
    types = [argument.type for argument in case.arguments if argument.key is None]
    values = [data.draw(st.one_of(st.lists(keys(type_), min_size=6, max_size=6), neighbours(type_))) for type_ in types]
    units = [interval(t, [min(v)] * 6, [max(v)] * 6) for t, v in zip(types, values, strict=True)]
    whole = on(function, case, units)
    single = on(function, case, [interval(t, v, v) for t, v in zip(types, values, strict=True)])
    assert (whole.fails | ~single.fails).all(), "what fails on a value fails"
    holds = at_least(single.lower, whole.lower) & at_least(whole.upper, single.upper)
    assert (holds | single.fails).all(), (case.sql, zone, values)
    same = on(function, case, [points(t, Keys(Kind.WORD, (np.array(v),))) for t, v in zip(types, values, strict=True)])
    assert (at_least(same.lower, single.lower) & at_least(single.lower, same.lower)).all()
    assert (at_least(same.upper, single.upper) & at_least(single.upper, same.upper)).all()
    assert (same.fails == single.fails).all()


@given(st.data(), st.sampled_from([c for c in CASES if len(c.arguments) == 1 or c.target]), st.sampled_from(ZONES))
def test_a_steady_key_divides_the_values(data: st.DataObject, case: Case, zone: str) -> None:
    function = case.function(zone)
    assert function is not None
    (type_,) = (argument.type for argument in case.arguments if argument.key is None)
    if function.directions != (1,):
        return
    key = data.draw(keys(type_))
    if key == key_range(type_)[0] or (function.is_steady is not None and not function.is_steady(key)):
        return
    others = data.draw(st.lists(keys(type_), min_size=4, max_size=4))
    values = on(function, case, [interval(type_, [key - 1, key, *others], [key - 1, key, *others])])
    if values.fails[:2].any():
        return
    for i, other in enumerate(others, start=2):
        if values.fails[i]:
            continue
        if other < key:
            assert at_least(values.upper.take([0]), values.upper.take([i])).all(), (case.sql, zone, key, other)
        else:
            assert at_least(values.lower.take([i]), values.lower.take([1])).all(), (case.sql, zone, key, other)


@takes_seconds
def test_most_keys_are_steady() -> None:
    """A change of the clock takes away little: no day of New York, none of the hours but those around it."""
    zone = zone_of("America/New_York")
    days = temporal.cast(INSTANT, DATE, zone)
    hours = temporal.RULES["date_trunc"]([Argument(pa.string(), b"HOUR"), Argument(INSTANT)], zone)
    assert days is not None and hours is not None and days.is_steady is not None and hours.is_steady is not None
    midnights = [dt.datetime(2021, 1, 1, tzinfo=zone) + dt.timedelta(days=n) for n in range(365)]
    assert all(days.is_steady(int(midnight.timestamp()) * SECOND) for midnight in midnights)
    start = int(dt.datetime(2021, 1, 1, tzinfo=dt.UTC).timestamp())
    assert sum(not hours.is_steady((start + n * 3600) * SECOND) for n in range(365 * 24)) <= 4


def test_a_day_on_which_the_clock_goes_back_over_midnight_is_not_steady() -> None:
    """In St John's the clock went from 2008-11-02 00:01 back to 2008-11-01 23:01: the second came, went and came."""
    zone = zone_of("America/St_Johns")
    days = temporal.cast(INSTANT, DATE, zone)
    assert days is not None and days.is_steady is not None
    first, second = (int(dt.datetime(2008, 11, 2, tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    after = int(dt.datetime(2008, 11, 3, tzinfo=zone).timestamp())
    assert not days.is_steady(first * SECOND) and not days.is_steady(second * SECOND)
    assert days.is_steady(after * SECOND)


def test_what_is_not_known_before_1970_is_not_a_failure() -> None:
    """An instant of 1900 has a year, whatever the clock; its day is one of two or three."""
    zone = zone_of("Europe/Paris")
    instants = [int(dt.datetime(1900, 6, 15, tzinfo=dt.UTC).timestamp()) * SECOND]
    year = temporal.RULES["year"]([Argument(INSTANT)], zone)
    day = temporal.cast(INSTANT, DATE, zone)
    assert year is not None and day is not None
    years = year.bounds([interval(INSTANT, instants, instants)])
    assert years.lower.words[0].tolist() == years.upper.words[0].tolist() == [1900] and not years.fails.any()
    days = day.bounds([interval(INSTANT, instants, instants)])
    assert 0 < days.upper.words[0][0] - days.lower.words[0][0] <= 2 and not days.fails.any()


# ---- clocks ----------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(available_timezones())), st.lists(st.integers(clocks.AGREED, 253_402_200_000), min_size=20)
)
def test_clocks_are_those_of_zoneinfo(name: str, instants: list[int]) -> None:
    zone = ZoneInfo(name)
    local = clocks.clock(zone).local
    changes = [] if local.constant is not None else local.near.starts[1:].tolist()
    instants = [s for s in (*instants, *changes, *(c - 1 for c in changes)) if s >= clocks.agreed(zone)]
    lower, upper = local.hull(np.array(instants), np.array(instants))
    expected = [s + int(dt.datetime.fromtimestamp(s, zone).utcoffset().total_seconds()) for s in instants]  # type: ignore[union-attr]
    assert lower.tolist() == expected == upper.tolist()


# ---- Spark -----------------------------------------------------------------------------------------------------------


def table() -> pa.Table:
    """Instants, local times and dates around the ends of everything and the changes of clocks."""
    rng = np.random.default_rng(7)
    steps = np.array([0, -1, 1, 1_500_000, -1_800 * SECOND, 1_800 * SECOND, 3_600 * SECOND, -DAY // 2, 5_400 * SECOND])
    near = (np.array(_around(1))[:, None] + steps).ravel()
    changes = [clocks.clock(zone_of(zone)).local.long.starts[1:].tolist() for zone in ZONES[1:5] + ZONES[7:]]
    days = np.array([s // 86_400 * DAY for starts in changes for s in starts[:: max(1, len(starts) // 60)]])
    offsets = rng.integers(-2 * DAY, 2 * DAY, (len(days), 6)) // (900 * SECOND) * 900 * SECOND
    anywhere = rng.integers(-80_000_000 * DAY // 1000, 100_000_000 * DAY // 1000, 300)
    beyond = rng.integers(INT64_MIN, INT64_MAX, 100)
    ends = [INT64_MIN, INT64_MIN + 1, INT64_MIN + DAY, INT64_MAX - DAY, INT64_MAX - 1, INT64_MAX]
    micros = np.concatenate([near, (days[:, None] + offsets).ravel(), anywhere, beyond, ends])
    n = len(micros)
    dates = np.clip(micros // DAY + rng.integers(-1, 2, n), -(2**31), 2**31 - 1)
    dates[:40] = rng.integers(-(2**31), 2**31, 40)
    dates[40:44] = [2**31 - 1, -(2**31), 2**31 - 40, 7 - 2**31]
    whole = rng.integers(-(2**31), 2**31, n)
    small = np.where(rng.random(n) < 0.9, rng.integers(-1000, 1000, n), whole)
    long = np.where(rng.random(n) < 0.8, micros // SECOND, rng.permutation(micros))
    return pa.table(
        {
            "d": pa.array(dates.astype(np.int32), pa.int32()).cast(DATE),
            "ts": pa.array(micros, pa.int64()).cast(INSTANT),
            "tn": pa.array(micros, pa.int64()).cast(LOCAL),
            "i8": pa.array(rng.integers(-128, 128, n).astype(np.int8)),
            "i": pa.array(small.astype(np.int32)),
            "l": pa.array(long, pa.int64()),
        }
    )


@pytest.mark.parametrize("zone", one_in(2, ZONES))
def test_values_are_those_of_spark(spark: SparkSession, zone: str) -> None:
    """Where nothing fails; and where a single value has bounds apart, its own is between them."""
    rows = table()
    inputs = {
        argument: points(rows.schema.field(c).type, keys_of(rows[c].combine_chunks()))
        for argument, c in COLUMNS.items()
    }
    intervals = []
    for case in CASES:
        function = case.function(zone)
        assert function is not None
        intervals.append(on(function, case, [inputs[a.type] for a in case.arguments if a.key is None]))
    answers = _ask(spark, rows, zone, intervals)
    exact = 0
    for case, ours, theirs in zip(CASES, intervals, answers, strict=True):
        assert _same_type(theirs.type, ours.type), case.sql
        kept = np.flatnonzero(~ours.fails)
        lower, upper, key = ours.lower.take(kept), ours.upper.take(kept), keys_of(theirs).take(kept)
        holds = at_least(key, lower) & at_least(upper, key)
        wrong = {c: inputs[t].lower.words[0][kept[~holds]][:3].tolist() for t, c in COLUMNS.items()}
        assert holds.all(), (case.sql, wrong, key.take(~holds).words, lower.take(~holds).words)
        exact += int(ours.is_point[kept].sum())
    assert exact > 0.6 * len(CASES) * len(rows)


def _ask(spark: SparkSession, rows: pa.Table, zone: str, intervals: list[Interval]) -> list[pa.Array]:
    """What Spark says of every case on the rows where ours does not fail, and NULL on the others."""
    for i, ours in enumerate(intervals):
        rows = rows.append_column(f"works{i}", pa.array(~ours.fails))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema = ", ".join(f"{name} {_ddl(rows.schema.field(name).type)}" for name in rows.column_names)
    frame = spark.createDataFrame(rows, schema)
    spark.conf.set("spark.sql.session.timeZone", zone)
    answers = []
    for start in range(0, len(CASES), 40):
        asked = [f"CASE WHEN works{i} THEN {case.sql} END AS c{i}" for i, case in enumerate(CASES)][start : start + 40]
        answers += frame.selectExpr(*asked).toArrow().columns
    return [answer.combine_chunks() for answer in answers]


def _ddl(type_: pa.DataType) -> str:
    return NAMES.get(type_, "BOOLEAN")


def _same_type(theirs: pa.DataType, ours: pa.DataType) -> bool:
    if pa.types.is_timestamp(ours):
        return bool(pa.types.is_timestamp(theirs) and (theirs.tz is None) == (ours.tz is None))
    return bool(theirs == ours)


def test_a_segment_of_null_dates_has_no_text(tmp_path: Path) -> None:
    """Its bounds are keys that are no days."""
    for name, day in (("a", 1), ("b", None)):
        days = pa.array([day, day], pa.int32()).cast(DATE)
        write_file(tmp_path / f"{name}.parquet", {"d": days}, row_group_size=1)
    sec.build_index(tmp_path, segment_blocks=1)
    assert sec.prune(tmp_path, "CAST(d AS STRING) IS NULL").count() == 2
    assert sec.prune(tmp_path, "CAST(nullif(d, d) AS STRING) > '1' OR CAST(d AS STRING) < '2'").count() == 2
