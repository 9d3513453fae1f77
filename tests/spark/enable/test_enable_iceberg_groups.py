"""``sec.enable`` on Iceberg scans that are grouped by partition keys, so that joins and aggregates need no shuffle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import SWITCH, enabled, plan_of, pruning, require_same, settings
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.profiles import examples

LEFT, RIGHT = "lake.db.grouped", "lake.db.grouped_other"
SETTINGS = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}
SPLIT = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled"
DYNAMIC = "spark.sql.optimizer.dynamicPartitionPruning."
EVERY_JOIN = {f"{DYNAMIC}reuseBroadcastOnly": "false", f"{DYNAMIC}useStats": "false"}
EVERY_JOIN |= {f"{DYNAMIC}fallbackFilterRatio": "1000"}  # values of a join filter without a broadcast


@pytest.fixture(scope="module")
def tables(iceberg: SparkSession) -> Iterator[None]:
    """Two tables in groups 0 to 5 and 2 to 7, and one of NULL; in several files each, with rows deleted by position.

    The first has files of two partition specs, which share the key `part`.
    """
    spark = iceberg
    for name, first in ((LEFT, 0), (RIGHT, 2)):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, uid BIGINT, part INT) USING iceberg PARTITIONED BY (part) TBLPROPERTIES "
            "('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.distribution-mode'='hash')"
        )
        for start in (0, 400):
            spark.sql(
                f"INSERT INTO {name} SELECT id, (id * 7919) % 800, "
                f"CAST(IF(id % 50 = 49, NULL, {first} + id % 6) AS INT) FROM range({start}, {start + 400})"
            )
            if name == LEFT and start == 0:
                spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, uid)")
        spark.sql(f"DELETE FROM {name} WHERE id IN (5, 410)")
        sec.build_index(sec.open_table(metadata_file(spark, name)), sort_key=["id"], bloom=["uid"])
    with enabled(spark), settings(spark, SETTINGS):
        yield
    for name in (LEFT, RIGHT):
        spark.sql(f"DROP TABLE {name}")


def shuffles(spark: SparkSession, query: str, *, pruned: bool) -> int:
    """How often a query's rows are exchanged by the hash of a key."""
    spark.conf.set(SWITCH, str(pruned).lower())
    try:
        return plan_of(spark.sql(query)).count("Exchange hashpartitioning")
    finally:
        spark.conf.unset(SWITCH)


WHERES = [
    "TRUE",
    "uid = 77",
    "id + 0 < 30",
    "id IN (5, 6, 410)",
    "uid = 9999",
    "part = 3 AND uid < 100",
    "part IS NULL",
]
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
KEYS = ["a.part = b.part", "a.part = b.part AND a.id = b.id", "a.part <=> b.part AND a.id = b.id"]


@examples(10, shrink=False)
@given(
    st.sampled_from(WHERES), st.sampled_from(WHERES), st.sampled_from(JOINS), st.sampled_from(KEYS), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_joins_of_groups(
    iceberg: SparkSession, tables: None, left: str, right: str, join: str, keys: str, splits: bool, filters: bool
) -> None:
    """Of any kind, with groups of one side or both that lose some files or all, and values of a join at run time."""
    columns = "a.*" if "SEMI" in join or "ANTI" in join else "a.*, b.id AS other, b.uid AS theirs"
    sides = f"(SELECT * FROM {LEFT} WHERE {left}) a {join} (SELECT * FROM {RIGHT} WHERE {right}) b ON {keys}"
    with settings(iceberg, {SPLIT: str(splits).lower()} | (EVERY_JOIN if filters else {})):
        require_same(iceberg, f"SELECT {columns} FROM {sides}")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.id, b.uid FROM {LEFT} a JOIN {RIGHT} b ON a.part = b.part AND a.id = b.id WHERE a.id + 0 < 30",
        f"SELECT part, count(*), max(uid) FROM {RIGHT} WHERE id + 0 < 30 GROUP BY part",
    ],
)
def test_groups_are_pruned_and_nothing_is_shuffled(iceberg: SparkSession, tables: None, query: str) -> None:
    require_same(iceberg, query)
    assert [shuffles(iceberg, query, pruned=pruned) for pruned in (True, False)] == [0, 0]
    kept, all_ = map(int, pruning(iceberg.sql(query))[0].split(" of "))
    assert kept < all_


def test_a_directory_is_joined_with_groups(iceberg: SparkSession, tables: None, tmp_path: Path) -> None:
    """Both sides say what they are grouped by."""
    spark = iceberg
    spark.sql(f"CREATE TABLE parts USING parquet PARTITIONED BY (part) LOCATION '{tmp_path}' AS SELECT * FROM {LEFT}")
    sec.build_index(sec.open_table(str(tmp_path)), sort_key=["id"])
    query = f"SELECT a.id, b.uid FROM parts a JOIN {RIGHT} b ON a.part = b.part AND a.id = b.id WHERE b.uid < 400"
    try:
        with settings(spark, {"secateur.grouping": "true"}):
            require_same(spark, query)
            require_same(spark, query.replace("JOIN", "FULL JOIN"))
            assert shuffles(spark, query, pruned=True) == 0
        assert shuffles(spark, query, pruned=True) > 0
    finally:
        spark.sql("DROP TABLE parts")


@pytest.mark.parametrize("splits", [False, True])
def test_values_of_a_join_empty_whole_groups(iceberg: SparkSession, tables: None, splits: bool) -> None:
    """Spark puts empty groups in their place."""
    query = (
        f"SELECT a.id, b.id AS other FROM {RIGHT} b JOIN {LEFT} a ON a.part = b.part AND a.uid = b.uid + 2 "
        "WHERE b.id IN (102, 510)"
    )
    with settings(iceberg, {SPLIT: str(splits).lower()} | EVERY_JOIN):
        require_same(iceberg, query)
        frame = iceberg.sql(query)
        assert frame.collect()
        (left,) = re.findall(r"(\d+) of 21 row groups after run-time filters", plan_of(frame))
        assert int(left) < 6
        assert "Exchange hashpartitioning" not in plan_of(frame).split("Subquery")[0]
