"""``sec.enable`` on Iceberg tables by name: Iceberg's own scans, from the row groups that the index leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.planner import session_rule
from tests.support.enabled_session import answer, enabled, plan_of, pruning, reasons, require_same
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.profiles import one_in

NAME = "lake.db.enabled"
SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"


def make(spark: SparkSession, name: str, version: int) -> None:
    """An indexed table with rows deleted by position, and a tag from before them."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, uid BIGINT, name STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        f"'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read', {SMALL})"
    )
    for start in (0, 1000):
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, (id * 7919) % 2000, concat('name-', id) "
            f"FROM range({start}, {start + 1000})"
        )
    spark.sql(f"ALTER TABLE {name} CREATE TAG before")
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 1500)")
    sec.build_index(sec.open_table(metadata_file(spark, name)), spark=spark, sort_key=["id"], bloom=["uid"])


@pytest.fixture(scope="module")
def table(iceberg: SparkSession) -> Iterator[str]:
    """A table of the second version, and a branch that went on."""
    make(iceberg, NAME, 2)
    iceberg.sql(f"ALTER TABLE {NAME} CREATE BRANCH other")
    iceberg.sql(f"INSERT INTO {NAME}.branch_other VALUES (5000, 1, 'other')")
    with enabled(iceberg):
        yield NAME
    iceberg.sql(f"DROP TABLE {NAME}")


QUERIES = [
    "SELECT * FROM {} WHERE id = 7",
    "SELECT * FROM {} WHERE id = 5",
    "SELECT * FROM {} WHERE id + 0 IN (4, 5, 6, 1500, 1501)",
    "SELECT uid FROM {} WHERE uid = 77 OR id = 1999",
    "SELECT count(*), min(uid), max(name) FROM {} WHERE id BETWEEN 5 AND 250",
    "SELECT count(*), count(DISTINCT uid) FROM {}",
    "SELECT uid, count(*), max(id) FROM {} GROUP BY uid",
    "SELECT id, _pos FROM {} WHERE id = 1234",
    "SELECT id FROM {0} VERSION AS OF 'before' WHERE id IN (5, 1500)",
    "SELECT id, name FROM {0}.branch_other WHERE id > 1998",
    "SELECT a.id, b.name FROM {0} a JOIN {0} b ON a.uid = b.id WHERE a.id < 9",
    "SELECT id FROM {0} WHERE id < 20 AND uid NOT IN (SELECT id FROM {0} WHERE id > 30)",
    "SELECT name FROM {} WHERE name = 'name-7' ORDER BY id LIMIT 1",
    "SELECT id, input_file_name() FROM {} WHERE id = 9",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_without(iceberg: SparkSession, table: str, query: str) -> None:
    require_same(iceberg, query.replace("{}", "{0}").format(table))


def test_only_row_groups_that_can_match_are_read(iceberg: SparkSession, table: str) -> None:
    frame = iceberg.sql(f"SELECT * FROM {table} WHERE id = 7")
    (said,) = pruning(frame)
    kept, all_ = (int(number) for number in said.split(" of "))
    assert (kept, all_ > 10) == (1, True)
    frame.collect()
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    rows = leaf.metrics().apply("numOutputRows").value()
    assert 0 < rows < 500
    figures = {
        name: leaf.metrics().apply(f"secateur{name}").value() for name in ("Kept", "All", "KeptBytes", "AllBytes")
    }
    assert (figures["Kept"], figures["All"]) == (kept, all_)
    assert 0 < figures["KeptBytes"] < figures["AllBytes"] / 5
    assert 0 <= leaf.metrics().apply("secateurMillis").value() < 60_000
    assert sec.last_plans(iceberg)[-1].plan is not None


def test_a_past_by_its_time(iceberg: SparkSession, table: str) -> None:
    times = iceberg.sql(f"SELECT string(committed_at) FROM {table}.snapshots ORDER BY committed_at").collect()
    query = f"SELECT id FROM {table} TIMESTAMP AS OF '{times[1][0]}' WHERE id IN (5, 1500)"  # before rows were deleted
    require_same(iceberg, query)
    frame = iceberg.sql(query)
    assert sorted(row.id for row in frame.collect()) == [5, 1500]
    assert [said.split(" of ")[0] for said in pruning(frame)] == ["2"]


def test_the_catalog_of_the_session(iceberg: SparkSession, table: str, tmp_path: Path) -> None:
    session = iceberg.newSession()
    catalog = "spark.sql.catalog.spark_catalog"
    session.conf.set(catalog, "org.apache.iceberg.spark.SparkSessionCatalog")
    session.conf.set(f"{catalog}.type", "hadoop")
    session.conf.set(f"{catalog}.warehouse", str(tmp_path))
    session.sql(f"CREATE TABLE default.unqualified USING iceberg TBLPROPERTIES ({SMALL}) AS SELECT * FROM {table}")
    (metadata,) = tmp_path.glob("default/unqualified/metadata/v1.metadata.json")
    sec.build_index(sec.open_table(str(metadata)), spark=session, sort_key=["id"])
    sec.enable(session)
    query = "SELECT * FROM unqualified WHERE id BETWEEN 7 AND 9"
    require_same(session, query)
    kept, all_ = map(int, pruning(session.sql(query))[0].split(" of "))
    assert kept < all_
    session.sql("DROP TABLE default.unqualified")


def test_joins_are_planned_by_what_is_left(iceberg: SparkSession, table: str) -> None:
    """Iceberg tells the rows of whole files; those of the row groups that are left fit a broadcast."""
    query = f"SELECT * FROM {table} WHERE uid = 77"

    def told() -> tuple[int, int]:
        leaf = iceberg.sql(query)._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        estimate = leaf.scan().estimateStatistics()
        return estimate.numRows().getAsLong(), estimate.sizeInBytes().getAsLong()

    ours = told()
    iceberg.conf.set("secateur.enabled", "false")
    try:
        theirs = told()
    finally:
        iceberg.conf.unset("secateur.enabled")
    assert 0 < ours[0] < theirs[0] / 3
    assert 0 < ours[1] < theirs[1] / 3


def test_many_threads_with_different_questions(iceberg: SparkSession, table: str) -> None:
    """Joins whose small side prunes at run time, in every thread with other values."""
    queries = [
        f"SELECT a.id, b.id other FROM {table} a JOIN {table} b ON a.uid = b.id WHERE a.id BETWEEN {key} AND {key + 3}"
        for key in range(0, 2000, 250)
    ]
    expected = [answer(iceberg, query, pruned=False) for query in queries]

    def asked(query: str) -> list[str]:
        frame = iceberg.sql(query)
        return [str(frame.dtypes), *sorted(map(repr, frame.collect()))]

    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            assert list(threads.map(asked, queries)) == expected


def test_one_table_is_switched_off_by_name(iceberg: SparkSession, table: str) -> None:
    query = f"SELECT * FROM {table} WHERE id = 7"
    for key in ("enabled", "db.enabled", "lake.db.enabled"):
        iceberg.sql(f"SET secateur.enabled.{key}=false")
        try:
            assert pruning(iceberg.sql(query)) == []
            assert reasons(iceberg)[-1] == f"secateur.enabled.{key} is off"
        finally:
            iceberg.conf.unset(f"secateur.enabled.{key}")
        assert len(pruning(iceberg.sql(query))) == 1


def test_a_share_of_what_is_pruned_is_audited(iceberg: SparkSession, table: str) -> None:
    iceberg.conf.set("secateur.audit", "1")
    try:
        iceberg.sql(f"SELECT * FROM {table} WHERE id = 7").collect()
        rule = session_rule._rule_of(iceberg)
        assert rule is not None
        rule.python.audits.wait()
        plan = sec.last_plans(iceberg)[-1].plan
        assert plan is not None
        assert plan.report.audit is not None
        assert plan.report.audit.blocks > 10
    finally:
        iceberg.conf.unset("secateur.audit")


SMALL_SIDE = "(SELECT * FROM small WHERE label < 'k2') s"


@pytest.mark.parametrize(
    ("query", "few"),
    [
        (f"SELECT /*+ BROADCAST(s) */ id, label FROM {{}} b JOIN {SMALL_SIDE} ON uid = k", True),
        (f"SELECT /*+ BROADCAST(s) */ id FROM {{}} b JOIN {SMALL_SIDE} ON uid = k AND id = other", True),
        (f"SELECT /*+ BROADCAST(s) */ id FROM {{}} b LEFT SEMI JOIN {SMALL_SIDE} ON uid = k", True),
        (f"SELECT /*+ BROADCAST(s) */ id, _pos FROM {{}} b JOIN {SMALL_SIDE} ON uid = k WHERE id > 7", True),
        (f"SELECT /*+ BROADCAST(s) */ id FROM {{}} VERSION AS OF 'before' b JOIN {SMALL_SIDE} ON uid = k", True),
        (f"SELECT /*+ BROADCAST(s) */ id, label FROM {{}} b LEFT JOIN {SMALL_SIDE} ON uid = k", False),
    ],
)
def test_values_of_a_small_side_prune_while_the_query_runs(
    iceberg: SparkSession, table: str, query: str, few: bool
) -> None:
    """`few`: whether the join leaves out rows of the table without a partner."""
    rows = [(uid, (uid * 1679) % 2000, f"k{uid}") for uid in range(10)]  # 1679 * 7919 = 1 modulo 2000
    iceberg.createDataFrame(rows, "k bigint, other bigint, label string").createOrReplaceTempView("small")
    query = query.format(table)
    require_same(iceberg, query)
    frame = iceberg.sql(query)
    assert frame.collect()
    left = set(re.findall(r"(\d+) of 14 row groups after run-time filters", plan_of(frame)))
    assert left <= {"1", "2"} and bool(left) == few, plan_of(frame)


CHANGES = [
    "UPDATE {} SET name = 'u' WHERE id = 1700",
    "DELETE FROM {} WHERE id = 1800 OR uid = 77",
    "MERGE INTO {} t USING (SELECT CAST(id * 300 + 4 AS BIGINT) AS id FROM range(3)) s ON t.id = s.id AND t.id < 900 "
    "WHEN MATCHED THEN UPDATE SET name = 'changed' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'made')",
    "MERGE INTO {} t USING (SELECT CAST(5 AS BIGINT) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'made') "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 1900 THEN UPDATE SET name = 'alone'",
]


VERSIONS = [3, 2]  # the third keeps deleted rows as vectors, one of a file, written anew


@pytest.mark.parametrize("version", one_in(2, VERSIONS))
def test_changes_read_few_row_groups_and_are_those_without(iceberg: SparkSession, table: str, version: int) -> None:
    changed, twin = "lake.db.changed", "lake.db.changed_twin"
    make(iceberg, changed, version)
    iceberg.sql(f"CREATE TABLE {twin} USING iceberg TBLPROPERTIES ('format-version'='2') AS SELECT * FROM {changed}")
    try:
        for change in CHANGES:
            require_same(iceberg, f"SELECT * FROM {twin} WHERE id = 1")  # the last scan is none of the table's
            iceberg.sql(change.replace("{}", changed))
            if "BY SOURCE" not in change:  # which needs every row of the table
                last = sec.last_plans(iceberg)[-1]
                assert last.location == changed and last.plan is not None, change
                assert last.plan is None or len(last.plan.survivors.blocks) <= 12, change
            iceberg.sql(change.replace("{}", twin))
            rows = [sorted(map(repr, iceberg.table(name).collect())) for name in (changed, twin)]
            assert rows[0] == rows[1], change
        vectors = iceberg.sql(f"SELECT count(*) FROM {changed}.delete_files WHERE file_format = 'PUFFIN'").head()[0]
        assert (vectors > 0) == (version == 3)
    finally:
        for name in (changed, twin):
            iceberg.sql(f"DROP TABLE {name}")


def test_columns_that_were_renamed_and_made_again(iceberg: SparkSession, table: str) -> None:
    iceberg.sql(f"ALTER TABLE {table} RENAME COLUMN uid TO was")
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN uid BIGINT")
    iceberg.sql(f"INSERT INTO {table} VALUES (9000, 1, 'x', 77)")
    for query in ("uid = 77", "was = 77", "uid IS NULL AND id < 9", "id = 9000"):
        require_same(iceberg, f"SELECT * FROM {table} WHERE {query}")
    require_same(iceberg, f"SELECT * FROM {table} VERSION AS OF 'before' WHERE uid = 77")


def test_a_table_without_an_index(iceberg: SparkSession, table: str) -> None:
    iceberg.sql("CREATE TABLE lake.db.bare USING iceberg AS SELECT id FROM range(100)")
    try:
        assert pruning(iceberg.sql("SELECT * FROM lake.db.bare WHERE id + 0 = 5")) == []
        assert reasons(iceberg)[-1] == "no index"
        assert "IndexPruning" not in plan_of(iceberg.sql("SELECT * FROM lake.db.bare WHERE id = 5"))
    finally:
        iceberg.sql("DROP TABLE lake.db.bare")
