"""An indexed Iceberg table and a twin of it, changed by the same statements with pruning and without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession

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


def merge(source: str, action: str = UPSERT) -> str:
    """A MERGE by the ids of a source; `{}` is its target."""
    return f"MERGE INTO {{}} t USING {source} s ON t.id = s.id {action}"


@contextmanager
def merged_tables(spark: SparkSession, mode: str) -> Iterator[None]:
    """Both tables, whose changes are written as `mode`, in a session with pruning."""
    with enabled(spark):
        for name in (TABLE, TWIN):
            make(spark, name, mode)
        yield
        for name in (TABLE, TWIN):
            spark.sql(f"DROP TABLE {name}")


def make(spark: SparkSession, name: str, mode: str) -> None:
    """Eight files of sorted rows, with two row groups each; some keys NULL, some rows deleted by position."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, uid BIGINT, name STRING, kind INT) USING iceberg PARTITIONED BY (kind) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        f"'write.distribution-mode'='none', {SMALL})"
    )
    for start in (0, 1000):
        spark.sql(
            f"INSERT INTO {name} SELECT if(id % 97 = 3, NULL, id), (id * 7919) % 2000, concat('name-', id), {start} "
            f"FROM range({start}, {start + 1000}, 1, 4)"
        )
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 1500)")
    modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({modes})")
    sec.build_index(sec.open_table(metadata_file(spark, name)), spark=spark, sort_key=["id"], bloom=["uid"])


def source(spark: SparkSession, rows: list[tuple[int | None, str]]) -> None:
    """The view ``s`` of some keys and names, as Arrow brings them."""
    columns = {"id": pa.array([row[0] for row in rows], pa.int64()), "name": pa.array([row[1] for row in rows])}
    spark.createDataFrame(pa.table(columns)).createOrReplaceTempView("s")


def reset(spark: SparkSession) -> None:
    """Put both tables back to the rows that they were made with."""
    for name in (TABLE, TWIN):
        made = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at LIMIT 1 OFFSET 2").collect()
        spark.sql(f"CALL lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {made[0][0]})")


def narrowed(spark: SparkSession) -> Any:
    """What the values of joins have left, by the number of the scan's answer."""
    rule = session_rule._rule_of(spark)
    assert rule is not None
    return rule.python._narrowest


def row_groups_left(spark: SparkSession) -> int | None:
    """How many row groups the values of the last join left; None if there were none."""
    left = [len(scan.survivors.blocks) for scan in narrowed(spark).values()]
    return left[-1] if left else None


def change(spark: SparkSession, statement: str) -> int | None:
    """Change both tables as they were made, to the same rows. Return how many row groups the values of a join left."""
    reset(spark)
    narrowed(spark).clear()
    spark.sql(statement.format(TABLE))
    left = row_groups_left(spark)
    spark.conf.set(SWITCH, "false")
    try:
        spark.sql(statement.format(TWIN))
    finally:
        spark.conf.unset(SWITCH)
    require_twins(spark, statement)
    return left


def require_twins(spark: SparkSession, statement: str) -> None:
    """Both tables have the same rows, and their last commits took the same files away, for as many rows anew."""
    spark.conf.set(SWITCH, "false")
    try:
        rows = [sorted(map(repr, spark.table(name).collect())) for name in (TABLE, TWIN)]
        commits = [last_commit(spark, name) for name in (TABLE, TWIN)]
    finally:
        spark.conf.unset(SWITCH)
    assert rows[0] == rows[1], statement
    assert commits[0] == commits[1], statement


def last_commit(spark: SparkSession, name: str) -> list[Row]:
    """The kind of a table's last commit, the files that it took away by their content, and how many rows it wrote."""
    snapshots = f"SELECT snapshot_id, operation FROM {name}.snapshots"
    newest = spark.sql(f"{snapshots} ORDER BY committed_at DESC LIMIT 1").first()
    assert newest is not None
    entries = f"FROM {name}.entries WHERE snapshot_id = {newest.snapshot_id} AND status"
    gone = "data_file.content, data_file.partition.kind, data_file.record_count, readable_metrics.id.lower_bound"
    removed = spark.sql(f"SELECT {gone} {entries} = 2 ORDER BY ALL").collect()
    written = "data_file.content, sum(data_file.record_count)"
    added = spark.sql(f"SELECT {written} {entries} = 1 GROUP BY 1 ORDER BY 1").collect()
    return [Row(newest.operation), *removed, *added]


def files_replaced(spark: SparkSession) -> int:
    """How many data files the last commit took away."""
    return sum(len(row) == 4 and row.content == 0 for row in last_commit(spark, TABLE))
