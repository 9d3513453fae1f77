"""``now()`` and ``current_date()``: what a plan leaves out stays out, however much later the query runs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import UnsupportedPredicate
from secateur.pruning.predicate.binding.bind import bound_by
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.oracle import rows
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGES = [-2, 0, 1, 2, 5, 9]  # days ago, a block of each
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("d", pa.date32())])
PREDICATES = {  # and the blocks that are left
    "ts >= now() - INTERVAL 3 DAYS": [-2, 0, 1, 2],
    "ts > current_timestamp - INTERVAL '36' HOUR": [-2, 0, 1],
    "ts < current_timestamp() - INTERVAL 3 DAYS": AGES,
    "d >= current_date() - 3": [-2, 0, 1, 2, 3],
    "d > date_sub(current_date(), 3)": [-2, 0, 1, 2],
    "n >= localtimestamp() - INTERVAL 1 WEEK": [-2, 0, 1, 2, 5],
    "NOT (ts < now() - INTERVAL 3 DAYS)": [-2, 0, 1, 2],
    "ts >= now() AND d = DATE '2001-01-01'": [],
}


def moments(now: dt.datetime) -> list[dict[str, object]]:
    then = [now - dt.timedelta(days=age) for age in AGES]
    return [{"ts": moment, "n": moment.replace(tzinfo=None), "d": moment.date()} for moment in then]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_are_those_of_a_query_that_runs_later(spark: SparkSession, tmp_path: Path, predicate: str) -> None:
    now = dt.datetime.now(dt.UTC)
    write_file(tmp_path / "a.parquet", pa.Table.from_pylist(moments(now), SCHEMA), row_group_size=1)
    plan = sec.prune(sec.open_table(str(tmp_path)), predicate)
    kept = [AGES[row_group] for row_group in plan.blocks["row_group"].to_pylist()]
    assert set(kept) <= set(PREDICATES[predicate])
    assert rows(plan.to_spark(spark).toArrow()) == rows(spark.read.parquet(str(tmp_path)).where(predicate).toArrow())


def test_only_spark_knows_when_a_query_runs(tmp_path: Path) -> None:
    write_file(tmp_path / "a.parquet", pa.Table.from_pylist(moments(dt.datetime.now(dt.UTC)), SCHEMA))
    with pytest.raises(UnsupportedPredicate, match="now"):
        sec.prune(sec.open_table(str(tmp_path)), "ts < now()").to_arrow()


@pytest.mark.parametrize("later", [dt.timedelta(hours=h) for h in (-0.98, 0, 5, 24 * 900)], ids=str)
@pytest.mark.parametrize("predicate", [p for p in PREDICATES if "AND" not in p])
def test_what_is_said_at_planning_holds_whenever_the_query_runs(predicate: str, later: dt.timedelta) -> None:
    """Rows as of another time show nothing that was ruled out; clocks may differ by an hour."""
    planned = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
    batch = pa.RecordBatch.from_pylist(moments(planned), SCHEMA)
    zone = dt.UTC
    said = truth(bound_by(parse(predicate), Binder(SCHEMA, zone, now=planned)), batch)
    then = planned + later
    day, clock = f"DATE '{then.date()}'", f"{then:%Y-%m-%d %H:%M:%S}"
    dated = predicate.replace("current_date()", day).replace("localtimestamp()", f"TIMESTAMP_NTZ '{clock}'")
    for name in ("current_timestamp()", "current_timestamp", "now()"):
        dated = dated.replace(name, f"TIMESTAMP '{clock}Z'")
    really = truth(bound_by(parse(dated), Binder(SCHEMA, zone)), batch)
    assert ((said & really) == really).all()
