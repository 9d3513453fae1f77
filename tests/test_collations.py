"""Strings with a collation: pruning leaves them alone, and Spark's own reader compares them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from oracle import rows

import secateur as sc
from secateur.errors import UnsupportedPredicate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = ["s = 'NAME3'", "s > 'name5' AND id < 8", "s = 'x' OR id = 2", "st.u = 'a'", "lower(s) = 'name3'"]
PREDICATES += ["s LIKE 'NAME%'", "s IN ('NAME1', 'name2')", "NOT (s = 'NAME1')", "s <=> 'NAME1'"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    text = "CAST(concat('Name', id) AS STRING)"
    collated = f"{text} COLLATE UTF8_LCASE AS s, named_struct('u', 'A' COLLATE UTF8_LCASE) AS st, {text} AS plain"
    frame = spark.sql(f"SELECT id, {collated} FROM range(10)")
    frame.coalesce(2).write.parquet(str(tmp_path / "lake"))
    return tmp_path / "lake"


@pytest.mark.parametrize("predicate", PREDICATES)
def test_c19_a_collation_keeps_every_block_and_compares_as_spark_does(
    spark: SparkSession, lake: Path, predicate: str
) -> None:
    table = sc.open_table(str(lake))
    sc.build_index(table, spark=spark)
    plan = sc.prune(table, predicate)
    assert plan.report.unsupported
    assert rows(plan.to_spark(spark).toArrow()) == rows(spark.read.parquet(str(lake)).where(predicate).toArrow())
    with pytest.raises(UnsupportedPredicate, match="collation"):
        plan.to_arrow()
    with pytest.raises(UnsupportedPredicate, match="collation"):
        plan.to_spark(spark, via="blocks")


def test_other_columns_of_such_a_table_prune(spark: SparkSession, lake: Path) -> None:
    plan = sc.prune(sc.open_table(str(lake)), "id = 3 AND s IS NOT NULL")
    assert plan.to_arrow(["id"])["id"].to_pylist() == [3]
    assert len(plan.blocks) == 1
