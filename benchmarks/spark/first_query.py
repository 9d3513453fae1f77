"""The first query of a session: ``python -m benchmarks.spark.first_query CONTENDER LOCATION INDEX KEY OTHER_KEY``.

Every start is a process of its own, whose session is there when the clock starts. The JVM has compiled nothing of what
plans and reads a table: that is most of the time, for Spark's own reader too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import secateur as sec
from benchmarks.results import Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.spark_table import ROW_GROUPS, spark_table
from benchmarks.timing import Timing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
STARTS = 5  # at most, per contender
MOST = 1.3  # times as long as Spark alone, the goal
SPARK, FRAME, ENABLE, PLAN = "Spark alone", "dataframe()", "enable()", "prune().to_spark()"
MOMENTS = {"frame": "the first frame", "first": "its first query", "second": "its second query"}


def first_query(setting: Setting) -> Result:
    """Make a frame of a table, ask it for one value, and ask it for another, in a session that has done nothing."""
    data = spark_table(setting)
    keys = [int(key) for key in data.keys[:2]]
    starts = [
        {name: _start(name, data.location, data.table.store.location, *keys) for name in (SPARK, FRAME, ENABLE, PLAN)}
        for _ in range(min(STARTS, setting.repetitions))
    ]
    if any(run["rows"] != 2 for runs in starts for run in runs.values()):
        raise AssertionError(f"not one row for each of the two values: {starts}")
    ratios = tuple(
        timed(f"{name}: {moment}", _times(starts, name, key), SPARK, _times(starts, SPARK, key), goal)
        for name in (FRAME, ENABLE, PLAN)
        for key, moment, goal in (*((key, MOMENTS[key], None) for key in MOMENTS), ("both", "frame and first", MOST))
    )
    return Result({"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}, ratios)


def _times(starts: list[dict[str, dict[str, float]]], name: str, key: str) -> Timing:
    keys = ("frame", "first") if key == "both" else (key,)
    return Timing(tuple(sum(runs[name][part] for part in keys) for runs in starts))


def _start(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.spark.first_query", *map(str, arguments)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def _measured(name: str, location: str, index: str, key: str, other_key: str) -> dict[str, float]:
    with spark_session() as spark:
        started = time.perf_counter()
        frame = _frame(spark, name, location, index, key)
        ready = time.perf_counter()
        rows = len(frame.where(f"uid = {key}").collect())
        answered = time.perf_counter()
        rows += len(_second(spark, name, frame, location, index, other_key).where(f"uid = {other_key}").collect())
        return {
            "frame": ready - started,
            "first": answered - ready,
            "second": time.perf_counter() - answered,
            "rows": rows,
        }


def _frame(spark: SparkSession, name: str, location: str, index: str, key: str) -> DataFrame:
    if name == SPARK:
        return spark.read.parquet(location)
    if name == ENABLE:
        sec.enable(spark, [location], index_location=index)
        return spark.read.parquet(location)
    table = sec.open_table(location, index_location=index)
    return sec.dataframe(spark, table) if name == FRAME else sec.prune(table, f"uid = {key}").to_spark(spark)


def _second(spark: SparkSession, name: str, frame: DataFrame, location: str, index: str, key: str) -> DataFrame:
    """Return the frame for another value: a plan answers one question."""
    return _frame(spark, name, location, index, key) if name == PLAN else frame


if __name__ == "__main__":
    print(json.dumps(_measured(*sys.argv[1:])))
