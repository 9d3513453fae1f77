"""Chosen row groups of Iceberg tables through Iceberg's Spark reader, against what Iceberg says of the same rows."""

from __future__ import annotations

import gc
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.errors import StalePlan
from secateur.io.spark.iceberg.reader import find_table, read_tasks
from secateur.io.spark.iceberg.task_json import ReadTask, Spec, byte_ranges, task_texts
from tests.support.formats.iceberg_spark import (
    add_equality_deletes,
    java_table,
    metadata_file,
    planned,
    row_group_starts,
    uuid_of,
    values,
)
from tests.support.profiles import one_in

ROWS = 3_000
NUMBERS = itertools.count()

MakeTable = Callable[..., str]


@pytest.fixture
def make_table(iceberg: SparkSession) -> MakeTable:
    """Makes a table of ROWS rows with small row groups, merge-on-read, and returns its name."""

    def make(version: int = 2, partitioned: str = "") -> str:
        name = f"lake.db.t{next(NUMBERS)}"
        iceberg.sql(
            f"CREATE TABLE {name} (id BIGINT, kind STRING, price DECIMAL(9, 2), at TIMESTAMP, "
            f"place STRUCT<x: DOUBLE, tags: ARRAY<STRING>>) USING iceberg {partitioned} TBLPROPERTIES ("
            f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
            "'write.parquet.row-group-size-bytes' = '4096', 'write.parquet.row-group-check-min-record-count' = '100', "
            "'write.parquet.row-group-check-max-record-count' = '100', 'write.distribution-mode' = 'hash')"
        )
        insert(iceberg, name, 0, ROWS)
        return name

    return make


def insert(spark: SparkSession, name: str, start: int, stop: int) -> None:
    rows = spark.range(start, stop, 1, 1).selectExpr(
        "id",
        "CASE id % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b/=c' END AS kind",
        "CAST(id / 4 AS DECIMAL(9, 2)) AS price",
        "TIMESTAMP_SECONDS(id * 3600) AS at",
        "NAMED_STRUCT('x', id / 7, 'tags', IF(id % 5 = 0, NULL, ARRAY('t', CAST(id AS STRING)))) AS place",
    )
    rows.writeTo(name).append()


def some_row_groups(tasks: list[ReadTask], seed: int) -> dict[str, list[int]]:
    """About a third of the row groups of every file, by its path."""
    draw = random.Random(seed)
    count = {task.file.path: len(task.file.split_offsets) for task in tasks}
    return {path: [i for i in range(n) if draw.random() < 0.35] for path, n in count.items()}


def read(
    spark: SparkSession, name: str, tasks: list[ReadTask], specs: dict[int, Spec], chosen: dict[str, list[int]]
) -> DataFrame:
    def ranges(task: ReadTask) -> Any:
        return byte_ranges(task.file.split_offsets, task.file.size, chosen[task.file.path])

    texts = list(task_texts([replace(task, ranges=ranges(task)) for task in tasks], specs))
    return read_tasks(spark, name, texts)


def expected(spark: SparkSession, name: str, chosen: dict[str, list[int]]) -> list[tuple[Any, ...]]:
    """Iceberg's own rows, of those positions that lie in the chosen row groups."""
    starts = {path: row_group_starts(path) for path in chosen}
    rows = spark.sql(f"SELECT *, _file, _pos FROM {name}").collect()

    def is_chosen(file: str, position: int) -> bool:
        return any(starts[file][i] <= position < starts[file][i + 1] for i in chosen[file])

    return values([row[:-2] for row in rows if is_chosen(row["_file"], row["_pos"])])


def check(spark: SparkSession, name: str, seed: int = 1) -> None:
    tasks, specs = planned(spark, name)
    chosen = some_row_groups(tasks, seed)
    assert any(chosen.values())
    assert not all(len(chosen[task.file.path]) == len(task.file.split_offsets) for task in tasks)
    read_rows = values(read(spark, name, tasks, specs, chosen).collect())
    assert read_rows == expected(spark, name, chosen)
    assert 0 < len(read_rows) < spark.table(name).count()


@pytest.mark.parametrize(
    ("version", "partitioned"), one_in(3, itertools.product([2, 3], ["", "PARTITIONED BY (kind, bucket(2, id))"]))
)
def test_just_the_chosen_row_groups_without_deleted_rows(
    iceberg: SparkSession, make_table: MakeTable, version: int, partitioned: str
) -> None:
    name = make_table(version, partitioned)
    iceberg.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    tasks, _ = planned(iceberg, name)
    formats = {delete.format for task in tasks for delete in task.deletes}
    assert formats == {"parquet" if version == 2 else "puffin"}
    assert max(len(task.file.split_offsets) for task in tasks) > 2
    check(iceberg, name)


@pytest.mark.parametrize("version", one_in(2, [3, 2]))
def test_equality_deletes_apply_to_the_files_before_them(
    iceberg: SparkSession, make_table: MakeTable, version: int
) -> None:
    name = make_table(version)
    add_equality_deletes(iceberg, name, pa.table({"id": pa.array(range(0, ROWS, 3), pa.int64())}))
    iceberg.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    insert(iceberg, name, 0, ROWS // 2)
    assert iceberg.table(name).where("id = 0").count() == 1
    check(iceberg, name)


def test_deletes_of_another_partition_spec(iceberg: SparkSession, make_table: MakeTable) -> None:
    name = make_table()
    iceberg.sql(f"ALTER TABLE {name} ADD PARTITION FIELD kind")
    insert(iceberg, name, ROWS, 2 * ROWS)
    keys = {"id": pa.array(range(0, 2 * ROWS, 3), pa.int64()), "kind": pa.array(["a"] * (2 * ROWS // 3))}
    add_equality_deletes(iceberg, name, pa.table(keys), spec_id=0)
    tasks, _ = planned(iceberg, name)
    assert {task.file.spec_id for task in tasks if task.deletes} == {0, 1}
    check(iceberg, name)


def test_the_schema_is_that_of_the_table_or_the_one_asked_for(iceberg: SparkSession, make_table: MakeTable) -> None:
    name = make_table(3)
    snapshot = java_table(iceberg, name).currentSnapshot()
    before, file_before = iceberg.table(name), metadata_file(iceberg, name)
    columns_before, rows_before = before.columns, values(before.collect())
    iceberg.sql(f"ALTER TABLE {name} RENAME COLUMN price TO cost")
    iceberg.sql(f"ALTER TABLE {name} DROP COLUMN kind")
    iceberg.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    tasks, specs = planned(iceberg, name)
    texts = list(task_texts(tasks, specs))

    now = read_tasks(iceberg, name, texts)
    assert now.columns == iceberg.table(name).columns
    assert values(now.collect()) == values(iceberg.table(name).collect())

    for then in (read_tasks(iceberg, name, texts, snapshot.schemaId()), read_tasks(iceberg, file_before, texts)):
        assert then.columns == columns_before
        assert values(then.collect()) == rows_before
        assert then.where("kind = 'a' AND price > 10").count() == sum(r[1] == "a" and r[2] > 10 for r in rows_before)

    with pytest.raises(StalePlan):
        read_tasks(iceberg, name, texts, 99)


def test_later_commits_change_nothing(iceberg: SparkSession, make_table: MakeTable) -> None:
    name = make_table()
    tasks, specs = planned(iceberg, name)
    frame = read_tasks(iceberg, name, list(task_texts(tasks, specs)))
    iceberg.sql(f"DELETE FROM {name} WHERE id < 100")
    iceberg.sql(f"ALTER TABLE {name} DROP COLUMN kind")
    assert frame.count() == ROWS
    assert frame.where("kind = 'a'").count() == ROWS // 3


def test_staged_tasks_live_as_long_as_what_reads_them(iceberg: SparkSession, make_table: MakeTable) -> None:
    name = make_table()
    tasks, specs = planned(iceberg, name)
    derived = read_tasks(iceberg, name, list(task_texts(tasks, specs))).where("id < 10")
    collect_garbage(iceberg)
    assert staged(iceberg, name) == 1
    assert derived.count() == 10
    del derived
    for _ in range(50):
        collect_garbage(iceberg)
        if not staged(iceberg, name):
            break
    assert staged(iceberg, name) == 0


def collect_garbage(spark: SparkSession) -> None:
    gc.collect()
    spark._jvm.System.gc()
    time.sleep(0.1)


def staged(spark: SparkSession, name: str) -> int:
    manager = spark._jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()
    return int(manager.fetchSetIds(java_table(spark, name)).size())


def test_a_table_is_found_by_its_uuid(iceberg: SparkSession, make_table: MakeTable) -> None:
    name = make_table()
    _, _, table = name.split(".")
    uuid, location = uuid_of(iceberg, name), java_table(iceberg, name).location()
    quoted = f"`lake`.`db`.`{table}`"
    assert find_table(iceberg, ("lake", "db", table), "", uuid) == quoted
    assert find_table(iceberg, ("elsewhere", "db", table), "", uuid) == quoted
    assert find_table(iceberg, ("db", table), "", uuid) == quoted
    assert find_table(iceberg, ("db", "nothing"), location, uuid) == location
    assert find_table(iceberg, None, location, uuid) == location
    assert find_table(iceberg, ("lake", "db", table), location, uuid_of(iceberg, make_table())) is None
    assert find_table(iceberg, ("a", "b"), "/nowhere", uuid) is None
    assert iceberg.read.format("iceberg").load(quoted).count() == ROWS
    assert read_whole(iceberg, location, name).count() == ROWS


def read_whole(spark: SparkSession, name: str, planned_name: str) -> DataFrame:
    return read_tasks(spark, name, list(task_texts(*planned(spark, planned_name))))


def test_nothing_to_read_is_a_mistake_of_the_caller(iceberg: SparkSession, make_table: MakeTable) -> None:
    with pytest.raises(ValueError, match="no tasks"):
        read_tasks(iceberg, make_table(), [])


def test_a_session_without_the_runtime_knows_no_table(spark: SparkSession, tmp_path: Path) -> None:
    remote: Any = SimpleNamespace()  # a session of Spark Connect has nothing of the JVM
    assert find_table(remote, ("lake", "db", "t"), str(tmp_path), "no uuid") is None
    assert find_table(spark, ("lake", "db", "t"), str(tmp_path), "no uuid") is None
    if not spark.conf.get("spark.sql.catalog.lake", None):
        with pytest.raises(ValueError, match="no Iceberg runtime"):
            read_tasks(spark, str(tmp_path), ["{}"])


@pytest.mark.parametrize("version", [2, 3])
def test_rows_have_the_places_that_iceberg_tells(iceberg: SparkSession, make_table: MakeTable, version: int) -> None:
    name = make_table(version)
    iceberg.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    insert(iceberg, name, ROWS, ROWS + 100)
    where, columns = "id % 5 = 1 AND id > 500", ["id", "_file", "_pos"]
    rows = sec.prune(sec.open_table(metadata_file(iceberg, name)), where).to_arrow(columns)
    wanted = iceberg.sql(f"SELECT id, _file, _pos FROM {name} WHERE {where}").collect()
    assert sorted(zip(*(rows[column].to_pylist() for column in columns), strict=True)) == sorted(map(tuple, wanted))
    assert len(set(rows["_file"].to_pylist())) == 2
