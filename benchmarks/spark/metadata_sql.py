"""LIMIT and aggregates of plain SQL with ``enable()``, beside the same session with pruning switched off."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.enabled_sql import SWITCH, VIEW, WARMING, enabled
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMITS = {
    "the newest ten rows": "SELECT * FROM {view} ORDER BY ts DESC LIMIT 10",
    "the newest ten rows of half the table": "SELECT * FROM {view} WHERE id < {half} ORDER BY ts DESC LIMIT 10",
    "the third page of these": "SELECT id, ts FROM {view} WHERE id < {half} ORDER BY ts DESC LIMIT 10 OFFSET 20",
    "any thousand rows of half the table": "SELECT * FROM {view} WHERE id >= {half} LIMIT 1000",
}
COUNTS = {
    "count(*) of half the table": "SELECT count(*) FROM {view} WHERE id < {half}",
    "count, min and max between": "SELECT count(price), min(ts), max(value) FROM {view} WHERE id BETWEEN 77 AND {half}",
    "sum and average between": "SELECT sum(price), avg(price) FROM {view} WHERE id BETWEEN 77 AND {half}",
    "count and max of each day": "SELECT day, count(*), max(ts) FROM {view} GROUP BY day ORDER BY day",
}


def limit_sql(setting: Setting) -> Result:
    """The first rows of a sorted table, whole or with a filter."""
    return _raced(setting, LIMITS)


def count_sql(setting: Setting) -> Result:
    """Counts, extremes and sums of a range that most row groups match whole or not at all."""
    return _raced(setting, COUNTS)


def _raced(setting: Setting, queries: dict[str, str]) -> Result:
    data = spark_table(setting)
    with spark_session(setting) as spark, enabled(spark, [data.table]):
        spark.read.parquet(data.location).createOrReplaceTempView(VIEW)
        ratios = [_race(spark, setting, data, subject, query) for subject, query in queries.items()]
    return Result({"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}, tuple(ratios))


def _race(spark: SparkSession, setting: Setting, data: SparkTable, subject: str, query: str) -> Ratio:
    sql = query.format(view=VIEW, half=data.rows // 2)

    def answer(*, pruned: bool) -> list[object]:
        spark.conf.set(SWITCH, str(pruned).lower())
        return list(spark.sql(sql).collect())

    ours, theirs = (answer(pruned=pruned) for pruned in (True, False))
    if len(ours) != len(theirs) or (("ORDER BY" in sql or len(theirs) == 1) and ours != theirs):
        raise AssertionError(f"{sql}: {ours[:3]} with pruning, {theirs[:3]} without")
    contenders = [partial(answer, pruned=pruned) for pruned in (True, False)]
    time, peer = race(contenders, setting.repetitions, WARMING * min(1, setting.scale))
    return timed(f"SQL, {subject}", time, "Spark alone, in the same session", peer)
