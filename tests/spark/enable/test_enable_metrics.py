"""What Spark's UI shows of pruned scans, as its status store has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

import secateur as sec
from tests.support.enabled_session import enabled

KEPT, ALL = "row groups kept by secateur", "row groups of the files"


def metrics(spark: SparkSession, frame: DataFrame) -> dict[str, str]:
    """The metrics of a query by their names, after it has run."""
    frame.collect()
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last()
    values = store.executionMetrics(last.executionId())
    by_name = {}
    for i in range(last.metrics().length()):
        metric = last.metrics().apply(i)
        value = values.get(metric.accumulatorId())
        if value.isDefined():
            by_name[metric.name()] = value.get()
    return by_name


def test_metrics_of_a_pruned_scan(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(30_000)}), tmp_path / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    with enabled(spark):
        table = spark.read.parquet(str(tmp_path))
        values = metrics(spark, table.where("id = 5"))
        assert (values[KEPT], values[ALL]) == ("1", "3,000")
        assert values["bytes of the row groups kept by secateur"].endswith(" bytes")
        assert values["bytes of the files"].endswith(" KB")
        assert int(values["secateur's planning"].removesuffix(" ms")) < 60_000
        small = spark.createDataFrame([(7, "a"), (8, "b")], "key bigint, label string").where("label < 'b'")
        joined = metrics(spark, table.join(broadcast(small), table.id == small.key))
        assert (joined[KEPT], joined[ALL]) == ("1", "3,000")
        pq.write_table(pa.table({"id": np.arange(9)}), tmp_path / "b.parquet")
        values = metrics(spark, spark.read.parquet(str(tmp_path)).where("id = 5"))
        assert KEPT not in values or values[KEPT] == "0"


def test_metrics_of_a_frame_that_prunes_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(100)}), tmp_path / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    values = metrics(spark, sec.dataframe(spark, sec.open_table(str(tmp_path)), via="transparent").where("id < 15"))
    assert (values[KEPT], values[ALL]) == ("2", "10")
