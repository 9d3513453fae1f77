"""Law: TPC-H on Iceberg tables has the same answers in a session with ``sec.enable`` as without it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from benchmarks.tpch.tpch import generated
from tests.support.enabled_session import enabled, pruning, require_same
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.profiles import FULL
from tests.support.tpch_queries import QUERIES

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SORTED_BY = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
SMALL = "'write.parquet.row-group-size-bytes'='20000', 'write.parquet.row-group-check-min-record-count'='100'"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, iceberg: SparkSession) -> Iterator[None]:
    """All tables at scale factor 0.01, indexed, with rows deleted by position from the largest."""
    root, spark = tmp_path_factory.mktemp("tpch"), iceberg
    for name in TABLES:
        data = generated(root, 0.01, name)
        pq.write_table(data.sort_by(SORTED_BY.get(name, data.column_names[0])), root / f"{name}.parquet")
        spark.sql(
            f"CREATE TABLE lake.tpch.{name} USING iceberg TBLPROPERTIES ('format-version'='2', "
            f"'write.delete.mode'='merge-on-read', {SMALL}) AS "
            f"SELECT /*+ COALESCE(1) */ * FROM parquet.`{root}/{name}.parquet`"
        )
    spark.sql("DELETE FROM lake.tpch.lineitem WHERE l_orderkey % 50 = 0")
    for name in TABLES:
        table = sec.open_table(metadata_file(spark, f"lake.tpch.{name}"))
        sec.build_index(table)
        spark.table(f"lake.tpch.{name}").createOrReplaceTempView(name)
    with enabled(spark):
        yield
    for name in TABLES:
        spark.catalog.dropTempView(name)
        spark.sql(f"DROP TABLE lake.tpch.{name}")


@pytest.mark.parametrize("number", [number for number in QUERIES if FULL or number % 6 == 1])
def test_answers_are_those_without(iceberg: SparkSession, tables: None, number: int) -> None:
    require_same(iceberg, QUERIES[number])


def test_a_date_is_pruned(iceberg: SparkSession, tables: None) -> None:
    (pruning_said,) = pruning(iceberg.sql("SELECT count(*) FROM lineitem WHERE l_shipdate = DATE '1995-03-15'"))
    kept, every = (int(number) for number in pruning_said.split(" of "))
    assert kept < every / 3
