"""Counts, different values and ends of plain queries by ordered postings: Spark's answer, and no row group is read.

Classes C48 (blocks whose values are unknown are read), C59 (a value of several blocks counts once, NULL for nothing).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import answer, enabled, plan_of, pruning
from tests.support.profiles import examples, one_in

ROWS, FILES, GROUP = 600, 3, 20
BLOCKS = ROWS // GROUP
FLOATS = [None, math.nan, 0.0, -0.0, 1.5, -math.inf, math.inf, -2.0]
LISTED = ["id", "user", "f", "price", "name"]


def numbered(start: int, stop: int) -> pa.Table:
    """Values that come again in other blocks, NULL, NaN, both zeros, and texts that are too long for postings."""
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "user": pa.array([None if i % 11 == 0 else i * 7919 % 113 for i in ids], pa.int32()),
            "f": pa.array([FLOATS[i * 7 % 8] if i % 3 else float(i % 50) for i in ids], pa.float64()),
            "price": pa.array([Decimal(i * 31 % 77) / 100 for i in ids], pa.decimal128(9, 2)),
            "name": [None if i % 13 == 0 else f"user-{i % 60}" for i in ids],
            "long": [f"{i % 60}: a text of more than eight bytes" for i in ids],
            "day": pa.array([i // 100 for i in ids], pa.int32()).cast(pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """An indexed table with two views: `ev`, which `enable` prunes, and `df`, made by `dataframe`."""
    root = tmp_path_factory.mktemp("distinct") / "ev"
    root.mkdir()
    for i in range(FILES):
        piece = numbered(i * ROWS // FILES, (i + 1) * ROWS // FILES)
        pq.write_table(piece, root / f"{i}.parquet", row_group_size=GROUP)
    table = sec.open_table(str(root))
    postings = dict.fromkeys([*LISTED, "long"], "ordered")
    sec.build_index(table, sort_key=["id"], postings=postings, segment_blocks=4)
    spark.read.parquet(str(root)).createOrReplaceTempView("ev")
    sec.dataframe(spark, table, via="transparent").createOrReplaceTempView("df")
    with enabled(spark):
        yield str(root)


KNOWN = [
    *(f"SELECT count(DISTINCT {name}) FROM {{}}" for name in LISTED),
    "SELECT count(DISTINCT user) FROM {} WHERE id >= 100",
    "SELECT count(DISTINCT user), min(price) FROM {} WHERE id >= 110 AND user < 60",  # parts of row groups
    "SELECT count(DISTINCT user), count(*), max(id), count(user) FROM {} WHERE id < 200 OR id >= 400",
    "SELECT count(DISTINCT user) * 2 + count(DISTINCT user) AS n FROM {} WHERE day = DATE'1970-01-03'",
    "SELECT count(DISTINCT u) FROM (SELECT user AS u, upper(name) AS n FROM {})",
    "SELECT count(DISTINCT day) FROM {} WHERE id >= 100",
    "SELECT min(price), max(price) FROM {} WHERE price BETWEEN 0.11 AND 0.61",
    "SELECT count(*), count(user), min(user), max(price) FROM {} WHERE user BETWEEN 7 AND 90 OR price = 0.5",
    "SELECT min(f), max(f) FROM {} WHERE f > 1",  # NaN is the greatest
    "SELECT max(f) - count(f) AS n FROM {} WHERE user < 60 AND f < -1 HAVING count(*) > 0",
    "SELECT count(*), min(user) FROM {} WHERE user = 10 AND price > 900",  # of no rows
    "SELECT min(p) + 1 AS n FROM (SELECT price AS p, user FROM {}) WHERE user IN (3, 4, 77) AND p > 0.1",
]
READ = [
    "SELECT count(DISTINCT user) FROM {} WHERE long > '30'",  # a part of a row group, which no postings tell
    "SELECT count(DISTINCT long) FROM {}",
    "SELECT count(DISTINCT user), count(DISTINCT name) FROM {}",
    "SELECT count(DISTINCT user, name) FROM {}",
    "SELECT count(DISTINCT user) FILTER (WHERE id > 5) FROM {}",
    "SELECT count(DISTINCT user + 1) FROM {}",
    "SELECT count(DISTINCT name COLLATE UTF8_LCASE) FROM {}",
    "SELECT sum(DISTINCT user) FROM {}",
    "SELECT count(DISTINCT user), avg(f) FROM {}",
    "SELECT name, count(DISTINCT user) FROM {} GROUP BY name",
    "SELECT count(DISTINCT user) FROM {} WHERE hash(id) % 2 = 0",
    "SELECT count(DISTINCT user) FROM (SELECT * FROM {} LIMIT 500)",
]


@pytest.mark.parametrize("view", ["ev", "df"])
def test_no_row_group_is_read(spark: SparkSession, root: str, view: str) -> None:
    for query in one_in(3, KNOWN):
        assert answer(spark, query.format(view), pruned=True) == answer(spark, query.format("ev"), pruned=False), query
        assert pruning(spark.sql(query.format(view))) == [f"0 of {BLOCKS}"], query
    assert "statistics answer for 30" in plan_of(spark.sql(f"SELECT count(DISTINCT user) FROM {view}"))


def test_several_are_answered_in_one_query(spark: SparkSession, root: str) -> None:
    count = "(SELECT count(*) FROM ev WHERE user > 50)"
    for query in (
        f"SELECT {count} AS a, min(price), max(price) FROM ev WHERE price > 0.3",
        "SELECT n, count(*) FROM (SELECT max(user) AS n FROM ev WHERE price < 0.2) GROUP BY n",
        "SELECT min(user) FROM ev WHERE user > 9 UNION ALL SELECT max(user) FROM ev WHERE user < 99",
    ):
        assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False), query
        assert set(pruning(spark.sql(query))) == {f"0 of {BLOCKS}"}, query


ENDS = [f"{call}({name})" for call in ("count", "min", "max") for name in ("id", "user", "price", "long")]
ENDS += ["count(f)", "min(f) + 0.0", "max(f) + 0.0"]  # a zero of either sign may be the least
LEAVES = ["user > {}", "user BETWEEN 20 AND {}", "f >= {}", "f <= -1", "f = 0", "price < {} / 100", "id > {}"]
LEAVES += ["user IS NOT NULL", "f IN ({}, -2, double('NaN'))", "long > '{}'", "user IS NULL"]


@examples(60, shrink=False)
@given(
    st.lists(st.sampled_from(["count(*)", *ENDS, "sum(user)"]), min_size=1, max_size=3, unique=True),
    st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(-3, 120)), min_size=1, max_size=3),
    st.sampled_from([" AND ", " OR "]),
    st.sampled_from(["", " HAVING count(*) > 20"]),
)
def test_ends_and_counts_of_any_condition(
    spark: SparkSession, root: str, calls: list[str], leaves: list[tuple[str, int]], word: str, having: str
) -> None:
    """C35, C59: with parts of row groups, of values with NULL, NaN and zeros of either sign."""
    where = word.join(text.format(number) for text, number in leaves)
    query = f"SELECT {', '.join(calls)} FROM ev WHERE {where}{having}"
    assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False), query


def test_others_are_read(spark: SparkSession, root: str) -> None:
    for query in one_in(3, READ):
        assert answer(spark, query.format("ev"), pruned=True) == answer(spark, query.format("ev"), pruned=False), query
        assert not plan_of(spark.sql(query.format("ev"))).count("statistics answer"), query


@examples(20, shrink=False)
@given(
    st.lists(st.sampled_from(LISTED), min_size=1, max_size=1),
    st.lists(st.sampled_from(["count(*)", "min(id)", "count(user)", "max(day)"]), max_size=2, unique=True),
    st.integers(-1, 31),
    st.integers(0, 31),
    st.booleans(),
)
def test_any_span_of_row_groups(
    spark: SparkSession, root: str, names: list[str], calls: list[str], first: int, count: int, is_cut: bool
) -> None:
    low, high = first * GROUP + is_cut, (first + count) * GROUP
    asked = ", ".join([*(f"count(DISTINCT {name})" for name in names), *calls])
    query = f"SELECT {asked} FROM ev WHERE id >= {low} AND id < {high}"
    assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False), query


def test_rows_without_an_entry_are_read(
    spark: SparkSession, root: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """C48: a file that came later has values that no postings list."""
    lake = tmp_path_factory.mktemp("later")
    pq.write_table(numbered(0, 100), lake / "a.parquet", row_group_size=GROUP)
    sec.build_index(sec.open_table(str(lake)), postings={"user": "ordered"})
    pq.write_table(numbered(1000, 1050), lake / "b.parquet", row_group_size=GROUP)
    sec.enable(spark)
    spark.read.parquet(str(lake)).createOrReplaceTempView("later")
    for query in ("SELECT count(DISTINCT user) FROM later", "SELECT count(DISTINCT user), count(*) FROM later"):
        assert answer(spark, query, pruned=True) == answer(spark, query, pruned=False)
