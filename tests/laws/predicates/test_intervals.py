"""Intervals, differences and casts of times where clocks change: rows and blocks are what Spark answers."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.functions import clocks, durations
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.functions.zone_names import zone_of
from secateur.pruning.interval import Argument, Interval, constant, points
from secateur.pruning.predicate.binding.bind import bind, bound_by
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.bound import Unsupported
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from secateur.values.keys import Keys
from secateur.values.kinds import Kind
from tests.support.checks.oracle import ask
from tests.support.profiles import one_in
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Pacific/Apia",  # skipped a day
    "America/Sao_Paulo",  # skipped midnight
    "America/St_Johns",  # went back over midnight
    "America/Havana",  # repeats midnight
    "+05:30",
]
SCHEMA = pa.schema([("rid", pa.int64()), ("ts", INSTANT), ("n", LOCAL), ("d", pa.date32())])
STEPS = [0, -1, SECOND, -HOUR // 2, HOUR // 2, HOUR, 2 * HOUR, DAY - HOUR, DAY, DAY + HOUR, -DAY, -DAY - HOUR, 2 * DAY]


def changes(zone: str) -> list[int]:
    """Microseconds at which the clock of a zone changes, and some others."""
    clock = zone_of(zone)
    assert clock is not None
    some = (
        [] if isinstance(clock, dt.timezone) else clocks.changes(clock, 0, 2_145_916_800, 6 * 86_400).instants.tolist()
    )
    return [0, 1_600_000_000 * SECOND, *(second * SECOND for second in some)]


# ---- by the definition -----------------------------------------------------------------------------------------------


def later(instant: int, micros: int, zone: str) -> int:
    """``timestampAddDayTime``, by Python's clocks: days to the local time, at its offset if it is one of then."""
    there = zone_of(zone)
    days = abs(micros) // DAY * (1 if micros > 0 else -1)
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=instant)
    start = moment.astimezone(there)
    moved = (start.replace(tzinfo=None) + dt.timedelta(days=days)).replace(tzinfo=there)
    both = [moved.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1)]
    real = [m for m in both if m.astimezone(there).replace(tzinfo=None) == moved.replace(tzinfo=None)]
    same = [m for m in real if m.astimezone(there).utcoffset() == start.utcoffset()]
    reached = (same or [both[0]])[0]
    return (reached - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) + micros - days * DAY


def instants(zone: str) -> st.SearchStrategy[int]:
    return st.tuples(st.sampled_from(changes(zone)), st.sampled_from(STEPS), st.integers(-1, 1)).map(sum)


LENGTHS = st.tuples(st.integers(-4, 4), st.sampled_from([0, 1, HOUR, -HOUR, HOUR // 2, 23 * HOUR, 36 * HOUR])).map(
    lambda parts: parts[0] * DAY + parts[1]
)


def plus(zone: str, micros: int, values: Interval) -> Interval:
    arguments = Argument(pa.string(), b"MICROSECOND"), Argument(pa.int64(), micros), Argument(INSTANT)
    clock = zone_of(zone)
    assert clock is not None
    function = durations.RULES["plus_interval"](arguments, clock)
    assert function is not None
    n = len(values)
    return function.bounds([constant(pa.string(), b"MICROSECOND", n), constant(pa.int64(), micros, n), values])


def keys(values: list[int]) -> Keys:
    return Keys(Kind.WORD, (np.array(values, np.int64),))


@given(st.data(), st.sampled_from(ZONES), LENGTHS)
def test_an_interval_is_whole_days_on_the_clock_and_a_rest_on_the_instant(
    data: st.DataObject, zone: str, micros: int
) -> None:
    values = data.draw(st.lists(instants(zone), min_size=1, max_size=8))
    expected = [later(value, micros, zone) for value in values]
    rows = plus(zone, micros, points(INSTANT, keys(values)))
    assert rows.lower.words[0].tolist() == rows.upper.words[0].tolist() == expected
    assert not rows.fails.any()
    possible, none = np.array([TRUE | FALSE], np.uint8), np.zeros(1, np.uint8)
    block = Interval(INSTANT, keys([min(values)]), keys([max(values)]), possible, none, np.zeros(1, bool))
    whole = plus(zone, micros, block)
    assert whole.lower.at(0) <= min(expected) and max(expected) <= whole.upper.at(0)


def test_24_hours_are_a_day_however_they_are_written() -> None:
    """In Berlin the clock went back on 2020-10-25."""
    batch = pa.record_batch([pa.array([dt.datetime(2020, 10, 24, 10, tzinfo=dt.UTC)], INSTANT)], names=["ts"])
    noon, before = "TIMESTAMP '2020-10-25 12:00:00'", "TIMESTAMP '2020-10-25 11:00:00'"
    for interval in (
        "24 HOURS",
        "'24' HOUR",
        "1 DAY",
        "23 HOURS 60 MINUTES",
        "'1 00:00' DAY TO MINUTE",
        "86400 SECONDS",
    ):
        for predicate, expected in [
            (f"ts + INTERVAL {interval} = {noon}", TRUE),
            (f"ts + INTERVAL {interval} = {before}", FALSE),
            (f"ts >= {noon} - INTERVAL {interval}", TRUE),
            (f"INTERVAL {interval} + ts > {before}", TRUE),
        ]:
            bound = bind(parse(predicate), batch.schema, session_time_zone="Europe/Berlin")
            assert truth(bound, batch).tolist() == [expected], predicate


@pytest.mark.parametrize("count", ["24.0", "24D", "'24'", "NULL", "rid"])
def test_a_count_of_units_is_a_whole_number(count: str) -> None:
    (leaf,) = leaves(bind(parse(f"timestampadd(HOUR, {count}, ts) = TIMESTAMP '2020-10-25 12:00:00'"), SCHEMA))
    assert isinstance(leaf, Unsupported)


@pytest.mark.parametrize("predicate", ["hour(ts) < 24", "day(ts) IN (1, 31)", "CAST(ts AS DATE) > DATE '1969-12-30'"])
def test_the_first_second_of_1970_has_a_local_time_in_every_zone(predicate: str) -> None:
    """It stands for no date in many tables."""
    schema = pa.schema([("ts", INSTANT)])
    batch = pa.record_batch([pa.array([0], pa.int64()).cast(INSTANT)], schema=schema)
    later_known = set()
    for zone in one_in(10, sorted(available_timezones())):
        if truth(bind(parse(predicate), schema, session_time_zone=zone), batch).tolist() != [TRUE]:
            later_known.add(zone)
    assert later_known <= {"Asia/Tehran", "EET", "Iran", "WET"}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_a_time_before_now_is_counted_on_the_clock(zone: str) -> None:
    """In the half day after a change of the clock, now() - INTERVAL 24 HOURS is what the interval makes of now."""
    there = zone_of(zone)
    assert there is not None
    for change in changes(zone)[2:40]:
        planned = dt.datetime.fromtimestamp(change / SECOND, dt.UTC) + dt.timedelta(hours=13)
        earliest = planned - dt.timedelta(hours=1)
        micros = round(earliest.timestamp()) * SECOND
        edge = later(micros, -DAY, zone)
        moments = [dt.datetime.fromtimestamp((edge + step) / SECOND, dt.UTC) for step in (-SECOND, 0)]
        batch = pa.record_batch([pa.array(moments, INSTANT)], names=["ts"])
        bound = bound_by(parse("ts >= now() - INTERVAL 24 HOURS"), Binder(batch.schema, there, now=planned))
        assert ((truth(bound, batch) & TRUE) != 0).tolist() == [False, True], planned


# ---- Spark -----------------------------------------------------------------------------------------------------------


def table(zone: str, source: random.Random) -> pa.Table:
    """Rows about changes of the clock, in the order of their instants."""
    there = zone_of(zone)
    some = source.sample(changes_of_zone, min(8, len(changes_of_zone))) if (changes_of_zone := changes(zone)) else []
    micros = sorted({change + step + source.choice([0, 0, 1]) for change in [0, *some] for step in STEPS})
    moments = [dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=m) for m in micros]
    local = [moment.astimezone(there).replace(tzinfo=None) for moment in moments]
    skipped = [value + dt.timedelta(minutes=source.choice([0, 0, 30, -30])) for value in local]
    columns = [list(range(len(micros))), moments, skipped, [value.date() for value in local]]
    return pa.table([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def interval(source: random.Random) -> str:
    return source.choice(
        [
            f"INTERVAL {source.choice([1, 2, 23, 24, 25, 36, 48])} HOURS",
            f"INTERVAL '{source.choice([-1, 1, 2, 7])}' DAY",
            f"INTERVAL {source.choice([1, 2])} DAYS {source.choice([1, 12, 24])} HOURS",
            f"INTERVAL '{source.choice(['', '-'])}1 {source.choice([0, 1, 23])}:30:00' DAY TO SECOND",
            f"INTERVAL {source.choice([30, 1440, 1500])} MINUTES",
            f"INTERVAL {source.choice([1, -2])} WEEK",
        ]
    )


def predicates(zone: str, rows: pa.Table, source: random.Random) -> list[str]:
    """Comparisons with literals that some row reaches, or misses by a little."""

    def row(name: str) -> str:
        moment = source.choice(rows[name].to_pylist())
        if name == "d":
            return f"DATE '{moment}'"
        moment += dt.timedelta(hours=source.choice([0, 0, 0, 1, 24, 25, -24, 36]))
        text = moment.astimezone(zone_of(zone)).replace(tzinfo=None) if name == "ts" else moment
        return f"{'TIMESTAMP' if name == 'ts' else 'TIMESTAMP_NTZ'} '{text}'"

    unit = lambda: source.choice(["HOUR", "MINUTE", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])  # noqa: E731
    op = lambda: source.choice(["=", "<", "<=", ">", ">=", "<=>", "!="])  # noqa: E731
    number = lambda: source.choice([-25, -1, 0, 1, 2, 24, 25, 48])  # noqa: E731
    forms: list[Callable[[], str]] = [
        lambda: f"ts {source.choice('+-')} {interval(source)} {op()} {row('ts')}",
        lambda: f"ts {op()} {row('ts')} {source.choice('+-')} {interval(source)}",
        lambda: f"n {source.choice('+-')} {interval(source)} {op()} {row('n')}",
        lambda: f"d {source.choice('+-')} {interval(source)} {op()} {row('ts')}",
        lambda: f"ts {source.choice('+-')} INTERVAL {source.choice([1, 13])} MONTH {op()} {row('ts')}",
        lambda: f"try_add(ts, {interval(source)}) {op()} {row('ts')}",
        lambda: f"timestampadd({unit()}, {number()}, {source.choice(['ts', 'n', 'd'])}) {op()} {row('ts')}",
        lambda: f"timestampdiff({unit()}, ts, {row('ts')}) {op()} {number()}",
        lambda: f"datediff({unit()}, {row('ts')}, {source.choice(['ts', 'n', 'd'])}) {op()} {number()}",
        lambda: f"timestampdiff({unit()}, ts, n) {op()} 0",
        lambda: f"{row('ts')} - ts {op()} {interval(source)}",
        lambda: f"ts - {source.choice(['d', row('ts'), 'n'])} {op()} {interval(source)}",
        lambda: f"d - {row('d')} {op()} {interval(source)}",
        lambda: f"months_between(ts, {row('ts')}) {op()} {source.choice([-12, 0, 1])}",
        lambda: f"CAST(ts AS TIMESTAMP_NTZ) {op()} {row('n')}",
        lambda: f"CAST(ts AS TIMESTAMP_NTZ) IN ({row('n')}, {row('n')})",
        lambda: f"CAST(ts AS DATE) {op()} {row('d')}",
        lambda: f"CAST(ts AS DATE) IN ({row('d')})",
        lambda: f"CAST(CAST(ts AS TIMESTAMP_NTZ) AS DATE) {op()} {row('d')}",
        lambda: f"TRY_CAST(ts AS DATE) {op()} {row('d')}",
        lambda: f"{source.choice(['n', 'd'])} {op()} {row('ts')}",
        lambda: f"hour({source.choice(['ts', 'd', 'n'])}) {op()} {source.choice([0, 1, 2, 3, 23])}",
        lambda: f"date_format({source.choice(['ts', 'n', 'd'])}, 'yyyy-MM-dd HH') {op()} '{str(row('n'))[15:28]}'",
        lambda: f"next_day(ts, '{source.choice(['MO', 'sun', 'Friday'])}') {op()} {row('d')}",
        lambda: f"{source.choice(['from', 'to'])}_utc_timestamp(ts, '{source.choice(ZONES)}') {op()} {row('ts')}",
    ]
    return [form() for form in forms for _ in range(4)]


@pytest.mark.parametrize("zone", one_in(2, ZONES))
def test_rows_and_blocks_are_what_spark_answers(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    source = random.Random(zone)
    rows = table(zone, source)
    questions = predicates(zone, rows, source)
    write_file(tmp_path / "a.parquet", rows)
    spark.conf.set("spark.sql.session.timeZone", zone)
    answers = ask(spark.read.parquet(str(tmp_path)), questions).truth
    assert len(answers) == len(set(questions)), [question for question in questions if question not in answers]
    (batch,) = rows.combine_chunks().to_batches()
    known_share = 0
    for question in dict.fromkeys(questions):
        spark_says = np.array([{True: TRUE, False: FALSE, None: NULL}[answers[question][i]] for i in range(len(rows))])
        said = truth(bind(parse(question), rows.schema, session_time_zone=zone), batch)
        wrong = np.flatnonzero((said & spark_says) == 0)
        assert not len(wrong), (question, rows.slice(wrong[0], 1).to_pylist(), said[wrong[0]])
        known_share += (said == spark_says).mean()
        for size in (2, 7):
            _check_blocks(question, zone, rows, spark_says, size)
    assert known_share > 0.85 * len(set(questions))


def _check_blocks(question: str, zone: str, rows: pa.Table, spark_says: np.ndarray, size: int) -> None:
    starts = range(0, len(rows) - size + 1, size)
    blocks = [rows.slice(start, size) for start in starts]
    columns: dict[str, pa.Array] = {"row_count": pa.array([size] * len(blocks), pa.int64())}
    for name, type_ in zip(SCHEMA.names, SCHEMA.types, strict=True):
        values = [block[name].to_pylist() for block in blocks]
        columns[f"{name}.lower"] = pa.array([min(v) for v in values], type_)
        columns[f"{name}.upper"] = pa.array([max(v) for v in values], type_)
        columns[f"{name}.null_count"] = pa.array([0] * len(blocks), pa.int64())
    outcomes = sec.evaluate(question, pa.table(columns), session_time_zone=zone)
    for bit, name in ((TRUE, "may_be_true"), (FALSE, "may_be_false"), (NULL, "may_be_null")):
        may = outcomes[name].to_numpy(zero_copy_only=False)
        happens = np.array([(spark_says[start : start + size] == bit).any() for start in starts])
        assert (may | ~happens).all(), (question, name, blocks[int(np.argmax(happens & ~may))].to_pylist())
