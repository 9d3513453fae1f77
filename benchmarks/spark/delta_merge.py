"""MERGE of keys into a Delta table in a session with ``enable()``, beside the same with pruning switched off.

The table is restored to the same version after every MERGE, so each finds the rows as they were.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.results import Kept, Ratio, Result
from benchmarks.setting import Setting, index_code
from benchmarks.spark.delta_lookup import delta_table
from benchmarks.spark.enabled_sql import enabled
from benchmarks.spark.merge_sql import KEYS, PLACES, STATEMENTS, MergedTable, measured_merge
from benchmarks.spark.sessions import delta_session, delta_trouble
from benchmarks.spark.spark_table import ROW_GROUPS, spark_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.table import Table

NAME = "keys_delta"
BY_SOURCE = "by its source alone"
VECTORS = {True: "with deletion vectors", False: "files written anew"}


def keys_delta(setting: Setting) -> Result:
    """By the column that the table is sorted by and by one in no order, with deletion vectors and without."""
    data = spark_table(setting)
    length = min(KEYS, data.rows // 1000)
    sizes = {"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS, "keys": length}
    numbers = {"id": data.rows // 2 + 3 * np.arange(length), "uid": data.keys[:length]}
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    location, _ = delta_table(setting, data)
    with delta_session() as spark:
        trouble = delta_trouble(spark)
        if trouble:
            return Result(sizes, notes=(trouble,))
        for vectors, of_files in VECTORS.items():
            with _copied(Path(location)) as table, enabled(spark, [table]), _named(spark, table, vectors=vectors):
                for key, keys in numbers.items():
                    source = pa.table({key: keys, "value": -1.0 - np.arange(length)})
                    spark.createDataFrame(source).createOrReplaceTempView("merged")
                    merge = STATEMENTS[BY_SOURCE].format(table=NAME, key=key)
                    name = f"{length:,} keys {PLACES[key]}, {of_files}"
                    measured, left = measured_merge(spark, setting, _delta_table(spark, table.location), name, merge)
                    ratios.extend(measured)
                    kept.append(Kept("Delta", f"MERGE of {name}", "blocks", sizes["blocks"], None, {"secateur": left}))
    return Result(sizes, tuple(ratios), tuple(kept))


@contextmanager
def _copied(location: Path) -> Iterator[Table]:
    """The table with a log of its own, by links to the same files and with the same index."""
    with tempfile.TemporaryDirectory(dir=location.parent) as directory:
        copy = Path(directory) / "data"
        shutil.copytree(location, copy, copy_function=os.link)
        yield sec.open_table(str(copy), index_location=str(location.parent / f"index-{index_code()}"))


@contextmanager
def _named(spark: SparkSession, table: Table, *, vectors: bool) -> Iterator[None]:
    spark.sql(f"CREATE TABLE {NAME} USING delta LOCATION '{table.location}'")
    try:
        properties = f"'delta.enableDeletionVectors' = '{str(vectors).lower()}'"
        spark.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ({properties})")
        yield
    finally:
        spark.sql(f"DROP TABLE {NAME}")


def _delta_table(spark: SparkSession, location: str) -> MergedTable:
    version = spark.sql(f"DESCRIBE HISTORY {NAME}").agg({"version": "max"}).collect()[0][0]

    def left(earlier: int) -> int:
        """The row groups that are left where rows that match are looked for."""
        latest = sec.last_plans(spark)[earlier:]
        return next(len(read.plan.blocks) for read in latest if read.location == location and read.plan)

    restore = f"RESTORE TABLE {NAME} TO VERSION AS OF {version}"
    return MergedTable(NAME, "Delta", lambda: spark.sql(restore), left)
