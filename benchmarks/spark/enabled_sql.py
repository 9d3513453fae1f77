"""Plain SQL in a session with ``enable()``, beside the same session with pruning switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.sessions import iceberg_trouble, spark_session
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race
from tests.support.formats.iceberg_spark import metadata_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_IN = 10  # goal: times as fast
SWITCH = "secateur.enabled"
WARMING = 15  # seconds for each contender
VIEW, ICEBERG = "lookup_sql", "lake.db.lookup_sql"
ROW_GROUP_BYTES = 400_000  # some ten thousand rows


def lookup_sql(setting: Setting) -> Result:
    """One value of an unsorted column, another in every call, in SQL that names the table."""
    data = spark_table(setting)
    with spark_session(setting) as spark, enabled(spark, [data.table]):
        spark.read.parquet(data.location).createOrReplaceTempView(VIEW)
        ratios = [_lookup(spark, setting, data, VIEW, "a directory")]
        trouble = iceberg_trouble(spark)
        if not trouble:
            _make_iceberg(spark, data)
            ratios.append(_lookup(spark, setting, data, ICEBERG, "Iceberg"))
            spark.sql(f"DROP TABLE {ICEBERG}")
    sizes = {"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}
    return Result(sizes, tuple(ratios), notes=(trouble,) if trouble else ())


@contextmanager
def enabled(spark: SparkSession, tables: list[object]) -> Iterator[None]:
    """Switch pruning on for as long as it is measured."""
    for table in tables or [None]:
        sec.enable(spark, None if table is None else [table])  # type: ignore[list-item]
    try:
        yield
    finally:
        sec.disable(spark)
        spark.conf.unset(SWITCH)


def _lookup(spark: SparkSession, setting: Setting, data: SparkTable, name: str, where: str) -> Ratio:
    def row_ids(call: int, *, pruned: bool) -> list[int]:
        spark.conf.set(SWITCH, str(pruned).lower())
        key = int(data.keys[call % len(data.keys)])
        return [row.id for row in spark.sql(f"SELECT id FROM {name} WHERE uid = {key}").collect()]

    for call in range(2):
        ours, theirs = (row_ids(call, pruned=pruned) for pruned in (True, False))
        if not ours == theirs or len(ours) != 1:
            raise AssertionError(f"{ours} with pruning, {theirs} without")
    contenders = [changing(partial(row_ids, pruned=pruned)) for pruned in (True, False)]
    time, peer = race(contenders, setting.repetitions, WARMING * min(1, setting.scale))
    return timed(f"SQL on {where}, one value", time, "Spark alone, in the same session", peer, 1 / ONE_IN)


def _make_iceberg(spark: SparkSession, data: SparkTable) -> None:
    """Write the same rows into an Iceberg table of as many files, and index it."""
    spark.sql(f"DROP TABLE IF EXISTS {ICEBERG}")
    spark.conf.set(SWITCH, "false")
    spark.sql(
        f"CREATE TABLE {ICEBERG} USING iceberg TBLPROPERTIES ('write.distribution-mode'='none', "
        f"'write.parquet.row-group-size-bytes'='{ROW_GROUP_BYTES}') AS "
        f"SELECT /*+ REPARTITION_BY_RANGE({data.files}, id) */ * FROM {VIEW}"
    )
    sec.build_index(sec.open_table(metadata_file(spark, ICEBERG)), bloom=["uid"])
