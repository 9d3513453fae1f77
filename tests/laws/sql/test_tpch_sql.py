"""Law: the 22 queries of TPC-H have the same answers in a session with ``sec.enable`` as without it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from benchmarks.tpch.tpch import generated
from tests.support.enabled_session import enabled, require_same
from tests.support.profiles import one_in
from tests.support.tpch_queries import QUERIES

SORTED_BY = {"lineitem": "l_shipdate", "orders": "o_orderdate", "part": "p_partkey"}
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[None]:
    """All tables at scale factor 0.01, indexed, in small row groups."""
    root = tmp_path_factory.mktemp("tpch")
    for name in TABLES:
        data = generated(root / "made", 0.01, name)
        if name in SORTED_BY:
            data = data.sort_by(SORTED_BY[name])
        (root / name).mkdir()
        pq.write_table(data, root / name / "a.parquet", row_group_size=max(1, len(data) // 20))
        sec.build_index(sec.open_table(str(root / name)), sort_key=data.column_names[:1])
        spark.read.parquet(str(root / name)).createOrReplaceTempView(name)
    with enabled(spark):
        yield


@pytest.mark.parametrize("number", one_in(2, QUERIES))
def test_answers_are_those_without(spark: SparkSession, tables: None, number: int) -> None:
    require_same(spark, QUERIES[number])
