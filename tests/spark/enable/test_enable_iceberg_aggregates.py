"""Aggregates of plain queries over Iceberg tables: Spark's answer, from statistics and the row groups in doubt.

Classes C48 (what has no statistics is read), C49 (an absent null count is not 0), C59 (deleted rows do not count).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.aggregated_tables import SPAN, aggregate_query, require_same_overflow
from tests.support.enabled_session import enabled, plan_of, pruning, require_same
from tests.support.formats.iceberg_spark import add_equality_deletes, data_files, location, metadata_file
from tests.support.profiles import examples

NAME = "lake.db.aggregated"
SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"
COLUMNS = (
    "id, CAST(IF(id % 7 = 3, NULL, id % 97) AS INT) AS k, id DIV 400 AS part, "
    "CAST(IF(id >= 1200 AND id < 1600, NULL, id % 5) AS DECIMAL(9, 2)) AS price, 9223372036854770000 + id AS huge, "
    "IF(id % 11 = 0, double('NaN'), IF(id % 13 = 0, -0.0D, id / 3)) AS f, concat('name-', id DIV 200) AS name, "
    "date_add(DATE'2026-01-01', CAST(id DIV 400 AS INT)) AS day"
)
TYPES = "id BIGINT, k INT, part BIGINT, price DECIMAL(9, 2), huge BIGINT, f DOUBLE, name STRING, day DATE"


def make(spark: SparkSession, name: str, *, partitioned: str = "", files: int = 5) -> None:
    """Files of 400 rows, each of several row groups."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} ({TYPES}) USING iceberg {partitioned} TBLPROPERTIES ('format-version'='3', "
        f"'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', {SMALL})"
    )
    for number in range(files):
        add(spark, name, number)


def add(spark: SparkSession, name: str, number: int) -> None:
    rows = f"range({number * 400}, {number * 400 + 400})"
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ {COLUMNS} FROM {rows}")


def index(spark: SparkSession, name: str) -> None:
    sec.build_index(
        sec.open_table(metadata_file(spark, name)), spark=spark, sort_key=["id"], sums=["k", "price", "huge"]
    )


@pytest.fixture(scope="module")
def table(iceberg: SparkSession) -> Iterator[str]:
    """A table of five files: rows of the first two are deleted by value, one of the fourth by position.

    It has a tag from before that, and a branch that went on.
    """
    make(iceberg, NAME, files=2)
    iceberg.sql(f"ALTER TABLE {NAME} CREATE TAG before")
    gone = pa.table({"id": pa.array([401, 533, 9, 1000], pa.int64())})  # of older files only
    add_equality_deletes(iceberg, NAME, gone, beside=data_files(iceberg, NAME)[0])
    for number in (2, 3, 4):
        add(iceberg, NAME, number)
    iceberg.sql(f"DELETE FROM {NAME} WHERE id IN (1205, 1377)")
    index(iceberg, NAME)
    iceberg.sql(f"ALTER TABLE {NAME} CREATE BRANCH other")
    iceberg.sql(f"INSERT INTO {NAME}.branch_other SELECT {COLUMNS} FROM range(2000, 2100)")
    with enabled(iceberg):
        yield NAME
    iceberg.sql(f"DROP TABLE {NAME}")


def left_out(spark: SparkSession, query: str) -> int:
    """The row groups that statistics answer for."""
    return sum(int(number) for number in re.findall(r"statistics answer for (\d+)", plan_of(spark.sql(query))))


ANSWERED = [
    "SELECT count(*) FROM {}",
    "SELECT count(*), count(k), min(id), max(id), min(name), max(day) FROM {}",
    "SELECT count(*) FROM {} WHERE id BETWEEN 1200 AND 1599",  # two of them are deleted by position
    "SELECT part, count(*) + 1 AS n FROM {} WHERE id >= 1000 GROUP BY part",
    "SELECT sum(k), avg(k), sum(price), avg(price), count(price) FROM {} WHERE id > 850",
    "SELECT sum(price), avg(price), count(price) FROM {} WHERE id BETWEEN 1100 AND 1599",
    "SELECT part, count(*), min(id), max(k), sum(price) FROM {} GROUP BY part",
    "SELECT name, part, count(k) FROM {} WHERE id + 0 > -1 AND id > 100 GROUP BY name, part HAVING count(*) > 10",
    "SELECT DISTINCT day FROM {}",
    "SELECT count(DISTINCT part), count(*) FROM {} WHERE id >= 500",
    "SELECT count(*), max(k) FROM {} VERSION AS OF 'before' WHERE id < 1300",
    "SELECT count(*), max(k), sum(price) FROM {}.branch_other WHERE id > 100",
    "SELECT (SELECT count(*) FROM {} WHERE id > 700) AS a, (SELECT max(id) FROM {}) AS b",
    "SELECT count(*) FROM {} WHERE id > 900 UNION ALL SELECT count(*) FROM {} WHERE id > 901",
]
READ = [  # by rows alone, or by groups that statistics do not have
    "SELECT count(*) + 1 AS n, max(f), min(f) FROM {} WHERE id >= 1000",  # NaN may be among the rows
    "SELECT sum(huge) FROM {}",
    "SELECT sum(huge), count(*) FROM {} WHERE id > 10",
    "SELECT sum(f), count(*) FROM {} WHERE id > 500",
    "SELECT k, count(*) FROM {} GROUP BY k",
    "SELECT count(*) FILTER (WHERE k > 3) FROM {}",
    "SELECT count(DISTINCT k), sum(k + 1) FROM {} WHERE id > 400",
    "SELECT count(*), max(id) FROM {} WHERE id < 0",
    "SELECT part, count(*) FROM {} WHERE id < 0 GROUP BY part",
    "SELECT count(*) FROM {} WHERE f > 100",
    "SELECT count(*), count(f) FROM {} WHERE f IS NOT NULL AND NOT f < 5",
    "SELECT count(*) FROM (SELECT id FROM {} LIMIT 30)",
    "SELECT a.part, count(*) FROM {} a JOIN {} b ON a.id = b.id + 1 WHERE b.part = 2 GROUP BY a.part",
    "SELECT max(_pos), count(*) FROM {} WHERE id > 500",
]


@pytest.mark.parametrize("query", ANSWERED)
def test_statistics_answer(iceberg: SparkSession, table: str, query: str) -> None:
    query = query.format(*[table] * 2)
    require_same(iceberg, query)
    assert left_out(iceberg, query) > 0


@pytest.mark.parametrize("query", READ)
def test_other_aggregates_are_those_of_spark(iceberg: SparkSession, table: str, query: str) -> None:
    require_same(iceberg, query.format(*[table] * 2))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sums_that_overflow(iceberg: SparkSession, table: str, ansi: str) -> None:
    require_same_overflow(iceberg, table, ansi)


def test_rows_in_doubt_are_read_once(iceberg: SparkSession, table: str) -> None:
    """Deleted rows and rows at the edge of a condition are read; of the row groups beside them nothing is."""
    query = f"SELECT count(*) FROM {table} WHERE id >= 1013"
    frame = iceberg.sql(query)
    (said,) = pruning(frame)
    read, _ = (int(number) for number in said.split(" of "))
    assert (read, left_out(iceberg, query) > 8) == (1, True)
    assert "may hold rows that do not match" in sec.last_plans(iceberg)[-1].reason
    assert frame.collect()[0][0] == 2000 - 1013 - 2
    iceberg.sql(f"SELECT count(*), max(id) FROM {table} WHERE id > 1300").collect()
    assert "may hold deleted rows" in sec.last_plans(iceberg)[-1].reason
    iceberg.sql(f"SELECT count(*) FROM {table} WHERE id < 900").collect()
    assert "may hold deleted rows" in sec.last_plans(iceberg)[-1].reason


def test_why_a_sum_is_read(iceberg: SparkSession, table: str) -> None:
    iceberg.sql(f"SELECT sum(huge) FROM {table} WHERE id > 3")._jdf.queryExecution().optimizedPlan()
    assert "a sum that may overflow" in sec.last_plans(iceberg)[-1].reason


CALLS = [
    "count(*)",
    "count(k)",
    "min(id)",
    "max(k)",
    "sum(k)",
    "avg(price)",
    "sum(price)",
    "max(f)",
    "min(f)",
    "max(name)",
]
BY = [(), ("part",), ("name",), ("day", "part"), ("k",)]


@examples(15)
@given(
    SPAN,
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=4),
    st.sampled_from(BY),
    st.sampled_from(["", " VERSION AS OF 'before'"]),
)
def test_any_aggregates_of_any_rows(
    iceberg: SparkSession, table: str, span: tuple[int, int], calls: list[str], by: tuple[str, ...], version: str
) -> None:
    require_same(iceberg, aggregate_query(f"{table}{version}", span, calls, by))


PARTITIONED = "lake.db.aggregated_by_part"


@pytest.fixture(scope="module")
def partitioned(iceberg: SparkSession) -> Iterator[str]:
    """A table of two partition specs, with columns added, widened and renamed since, and files that no index has."""
    make(iceberg, PARTITIONED, partitioned="PARTITIONED BY (part)")
    for change in (
        "ADD COLUMN late INT",
        "ALTER COLUMN k TYPE BIGINT",
        "ALTER COLUMN price TYPE DECIMAL(12, 2)",
        "RENAME COLUMN name TO called",
        "ADD PARTITION FIELD bucket(2, id)",
    ):
        iceberg.sql(f"ALTER TABLE {PARTITIONED} {change}")
    insert = f"INSERT INTO {PARTITIONED} SELECT {COLUMNS}, CAST(id AS INT) FROM range"
    iceberg.sql(f"{insert}(2000, 2400)")
    index(iceberg, PARTITIONED)
    iceberg.sql(f"{insert}(2400, 2450)")
    iceberg.sql(f"DELETE FROM {PARTITIONED} WHERE id = 1250")
    with enabled(iceberg):
        yield PARTITIONED
    iceberg.sql(f"DROP TABLE {PARTITIONED}")


@pytest.mark.parametrize(
    ("query", "answered"),
    [
        ("SELECT part, count(*), min(id), max(k), sum(k), avg(price) FROM {} GROUP BY part", True),
        ("SELECT count(*), max(id), sum(price) FROM {} WHERE part = 2", True),  # a filter that only Iceberg applies
        ("SELECT count(*), max(called) FROM {} WHERE part IN (2, 3, 5) AND id > 900", True),
        ("SELECT part, count(late), min(late), max(called) FROM {} WHERE part > 2 GROUP BY part", True),
        ("SELECT count(*) FROM {} WHERE part = 2 AND id % 2 = 0", False),
        ("SELECT count(*), min(late) FROM {} WHERE part = 77", False),
        ("SELECT part, count(*) FROM {} WHERE part = 77 GROUP BY part", False),
        ("SELECT count(*) FROM {} WHERE id > 1700 OR part = 6", True),
        ("SELECT id FROM {} WHERE part = 2 ORDER BY id DESC LIMIT 3", False),
    ],
)
def test_partitions_and_changed_columns(iceberg: SparkSession, partitioned: str, query: str, answered: bool) -> None:
    query = query.format(partitioned)
    require_same(iceberg, query)
    assert not answered or left_out(iceberg, query) > 0


def test_files_are_read_apart_only_where_row_groups_are_known_to_lie(iceberg: SparkSession) -> None:
    """Without their places, a file with a row group to read is read whole, and no row is counted twice."""
    name = "lake.db.aggregated_unplaced"
    make(iceberg, name)
    sec.build_index(sec.open_table(metadata_file(iceberg, name)), spark=iceberg, sort_key=["id"], page_locations=False)
    assert location(iceberg, name)
    with enabled(iceberg):
        for condition in ("id >= 1000", "id BETWEEN 3 AND 1999", "id < 1234 OR id > 1240"):
            query = f"SELECT count(*), max(id) FROM {name} WHERE {condition}"
            require_same(iceberg, query)
            assert left_out(iceberg, query) > 0
    iceberg.sql(f"DROP TABLE {name}")


def test_different_values_are_looked_up(iceberg: SparkSession) -> None:
    """C44, C59: by ordered postings, without the rows that positions delete."""
    name = "lake.db.aggregated_listed"
    make(iceberg, name)
    iceberg.sql(f"ALTER TABLE {name} CREATE TAG before")
    iceberg.sql(f"DELETE FROM {name} WHERE id = 10")
    postings = {"k": "ordered", "name": "ordered"}
    sec.build_index(sec.open_table(metadata_file(iceberg, name)), spark=iceberg, sort_key=["id"], postings=postings)
    with enabled(iceberg):
        for query, is_known in (
            ("SELECT count(DISTINCT k) FROM {} VERSION AS OF 'before'", True),
            ("SELECT count(DISTINCT name), count(*), max(id) FROM {} WHERE id >= 400", True),
            ("SELECT count(DISTINCT k) FROM {} WHERE part = 2", True),
            ("SELECT count(DISTINCT k) FROM {}", True),
            ("SELECT min(k), max(k), count(k), count(*) FROM {} WHERE k BETWEEN 3 AND 60", True),
            ("SELECT count(k), max(k) FROM {} WHERE part = 0 AND k > 5", True),
            ("SELECT count(*), min(k) FROM {} WHERE k < 20 HAVING count(*) > 2", True),
            ("SELECT count(*) FROM (SELECT max(k) AS m FROM {} WHERE k > 4 UNION SELECT 1)", True),
            ("SELECT count(DISTINCT k) FROM {} WHERE id > 777", False),
        ):
            require_same(iceberg, query.format(name))
            assert (left_out(iceberg, query.format(name)) > 0) == is_known, query
    iceberg.sql(f"DROP TABLE {name}")
