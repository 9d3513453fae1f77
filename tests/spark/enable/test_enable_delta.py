"""``sec.enable`` on Delta's tables: Delta's own relations, without the files that the index rules out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from tests.support.enabled_session import enabled, plan_of, reasons, require_same

FILES = 8


@pytest.fixture(scope="module")
def table(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An indexed table of eight files, whose ``uid`` no bounds prune, with rows deleted by vectors."""
    path = tmp_path_factory.mktemp("delta") / "t"
    delta.sql(
        f"CREATE TABLE enabled_delta USING delta LOCATION '{path}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name') "
        "AS SELECT id, id * 7919 % 2000 AS uid, concat('n', id) AS name "
        f"FROM range(0, 2000, 1, {FILES})"
    )
    delta.sql("DELETE FROM enabled_delta WHERE id IN (5, 1500)")
    sec.build_index(sec.open_table(path), bloom=["uid"], sort_key=["id"])
    with enabled(delta):
        yield "enabled_delta"
    delta.sql("DROP TABLE enabled_delta")


def files_read(frame: DataFrame) -> int:
    """The files that the scan of a query has read."""
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(leaves.apply(i).metrics().apply("numFiles").value() for i in range(leaves.length()))


QUERIES = [
    "SELECT * FROM {t} WHERE uid = 77",
    "SELECT * FROM {t} WHERE id = 5",
    "SELECT * FROM {t} WHERE uid IN (5 * 7919 % 2000, 1500 * 7919 % 2000, 81)",
    "SELECT name FROM {t} WHERE uid = 77 OR id + 0 = 1999",
    "SELECT count(*), min(uid), max(name) FROM {t} WHERE uid BETWEEN 5 AND 8 AND id > 3",
    "SELECT count(*), count(DISTINCT uid) FROM {t}",
    "SELECT uid, count(*), max(id) FROM {t} GROUP BY uid",
    "SELECT a.id, b.name FROM {t} a JOIN {t} b ON a.uid = b.id WHERE a.uid IN (3, 9)",
    "SELECT id FROM {t} WHERE id < 20 AND uid NOT IN (SELECT id FROM {t} WHERE uid = 30)",
    "SELECT id, _metadata.file_name FROM {t} WHERE uid = 9",
    "SELECT id FROM {t} VERSION AS OF 0 WHERE uid IN (5 * 7919 % 2000, 81)",
    "SELECT id FROM {t} WHERE uid = -1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_without(delta: SparkSession, table: str, query: str) -> None:
    require_same(delta, query.replace("{t}", table))


def test_only_files_that_can_match_are_read(delta: SparkSession, table: str) -> None:
    query = f"SELECT * FROM {table} WHERE uid = 77"
    frame = delta.sql(query)
    assert files_read(frame) == 1
    assert "NarrowedDeltaFiles" in plan_of(frame)
    assert sec.last_plans(delta)[-1].reason.startswith(f"1 of {FILES} files")
    assert sec.last_plans(delta)[-1].plan is not None
    delta.sql(f"SET secateur.enabled.{table}=false")
    try:
        assert files_read(delta.sql(query)) == FILES
        assert reasons(delta)[-1].endswith(f"{table} is off")
    finally:
        delta.conf.unset(f"secateur.enabled.{table}")


def test_icebergs_runtime_in_the_session_changes_nothing(
    delta: SparkSession, iceberg: SparkSession, table: str
) -> None:
    """All other tests of a run with this one are then of such a session too."""
    assert files_read(delta.sql(f"SELECT * FROM {table} WHERE uid = 77")) == 1


def test_scans_of_one_query_are_not_taken_for_each_other(delta: SparkSession, table: str) -> None:
    """They differ only in what the index says of their filters."""
    union = f"SELECT id FROM {table} WHERE uid + 0 = 77 UNION ALL SELECT id FROM {table} WHERE uid + 0 = 78"
    require_same(delta, union)
    joined = f"SELECT * FROM (SELECT * FROM {table} WHERE uid = 3) a, (SELECT * FROM {table} WHERE uid = 4) b"
    require_same(delta, joined)


def test_changes_are_seen_at_once_and_made_as_without(delta: SparkSession, table: str) -> None:
    delta.sql(f"INSERT INTO {table} VALUES (5000, 77, 'new')")
    require_same(delta, f"SELECT * FROM {table} WHERE uid = 77")
    assert delta.sql(f"SELECT * FROM {table} WHERE uid = 77").count() == 2
    delta.sql(
        f"MERGE INTO {table} t USING (SELECT 80 AS uid UNION ALL SELECT -7) s ON t.uid = s.uid "
        "WHEN MATCHED THEN UPDATE SET name = 'changed' WHEN NOT MATCHED THEN INSERT (id, uid) VALUES (9000, s.uid)"
    )
    delta.sql(f"INSERT INTO {table} SELECT id + 10000, uid, name FROM {table} WHERE uid = 81")
    delta.sql(f"ALTER TABLE {table} RENAME COLUMN name TO called")
    for condition in ("uid IN (80, -7)", "uid = 81", "called = 'changed' AND uid < 100"):
        require_same(delta, f"SELECT * FROM {table} WHERE {condition}")
    assert delta.sql(f"SELECT * FROM {table} WHERE uid = 81").count() == 2


def test_a_table_without_an_index(delta: SparkSession, table: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("bare"))
    delta.range(10).write.format("delta").mode("append").save(path)
    assert delta.read.format("delta").load(path).where("id = 5").count() == 1
    assert reasons(delta)[-1] == "no index"
