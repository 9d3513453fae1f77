"""``sec.dataframe``: the rows of Spark's own reader for every query, from no more row groups than the index leaves."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, lit

import secateur as sec
from secateur.io.spark.file_reader import spark_schema
from tests.support.checks.oracle import Answers, ask, in_order
from tests.support.drawn import expressions
from tests.support.drawn.strategies import ZONES, TableSpec, predicates, table_specs
from tests.support.profiles import examples, some

ROWS, DAYS = 6_000, ["2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"]
BLOCKS = 30  # of 200 rows


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> str:
    """A partitioned, indexed table; names on its way have characters that paths and globs take for others."""
    root = tmp_path_factory.mktemp("transparent") / "la ke%20[1]"
    for i, day in enumerate(DAYS):
        ids = np.arange(i * ROWS // 3, (i + 1) * ROWS // 3)
        (root / f"day={day}").mkdir(parents=True)
        table = pa.table(
            {
                "id": ids,
                "uid": np.random.default_rng(i).permutation(ids),
                "x": np.where(ids % 50 == 0, np.nan, np.sin(ids) * 4),
                "name": pa.array([f"name-{i:04d}" for i in ids]),
                "ts": pa.array(ids * 1_000_000 + 1_767_225_600_000_000, pa.timestamp("us", "UTC")),
                "price": pa.array(ids / 100, pa.float64()).cast(pa.decimal128(10, 2)),
                "nested": pa.array([{"y": int(i), "z": [int(i)]} for i in ids]),
            }
        )
        pq.write_table(table, root / f"day={day}" / "part %2F*?.parquet", row_group_size=200, write_page_index=True)
    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["uid"], ngram=["name"])
    return str(root)


@pytest.fixture(scope="module")
def plain(lake: str, spark: SparkSession) -> DataFrame:
    """The oracle: Spark's reader without push-down, of a copy in a place that it finds."""
    return spark.read.parquet(str(shutil.copytree(lake, Path(lake).parent / "plain")))


@pytest.fixture(scope="module")
def frame(lake: str, spark: SparkSession) -> DataFrame:
    return sec.dataframe(spark, sec.open_table(lake), via="transparent")


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def pruning(frame: DataFrame) -> list[tuple[int, int]]:
    """(left, all) of every scan of a plan."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return [tuple(int(n.replace(",", "")) for n in pair) for pair in re.findall(r"Pruning: ([\d,]+) of ([\d,]+)", plan)]


def scanned(frame: DataFrame) -> int:
    """The rows that leave the scans of a plan of one stage, once it ran."""
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(leaves.apply(i).metrics().apply("numOutputRows").value() for i in range(leaves.size()))


QUERIES = [
    "id = 5",
    "5 = id",
    "id = 1 OR id = 5999",
    "id + 0 = 17",
    "uid IN (7, 2007)",
    "x > 3.0",
    "x = CAST('NaN' AS DOUBLE)",
    "isnan(x) AND id < 100",
    "day = DATE '2026-01-02' AND id > 3900",
    "day IS NULL",
    "year(day) = 2026 AND id % 7 = 3",
    "nested.y = 77",
    "nested.y BETWEEN 150 AND 250",
    "nested.z[0] = 77",
    "name LIKE 'name-00%'",
    "name LIKE '%0777%'",
    "upper(name) = 'NAME-0005'",
    "substring(name, 6, 2) = '00'",
    "ts > TIMESTAMP '2026-01-01 01:39:00'",
    "date_trunc('HOUR', ts) = TIMESTAMP '2026-01-01 01:00:00'",
    "CAST(ts AS DATE) = DATE '2025-12-31'",
    "price = 1.55",
    "price < 1",
    "price = 1.555",
    "NOT (id > 3)",
    "id <=> NULL",
    "coalesce(id, 0) = 5",
    "CASE WHEN id > 100 THEN 'far' ELSE name END = 'name-0007'",
    "id = -1",
    "id = uid",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
    "id NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, NULL)",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 4000, NULL)",
    "name IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'name-0003')",
    "price IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9.5, 9.5, 59.99)",
    "day IN (DATE '2026-01-02', DATE '2026-01-03')",
    "rand() < 2",
    "hash(id) % 3 = 0",
    "hash(id) % 3 = 0 AND id < 3",
    "hash(id) % 3 = 0 OR id < 3",
    "exists(nested.z, v -> v = 3)",
    "TRUE",
]


def test_the_schema_is_sparks(frame: DataFrame, plain: DataFrame) -> None:
    assert frame.schema == plain.schema


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_spark_from_few_row_groups(lake: str, frame: DataFrame, plain: DataFrame, query: str) -> None:
    answer = frame.where(query)
    assert rows(answer) == rows(plain.where(query))
    planned = len(sec.prune(sec.open_table(lake), query).blocks)
    assert pruning(answer) in ([(planned, BLOCKS)], [])  # no scan at all where Spark sees that nothing can match


def test_ten_thousand_values(frame: DataFrame) -> None:
    answer = frame.where(f"id IN ({', '.join(map(str, [*range(-10_000, 3), 5_999]))})").select("id")
    assert [row.id for row in answer.sort("id").collect()] == [0, 1, 2, 5_999]
    assert pruning(answer) == [(2, BLOCKS)]


def test_just_the_surviving_row_groups_are_read(frame: DataFrame, lake: str) -> None:
    table = sec.open_table(lake)
    for query in ("id = 5", "id = 1 OR id = 201 OR id = 5999", "id BETWEEN 150 AND 850", "day IS NULL", "id >= 0"):
        blocks = sec.prune(table, query).blocks
        assert scanned(frame.where(query)) == sum(blocks["row_count"].to_pylist()), query


def test_only_the_columns_of_the_query_are_read(frame: DataFrame) -> None:
    plan = frame.where("id = 5").select("name", "nested.y")._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<id:bigint,name:string,nested:struct<y:bigint>>" in plan


# ---- queries of every kind -------------------------------------------------------------------------------------------


def test_sql_over_a_view(spark: SparkSession, frame: DataFrame, plain: DataFrame) -> None:
    frame.createOrReplaceTempView("pruned")
    plain.createOrReplaceTempView("unpruned")
    for query in (
        "SELECT count(*), max(x), min(day) FROM {} WHERE id < 10",
        "SELECT day, count(*), sum(price) FROM {} WHERE name LIKE '%77%' GROUP BY day",
        "SELECT a.id, b.name FROM {0} a JOIN {0} b ON a.uid = b.id WHERE a.id < 5",
        "SELECT * FROM {} WHERE id IN (SELECT uid FROM {0} WHERE id = 17)",
        "SELECT * FROM {0} a WHERE id < 50 AND EXISTS (SELECT 1 FROM {0} b WHERE b.uid = a.id AND b.id < 1000)",
        "SELECT id FROM {0} WHERE id < 5 UNION ALL SELECT uid FROM {0} WHERE id > 5990",
        "SELECT id FROM {} WHERE id = (SELECT max(uid) FROM {0} WHERE id < 100)",
        "SELECT id, row_number() OVER (ORDER BY uid) FROM {} WHERE id > 5900 ORDER BY id LIMIT 5",
    ):
        pair = [query.replace("{}", "{0}").format(name) for name in ("pruned", "unpruned")]
        assert rows(spark.sql(pair[0])) == rows(spark.sql(pair[1])), query


def test_a_frame_may_be_used_again_with_other_filters(frame: DataFrame) -> None:
    assert frame.count() == ROWS
    assert frame.where("id = 5").count() == 1
    assert frame.count() == ROWS
    assert rows(frame.where("id = 5").union(frame.where("id = 3000"))) == rows(frame.where("id IN (5, 3000)"))
    both = frame.where("id = 5").select("id").union(frame.where("id = 5").select("id"))
    assert both.count() == 2


def test_scans_are_reused_where_they_are_equal_and_only_there(spark: SparkSession, frame: DataFrame) -> None:
    """An exchange stands for another one of an equal scan; with other filters it must not."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        for left, right, expected in (("id = 5", "id = 5", 1), ("id = 5", "id = 6", 0), ("x > 3", "x > 3.9", None)):
            one, other = frame.where(left).select("uid"), frame.where(right).select("uid")
            joined = one.join(other, "uid").count()
            assert joined == (other.count() if expected is None else expected)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_cache_and_writes(frame: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    cached = frame.where("id < 300").cache()
    try:
        assert cached.count() == 300
        assert cached.where("id = 250").count() == 1
    finally:
        cached.unpersist()
    frame.where("id < 300").write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 300


def test_aggregates_are_sparks_also_where_it_may_push_them_down(frame: DataFrame, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.parquet.aggregatePushdown", "true")
    try:
        assert frame.selectExpr("count(*)", "max(id)", "min(uid)").first() == (ROWS, ROWS - 1, 0)
        assert frame.where("day IS NULL").count() == ROWS // 3
        assert frame.where("id < 7").agg({"id": "max"}).first() == (6,)
    finally:
        spark.conf.unset("spark.sql.parquet.aggregatePushdown")


def test_threads(frame: DataFrame) -> None:
    def find(i: int) -> list[int]:
        return [row.id for row in frame.where(f"id = {i} OR uid = {i}").select("id").collect()]

    with ThreadPoolExecutor(4) as threads:
        for i, ids in enumerate(threads.map(find, range(0, 6000, 500))):
            assert i * 500 in ids
            assert len(ids) <= 2


def test_nan_is_not_lost_where_spark_pushes_filters_down(spark: SparkSession, frame: DataFrame) -> None:
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    try:
        assert frame.where("x > 5").count() == ROWS // 50
        assert frame.where("x > 5 AND id < 200").count() == 4
        assert "PushedFilters: [IsNotNull(id), LessThan(id,200)]" in explained(frame.where("x > 5 AND id < 200"))
    finally:
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")


def explained(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


# ---- joins -----------------------------------------------------------------------------------------------------------


def test_a_small_side_prunes_the_big_one_while_the_query_runs(frame: DataFrame, spark: SparkSession) -> None:
    small = spark.createDataFrame([(i, f"k{i}") for i in range(10)], "key bigint, label string").where("label < 'k2'")
    joined = frame.join(broadcast(small), frame.uid == small.key)
    assert sorted(row.uid for row in joined.collect()) == [0, 1]
    text = joined._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in text
    after = re.findall(rf"IndexPruning: {BLOCKS} of {BLOCKS} row groups, (\d) of {BLOCKS} row groups after", text)
    assert {int(id_) <= 2 for id_ in after} == {True}
    assert frame.where("id < 400").count() == 400


def test_a_scan_beside_a_narrowed_one_is_whole(frame: DataFrame, spark: SparkSession) -> None:
    small = spark.range(3).withColumnRenamed("id", "key").where("key > 1")
    joined = frame.join(broadcast(small), frame.uid == small.key).select("id")
    assert joined.unionAll(frame.select("id")).count() == ROWS + 1
    assert joined.unionAll(joined).count() == 2


def test_nothing_on_the_small_side(frame: DataFrame, spark: SparkSession) -> None:
    small = spark.range(3).withColumnRenamed("id", "key").where("key > 10")
    assert frame.join(broadcast(small), frame.uid == small.key).count() == 0


def test_joins_are_planned_with_what_survives(frame: DataFrame, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "5000")
    try:
        few, all_ = frame.where("id = 5").select("uid"), frame.select("uid", "name")
        assert "BroadcastHashJoin" in explained(all_.join(few, "uid"))
        assert "SortMergeJoin" in explained(all_.join(frame.select("uid"), "uid"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


# ---- random tables and predicates ------------------------------------------------------------------------------------

NUMBER = "number of the predicate"
EACH = 10  # predicates per table, in one query


def check(frame: DataFrame, answers: Answers, texts: Sequence[str]) -> None:
    """The rows of `frame` where each predicate is TRUE are those that Spark answers."""
    numbered = [frame.where(text).withColumn(NUMBER, lit(i)) for i, text in enumerate(texts)]
    rows_read = reduce(lambda a, b: a.unionAll(b), numbered).toArrow()
    number, table = rows_read[NUMBER].to_pylist(), rows_read.drop_columns([NUMBER])
    wanted = Counter((i, row) for i, text in enumerate(texts) for row in answers.matching(text).elements())
    assert Counter(zip(number, in_order(table), strict=True)) == wanted, texts


@examples(8, shrink=False)
@given(data=st.data(), spec=table_specs(), zone=st.sampled_from(ZONES), indexed=st.booleans())
def test_random_tables(spark: SparkSession, data: st.DataObject, spec: TableSpec, zone: str, indexed: bool) -> None:
    texts = data.draw(st.lists(predicates(spec), min_size=EACH, max_size=EACH, unique=True))
    spark.conf.set("spark.sql.session.timeZone", zone)
    with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
        root = spec.write(Path(folder) / "lake")
        table = sec.open_table(str(root))
        if indexed:
            names = [kind.sql for kind in spec.kinds]
            sec.build_index(table, sort_key=names[:1], bloom=names, fpr=0.2, segment_blocks=3)
        answers = ask(spark.read.schema(spark_schema(spec.schema)).parquet(str(root)), texts)
        usable = [text for text in answers.truth if text != "NULL" and "_metadata" not in text]
        check(sec.dataframe(spark, table, via="transparent"), answers, usable)


@examples(3, shrink=False)
@given(seed=st.integers(0, 2**40), zone=st.sampled_from(ZONES), ansi=st.booleans())
def test_random_expressions(spark: SparkSession, seed: int, zone: str, ansi: bool) -> None:
    """In ANSI mode, where Spark raises errors, and without, where it gives NULL or wraps around instead."""
    chance = random.Random(seed)
    data = expressions.table(80, chance)
    data = data.take(pa.array(np.argsort(np.array(data["rid"]) % 8, kind="stable")))
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
            pq.write_table(data, Path(folder) / "part.parquet", row_group_size=4)
            table = sec.open_table(folder)
            sec.build_index(table, segment_blocks=5)
            texts = list(dict.fromkeys(expressions.predicate(chance) for _ in range(some(30))))
            answers = ask(spark.read.schema(spark_schema(data.schema)).parquet(folder), texts)
            check(sec.dataframe(spark, table, via="transparent"), answers, list(answers.truth))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
