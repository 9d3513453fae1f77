"""Strings with a collation, which pruning leaves to Spark, and padded strings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laws import check_table
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


CHAR_PREDICATES = ["c = 'ab'", "c = 'ab   '", "c < 'ab '", "c IN ('ab', 'abcde')", "v = 'ab'", "v = 'ab '", "c = v"]
CHAR_PREDICATES += ["c LIKE 'ab%'", "length(c) = 5", "substring(c, 1, 2) = 'ab'"]


def test_c19_padded_strings_compare_as_spark_reads_them_by_path(spark: SparkSession, tmp_path: Path) -> None:
    """CHAR(5) is padded in the files, and nothing in them says so: without the catalog it is a plain string."""
    spark.sql(f"CREATE TABLE padded (rid BIGINT, c CHAR(5), v VARCHAR(5)) USING parquet LOCATION '{tmp_path}'")
    try:
        spark.sql(
            "INSERT INTO padded VALUES (1, 'ab', 'ab'), (2, 'ab ', 'ab '), (3, 'abcde', 'abcde'), (4, NULL, NULL)"
        )
        answers = check_table(spark, tmp_path, CHAR_PREDICATES, roads=len(CHAR_PREDICATES), build={"bloom": ["c", "v"]})
        assert set(answers.truth) == set(CHAR_PREDICATES)
    finally:
        spark.sql("DROP TABLE padded")
