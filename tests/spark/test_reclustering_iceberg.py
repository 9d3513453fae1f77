"""Statements of ``sec.plan_recluster`` that Spark runs, on directories and on tables of Iceberg."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.checks.reclustered import (
    KEY,
    PART,
    VALUES,
    WORD,
    quoted,
    require_look_ups,
    rows,
    run,
    share_of_look_ups,
    small_row_groups,
    unordered,
)

SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"

ASKED = [f"{quoted(KEY)} = {value}" for value in VALUES]


@pytest.mark.parametrize("by", [[KEY], [KEY, WORD]])
def test_iceberg(iceberg: SparkSession, by: list[str]) -> None:
    spark, name = iceberg, f"lake.db.`it's {len(by)}`"
    spark.sql(
        f"CREATE TABLE {name} ({quoted(KEY)} BIGINT, {quoted(WORD)} STRING, {quoted(PART)} STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', {SMALL})"
    )
    for part in range(4):
        spark.sql(f"INSERT INTO {name} {unordered(part)}")
    spark.sql(f"DELETE FROM {name} WHERE {quoted(KEY)} % 10 = 3")
    before = rows(spark, name)
    table = sec.open_table(name, spark=spark)
    plan = sec.plan_recluster(table, list(map(quoted, by)))
    assert len(plan.groups) == 1
    was = share_of_look_ups(table, KEY, VALUES)
    run(spark, plan)
    assert rows(spark, name) == before
    after = sec.open_table(name, spark=spark)
    require_look_ups(spark, after, name, KEY, VALUES)
    assert share_of_look_ups(after, KEY, VALUES) < was
    assert not sec.plan_recluster(after, list(map(quoted, by))).groups, "what was rewritten is left alone"


@pytest.mark.parametrize("partitioned", [False, True])
def test_directory(spark: SparkSession, tmp_path: Path, partitioned: bool) -> None:
    root = tmp_path / "it's odd"
    root_text = str(root)
    names = [quoted(KEY), quoted(WORD)]
    with small_row_groups(spark):
        for part in range(4):
            writer = spark.sql(unordered(part)).coalesce(1).write.mode("append")
            (writer.partitionBy(PART) if partitioned else writer).parquet(root_text)
        before = content(root)
        plan = sec.plan_recluster(root_text, names, predicates=ASKED)
        was = share_of_look_ups(root_text, KEY, VALUES)
        run(spark, plan)
    replace(root, plan)
    assert content(root) == before
    assert share_of_look_ups(root_text, KEY, VALUES) < was
    assert not sec.plan_recluster(root_text, names, predicates=ASKED).groups, "what was rewritten is left alone"


def content(root: Path) -> Counter[tuple[object, ...]]:
    """All rows."""
    return Counter(tuple(row.values()) for row in sec.prune(str(root), "true").to_arrow().to_pylist())


def replace(root: Path, plan: sec.Reclustering) -> None:
    """Put the copies in the place of the old files."""
    for group in plan.groups:
        for file in group.files:
            (root / file).unlink()
    (copies,) = [path for path in root.parent.iterdir() if path != root]
    for number in sorted(copies.iterdir()):
        for file in number.rglob("*.parquet"):
            there = root / file.relative_to(number)
            there.parent.mkdir(exist_ok=True, parents=True)
            file.rename(there)
