"""One row of a Delta table by a key in no order, beside Delta's own reader in the same session."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Kept, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.sessions import delta_session, delta_trouble
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from tests.support.stores.local_build import index_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from secateur.io.tables.table import Table

ONE_IN = 10  # goal: times as fast
WARMING = 15  # seconds for each contender
NAME = "lookup_delta"
DELTA = "Delta's own reader, in the same session"
FLOOR = "the planning alone of Delta's own reader"  # a job of Spark's over the log, which stays with enable()
IN_SQL = "SQL with enable()"

Lookup = Callable[[int], list[int]]


def lookup_delta(setting: Setting) -> Result:
    """Another value in every call, by SQL that names the table and by a plan that is handed to Spark."""
    data = spark_table(setting)
    location, table = delta_table(setting, data)
    with delta_session() as spark:
        trouble = delta_trouble(spark)
        if trouble:
            return Result(_sizes(data), notes=(trouble,))
        with enabled(spark, [table]):
            spark.sql(f"CREATE TABLE {NAME} USING delta LOCATION '{location}'")
            try:
                return _raced(spark, setting, data, table)
            finally:
                spark.sql(f"DROP TABLE {NAME}")


def _raced(spark: SparkSession, setting: Setting, data: SparkTable, table: Table) -> Result:
    def query(call: int, *, pruned: bool) -> DataFrame:
        spark.conf.set(SWITCH, str(pruned).lower())
        return spark.sql(f"SELECT id FROM {NAME} WHERE uid = {data.key(call)}")

    def in_sql(call: int, *, pruned: bool) -> list[int]:
        return [row.id for row in query(call, pruned=pruned).collect()]

    def planned_by_delta(call: int) -> object:
        return query(call, pruned=False)._jdf.queryExecution().executedPlan()

    def planned(call: int) -> list[int]:
        plan = sec.prune(table, f"uid = {data.key(call)}")
        return [row.id for row in plan.to_spark(spark, columns=["id"]).collect()]

    ours: dict[str, Lookup] = {IN_SQL: partial(in_sql, pruned=True), "prune().to_spark()": planned}
    contenders: list[Lookup] = [*ours.values(), partial(in_sql, pruned=False)]
    for call in range(3):
        answers = [contender(call) for contender in contenders]
        if any(answer != answers[0] or len(answer) != 1 for answer in answers):
            raise AssertionError(f"{[*ours, DELTA]} give {answers}")
    raced = [changing(contender) for contender in (*contenders, planned_by_delta)]
    *times, peer, floor = race(raced, setting.repetitions, WARMING * min(1, setting.scale))
    ratios = [
        timed(f"{name}, one value", time, DELTA, peer, 1 / ONE_IN) for name, time in zip(ours, times, strict=True)
    ]
    ratios.append(timed(f"{IN_SQL}, one value", times[0], FLOOR, floor))
    left = len(sec.prune(table, f"uid = {data.key(0)}").blocks)
    kept = Kept(NAME, "one value", "blocks", data.files * ROW_GROUPS, 1, {"secateur": left})
    return Result(_sizes(data), tuple(ratios), (kept,))


def delta_table(setting: Setting, data: SparkTable) -> tuple[str, Table]:
    """The same files as a Delta table whose log has their bounds, with a filter of `uid`."""
    directory = setting.prepared(f"delta-days-{data.files}", partial(_link, Path(data.location)))
    table = sec.open_table(str(directory / "data"), index_location=str(directory / f"index-{index_code()}"))
    if not (directory / f"index-{index_code()}").exists():
        index_here(table, BuildOptions(filters=filter_options(bloom=["uid"])))
    return str(directory / "data"), table


def _link(source: Path, directory: Path) -> None:
    (directory / "data").mkdir()
    for file in sorted(source.glob("*.parquet")):
        os.link(file, directory / "data" / file.name)
    deltalake.convert_to_deltalake(str(directory / "data"))


def _sizes(data: SparkTable) -> dict[str, int | float]:
    return {"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}
