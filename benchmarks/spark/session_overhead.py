"""What ``enable()`` adds to the planning of a query, without and with an index."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Ratio, Result, against
from benchmarks.setting import Setting, index_code
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.sessions import spark_session
from benchmarks.timing import Timing, race
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 100_000, 20
MOST_WITHOUT, MOST_BESIDE = 0.001, 0.015  # seconds, the goals
WARMING = 10  # seconds for each contender


def session_overhead(setting: Setting) -> Result:
    """The time from a query's text to its physical plan, another constant in every call; nothing is run."""
    files = setting.scaled(FILES, least=20)
    table, location = _table(setting, files)
    bare = setting.prepared("bare-1", lambda path: _write(path, 1))
    with spark_session(setting) as spark, enabled(spark, [table]):
        spark.read.parquet(str(bare / "data")).createOrReplaceTempView("bare")
        spark.read.parquet(location).createOrReplaceTempView("many")
        ratios = (_without(spark, setting), _beside_prune(spark, setting, table, files))
    return Result({"files": files, "rows": files * ROWS}, ratios)


def _without(spark: SparkSession, setting: Setting) -> Ratio:
    contenders = [partial(_plan, spark, "bare", pruned=pruned) for pruned in (True, False)]
    on, off = race([changing(contender) for contender in contenders], 5 * setting.repetitions, _warming(setting))
    return against("enable(), a table without an index", _added(on, off), MOST_WITHOUT)


def _beside_prune(spark: SparkSession, setting: Setting, table: Table, files: int) -> Ratio:
    def prune(call: int) -> None:
        sec.prune(table, f"id + 0 = {call * 7}")

    plans = [changing(partial(_plan, spark, "many", pruned=pruned)) for pruned in (True, False)]
    on, off, pruned = race([*plans, changing(prune)], setting.repetitions, _warming(setting))
    return against(f"enable() less prune(), {files:,} files", _added(_added(on, off), pruned), MOST_BESIDE)


def _plan(spark: SparkSession, view: str, call: int, *, pruned: bool) -> None:
    """Plan a query that Spark itself cannot prune."""
    spark.conf.set(SWITCH, str(pruned).lower())
    spark.sql(f"SELECT * FROM {view} WHERE id + 0 = {call * 7}")._jdf.queryExecution().sparkPlan()


def _added(time: Timing, other: Timing) -> Timing:
    """What one takes longer than the other, repetition by repetition; 0 where it is faster."""
    return Timing(tuple(max(0.0, a - b) for a, b in zip(time.samples, other.samples, strict=True)))


def _warming(setting: Setting) -> float:
    return WARMING * min(1, setting.scale)


def _table(setting: Setting, files: int) -> tuple[Table, str]:
    """Write files of a few rows each, with an index."""
    directory = setting.prepared(f"many-files-{files}", partial(_write, files=files))
    location, index = directory / "data", directory / f"index-{index_code()}"
    table = sec.open_table(str(location), index_location=str(index))
    if not index.exists():
        index_here(table, BuildOptions())
    return table, str(location)


def _write(directory: Path, files: int) -> None:
    (directory / "data").mkdir()
    for i in range(files):
        ids = np.arange(i * ROWS, (i + 1) * ROWS)
        pq.write_table(pa.table({"id": ids, "v": ids % 7}), directory / "data" / f"part-{i:06d}.parquet")
