"""Law: the answer of a random query in a session with ``sec.enable`` is that of the same session without it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.drawn.random_sql import RandomSql
from tests.support.enabled_session import enabled, pruning, require_same
from tests.support.profiles import by_profile

ROWS = 400
QUERIES = by_profile(5, 200, 2000)  # for each setting
PARTIAL = by_profile(5, 400, 4000)
TABLES = ("t", "u", "v", "p")


def rows(seed: int) -> pa.Table:
    """Rows with NULL, NaN, negative zero and equal values in every column but `id`."""
    chance = np.random.default_rng(seed)
    ids = np.arange(ROWS)
    k = chance.integers(-3, 20, ROWS)
    x = np.where(chance.random(ROWS) < 0.05, np.nan, np.where(k == 0, -0.0, chance.integers(0, 400, ROWS) / 2))
    days = [dt.date(2026, 1, 1) + dt.timedelta(int(i)) for i in np.sort(chance.integers(0, 90, ROWS))]
    return pa.table(
        {
            "id": ids,
            "k": pa.array(k, mask=chance.random(ROWS) < 0.1),
            "x": pa.array(x, mask=chance.random(ROWS) < 0.05),
            "s": pa.array([f"s{i // 20:02d}-{i}" for i in ids], mask=chance.random(ROWS) < 0.05),
            "d": days,
            "ts": pa.array(1_767_225_600_000_000 + ids * 600_000_000, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[None]:
    """Two indexed tables, a view on one of them, and a partitioned table of which the index covers a part."""
    root = tmp_path_factory.mktemp("sql")
    for number, name in enumerate("tu"):
        (root / name).mkdir()
        for part in range(2):
            piece = rows(number).slice(part * ROWS // 2, ROWS // 2)
            pq.write_table(piece, root / name / f"{part}.parquet", row_group_size=20)
        index(root / name, spark)
        spark.read.parquet(str(root / name)).createOrReplaceTempView(name)
    spark.sql("CREATE OR REPLACE TEMP VIEW v AS SELECT id, k, x, s, d, ts FROM u WHERE id > 50 OR k IS NULL")
    write_partitioned(root / "p", spark)
    with enabled(spark):
        yield


def index(root: Path, spark: SparkSession) -> None:
    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["s"], segment_blocks=7)


def write_partitioned(root: Path, spark: SparkSession) -> None:
    table = rows(7)
    k = table["k"].to_pylist()
    for value in range(-3, 9):
        piece = table.filter(pa.array([key == value for key in k])).drop_columns(["k"])
        (root / f"k={value}").mkdir(parents=True)
        pq.write_table(piece, root / f"k={value}" / "a.parquet", row_group_size=5)
    index(root, spark)
    rest = table.filter(pa.array([key is None or key > 8 for key in k])).drop_columns(["k"])
    (root / "k=__HIVE_DEFAULT_PARTITION__").mkdir()
    pq.write_table(rest, root / "k=__HIVE_DEFAULT_PARTITION__" / "b.parquet", row_group_size=5)
    spark.read.parquet(str(root)).createOrReplaceTempView("p")


SETTINGS = [("true", "UTC"), ("false", "America/New_York"), ("true", "Asia/Kathmandu")]


@pytest.mark.parametrize(("ansi", "zone"), SETTINGS)
def test_random_queries(spark: SparkSession, tables: None, ansi: str, zone: str) -> None:
    sql = RandomSql(random.Random(f"{ansi} {zone}"), TABLES, ROWS)
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        pruned = 0
        for _ in range(QUERIES):
            query = sql.query()
            require_same(spark, query)
            pruned += bool(pruning(spark.sql(query)))
        assert pruned > QUERIES / 2
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_random_queries_that_need_only_some_rows(spark: SparkSession, tables: None) -> None:
    sql = RandomSql(random.Random("some rows"), TABLES, ROWS)
    for _ in range(PARTIAL):
        require_same(spark, sql.partial())
