"""Queries in Spark on a table that prunes by itself, beside Spark's own reader with its push-down, in one session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Kept, Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ONE_IN, MOST_SCAN, ONE_IN_OF_JOIN = 10, 1.1, 8  # goals: times as fast, most times as long, times as fast
SPARK = "Spark's own reader, with its push-down"
SMALL, WANTED = 1_000, 3  # rows of the small side, and of those that its filter keeps
WARMING = 20  # seconds for each contender: a join takes 0.8 s at first, and 0.2 s from the hundredth on
READ_PATHS = ("auto", "blocks", "native")  # auto: the driver reads so little itself

Query = Callable[["DataFrame"], object]


def lookup_spark(setting: Setting) -> Result:
    """One value of an unsorted column, another in every call, from the query to its rows."""
    data = spark_table(setting)
    with spark_session() as spark:
        ours, theirs = _frames(spark, data)

        def row_ids(frame: DataFrame, call: int) -> list[int]:
            return [row.id for row in frame.where(f"uid = {data.key(call)}").collect()]

        planned = partial(planned_ids, spark, data)
        for call in range(3):
            answers = [row_ids(ours, call), *(planned(call, via) for via in READ_PATHS), row_ids(theirs, call)]
            _require(all(answer == answers[0] and len(answer) == 1 for answer in answers), answers)
        contenders = [
            partial(row_ids, ours),
            *(partial(planned, via=via) for via in READ_PATHS),
            partial(row_ids, theirs),
        ]
        *times, peer = race(list(map(changing, contenders)), setting.repetitions, warming(setting))
        goals = {
            "dataframe()": 1 / ONE_IN,
            **{f"prune().to_spark(via={via!r})": 1 / ONE_IN if via == "auto" else None for via in READ_PATHS},
        }
        ratios = tuple(
            timed(f"{name}, one value", time, SPARK, peer, goal)
            for (name, goal), time in zip(goals.items(), times, strict=True)
        )
    left = len(sec.prune(data.table, f"uid = {data.key(0)}").blocks)
    kept = Kept("events", "one value", "blocks", data.files * ROW_GROUPS, 1, {"secateur": left})
    return Result(_sizes(data), ratios, (kept,))


def scan_spark(setting: Setting) -> Result:
    """Queries that need every row, so that the index cannot help."""
    data = spark_table(setting)
    queries: dict[str, Query] = {
        "count(*)": lambda frame: frame.where("id >= 0").count(),
        "sum and max of two columns": lambda frame: (
            frame.where("id >= 0").selectExpr("sum(price)", "max(name)").collect()
        ),
        "all columns": lambda frame: frame.where("id >= 0").write.format("noop").mode("overwrite").save(),
    }
    ratios = []
    with spark_session() as spark:
        ours, theirs = _frames(spark, data)
        for name, query in queries.items():
            _require(query(ours) == query(theirs), name)
            time, peer = race([partial(query, ours), partial(query, theirs)], setting.repetitions)
            ratios.append(timed(f"dataframe(), {name}", time, SPARK, peer, goal=MOST_SCAN))
    return Result(_sizes(data), tuple(ratios))


def join_small_side(setting: Setting) -> Result:
    """A join on an unsorted column, with a table that a filter cuts to a few rows."""
    data = spark_table(setting)
    with spark_session() as spark:
        ours, theirs = _frames(spark, data)
        path = setting.prepared(f"small-side-{data.files}", partial(_write_small, spark, data))
        small = spark.read.parquet(str(path / "data"))

        def joined(frame: DataFrame, call: int) -> list[int]:
            few = small.where(f"label = 'group {call % (SMALL // WANTED)}'")
            return sorted(row.id for row in frame.join(few, frame.uid == few.key).select("id").collect())

        for call in range(2):
            _require(joined(ours, call) == joined(theirs, call) and len(joined(ours, call)) == WANTED, call)
        contenders = [changing(partial(joined, frame)) for frame in (ours, theirs)]
        time, peer = race(contenders, setting.repetitions, warming(setting))
    ratio = timed(f"dataframe(), join with {WANTED} rows", time, SPARK, peer, goal=1 / ONE_IN_OF_JOIN)
    return Result({**_sizes(data), "rows_of_the_small_side": SMALL}, (ratio,))


def planned_ids(spark: SparkSession, data: SparkTable, call: int, via: str) -> list[int]:
    """Return the ids of the rows with a value, by a plan given to Spark."""
    plan = sec.prune(data.table, f"uid = {data.key(call)}")
    return [row.id for row in plan.to_spark(spark, via=via).collect()]


def warming(setting: Setting) -> float:
    """Seconds until a JVM has compiled most of what plans and runs a query of a tenth of a second."""
    return WARMING * min(1, setting.scale)


def _frames(spark: SparkSession, data: SparkTable) -> tuple[DataFrame, DataFrame]:
    return sec.dataframe(spark, data.table, via="transparent"), spark.read.parquet(data.location)


def _write_small(spark: SparkSession, data: SparkTable, directory: Path) -> None:
    rows = [(int(key), f"group {i // WANTED}") for i, key in enumerate(data.keys[-SMALL:])]
    spark.createDataFrame(rows, "key bigint, label string").coalesce(1).write.parquet(str(directory / "data"))


def _require(is_so: bool, what: object) -> None:
    if not is_so:
        raise AssertionError(f"Spark and the index do not give the same rows: {what}")


def _sizes(data: SparkTable) -> dict[str, int | float]:
    return {"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}
