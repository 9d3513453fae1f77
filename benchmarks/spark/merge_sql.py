"""MERGE of keys into an Iceberg table in a session with ``enable()``, beside the same with pruning switched off.

The table is put back to the same snapshot after every MERGE, so each finds the rows as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.sessions import iceberg_trouble, spark_session
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race
from tests.support.formats.iceberg_spark import java_table, metadata_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 1_000
TABLE = "lake.db.keys_spark"
ROW_GROUP_BYTES = 400_000  # some ten thousand rows
UPSERT = (
    "MERGE INTO {table} t USING merged s ON t.{key} = s.{key}{named} WHEN MATCHED THEN UPDATE SET value = s.value "
    "WHEN NOT MATCHED THEN INSERT ({key}, value) VALUES (s.{key}, s.value)"
)
NAMED = UPSERT.replace("{named}", " AND t.{key} IN ({keys})")
UPDATE = (  # an inner join with a side that is filtered
    "MERGE INTO {table} t USING (SELECT * FROM merged WHERE value < 0) s ON t.{key} = s.{key} "
    "WHEN MATCHED THEN UPDATE SET value = s.value"
)
PLACES = {"id": "of the sort key, close together", "uid": "in no order"}
STATEMENTS = {
    "with its keys as a list": NAMED,
    "by its source alone": UPSERT.replace("{named}", ""),
    "of rows that are there": UPDATE,
}


def keys_spark(setting: Setting) -> Result:
    """Merge-on-read, by the column that the table is sorted by and by one that is in no order."""
    data = spark_table(setting)
    length = min(KEYS, data.rows // 1000)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    with spark_session(setting) as spark, enabled(spark, []):
        trouble = iceberg_trouble(spark)
        if not trouble:
            _make(spark, data)
            numbers = {"id": data.rows // 2 + 3 * np.arange(length), "uid": data.keys[:length]}
            for key, keys in numbers.items():
                source = pa.table({key: keys, "value": -1.0 - np.arange(length)})
                spark.createDataFrame(source).createOrReplaceTempView("merged")
                for statement_name, statement in STATEMENTS.items():
                    merge = statement.format(table=TABLE, key=key, keys=", ".join(map(str, keys.tolist())))
                    name = f"{length:,} keys {PLACES[key]}, {statement_name}"
                    measured, left = measured_merge(spark, setting, _iceberg_table(spark, data), name, merge)
                    ratios.extend(measured)
                    kept.append(Kept("Iceberg", f"MERGE of {name}", "files", data.files, None, {"secateur": left}))
            spark.sql(f"DROP TABLE {TABLE}")
    sizes = {"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS, "keys": length}
    return Result(sizes, tuple(ratios), tuple(kept), (trouble,) if trouble else ())


@dataclass(frozen=True)
class MergedTable:
    """A table that MERGE statements change."""

    name: str
    format: str
    put_back: Callable[[], object]
    left: Callable[[int], int]  # files or blocks of the plans that follow so many


def measured_merge(
    spark: SparkSession, setting: Setting, table: MergedTable, name: str, merge: str
) -> tuple[list[Ratio], int]:
    """Times and bytes of a MERGE with pruning and without, and how much of the table it left."""

    def run(*, pruned: bool) -> None:
        spark.conf.set(SWITCH, str(pruned).lower())
        spark.sql(merge)

    def contender(*, pruned: bool) -> Callable[[], None]:
        def both() -> None:
            run(pruned=pruned)
            table.put_back()

        return both

    answers, taken, left = [], [], -1
    for pruned in (True, False):
        before, earlier = bytes_read(spark), len(sec.last_plans(spark))
        run(pruned=pruned)
        taken.append(bytes_read(spark) - before)
        if pruned:
            left = table.left(earlier)
        answers.append(spark.sql(f"SELECT count(*), sum(hash(*)) FROM {table.name}").collect())
        table.put_back()
    if answers[0] != answers[1]:
        raise AssertionError(f"{name}: {answers[0]} with pruning, {answers[1]} without")
    ours, theirs = race([contender(pruned=True), contender(pruned=False)], setting.repetitions)
    reference = f"{table.format} alone, in the same session"
    ratios = [
        timed(f"MERGE of {name}, put back after", ours, reference, theirs),
        Ratio(f"bytes read, {name}", taken[0], "B", reference, taken[1]),
    ]
    return ratios, left


def _iceberg_table(spark: SparkSession, data: SparkTable) -> MergedTable:
    snapshot = java_table(spark, TABLE).currentSnapshot().snapshotId()
    call = f"CALL lake.system.rollback_to_snapshot('{TABLE.removeprefix('lake.')}', {snapshot})"
    return MergedTable(TABLE, "Iceberg", lambda: spark.sql(call), lambda earlier: _files_left(spark, data, earlier))


def _files_left(spark: SparkSession, data: SparkTable, earlier: int) -> int:
    """The files that the last scan of the table was left; all where it was not pruned, and so has no plan."""
    latest = sec.last_plans(spark)[earlier:]
    plans = [last.plan for last in latest if last.location == TABLE and last.plan is not None]
    return len(np.unique(plans[-1].survivors.blocks.file)) if plans else data.files


def bytes_read(spark: SparkSession) -> int:
    """The bytes that this JVM has read, in which tasks run too: of files, and of its sockets."""
    jvm: Any = spark._jvm
    lines = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def _make(spark: SparkSession, data: SparkTable) -> None:
    """Write the rows into an Iceberg table of as many files, sorted by `id`, and index it."""
    spark.conf.set(SWITCH, "false")
    spark.sql(f"DROP TABLE IF EXISTS {TABLE}")
    spark.sql(
        f"CREATE TABLE {TABLE} USING iceberg TBLPROPERTIES ('format-version'='2', 'write.merge.mode'='merge-on-read', "
        f"'write.distribution-mode'='none', 'write.parquet.row-group-size-bytes'='{ROW_GROUP_BYTES}') AS "
        f"SELECT /*+ REPARTITION_BY_RANGE({data.files}, id) */ * FROM parquet.`{data.location}`"
    )
    sec.build_index(sec.open_table(metadata_file(spark, TABLE)), bloom=["uid"])
