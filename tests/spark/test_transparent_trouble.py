"""``sec.dataframe`` where files, the index or Spark are not as they were: no row is lost, and explain() tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.planner import compiled, planner
from tests.support.older_spark import since_4
from tests.support.tables import WriteTable

TOLD = "IndexPruning: "


def told(frame: DataFrame) -> str:
    """What a plan says of how it was pruned."""
    return frame._jdf.queryExecution().executedPlan().toString().partition(TOLD)[2].partition(" RuntimeFilters")[0]


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def numbered(start: int, stop: int) -> pa.Table:
    return pa.table({"id": np.arange(start, stop), "x": np.arange(start, stop) / 2})


@pytest.fixture
def root(spark: SparkSession, write_table: WriteTable) -> Path:
    """An indexed table of two files of two row groups."""
    root = write_table({"a.parquet": numbered(0, 20), "b.parquet": numbered(20, 40)}, row_group_size=10)
    sec.build_index(sec.open_table(str(root)))
    return root


def test_what_comes_and_goes_is_seen_by_the_next_query(spark: SparkSession, root: Path) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    assert ids(frame.where("id > 35")) == [36, 37, 38, 39]
    pq.write_table(numbered(40, 50), root / "c.parquet")
    assert ids(frame.where("id > 35")) == list(range(36, 50))
    (root / "b.parquet").unlink()
    assert ids(frame.where("id > 15")) == [16, 17, 18, 19, *range(40, 50)]
    pq.write_table(numbered(100, 140), root / "a.parquet", row_group_size=7)
    assert ids(frame.where("id > 45")) == [46, 47, 48, 49, *range(100, 140)]
    assert told(frame.where("id > 45")) == "7 row groups of 2 files"


def test_a_shared_listing_with_a_file_that_is_gone_is_made_anew(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root), freshness=3600)
    frame = sec.dataframe(spark, table)
    assert ids(frame.where("id > 35")) == [36, 37, 38, 39]
    pq.write_table(numbered(1000, 1003), root / "b.parquet")
    assert ids(frame.where("id > 35")) == [1000, 1001, 1002]
    assert told(frame.where("id > 35")) == "1 row groups of 2 files"


def test_an_error_while_planning_keeps_every_row_group(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no plan today")

    frame = sec.dataframe(spark, sec.open_table(str(root)))
    for name in ("plan_scan", "scan_question", "byte_ranges"):
        with monkeypatch.context() as patched:
            patched.setattr(planner, name, fails)
            answer = frame.where("id = 5")
            assert ids(answer) == [5]
            assert told(answer) == "all row groups of 2 files (RuntimeError: no plan today)"
            assert frame.count() == 40


def test_an_error_at_the_values_of_a_join_leaves_the_scan_as_it_was(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    small = spark.range(10).withColumnRenamed("id", "key").where("key > 8")
    monkeypatch.setattr(planner, "MOST_KEPT", 0)
    assert ids(frame.join(small.hint("broadcast"), frame.id == small.key)) == [9]


def test_a_broken_index_keeps_row_groups(spark: SparkSession, root: Path) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    for file in (root / "_secateur").rglob("*"):
        if file.is_file():
            file.write_bytes(b"\0" * file.stat().st_size)
    answer = sec.dataframe(spark, sec.open_table(str(root))).where("id = 5")
    assert ids(answer) == [5]
    assert ids(frame.where("id = 5")) == [5]
    assert "without an index; degraded: " in told(answer)


def test_without_an_index_footers_prune(spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    monkeypatch.setenv("SECATEUR_DISABLE", "1")
    answer = frame.where("id = 5")
    assert ids(answer) == [5]
    assert told(answer) == "1 row groups of 2 files, without an index"


def test_a_column_that_came_since_keeps_every_row_group(spark: SparkSession, root: Path) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    pq.write_table(numbered(40, 50).append_column("more", pa.array(["a"] * 10)), root / "c.parquet")
    answer = frame.where("id = 45")
    assert ids(answer) == [45]
    assert "columns have changed" in told(answer)
    assert sec.dataframe(spark, sec.open_table(str(root))).where("more = 'a'").count() == 10


def test_other_partition_columns_than_before_are_an_error(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table({"p=1/a.parquet": {"id": [1]}})
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    assert frame.where("p = 1").count() == 1
    (root / "p=x").mkdir()
    pq.write_table(pa.table({"id": [2]}), root / "p=x" / "b.parquet")
    with pytest.raises(Exception, match="partition columns have changed since the DataFrame was made"):
        frame.where("p = 1").count()


def test_a_table_that_is_gone_is_an_error(spark: SparkSession, root: Path) -> None:
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    root.rename(root.parent / "elsewhere")
    with pytest.raises(Exception, match="cannot be read"):
        frame.count()


def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    table = sec.open_table(str(tmp_path), schema=pa.schema([("id", pa.int64())]))
    frame = sec.dataframe(spark, table, via="transparent")
    assert frame.where("id = 1").count() == 0
    assert frame.collect() == []
    pq.write_table(numbered(0, 3).select(["id"]), tmp_path / "a.parquet")
    assert ids(frame) == [0, 1, 2]


def test_names_are_compared_as_the_session_compares_them(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table({"a.parquet": {"Id": [1, 2], "nested": [{"Y": 1}, {"Y": 2}]}}, row_group_size=1)
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    for query in ("ID = 2", "id = 2", "NESTED.y = 2"):
        answer = frame.where(query)
        assert answer.count() == 1
        assert told(answer) == "1 row groups of 1 files, without an index"


def test_timestamps_of_old_writers(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.sql("SELECT id, timestamp_seconds(id * 3600) AS ts FROM range(48)").coalesce(1).write.option(
            "parquet.block.row.count.limit", "10"
        ).parquet(str(tmp_path / "lake"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    table = sec.open_table(str(tmp_path / "lake"))
    sec.build_index(table)
    frame = sec.dataframe(spark, table)
    for zone in ("UTC", "Asia/Kolkata"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        wanted = spark.read.parquet(str(tmp_path / "lake"))
        for query in ("ts > TIMESTAMP '1970-01-02 20:00:00'", "to_date(ts) = DATE '1970-01-02'", "hour(ts) = 3"):
            assert ids(frame.where(query)) == ids(wanted.where(query))


def test_a_query_keeps_the_zone_in_which_it_was_analysed(spark: SparkSession, write_table: WriteTable) -> None:
    moments = pa.array(range(0, 48 * 3600, 3600), pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    root = write_table({"a.parquet": {"id": np.arange(48), "ts": moments}}, row_group_size=1)
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    analysed = frame.where("hour(ts) = 0")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert ids(analysed) == [0, 24]
    assert ids(frame.where("hour(ts) = 0")) == [15, 39]


# ---- public read paths -----------------------------------------------------------------------------------------------


def reason(frame: DataFrame) -> str:
    """Why a public read path was taken, as ``explain(True)`` tells it."""
    text = str(frame._jdf.queryExecution().toString())
    return text.partition("reads by a public read path: ")[2].partition("\n")[0]


@pytest.fixture
def floats(write_table: WriteTable) -> str:
    data = {
        "id": [1, 2, 3],
        "x": [1.0, np.nan, -0.0],
        "nested": [{"x": 1.0}, {"x": np.nan}, None],
        "p": ["a", "b", None],
    }
    return str(write_table({"a.parquet": data}))


@pytest.mark.parametrize("columns", [["id", "x", "p"], ["id", "x", "nested", "p"]])
def test_a_public_read_path_gives_the_same_rows(
    spark: SparkSession, write_table: WriteTable, floats: str, columns: list[str]
) -> None:
    root = str(write_table({"a.parquet": pq.read_table(floats, columns=columns)}))
    table = sec.open_table(root)
    frame, public = sec.dataframe(spark, table, via="public"), sec.dataframe(spark, table, via="transparent")
    assert frame.schema == public.schema
    assert "asked for" in reason(frame)
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    try:
        for query in ("TRUE", "x > 0.5", "x = 0", "x IS NULL", "p = 'b'", "x = CAST('NaN' AS DOUBLE)"):
            assert sorted(map(repr, frame.where(query).collect())) == sorted(
                map(repr, public.where(query).collect())
            ), query
        assert frame.where("x > 5").count() == 1
    finally:
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")


@pytest.mark.parametrize(
    "source", ["class {", "package secateur; public class PrunedTable { public PrunedTable(int x) {} }"]
)
def test_another_spark_takes_a_public_read_path(
    spark: SparkSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    sources = tmp_path / "java"
    sources.mkdir()
    (sources / "PrunedTable.java").write_text(source)
    monkeypatch.setattr(compiled, "SOURCES", sources)
    frame = sec.dataframe(spark, sec.open_table(str(root)))
    assert "other internals" in reason(frame)
    assert ids(frame.where("id > 37")) == [38, 39]
    with pytest.raises(ValueError, match="other internals"):
        sec.dataframe(spark, sec.open_table(str(root)), via="transparent")


def test_a_read_path_that_is_none_is_refused(spark: SparkSession, root: Path) -> None:
    with pytest.raises(ValueError, match="via is one of auto, transparent, public"):
        sec.dataframe(spark, sec.open_table(str(root)), via="blocks")


def test_iceberg_tables_take_a_public_read_path(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("x", pa.float64())])).append(numbered(0, 9))
    frame = sec.dataframe(spark, sec.open_table("db.t", catalog=catalog))
    assert "only directories" in reason(frame)
    assert ids(frame.where("x > 3")) == [7, 8]


@since_4
def test_columns_with_a_collation_take_a_public_read_path(spark: SparkSession, tmp_path: Path) -> None:
    written = spark.sql("SELECT id, 'A' COLLATE UTF8_LCASE AS s FROM range(3)")
    written.write.parquet(str(tmp_path / "lake"))
    frame = sec.dataframe(spark, sec.open_table(str(tmp_path / "lake")))
    assert "collation" in reason(frame)
    assert frame.schema["s"].dataType == written.schema["s"].dataType
    assert frame.where("s = 'a'").count() == 3


CONNECT = """
import sys
from pyspark.sql import SparkSession
import secateur as sec
spark = SparkSession.builder.remote("local[1]").getOrCreate()
frame = sec.dataframe(spark, sec.open_table(sys.argv[1]))
print("rows", sorted(row.id for row in frame.where("id > 37 AND x > 3").collect()))
frame.explain(True)
spark.stop()
"""


@since_4  # whose PySpark brings a Connect server
@pytest.mark.spark
def test_spark_connect_takes_a_public_read_path(root: Path) -> None:
    """In a process of its own: the client of Connect and Classic do not share one."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sec.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(root)], capture_output=True, text=True, timeout=240, env=environment
    )
    assert "rows [38, 39]" in done.stdout, done.stderr
    assert "Spark Connect plans in another process" in done.stdout
