"""Aggregates, LIMIT and ORDER BY of plain queries over Delta tables: Spark's answer, from statistics and some files.

Classes C48 (what has no statistics is read), C49 (an absent null count is not 0), C59 (deleted rows do not count), C61
(deletion vectors apply to what is read).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.aggregated_tables import SPAN, aggregate_query, require_same_overflow
from tests.support.enabled_session import answer, enabled, require_same
from tests.support.limited_rows import LIMITS, require_some_rows
from tests.support.profiles import examples, one_in

FILES, ROWS = 8, 2000
COLUMNS = (
    "id, CAST(IF(id % 7 = 3, NULL, id % 97) AS INT) AS k, "
    "CAST(IF(id >= 1000 AND id < 1250, NULL, id % 5) AS DECIMAL(9, 2)) AS price, 9223372036854770000 + id AS huge, "
    "IF(id % 11 = 0, double('NaN'), IF(id % 13 = 0, -0.0D, id / 3)) AS f, concat('name-', id DIV 250) AS name, "
    "id DIV 500 AS part"
)


def make(spark: SparkSession, name: str, path: str, options: str = "") -> None:
    """Files of 250 rows each; a version later, rows of the first and the third one are deleted by vectors."""
    spark.sql(
        f"CREATE TABLE {name} USING delta {options} LOCATION '{path}' TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name') "
        f"AS SELECT {COLUMNS} FROM range(0, {ROWS}, 1, {FILES})"
    )
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 77, 600)")
    sec.build_index(sec.open_table(path), sort_key=["id"], sums=["k", "price", "huge"])


@pytest.fixture(scope="module")
def table(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    make(delta, "delta_aggregated", str(tmp_path_factory.mktemp("delta") / "t"))
    with enabled(delta):
        yield "delta_aggregated"
    delta.sql("DROP TABLE delta_aggregated")


def files_read(spark: SparkSession, query: str) -> int:
    """The files that the scans of a query have read; an adaptive plan would hide them."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        frame = spark.sql(query)
        frame.collect()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    scans = [leaves.apply(i).metrics() for i in range(leaves.length())]
    return sum(scan.apply("numFiles").value() for scan in scans if scan.contains("numFiles"))


ANSWERED = [  # with the files that are read
    ("SELECT count(*), max(k), sum(k) FROM {}", 2),
    ("SELECT part, count(*) FROM {} GROUP BY part", 0),  # without the deleted rows
    ("SELECT count(*) FROM {} WHERE id <= 260", 1),
    ("SELECT count(*), count(k), min(id), max(id), min(name) FROM {} WHERE id >= 750", 0),
    ("SELECT count(*) + 1 AS n, max(f), min(f) FROM {} WHERE id >= 1000", None),
    ("SELECT sum(k), avg(k), sum(price), avg(price), count(price) FROM {} WHERE id > 850", 1),
    ("SELECT sum(price), avg(price), count(price) FROM {} WHERE id BETWEEN 1000 AND 1249", 0),
    ("SELECT name, count(*), min(id), max(k), sum(price) FROM {} GROUP BY name", 2),
    ("SELECT part, name, count(k) FROM {} WHERE id + 0 > -1 AND id > 100 GROUP BY name, part HAVING count(*) > 10", 2),
    ("SELECT DISTINCT name FROM {} WHERE id >= 750", 0),
    ("SELECT count(DISTINCT part), count(*) FROM {} WHERE id >= 800", 1),
    ("SELECT count(*), max(k) FROM {} VERSION AS OF 0 WHERE id < 1300", 1),
    ("SELECT (SELECT count(*) FROM {} WHERE id > 700) AS a, (SELECT max(id) + count(k) FROM {}) AS b", None),
    ("SELECT count(*) FROM {} WHERE id > 900 UNION ALL SELECT count(*) FROM {} WHERE id > 901", 2),
    ("SELECT id FROM {} WHERE id > 800 ORDER BY id LIMIT 10", 2),
    ("SELECT id, name FROM {} ORDER BY id DESC LIMIT 10 OFFSET 20", 1),
    ("SELECT id FROM {} ORDER BY id LIMIT 300", 4),  # in two of them rows are deleted
]
READ = [
    "SELECT sum(huge) FROM {}",
    "SELECT sum(f), count(*) FROM {} WHERE id > 500",
    "SELECT k, count(*) FROM {} GROUP BY k",
    "SELECT count(*) FILTER (WHERE k > 3) FROM {}",
    "SELECT count(DISTINCT k), sum(k + 1) FROM {} WHERE id > 400",
    "SELECT count(*), max(id) FROM {} WHERE id < 0",
    "SELECT part, count(*) FROM {} WHERE id < 0 GROUP BY part",
    "SELECT count(*), count(f) FROM {} WHERE f IS NOT NULL AND NOT f < 5",
    "SELECT count(*) FROM (SELECT id FROM {} LIMIT 30)",
    "SELECT a.part, count(*) FROM {} a JOIN {} b ON a.id = b.id + 1 WHERE b.part = 2 GROUP BY a.part",
    "SELECT count(*), max(_metadata.file_size) > 0 FROM {} WHERE id > 500",
]


@pytest.mark.parametrize(("query", "files"), one_in(2, ANSWERED))
def test_statistics_answer(delta: SparkSession, table: str, query: str, files: int | None) -> None:
    query = query.format(*[table] * 2)
    require_same(delta, query)
    assert files is None or files_read(delta, query) == files


@pytest.mark.parametrize("query", one_in(3, READ))
def test_other_aggregates_are_those_of_spark(delta: SparkSession, table: str, query: str) -> None:
    require_same(delta, query.format(*[table] * 2))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sums_that_overflow(delta: SparkSession, table: str, ansi: str) -> None:
    require_same_overflow(delta, table, ansi)


def test_why_files_are_read(delta: SparkSession, table: str) -> None:
    delta.sql(f"SELECT count(*), sum(k) FROM {table} WHERE id > 3").collect()
    said = sec.last_plans(delta)[-1]
    assert "statistics answer for 6" in said.reason
    assert "1 may hold deleted rows" in said.reason
    assert said.plan is not None


def test_a_scan_with_fewer_rows_is_not_run_for_one_with_all(delta: SparkSession, table: str) -> None:
    """Delta's files equal those with fewer rows: the second scan, of the same columns and filters, reads all."""
    counted = f"SELECT count(id) AS n, 0 AS m FROM {table} WHERE id > 800"
    read = f"SELECT count(id) AS n, count(id) FILTER (WHERE k > 0) AS m FROM {table} WHERE id > 800"
    require_same(delta, f"SELECT * FROM ({counted}) UNION ALL SELECT * FROM ({read})")
    require_same(delta, f"SELECT a.n, b.n FROM ({counted}) a, (SELECT sum(id) AS n FROM {table} WHERE id > 800) b")
    listed = f"(SELECT collect_set(id) AS n FROM {table} WHERE id > 1995)"
    require_same(delta, f"SELECT a.n, b.n FROM (SELECT count(id) AS n FROM {table} WHERE id > 1995) a, {listed} b")


LIMITED = [  # with the files that are read
    ("SELECT id FROM {} WHERE id > 800", "LIMIT 10", 1),
    ("SELECT id, name FROM {} WHERE id >= 750 AND k IS NOT NULL", "LIMIT 10", 5),
    ("SELECT id FROM {} WHERE id > 800", "LIMIT 251", 2),
    ("SELECT id FROM {} WHERE id > 800", "LIMIT 200 OFFSET 100", 2),
    ("SELECT id FROM {} WHERE id < 600", "LIMIT 10", 1),
    ("SELECT id FROM {} WHERE id < 200", "LIMIT 190", 1),  # rows are deleted there
    ("SELECT id FROM {} WHERE part >= 0", "LIMIT 10", 1),
    ("SELECT id FROM {} VERSION AS OF 0 WHERE id < 700", "LIMIT 10", 1),
    ("SELECT id FROM {}", "LIMIT 10", 1),
    ("SELECT k FROM {} VERSION AS OF 0", "LIMIT 251 OFFSET 250", 3),
]


@pytest.mark.parametrize(("rows", "limit", "files"), one_in(5, LIMITED))
def test_a_limit_reads_as_few_files_as_suffice(
    delta: SparkSession, table: str, rows: str, limit: str, files: int
) -> None:
    """C59: files with deleted rows are not counted on. Delta would read all files, for it filters deleted rows."""
    require_some_rows(delta, rows.format(table), limit)
    assert files_read(delta, f"{rows.format(table)} {limit}") == files


CONDITIONS = ["id > 300", "part = 1", "part IN (1, 3) AND id >= 760", "k IS NOT NULL", "id % 3 = 0", "name >= 'name-3'"]


@examples(6)
@given(st.lists(st.sampled_from(CONDITIONS), max_size=2), LIMITS, st.sampled_from(["", " VERSION AS OF 0"]))
def test_any_limit_below_any_filter(
    delta: SparkSession, table: str, partitioned: str, conditions: list[str], limit: str, version: str
) -> None:
    where = " AND ".join(["TRUE", *conditions])
    for name in (table, *([] if "name" in where else [partitioned])):  # there the column has another name
        require_some_rows(delta, f"SELECT id, k FROM {name}{version} WHERE {where}", limit)


CALLS = ["count(*)", "count(k)", "min(id)", "max(k)", "sum(k)", "avg(price)", "sum(price)", "max(f)", "min(f)"]
BY = [(), ("part",), ("name",), ("name", "part"), ("k",)]


@examples(6)
@given(
    SPAN,
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=4),
    st.sampled_from(BY),
    st.sampled_from(["", " VERSION AS OF 0"]),
)
def test_any_aggregates_of_any_rows(
    delta: SparkSession, table: str, span: tuple[int, int], calls: list[str], by: tuple[str, ...], version: str
) -> None:
    require_same(delta, aggregate_query(f"{table}{version}", span, calls, by))


@pytest.fixture(scope="module")
def partitioned(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A partitioned table with a column added and one renamed since, and files that no index has."""
    name = "delta_aggregated_by_part"
    make(delta, name, str(tmp_path_factory.mktemp("delta") / "parts"), "PARTITIONED BY (part)")
    delta.sql(f"ALTER TABLE {name} ADD COLUMN late INT")
    delta.sql(f"ALTER TABLE {name} RENAME COLUMN name TO called")
    for row in (
        "5000, 3, 1, 5, 0.5, 'x', 9, 1",
        "5001, NULL, NULL, 5, NULL, NULL, 9, NULL",
        "5002, 1, 2, 5, 0, 'y', 2, 7",
    ):
        delta.sql(f"INSERT INTO {name} SELECT {row}")
    with enabled(delta):
        yield name
    delta.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT part, count(*), min(id), max(k), sum(k), avg(price) FROM {} GROUP BY part",
        "SELECT count(*), max(id), sum(price) FROM {} WHERE part = 2",
        "SELECT count(*), max(called) FROM {} WHERE part IN (2, 3, 9) AND id > 900",
        "SELECT part, count(late), min(late), max(called) FROM {} WHERE part > 2 GROUP BY part",
        "SELECT count(*) FROM {} WHERE part = 2 AND id % 2 = 0",
        "SELECT part, count(*) FROM {} WHERE part = 77 GROUP BY part",
        "SELECT count(*) FROM {} WHERE id > 1700 OR part = 9",
        "SELECT id FROM {} WHERE part = 2 ORDER BY id DESC LIMIT 3",
    ],
)
def test_partitions_and_changed_columns(delta: SparkSession, partitioned: str, query: str) -> None:
    require_same(delta, query.format(partitioned))


WITHIN = [("part = 2", 2), ("part > 0", 3), ("TRUE", 3), ("part IN (1, 2) AND id > 700", 3), ("part = 77", 0)]


@pytest.mark.parametrize(("where", "most"), one_in(3, WITHIN))
def test_a_limit_in_partitions(delta: SparkSession, partitioned: str, where: str, most: int) -> None:
    """Delta chooses as many files as it needs, but anew, without the limit, once it filters deleted rows.

    Files of a single row, which come first if their names do, count as well: without them one is enough.
    """
    for limit in ("LIMIT 3", "LIMIT 260", "LIMIT 700 OFFSET 2"):
        require_some_rows(delta, f"SELECT id, part FROM {partitioned} WHERE {where}", limit)
    assert files_read(delta, f"SELECT id FROM {partitioned} WHERE {where} LIMIT 3") <= most


def test_different_values(delta: SparkSession, table: str) -> None:
    """C44, C59: looked up, without the rows that deletion vectors name."""
    path = str(delta.sql(f"DESCRIBE DETAIL {table}").collect()[0].location).removeprefix("file:")
    sec.refresh_index(sec.open_table(path), postings={"k": "ordered", "price": "ordered"})
    for query, files in (
        ("SELECT count(DISTINCT k) FROM {} VERSION AS OF 0", 0),
        ("SELECT count(DISTINCT k), count(*), max(id) FROM {} WHERE id >= 750", 0),
        ("SELECT count(DISTINCT price) FROM {} WHERE part IN (2, 3)", 0),
        ("SELECT count(DISTINCT k) FROM {}", 0),
        ("SELECT min(k), max(price), count(k), count(*) FROM {} WHERE k BETWEEN 3 AND 60", 0),
        ("SELECT count(price), max(k) FROM {} WHERE k > 5 HAVING count(*) > 2", 0),
        ("SELECT count(DISTINCT k) FROM {} WHERE id >= 800", 5),
    ):
        require_same(delta, query.format(table))
        assert files_read(delta, query.format(table)) == files, query


def test_changes_are_seen_at_once(delta: SparkSession, table: str) -> None:
    count = f"SELECT count(*), max(id), sum(k) FROM {table}"
    delta.sql(f"INSERT INTO {table} SELECT 9000, 5, NULL, 7, NULL, NULL, 18")
    require_same(delta, count)
    delta.sql(f"UPDATE {table} SET k = 90 WHERE id = 1400")
    require_same(delta, count)
    delta.sql(f"DELETE FROM {table} WHERE id BETWEEN 1500 AND 1749")
    require_same(delta, count)
    assert answer(delta, count, pruned=True)[1].startswith("Row(count(1)=1748,")
