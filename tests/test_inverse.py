"""Monotone functions of a column are conditions on the column: the same rows as Spark."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession, functions

from secateur.io.spark_plan import spark_schema
from secateur.pruning.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import Unsupported, Within, leaves
from secateur.pruning.predicate.parse import parse
from secateur.pruning.rows import truth

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")), ("d", pa.date32())])
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "+05:30"]
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
]


def moments() -> list[dt.datetime | None]:
    """Instants around the ends of days, months and years, and around changes of clocks, in several zones."""
    around = [dt.datetime(2021, 3, 28), dt.datetime(2021, 10, 31), dt.datetime(2018, 2, 18), dt.datetime(2018, 11, 4)]
    around += [dt.datetime(y, m, 1) for y in (1999, 2020, 2021, 2022) for m in (1, 3, 4)] + [dt.datetime(2020, 2, 29)]
    offsets = [dt.timedelta(minutes=m) for m in range(-15 * 60, 15 * 60 + 1, 30)]
    steps = (dt.timedelta(0), -dt.timedelta(microseconds=1))
    return [None, *(base + offset + step for base in around for offset in offsets for step in steps)]


def table() -> pa.Table:
    found = moments()
    return pa.table(
        {
            "ts": pa.array([m and m.replace(tzinfo=dt.UTC) for m in found], SCHEMA.field("ts").type),
            "tn": pa.array(found, SCHEMA.field("tn").type),
            "d": pa.array([m and m.date() for m in found], pa.date32()),
        }
    )


@pytest.mark.parametrize("zone", ZONES)
def test_rows_are_those_of_spark(spark: SparkSession, zone: str) -> None:
    rows = table()
    before = spark.conf.get("spark.sql.session.timeZone")
    frame = spark.createDataFrame(rows, spark_schema(SCHEMA))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        answers = frame.select(*[functions.expr(p).alias(str(i)) for i, p in enumerate(PREDICATES)]).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    batch = rows.combine_chunks().to_batches()[0]
    supported = 0
    for i, predicate in enumerate(PREDICATES):
        bound = bind(parse(predicate), SCHEMA, session_time_zone=zone)
        if any(isinstance(leaf, Unsupported) for leaf in leaves(bound)):
            continue
        supported += 1
        expected = [NULL if v is None else TRUE if v else FALSE for v in answers[str(i)].to_pylist()]
        assert truth(bound, batch).tolist() == expected, predicate
    assert supported >= len(PREDICATES) - 4, "changes of the clock leave only a few of these to Spark"


def test_a_year_is_one_range() -> None:
    (leaf,) = leaves(bind(parse("year(ts) = 2021"), SCHEMA))
    assert isinstance(leaf, Within)
    start, stop = (int(dt.datetime(y, 1, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000 for y in (2021, 2022))
    assert leaf.ranges.thresholds.tolist() == [start, stop]


@pytest.mark.parametrize(
    "predicate",
    [
        "year(ts) = 1",
        "year(ts) < 20000",
        "date_trunc('HOUR', ts) = TIMESTAMP '2021-03-28 01:00:00'",
        "month(ts) = 3",
        "TRY_CAST(ts AS DATE) = '2021-03-28'",
        "to_date(ts, 'yyyy') = '2021-01-01'",
        "date_trunc('DAY', tn) = '2021-03-28'",
    ],
)
def test_what_is_not_surely_monotone_is_left_to_spark(predicate: str) -> None:
    assert any(isinstance(leaf, Unsupported) for leaf in leaves(bind(parse(predicate), SCHEMA)))


def test_a_day_on_which_the_clock_goes_back_over_midnight_is_left_to_spark() -> None:
    """In St John's the clock went from 2008-11-02 00:01 back to 2008-11-01 23:01: the second came, went and came."""
    bound = bind(parse("to_date(ts) >= '2008-11-02'"), SCHEMA, session_time_zone="America/St_Johns")
    assert isinstance(bound, Unsupported)
    day_after = bind(parse("to_date(ts) >= '2008-11-03'"), SCHEMA, session_time_zone="America/St_Johns")
    assert isinstance(day_after, Within)


@given(
    st.datetimes(dt.datetime(1972, 1, 1), dt.datetime(2037, 1, 1)),
    st.dates(dt.date(1972, 1, 1), dt.date(2037, 1, 1)),
    st.sampled_from(ZONES[:5]),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
)
def test_dates_of_instants_by_the_definition(moment: dt.datetime, day: dt.date, zone: str, op: str) -> None:
    bound = bind(parse(f"to_date(ts) {op} DATE '{day}'"), SCHEMA, session_time_zone=zone)
    if isinstance(bound, Unsupported):
        return
    instant = moment.replace(tzinfo=dt.UTC)
    local = instant.astimezone(ZoneInfo(zone)).date()
    expected = {"=": local == day, "<": local < day, "<=": local <= day, ">": local > day, ">=": local >= day}[op]
    batch = pa.record_batch([pa.array([instant], SCHEMA.field("ts").type)], names=["ts"])
    assert truth(bound, batch).tolist() == np.where(expected, [TRUE], [FALSE]).tolist()
