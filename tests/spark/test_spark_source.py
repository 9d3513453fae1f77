"""``spark.read.format("secateur")``: the rows of the table, whatever the query and however often it is asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader

import secateur as sec

ROWS = 4_000
QUERIES = [
    "id % 7 = 3 AND length(name) > 2",  # functions go to executors
    "id = 5",
    "id IN (1, 2, 3999)",
    "id = 1 OR id = 3",
    "x > 3.0",
    "x = CAST('NaN' AS DOUBLE)",
    "day = DATE '2026-01-02' AND id > 2000",
    "day IS NULL",
    "nested.y = 77",
    "name LIKE 'name-00%'",
    "name LIKE '%7'",
    "ts > TIMESTAMP '2026-01-01 00:30:00'",
    "NOT (id > 3)",
    "id <=> NULL",
    "id + 0 = 17",
    "id = -1",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> str:
    """A partitioned, indexed table."""
    root = tmp_path_factory.mktemp("source") / "lake"
    for i, day in enumerate(["2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"]):
        ids = np.arange(i * ROWS // 3, (i + 1) * ROWS // 3)
        (root / f"day={day}").mkdir(parents=True)
        table = pa.table(
            {
                "id": ids,
                "x": np.where(ids % 50 == 0, np.nan, np.sin(ids) * 4),
                "name": pa.array([f"name-{i:04d}" for i in ids]),
                "ts": pa.array(ids * 1_000_000 + 1_767_225_600_000_000, pa.timestamp("us", "UTC")),
                "nested": pa.array([{"y": int(i)} for i in ids]),
            }
        )
        pq.write_table(table, root / f"day={day}" / "part.parquet", row_group_size=200, write_page_index=True)
    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["id"])
    return str(root)


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def load(spark: SparkSession, lake: str, **options: object) -> DataFrame:
    return spark.read.format("secateur").options(**{k: str(v).lower() for k, v in options.items()}).load(lake)


def test_schema_is_sparks(spark: SparkSession, lake: str) -> None:
    assert load(spark, lake).schema == spark.read.parquet(lake).schema


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_spark(spark: SparkSession, lake: str, query: str) -> None:
    expected = rows(spark.read.parquet(lake).where(query))
    assert rows(load(spark, lake).where(query)) == expected
    if hasattr(DataSourceReader, "pushFilters"):
        assert rows(load(spark, lake, pushdown=True).where(query)) == expected


@pytest.mark.parametrize("query", [q for q in QUERIES if "+" not in q])
def test_predicate_option_is_a_where(spark: SparkSession, lake: str, query: str) -> None:
    frame = spark.read.format("secateur").option("predicate", query).load(lake)
    assert rows(frame) == rows(spark.read.parquet(lake).where(query))


def test_sql_view(spark: SparkSession, lake: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW events USING secateur OPTIONS (path '{lake}')")
    assert spark.sql("SELECT count(*) FROM events WHERE id < 10").first() == (10,)
    assert spark.sql("SELECT count(*) FROM events").first() == (ROWS // 3 * 3 + ROWS % 3,)


def test_a_frame_may_be_used_again_with_other_filters(spark: SparkSession, lake: str) -> None:
    """Spark plans a reused Python relation with the filters last pushed; so nothing is pushed unless asked for."""
    frame = load(spark, lake)
    everything = frame.count()
    assert frame.where("id = 5").count() == 1
    assert frame.count() == everything
    assert frame.where("id = 1 OR id = 3").count() == 2
    assert frame.where("id = 5").union(frame.where("id = 3000")).count() == 2


def test_a_missing_path_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="does not exist"):
        load(spark, str(tmp_path / "absent")).collect()


def test_selected_columns(spark: SparkSession, lake: str) -> None:
    frame = spark.read.format("secateur").schema("id bigint, day date").load(lake).where("id = 5")
    assert [tuple(row) for row in frame.select("id").collect()] == [(5,)]
