"""An indexed Delta table, of which copies are changed by the same statement with pruning and without."""

from __future__ import annotations

import re
import shutil
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import SWITCH
from tests.support.older_spark import condition_of

FILES, ROWS, GROUP = 8, 256, 64  # rows of a file, of a row group
VECTORS = "delta.enableDeletionVectors"


def rows(start: int, n: int) -> pa.Table:
    """Rows in the order of `id`, some NULL, whose `uid` is in no order; `ratio` has NaN and both zeros."""
    ids = range(start, start + n)
    ratios = [[float("nan"), -0.0, 0.0, None][i % 4] if i % 50 < 4 else i / 7 for i in ids]
    return pa.table(
        {
            "id": pa.array([None if i % 97 == 3 else i for i in ids], pa.int64()),
            "uid": pa.array([i * 7919 % 65536 for i in ids], pa.int64()),
            "name": [f"name-{i}" for i in ids],
            "ratio": pa.array(ratios, pa.float64()),
            "kind": pa.array([i // 1024 for i in ids], pa.int32()),
        }
    )


def make(spark: SparkSession, path: Path, *, vectors: bool) -> None:
    """Nine files of four row groups, the last without an entry in the index, two rows deleted.

    With deletion vectors, or partitioned by `kind` and with a feed of changes.
    """
    more: Any = {} if vectors else {"partition_by": ["kind"]}
    properties = deltalake.WriterProperties(max_row_group_size=GROUP)

    def append(number: int) -> None:
        table = rows(number * ROWS, ROWS)
        deltalake.write_deltalake(str(path), table, mode="append", writer_properties=properties, **more)

    for number in range(FILES):
        append(number)
    feature = VECTORS if vectors else "delta.enableChangeDataFeed"
    if vectors:
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{feature}' = 'true')")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (7, 1500)")
    sec.build_index(sec.open_table(str(path)), bloom=["uid", "name"], sort_key=["id"])
    append(FILES)
    if not vectors:
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{feature}' = 'true')")


@dataclass(frozen=True)
class Changed:
    """What a statement did to a copy."""

    error: str  # its condition, or ""
    rows: list[str]
    figures: dict[str, str]  # of Delta's history: rows, files and vectors that it changed
    feed: list[str]  # of changes, where the table has one
    read: int  # rows, from all files


def changed(spark: SparkSession, base: Path, statement: str, *, pruned: bool, properties: str = "") -> Changed:
    """Change a copy of a table, whose name is `{}` in the statement, and its path `{path}`."""
    path = base.with_name(f"copy-{uuid.uuid4()}")
    shutil.copytree(base, path)
    if properties:
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
    group, context = str(uuid.uuid4()), spark.sparkContext
    version = deltalake.DeltaTable(str(path)).version()
    context.setJobGroup(group, "change")
    spark.conf.set(SWITCH, str(pruned).lower())
    error = ""
    try:
        try:
            spark.sql(statement.replace("{}", f"delta.`{path}`").replace("{path}", str(path)))
        except PySparkException as problem:
            error = condition_of(problem) or str(problem).partition("\n")[0]
        except Py4JJavaError as problem:  # of a kind that PySpark does not know
            error = "".join(re.findall(r"\[([A-Z_0-9.]+)\]", str(problem))[:1])
            if not error:
                raise
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.set(SWITCH, "false")
        rows_left = sorted(map(repr, spark.read.format("delta").load(str(path)).collect()))
        newest: Any = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").first()
        feed = _feed(spark, path, version, newest.version)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.unset(SWITCH)
    kept = ("Rows", "FilesRemoved", "RemovedFiles", "DeletionVectors")
    figures = {k: v for k, v in (newest.operationMetrics or {}).items() if any(part in k for part in kept)}
    return Changed(error, rows_left, figures, feed, _rows_read(spark, group))


def _feed(spark: SparkSession, path: Path, version: int, newest: int) -> list[str]:
    if newest == version or not (path / "_change_data").exists():
        return []
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    return sorted(map(repr, feed.load(str(path)).drop("_commit_timestamp").collect()))


def _rows_read(spark: SparkSession, group: str) -> int:
    """The rows that the tasks of a group of jobs have read."""
    java: Any = spark.sparkContext._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    tracker, total = spark.sparkContext.statusTracker(), 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        assert info is not None
        for number in info.stageIds:
            with suppress(Py4JJavaError):  # a stage that was skipped
                total += java.statusStore().lastStageAttempt(number).inputRecords()
    return total


def change(spark: SparkSession, base: Path, statement: str, properties: str = "") -> tuple[Changed, Changed]:
    """Change two copies, with pruning and without, to the same rows and by the same figures."""
    with_index, without = (
        changed(spark, base, statement, pruned=pruned, properties=properties) for pruned in (True, False)
    )
    assert with_index.error == without.error, statement
    assert with_index.rows == without.rows, statement
    assert with_index.figures == without.figures, statement
    assert with_index.feed == without.feed, statement
    return with_index, without
