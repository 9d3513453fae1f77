"""``sec.enable`` on Delta's tables: files are chosen without Delta's job, and of files only row groups are read."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.planner import enabled as enabled_module
from secateur.io.spark.planner import protocol
from tests.support.checks import oracle
from tests.support.enabled_session import SWITCH, answer, enabled, plan_of, reasons, require_same
from tests.support.profiles import by_profile, one_in

FILES, ROWS, GROUP = 8, 256, 64  # rows of a file, of a row group
NAME = "ranged_delta"
GONE = (5, 70, 255, 256 + 130, 2047)  # ids of deleted rows, some after the first row group of their file
SEEDS = by_profile(quick=range(1), full=range(6), nightly=range(40))
WORDS = ("one", "b c", "a/b=c%", "ä:ö", "")


def rows(start: int, n: int) -> pa.Table:
    """Rows whose `uid` is in no order: the multiples of a prime, modulo a power of two."""
    ids = range(start, start + n)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "uid": pa.array([number * 7919 % 65536 for number in ids], pa.int64()),
            "name": pa.array([f"n{number}" if number % 7 else None for number in ids]),
            "part": pa.array([WORDS[number // 40 % len(WORDS)] or None for number in ids]),
        }
    )


def uid(number: int) -> int:
    return number * 7919 % 65536


def append(path: str, start: int, n: int = ROWS, **more: Any) -> None:
    properties = deltalake.WriterProperties(max_row_group_size=GROUP)
    deltalake.write_deltalake(path, rows(start, n), mode="append", writer_properties=properties, **more)


@pytest.fixture(scope="module")
def table(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An indexed table of files of four row groups each, with rows deleted by vectors."""
    path = str(tmp_path_factory.mktemp("delta") / "a table")
    for number in range(FILES):
        append(path, number * ROWS)
    delta.sql(f"CREATE TABLE {NAME} USING delta LOCATION '{path}'")
    delta.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    delta.sql(f"DELETE FROM {NAME} WHERE id IN {GONE}")
    assert delta.sql(f"DESCRIBE DETAIL {NAME}").collect()[0].numFiles == FILES  # by vectors, and not anew
    sec.build_index(sec.open_table(path), bloom=["uid"], sort_key=["id"])
    with enabled(delta):
        yield path
    delta.sql(f"DROP TABLE {NAME}")


def scans(frame: DataFrame) -> list[Any]:
    """The scans of a query's plan, which is not adaptive."""
    leaves: Any = frame._jdf.queryExecution().executedPlan().collectLeaves()
    return [leaves.apply(number) for number in range(leaves.length())]


def figures(frame: DataFrame, name: str) -> int:
    """The sum of a metric of a query's scans, after it has run."""
    return sum(scan.metrics().apply(name).value() for scan in scans(frame))


def jobs_of_planning(spark: SparkSession, query: str) -> int:
    """How many jobs Spark runs to plan a query."""
    group = str(uuid.uuid4())
    spark.sparkContext.setJobGroup(group, "planning")
    try:
        spark.sql(query)._jdf.queryExecution().executedPlan()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


QUERIES = [
    "SELECT * FROM {t} WHERE uid = " + str(uid(77)),
    "SELECT id FROM {t} WHERE uid IN (" + ", ".join(str(uid(number)) for number in (*GONE, 71, 254, 2046)) + ")",
    "SELECT id, name FROM {t} WHERE uid = " + str(uid(1000)) + " OR id = 2047",
    "SELECT id, _metadata.row_index, _metadata.file_name FROM {t} WHERE uid = " + str(uid(2046)),
    "SELECT id, _metadata.row_index FROM {t} WHERE uid BETWEEN 100 AND 2000 AND name IS NULL",
    "SELECT id, _metadata.file_block_start, _metadata.file_block_length FROM {t} WHERE uid = " + str(uid(2046)),
    "SELECT count(*), sum(id), max(name) FROM {t} WHERE uid BETWEEN 100 AND 400 AND id > 300",
    "SELECT count(*) FROM {t}",
    "SELECT count(*) FROM {t} WHERE id > 700",
    "SELECT max(id), count(*) FROM {t} WHERE id > 100 AND uid > 300",
    "SELECT id FROM {t} WHERE id > 700 AND uid > 300 ORDER BY id LIMIT 70",
    "SELECT id FROM {t} WHERE uid = " + str(uid(1000)) + " LIMIT 5",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.uid = b.uid WHERE a.id IN (5, 6, 70, 71) AND b.id < 100",
    "SELECT id FROM {t} WHERE uid = " + str(uid(300)) + " AND id IN (SELECT id FROM {t} WHERE id < 400)",
    "SELECT id FROM {t} WHERE uid = " + str(uid(300)) + " UNION ALL SELECT id FROM {t} WHERE uid = " + str(uid(70)),
    "SELECT id FROM {t} VERSION AS OF 7 WHERE uid IN (" + ", ".join(map(str, map(uid, GONE))) + ")",
    "SELECT id FROM {t} WHERE part = 'a/b=c%' AND uid = " + str(uid(100)),
    "SELECT id FROM {t} WHERE uid = -1",
    "SELECT id FROM {t} WHERE uid = " + str(uid(2000)) + " AND rand() >= 0",
    "SELECT /*+ BROADCAST(s) */ t.id FROM {t} t JOIN (SELECT 77 AS id) s ON t.id = s.id WHERE t.uid > 5",
]


@pytest.mark.parametrize("query", one_in(3, QUERIES))
def test_c61_answers_are_those_without(delta: SparkSession, table: str, query: str) -> None:
    require_same(delta, query.replace("{t}", NAME))


def test_delta_runs_no_job_to_plan(delta: SparkSession, table: str) -> None:
    query = f"SELECT id FROM {NAME} WHERE uid = {uid(77)}"
    delta.sql(query).collect()
    assert jobs_of_planning(delta, query) == 0
    delta.sql("SET secateur.enabled=false")
    try:
        assert jobs_of_planning(delta, query) > 0
    finally:
        delta.conf.unset("secateur.enabled")


def test_only_row_groups_that_can_match_are_read(delta: SparkSession, table: str) -> None:
    frame = delta.sql(f"SELECT id FROM {NAME} WHERE uid = {uid(1000)}")
    assert [row.id for row in frame.collect()] == [1000]
    assert figures(frame, "numFiles") == 1
    assert figures(frame, "numOutputRows") == GROUP
    assert sec.last_plans(delta)[-1].reason == f"1 of {FILES} files, 1 row groups"
    assert "RangedScan" in str([scan.getClass().getName() for scan in scans(frame)])


@pytest.mark.parametrize(("split", "by_row_index"), one_in(3, itertools.product([1_000, 1 << 20], [True, False])))
def test_c44_deleted_rows_stay_deleted_however_files_are_split(
    delta: SparkSession, table: str, split: int, by_row_index: bool
) -> None:
    """Row groups of files with vectors are read where Parquet's reader numbers rows; where Delta counts them, all."""
    settings = {
        "spark.sql.files.maxPartitionBytes": str(split),
        "spark.databricks.delta.deletionVectors.useMetadataRowIndex": str(by_row_index).lower(),
    }
    for name, value in settings.items():
        delta.conf.set(name, value)
    try:
        for number in GONE:
            frame = delta.sql(f"SELECT id FROM {NAME} WHERE uid IN ({uid(number)}, {uid(number - 1)})")
            assert [row.id for row in frame.collect()] == [number - 1]
            assert figures(frame, "numOutputRows") == (GROUP if by_row_index else ROWS)
        for query in QUERIES[:5]:
            require_same(delta, query.replace("{t}", NAME))
    finally:
        for name in settings:
            delta.conf.unset(name)


def test_where_python_fails_delta_chooses(delta: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> bytes:
        raise OSError("no reply")

    monkeypatch.setattr(enabled_module, "delta_reply", fails)
    query = f"SELECT id FROM {NAME} WHERE uid = {uid(1001)} OR id = 2047"
    require_same(delta, query)
    assert answer(delta, query, pruned=True)[1:] == ["Row(id=1001)"]
    assert any("no reply" in reason for reason in reasons(delta))


def test_many_files_are_chosen_by_delta_and_narrowed(
    delta: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "FEW_FILES", 1)
    frame = delta.sql(f"SELECT id FROM {NAME} WHERE uid IN ({uid(300)}, {uid(70)}, {uid(1999)})")
    assert sorted(row.id for row in frame.collect()) == [300, 1999]
    assert figures(frame, "numFiles") == 3
    assert f"3 of {FILES} files, 3 row groups" in [record.reason for record in sec.last_plans(delta)]


def test_plans_with_row_groups_may_be_explained_cached_and_run_twice(delta: SparkSession, table: str) -> None:
    frame = delta.sql(f"SELECT id FROM {NAME} WHERE uid = {uid(1002)}")
    assert "NarrowedDeltaFiles" in plan_of(frame)
    assert [frame.count() for _ in range(2)] == [1, 1]
    cached = frame.cache()
    try:
        assert [row.id for row in cached.collect()] == [1002]
        assert delta.sql(f"SELECT id FROM {NAME} WHERE uid = {uid(1003)}").count() == 1
    finally:
        cached.unpersist()
    assert frame.inputFiles()


def test_a_write_reads_its_own_table_as_delta_plans_it(delta: SparkSession, table: str) -> None:
    """Transactions of Delta note what is read, so scans in them stay Delta's."""
    delta.sql(f"INSERT INTO {NAME} SELECT id + 100000, uid, name, part FROM {NAME} WHERE uid = {uid(9)}")
    require_same(delta, f"SELECT id FROM {NAME} WHERE uid = {uid(9)}")
    assert delta.sql(f"SELECT id FROM {NAME} WHERE uid = {uid(9)}").count() == 2
    delta.sql(f"DELETE FROM {NAME} WHERE id > 99999")
    assert delta.sql(f"SELECT id FROM {NAME} WHERE uid = {uid(9)}").count() == 1


CONDITIONS = (
    "uid = {u}",
    "uid IN ({u}, {v}) AND id >= 0",
    "id BETWEEN {i} AND {i} + 5",
    "uid = {u} AND part = 'b c'",
    "part IS NULL AND uid > {u}",
    "part = 'a/b=c%' OR uid = {v}",
    "name = 'n{i}'",
    "NOT (uid > 300) AND name IS NOT NULL",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_c61_histories_are_read_as_without(delta: SparkSession, tmp_path: Path, seed: int) -> None:
    """Appends, deletes by vectors, updates and rewrites; partitioned or not; with an index that lags behind."""
    draw, path, name = random.Random(seed), str(tmp_path / "t"), f"ranged_history_{seed}"
    options = {"partition_by": ["part"]} if seed % 2 else {}
    append(path, 0, 300, **options)
    delta.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
    try:
        delta.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        kept = sec.open_table(path)
        sec.build_index(kept, bloom=["uid"], sort_key=["id"])
        with enabled(delta):
            for step in range(3):
                _change(delta, name, path, step, draw, options)
                some = [draw.randrange(300 + 200 * step) for _ in CONDITIONS]
                asked = [c.format(i=i, u=uid(i), v=uid(i // 2)) for c, i in zip(CONDITIONS, some, strict=True)]
                delta.conf.set(SWITCH, "false")
                answers = oracle.ask(delta.table(name).selectExpr("*", "id AS rid"), asked)
                delta.conf.unset(SWITCH)
                for condition in asked:
                    pruned = delta.sql(f"SELECT *, id AS rid FROM {name} WHERE {condition}").toArrow()
                    assert oracle.rows(pruned) == answers.matching(condition), (condition, step)
                if step % 2:
                    sec.refresh_index(kept)
    finally:
        delta.sql(f"DROP TABLE {name}")


def _change(delta: SparkSession, name: str, path: str, step: int, draw: random.Random, options: dict[str, Any]) -> None:
    first = 300 + 200 * step
    match draw.choice(["append", "delete", "update", "optimize"]) if step else "delete":
        case "append":
            append(path, first, 200, **options)
        case "delete":
            delta.sql(f"DELETE FROM {name} WHERE id % 11 = {draw.randrange(11)}")
        case "update":
            delta.sql(f"UPDATE {name} SET name = 'changed' WHERE id % 17 = {draw.randrange(17)}")
        case _:
            append(path, first, 20, **options)
            delta.sql(f"OPTIMIZE {name}")
