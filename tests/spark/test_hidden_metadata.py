"""Spark's hidden column of files in predicates: by every read path that has it, the rows are those of Spark alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, expr
from pyspark.sql.functions import max as greatest

import secateur as sec
from secateur.errors import UnknownColumn, UnsupportedPredicate
from tests.support.profiles import one_in
from tests.support.tables import WriteTable

TOLD_BY_SPARK = ("file_path", "file_block_start", "file_block_length", "file_modification_time", "row_index")


@pytest.fixture
def root(write_table: WriteTable) -> Path:
    files = {f"{i} {i}.parquet": {"id": range(i * 20, i * 20 + 20 + i), "s": ["v"] * (20 + i)} for i in range(3)}
    made = write_table(files, row_group_size=5)
    sec.build_index(sec.open_table(str(made)))
    return made


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def predicates(frame: DataFrame) -> list[str]:
    row = frame.selectExpr("_metadata.*").where("file_name = '1%201.parquet'").first()
    assert row is not None
    return [
        f"_metadata.file_path = '{row.file_path}'",
        "_metadata.file_path LIKE '%1.parquet' AND id < 33",
        f"_metadata.file_size = {row.file_size}",
        f"_metadata.FILE_SIZE > {row.file_size} OR id = 3",
        f"NOT _metadata.file_size IN ({row.file_size}, 7)",
        f"_metadata.file_modification_time = TIMESTAMP '{row.file_modification_time}'",
        "_metadata.file_modification_time > TIMESTAMP '2001-01-01' AND id < 7",
        "_metadata.row_index = 7",
        "NOT _metadata.row_index + id = 14 AND id IN (7, 8, 33)",
        "_metadata.row_index IS NULL",
        "_metadata.file_block_start = 0 AND id = 33",
        f"_metadata.file_block_length = {row.file_size} AND id > 15",
        "exists(array(id), x -> x = _metadata.row_index)",
        "_metadata IS NOT NULL AND id < 2",
        "_metadata IS NULL",
        "id < 0 AND _metadata.row_index = 1",
        "id < 3 OR _metadata.row_index = 19 OR id >= 0",
    ]


def test_predicates_on_hidden_metadata_give_the_rows_of_spark(spark: SparkSession, root: Path) -> None:
    alone, table = spark.read.parquet(str(root)), sec.open_table(str(root))
    public, default = sec.dataframe(spark, table, via="public"), sec.dataframe(spark, table, via="transparent")
    for predicate in one_in(3, predicates(alone)):
        expected = ids(alone.where(predicate))
        plan = sec.prune(table, predicate, strict=True)
        assert ids(plan.to_spark(spark)) == expected, predicate
        assert ids(plan.to_spark(spark, via="native")) == expected, predicate
        assert ids(public.where(predicate)) == expected, predicate
        assert ids(default.where(predicate)) == expected, predicate
        if not any(name in predicate for name in (*TOLD_BY_SPARK, "_metadata IS")):
            assert plan.count() == len(expected), predicate
            assert ids(plan.to_spark(spark, via="blocks")) == expected, predicate
            assert ids(plan.to_spark(spark, via="local")) == expected, predicate


QUERIES: tuple[Callable[[DataFrame], DataFrame], ...] = (  # views have no hidden column
    lambda t: t.where("id > 15").select("id", "_metadata"),
    lambda t: t.where("_metadata.file_size > 0 AND s = 'v' AND id < 33").selectExpr("s", "_metadata.*", "id"),
    lambda t: t.groupBy("_metadata.file_name", "p").agg(count("*"), greatest("_metadata.row_index")),
    lambda t: (
        t.alias("a")
        .join(t.alias("b"), expr("a.id = b.id + 9"))
        .where("b._metadata.row_index = 3")
        .select("a.id", "b.s")
    ),
    lambda t: t.where("p = 1 AND n.x IN (3, 21, 22)").select("id", "n.x", "_metadata.file_modification_time"),
    lambda t: t.where("id = 33 OR p = 0").select("_metadata.file_block_start", "_metadata.file_block_length", "id"),
    lambda t: t.where("id < 0").agg(count("_metadata.file_name")),
)


def test_queries_name_the_hidden_column_of_a_dataframe(spark: SparkSession, write_table: WriteTable) -> None:
    files = {
        f"p={i % 2}/{i} {i}.parquet": {
            "id": range(i * 20, i * 20 + 20),
            "s": ["v"] * 20,
            "n": [{"x": i * 20 + j, "y": j} for j in range(20)],
        }
        for i in range(3)
    }
    root = str(write_table(files, row_group_size=5))
    sec.build_index(sec.open_table(root))
    alone = spark.read.parquet(root)
    pruned = sec.dataframe(spark, sec.open_table(root), via="transparent")
    for number, query in enumerate(QUERIES):
        expected, rows = (sorted(map(str, query(frame).collect())) for frame in (alone, pruned))
        assert rows == expected, number
    with_name = pruned.where("id = 3").select("_metadata.file_name")
    assert "IndexPruning: 1 of 12 row groups" in with_name._jdf.queryExecution().toString()


def test_a_column_of_the_name_of_the_hidden_one_is_read_from_the_files(
    spark: SparkSession, write_table: WriteTable
) -> None:
    table = sec.open_table(str(write_table({"0.parquet": {"_metadata": [{"file_name": "x"}, {"file_name": "y"}]}})))
    rows = sec.dataframe(spark, table, via="transparent").where("_metadata.file_name = 'y'").collect()
    assert [row._metadata.file_name for row in rows] == ["y"]


def test_what_only_spark_tells_is_asked_of_no_other_reader(spark: SparkSession, root: Path) -> None:
    plan = sec.prune(sec.open_table(str(root)), "_metadata.row_index = 7")
    for via in ("local", "blocks"):
        with pytest.raises(UnsupportedPredicate, match="only Spark's own reader knows"):
            plan.to_spark(spark, via=via)


@pytest.mark.parametrize("field", TOLD_BY_SPARK)
def test_what_only_spark_tells_keeps_blocks_here(root: Path, field: str) -> None:
    plan = sec.prune(sec.open_table(str(root)), f"_metadata.{field} IS NULL AND id < 5", strict=True)
    assert len(plan.survivors.blocks) == 1
    with pytest.raises(UnsupportedPredicate, match=r"only Spark knows|a part of _metadata"):
        plan.to_arrow()
    with pytest.raises(UnknownColumn):
        sec.prune(sec.open_table(str(root)), f"_metadata.{field}s IS NULL")


def test_the_size_of_a_file_rules_out_all_others(root: Path) -> None:
    size = (root / "1 1.parquet").stat().st_size
    plan = sec.prune(sec.open_table(str(root)), f"_metadata.file_size = {size}", strict=True)
    assert sorted(plan.to_arrow()["id"].to_pylist()) == list(range(20, 41))
    assert plan.count() == 21


def test_names_that_spark_reads_as_patterns_have_no_reader_that_tells(
    spark: SparkSession, write_table: WriteTable
) -> None:
    table = sec.open_table(str(write_table({"[1].parquet": {"id": [1]}})))
    with pytest.raises(UnsupportedPredicate, match="without wildcards"):
        sec.prune(table, "_metadata.row_index = 0").to_spark(spark)


ONLY_SPARK = ("reverse(s) = 'v'", "s RLIKE '(?<!a)v'", "id > 30 AND reverse(s) = 'v'")


def test_the_format_leaves_to_spark_what_only_spark_evaluates(spark: SparkSession, root: Path) -> None:
    spark.udf.register("is_seven", lambda number: number % 10 == 7, "boolean")
    alone = spark.read.parquet(str(root))
    for pushdown in ("false", "true"):
        for predicate in (*ONLY_SPARK, "is_seven(id)"):
            frame = spark.read.format("secateur").option("pushdown", pushdown).load(str(root)).where(predicate)
            assert ids(frame) == ids(alone.where(predicate)), (pushdown, predicate)


def test_the_option_predicate_says_what_to_do_with_what_only_spark_evaluates(spark: SparkSession, root: Path) -> None:
    for predicate in (*ONLY_SPARK, "_metadata.row_index = 7"):
        frame = spark.read.format("secateur").option("predicate", predicate).load(str(root))
        with pytest.raises(Exception, match=r"UnsupportedPredicate[\s\S]*give it to where\(\)"):
            frame.collect()
    pruned = spark.read.format("secateur").option("predicate", "id < 0 AND reverse(s) = 'v'").load(str(root))
    assert pruned.collect() == []
