"""Switches of ``sec.enable``: one table, and audits of what queries have left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.planner import session_rule
from secateur.io.spark.planner.background_audit import share_of
from tests.support.enabled_session import answer, enabled, plan_of, pruning, reasons
from tests.support.stores.lying_index import element, lie_in_segment

AUDIT = "secateur.audit"


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """An indexed table of ten row groups, also in the catalog as `switched`."""
    pq.write_table(pa.table({"id": np.arange(100), "v": np.arange(100) % 7}), tmp_path / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    spark.catalog.createTable("switched", path=str(tmp_path), source="parquet")
    with enabled(spark):
        yield str(tmp_path)
    spark.sql("DROP TABLE switched")


def audits(spark: SparkSession) -> None:
    """Wait for them."""
    rule = session_rule._rule_of(spark)
    assert rule is not None
    rule.python.audits.wait()


def test_one_table_is_switched_off_by_name_or_path(spark: SparkSession, root: str) -> None:
    query = "SELECT * FROM switched WHERE id = 5"
    for key in ("switched", "default.switched", "spark_catalog.default.switched", root):
        assert pruning(spark.sql(query)) == ["1 of 10"]
        spark.sql(f"SET `secateur.enabled.{key}`=false")
        try:
            assert pruning(spark.sql(query)) == []
            assert reasons(spark)[-1] == f"secateur.enabled.{key} is off"
            assert (pruning(spark.read.parquet(root).where("id = 5")) == []) == (key == root)
        finally:
            spark.conf.unset(f"secateur.enabled.{key}")
    spark.sql("SET secateur.enabled.another=false")
    assert pruning(spark.sql(query)) == ["1 of 10"]
    spark.conf.unset("secateur.enabled.another")


def test_a_share_of_what_is_pruned_is_audited_in_the_background(spark: SparkSession, root: str) -> None:
    spark.conf.set(AUDIT, "0.5")
    try:
        assert spark.sql("SELECT * FROM switched WHERE id = 5").count() == 1
        audits(spark)
        plan = sec.last_plans(spark)[-1].plan
        assert plan is not None
        assert plan.report.audit is not None
        assert (plan.report.audit.blocks, plan.report.audit.rows) == (5, 50)
    finally:
        spark.conf.unset(AUDIT)


def test_an_index_that_loses_rows_is_not_used_after_the_audit(
    spark: SparkSession, root: str, caplog: pytest.LogCaptureFixture
) -> None:
    lie_in_segment(Path(root) / "_secateur", "zone/0", element(0, 1, 15))
    sec.enable(spark, [root])
    query = "SELECT * FROM switched WHERE id = 14"
    spark.conf.set(AUDIT, "1")
    try:
        assert answer(spark, query, pruned=True) != answer(spark, query, pruned=False)
        audits(spark)
        assert "row 4 of row group 1 of a.parquet matches" in caplog.text
        assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False)
        assert "IndexPruning" not in plan_of(spark.sql(query))
        assert "row 4 of row group 1" in reasons(spark)[-1]
    finally:
        spark.conf.unset(AUDIT)


@pytest.mark.parametrize(
    ("setting", "share"), [("", 0), ("0", 0), ("0.25", 0.25), ("1", 1), ("2", 0), ("-1", 0), ("nan", 0), ("much", 0)]
)
def test_shares(setting: str, share: float) -> None:
    assert share_of(setting) == share
