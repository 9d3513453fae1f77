"""The columns of Iceberg's row lineage, `_row_id` and `_last_updated_sequence_number`, are those of its own reader."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import UnsupportedTable
from tests.support.drawn.iceberg_histories import create
from tests.support.formats.iceberg_spark import java_table, location
from tests.support.profiles import by_profile

NUMBERS = itertools.count()
IDS = ["_row_id", "_last_updated_sequence_number"]
PREDICATES = ("true", "k = 3", "rid BETWEEN 30 AND 45", "k > 4 AND rid % 2 = 0")
CHANGES = (
    "INSERT INTO {name} SELECT {n} + id, id % 7, repeat('x', 50) FROM range(0, 40, 1, 2)",
    "INSERT INTO {name} SELECT {n} + id, id % 7, repeat('x', 50) FROM range(0, 40, 1, 2)",
    "UPDATE {name} SET k = k + 1 WHERE rid % 5 = {a}",
    "DELETE FROM {name} WHERE rid % 11 = {a}",
    "MERGE INTO {name} t USING (SELECT id AS rid FROM range(10, {n} + 5)) s ON t.rid = s.rid AND t.rid % 7 = {a} "
    "WHEN MATCHED THEN UPDATE SET k = 9 WHEN NOT MATCHED AND s.rid > {n} THEN INSERT (rid, k) VALUES (s.rid, 1)",
    "CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
    "CALL lake.system.rewrite_manifests('{table}')",
    "ALTER TABLE {name} SET TBLPROPERTIES "
    "('write.update.mode' = 'copy-on-write', 'write.merge.mode' = 'copy-on-write')",
)


def numbered(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((row["rid"], *(row[name] for name in IDS)) for row in rows)


def require_equal(spark: SparkSession, name: str, snapshot: int | None = None) -> list[tuple[Any, ...]]:
    """Check ids by every predicate, with the index and without; return those of all rows."""
    table = sec.open_table(location(spark, name), snapshot_id=snapshot)
    moment = "" if snapshot is None else f" VERSION AS OF {snapshot}"
    rows = spark.sql(f"SELECT rid, k, {', '.join(IDS)} FROM {name}{moment}")
    for predicate in PREDICATES:
        expected = numbered(rows.where(predicate).collect())
        for use_index in (True, False):
            plan = sec.prune(table, predicate, strict=True, use_index=use_index)
            assert numbered(plan.to_arrow(["rid", *IDS]).to_pylist()) == expected, (predicate, use_index)
    return numbered(rows.collect())


@pytest.mark.parametrize("seed", range(by_profile(2, 3, 20)))
def test_ids_are_icebergs_through_a_history(iceberg: SparkSession, seed: int) -> None:
    """Of a table that was of version 2 at first, whose index was built at some moment on the way."""
    draw, name = random.Random(seed), f"lake.db.ids{next(NUMBERS)}"
    create(iceberg, name, "rid BIGINT, k INT, pad STRING", 2)
    iceberg.sql(CHANGES[0].format(name=name, n=0))
    iceberg.sql(CHANGES[2].format(name=name, a=seed % 5))
    iceberg.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    unnumbered = java_table(iceberg, name).currentSnapshot().snapshotId()
    assert {row[1] for row in require_equal(iceberg, name)} == {None}
    changes = [*draw.sample(CHANGES, 4), CHANGES[0], CHANGES[2]]
    built = draw.randrange(1, len(changes))
    for step, change in enumerate(changes):
        iceberg.sql(change.format(name=name, table=name.removeprefix("lake."), n=100 * step + 100, a=draw.randrange(5)))
        if step == built:
            sec.build_index(sec.open_table(location(iceberg, name)), spark=iceberg, sort_key=["rid"])
    rows = require_equal(iceberg, name)
    assert len({row[1] for row in rows}) == len(rows) and None not in rows[0]
    require_equal(iceberg, name, unnumbered)


def test_ids_by_all_read_paths(iceberg: SparkSession) -> None:
    """Files with ids of their own and without, rows of late reads among them, and a table that has no ids."""
    name = f"lake.db.ids{next(NUMBERS)}"
    create(iceberg, name, "rid BIGINT, k INT, pad STRING", 3)
    for n in range(3):
        iceberg.sql(f"INSERT INTO {name} SELECT {n} + 3 * id, id % 7, sha2(string(id), 512) FROM range(0, 500, 1, 1)")
    iceberg.sql(f"UPDATE {name} SET k = 8 WHERE rid < 90 AND rid % 3 = 1")
    rows = iceberg.sql(f"SELECT * , {', '.join(IDS)} FROM {name} WHERE k = 8 OR k = 2 AND rid > 1200")
    expected = numbered(rows.collect())
    plan = sec.prune(sec.open_table(location(iceberg, name)), "k = 8 OR k = 2 AND rid > 1200", strict=True)
    columns = ["_row_id", "pad", "rid", "_last_updated_sequence_number", "_pos"]
    assert numbered(plan.to_arrow(columns).to_pylist()) == expected
    for via in ("auto", "local", "blocks"):
        assert numbered(plan.to_spark(iceberg, columns, via=via).toArrow().to_pylist()) == expected
    with pytest.raises(ValueError, match="does not read _row_id"):
        plan.to_spark(iceberg, ["_row_id"], via="iceberg")
    older = f"lake.db.ids{next(NUMBERS)}"
    create(iceberg, older, "rid BIGINT", 2)
    iceberg.sql(f"INSERT INTO {older} VALUES (1)")
    with pytest.raises(UnsupportedTable, match="the table has no _row_id: only Iceberg tables of format version 3"):
        sec.prune(sec.open_table(location(iceberg, older)), "true").to_arrow(["_row_id"])
