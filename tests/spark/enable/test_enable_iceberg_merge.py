"""MERGE into an Iceberg table by the keys of its source: few row groups are read, and the rows are those without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.planner import session_rule
from tests.support.enabled_session import SWITCH, enabled
from tests.support.formats.iceberg_spark import metadata_file

TABLE, TWIN = "lake.db.merged", "lake.db.merged_twin"
SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"
UPDATE = "WHEN MATCHED THEN UPDATE SET name = s.name"
UPSERT = f"{UPDATE} WHEN NOT MATCHED THEN INSERT (id, uid, name) VALUES (s.id, 1, s.name)"
SAME_ID = "MERGE INTO {} t USING s ON t.id = s.id"
DELETE = "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"


def make(spark: SparkSession, name: str) -> None:
    """Two files of sorted rows, some keys NULL, some rows deleted by position."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, uid BIGINT, name STRING, kind INT) USING iceberg PARTITIONED BY (kind) "
        f"TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        f"'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read', {SMALL})"
    )
    for start in (0, 1000):
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ if(id % 97 = 3, NULL, id), (id * 7919) % 2000, "
            f"concat('name-', id), {start} FROM range({start}, {start + 1000})"
        )
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 1500)")
    sec.build_index(sec.open_table(metadata_file(spark, name)), sort_key=["id"], bloom=["uid"])


@pytest.fixture(scope="module")
def tables(iceberg: SparkSession) -> Iterator[None]:
    """A table, and a twin that changes without pruning."""
    with enabled(iceberg):
        for name in (TABLE, TWIN):
            make(iceberg, name)
        yield
        for name in (TABLE, TWIN):
            iceberg.sql(f"DROP TABLE {name}")


def source(spark: SparkSession, rows: list[tuple[int | None, str]]) -> None:
    """The view ``s`` of some keys and names, as Arrow brings them."""
    columns = {"id": pa.array([row[0] for row in rows], pa.int64()), "name": pa.array([row[1] for row in rows])}
    spark.createDataFrame(pa.table(columns)).createOrReplaceTempView("s")


def reset(spark: SparkSession) -> None:
    """Put both tables back to the rows that they were made with."""
    for name in (TABLE, TWIN):
        made = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at LIMIT 1 OFFSET 2").collect()
        spark.sql(f"CALL lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {made[0][0]})")


def change(spark: SparkSession, statement: str) -> int | None:
    """Change both tables as they were made, to the same rows. Return how many row groups the values of a join left."""
    rule = session_rule._rule_of(spark)
    assert rule is not None
    reset(spark)
    rule.python._narrowest.clear()
    spark.sql(statement.format(TABLE))
    left = [len(scan.survivors.blocks) for scan in rule.python._narrowest.values()]  # type: ignore[attr-defined]
    spark.conf.set(SWITCH, "false")
    try:
        spark.sql(statement.format(TWIN))
        rows = [sorted(map(repr, spark.table(name).collect())) for name in (TABLE, TWIN)]
    finally:
        spark.conf.unset(SWITCH)
    assert rows[0] == rows[1], statement
    return left[-1] if left else None


@pytest.mark.parametrize(
    ("statement", "few"),
    [
        (f"{SAME_ID} {UPSERT}", True),
        (f"{SAME_ID} {UPDATE}", True),
        (f"MERGE INTO {{}} t USING s ON s.id = t.id AND t.uid > 3 {DELETE}", True),
        (f"{SAME_ID} AND t.kind = 0 {UPSERT}", True),
        (
            f"MERGE INTO {{}} t USING (SELECT *, 0 AS k FROM s) s ON t.id = s.id AND t.kind = k {UPDATE}",
            True,
        ),
        (f"MERGE INTO {{}} t USING (SELECT * FROM s WHERE id < 900 LIMIT 3) s ON t.id = s.id {UPDATE}", True),
        (
            "MERGE INTO {} t USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY name) AS nth "
            f"FROM s) WHERE nth = 1) s ON t.id = s.id {UPSERT}",
            True,
        ),
        (f"MERGE INTO {{}} t USING (SELECT id, max(name) name FROM s GROUP BY id) s ON t.id = s.id {UPSERT}", True),
        ("UPDATE {} SET name = 'u' WHERE id IN (SELECT id FROM s)", True),
        (
            f"{SAME_ID} {UPDATE} WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE",
            False,
        ),
        (f"MERGE INTO {{}} t USING s ON t.id <=> s.id {UPSERT}", False),
        (f"MERGE INTO {{}} t USING s ON t.id > s.id + 1989 {UPDATE}", False),
    ],
)
def test_few_row_groups_are_read(iceberg: SparkSession, tables: None, statement: str, few: bool) -> None:
    source(iceberg, [(5, "five"), (40, "forty"), (1800, "last"), (3000, "new"), (None, "none")])
    left = change(iceberg, statement)
    assert (left is not None) == few, statement
    assert left is None or left <= 3, statement


@given(
    keys=st.lists(st.none() | st.integers(-5, 2100), unique=True, max_size=12),
    action=st.sampled_from([UPSERT, UPDATE, DELETE]),
    column=st.sampled_from(["id", "uid"]),
)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_are_those_without(
    iceberg: SparkSession, tables: None, keys: list[int | None], action: str, column: str
) -> None:
    """Any keys, also none, and NULL."""
    source(iceberg, [(key, f"of-{key}") for key in keys])
    change(iceberg, f"MERGE INTO {{}} t USING s ON t.{column} = s.id {action}")


def test_a_source_that_may_differ_is_run_once(iceberg: SparkSession, tables: None) -> None:
    source(iceberg, [(40, "c")])
    random = "(SELECT CAST(40 + id + rand() AS BIGINT) AS id, 'd' AS name FROM range(1))"
    assert change(iceberg, f"MERGE INTO {{}} t USING {random} s ON t.id = s.id {UPDATE}") is None


def conflict(spark: SparkSession, statement: str, between: str, name: str, *, pruned: bool) -> str:
    """Plan a MERGE, commit `between`, then run the plan. Return why Iceberg refuses it, without paths; or nothing."""
    jvm: Any = spark._jvm
    state: Any = spark._jsparkSession.sessionState()
    parsed = state.sqlParser().parsePlan(statement.format(name))
    execution = jvm.org.apache.spark.sql.execution
    spark.conf.set(SWITCH, str(pruned).lower())
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # which makes plans while it runs
    try:
        plan = state.executePlan(parsed, execution.CommandExecutionMode.SKIP()).executedPlan()
        execution.SparkPlanInfo.fromSparkPlan(plan)  # makes the metrics, which a task cannot
        spark.conf.set(SWITCH, "false")
        spark.sql(between.format(name))
        spark.conf.set(SWITCH, str(pruned).lower())
        plan.executeCollect()
    except Py4JJavaError as error:
        cause: Any = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        kind, _, message = cause.toString().partition(": ")
        assert kind == "org.apache.iceberg.exceptions.ValidationException", str(error)
        return str(message).partition(": [")[0]
    finally:
        spark.conf.unset(SWITCH)
        spark.conf.unset("spark.sql.adaptive.enabled")
    return ""


@pytest.mark.parametrize(
    ("condition", "between", "refused"),
    [
        ("", "INSERT INTO {} VALUES (700, 1, 'of no key', 0)", "records matching true"),
        ("", "INSERT INTO {} VALUES (40, 1, 'of a key', 0)", "records matching true"),
        (" AND t.kind = 0", "INSERT INTO {} VALUES (700, 1, 'of no key', 0)", "kind"),
        (" AND t.kind = 0", "INSERT INTO {} VALUES (40, 1, 'of a key', 1000)", ""),
        (" AND t.kind = 0", "DELETE FROM {} WHERE kind = 0 AND id = 700", "delete files"),
        (" AND t.kind = 0", "DELETE FROM {} WHERE kind = 1000 AND id = 1700", ""),
    ],
)
def test_a_commit_between_planning_and_writing_is_refused_as_without(
    iceberg: SparkSession, tables: None, condition: str, between: str, refused: str
) -> None:
    """Keys narrow what is read, not what Iceberg takes for a conflict: also rows that no key matches."""
    source(iceberg, [(5, "five"), (40, "forty"), (3000, "new")])
    rule = session_rule._rule_of(iceberg)
    assert rule is not None
    reset(iceberg)
    rule.python._narrowest.clear()
    statement = f"{SAME_ID}{condition} {UPSERT}"
    with_keys = conflict(iceberg, statement, between, TABLE, pruned=True)
    assert [len(scan.survivors.blocks) <= 3 for scan in rule.python._narrowest.values()] == [True]  # type: ignore[attr-defined]
    assert with_keys == conflict(iceberg, statement, between, TWIN, pruned=False)
    assert refused in with_keys and bool(refused) == bool(with_keys)
    iceberg.conf.set(SWITCH, "false")
    rows = [sorted(map(repr, iceberg.table(name).collect())) for name in (TABLE, TWIN)]
    iceberg.conf.unset(SWITCH)
    assert rows[0] == rows[1]
    assert any("forty" in row for row in rows[0]) != bool(refused)
