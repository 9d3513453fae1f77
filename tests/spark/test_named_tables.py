"""Tables by their name in Spark's catalog: the rows are those that Spark reads by that name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import secateur as sec
from secateur.cli import main
from secateur.errors import TableNotFound, UnsupportedTable
from tests.support.checks import oracle


@pytest.fixture(scope="module")
def database(spark: SparkSession) -> Iterator[str]:
    """A database, whose tables are made by each test."""
    spark.sql("CREATE DATABASE named")
    yield "named"
    spark.sql("DROP DATABASE named CASCADE")


def agrees(spark: SparkSession, name: str, *predicates: str, **options: Any) -> None:
    table = sec.open_table(name, spark=spark, **options)
    for predicate in predicates:
        plan = sec.prune(table, predicate, strict=True)
        expected = oracle.rows(spark.table(name).where(predicate).toArrow())
        assert oracle.rows(plan.to_arrow()) == expected, predicate
        assert oracle.rows(plan.to_spark(spark).toArrow()) == expected, predicate
        assert plan.count() == expected.total() > 0, predicate


def test_a_table_without_partitions(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE named.plain (id BIGINT, Name STRING, at TIMESTAMP_NTZ) USING parquet")
    spark.sql("INSERT INTO named.plain SELECT id, concat('n', id), timestamp_ntz'2026-01-01' FROM range(0, 90, 1, 3)")
    agrees(spark, "named.plain", "id % 2 = 0", "name = 'n7'")
    sec.build_index(sec.open_table("spark_catalog.named.plain", spark=spark), bloom=["id"])
    agrees(spark, "spark_catalog.named.plain", "id IN (7, 80)", "at > TIMESTAMP_NTZ '2000-01-01' AND id < 5")
    table = sec.open_table("`named`.`plain`", spark=spark)
    assert len(sec.prune(table, "id = 7", strict=True).blocks) == 1
    counted = CliRunner().invoke(main, ["prune", "named.plain", "id = 7", "--spark", "--count"], catch_exceptions=False)
    assert counted.output.strip() == "1"


def test_partitions_are_those_of_the_catalog(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """With the catalog's types; elsewhere too; and nothing of a directory that the catalog does not have."""
    spark.sql("CREATE TABLE named.parts (id BIGINT, day STRING, n INT) USING parquet PARTITIONED BY (day, n)")
    spark.sql("INSERT INTO named.parts SELECT id, concat('0', id % 3), nullif(id % 2, 0) FROM range(60)")
    root = Path(sec.open_table("named.parts", spark=spark).location)
    stray, away, empty = root / "day=09" / "n=5", tmp_path / "away a%20b", tmp_path / "empty"
    for folder, start in ((stray, 1000), (away, 2000), (root / "day=01" / "n=1" / "deeper", 3000)):
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(range(start, start + 5), pa.int64())}), folder / "x.parquet")
    spark.sql(f"ALTER TABLE named.parts ADD PARTITION (day = 'a/b=c', n = 7) LOCATION '{away}'")
    spark.sql(f"ALTER TABLE named.parts ADD PARTITION (day = 'none', n = 8) LOCATION '{empty}'")
    predicates = ("true", "day = '01'", "n IS NULL AND id < 30", "day = 'a/b=c' OR id = 5", "n = 7 AND id > 2003")
    agrees(spark, "named.parts", *predicates)
    table = sec.open_table("named.parts", spark=spark)
    assert sec.prune(table, "id BETWEEN 1000 AND 1009 OR id >= 3000").count() == 0
    sec.build_index(table, bloom=["id"])
    agrees(spark, "named.parts", *predicates, "id IN (4, 2004)")
    assert len(sec.prune(table, "id = 2004", strict=True).files) == 1
    spark.sql("ALTER TABLE named.parts DROP PARTITION (day = 'a/b=c', n = 7)")
    assert sec.prune(table, "id = 2004", strict=True).count() == 0
    assert dict(Counter(sec.prune(table, "true").to_arrow()["day"].to_pylist())) == {"00": 20, "01": 20, "02": 20}


def test_partitions_that_directories_tell(spark: SparkSession, database: str) -> None:
    spark.conf.set("spark.sql.hive.manageFilesourcePartitions", "false")
    try:
        spark.sql("CREATE TABLE named.told (id BIGINT, day INT) USING parquet PARTITIONED BY (day)")
        spark.sql("INSERT INTO named.told SELECT id, id % 3 FROM range(60)")
        agrees(spark, "named.told", "day = 1", "id < 7")
    finally:
        spark.conf.unset("spark.sql.hive.manageFilesourcePartitions")


def test_an_iceberg_table_follows_the_catalog(iceberg: SparkSession) -> None:
    iceberg.sql("CREATE TABLE lake.db.by_name USING iceberg AS SELECT id FROM range(0, 50, 1, 1)")
    try:
        table = sec.open_table("lake.db.by_name", spark=iceberg)
        first = table.snapshot().id
        iceberg.sql("INSERT INTO lake.db.by_name SELECT id + 100 FROM range(0, 5, 1, 1)")
        agrees(iceberg, "lake.db.by_name", "id > 40")
        assert sec.prune(table, "id > 40").count() == 14
        assert sec.prune(sec.open_table("lake.db.by_name", spark=iceberg, snapshot_id=first), "id > 40").count() == 9
    finally:
        iceberg.sql("DROP TABLE lake.db.by_name")


def test_what_is_not_read_by_name(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE named.csv (id BIGINT) USING csv")
    spark.sql("CREATE VIEW named.seen AS SELECT 1 AS id")
    spark.sql("CREATE OR REPLACE TEMP VIEW passing AS SELECT 1 AS id")
    spark.sql("CREATE TABLE named.grown (id BIGINT) USING parquet")
    spark.sql("INSERT INTO named.grown VALUES (1)")
    spark.sql("ALTER TABLE named.grown ADD COLUMN more INT DEFAULT 7")
    for name, reason in (
        ("named.csv", "named.csv is a table of csv"),
        ("named.seen", "named.seen is a view"),
        ("passing", "passing is a view"),
        ("named.grown", "a default for older files"),
    ):
        with pytest.raises(UnsupportedTable, match=reason):
            sec.open_table(name, spark=spark)
    for name in ("named.missing", "nowhere.t", "named.plain WHERE 1", ""):
        with pytest.raises(TableNotFound, match="has no table"):
            sec.open_table(name, spark=spark)
    with pytest.raises(ValueError, match="leave out"):
        sec.open_table("named.csv", spark=spark, schema=pa.schema([]))
    with pytest.raises(ValueError, match="no snapshots"):
        sec.open_table("named.grown", spark=spark, version=1)
