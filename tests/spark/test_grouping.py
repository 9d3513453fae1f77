"""Scans that tell Spark by which columns they are partitioned: fewer shuffles and sorts, and the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import SWITCH, enabled, plan_of, require_same, settings
from tests.support.profiles import examples

PARTS = [*range(5), None]
KINDS = ["a", "b ü", "A", None]
SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}
GROUPING = {"secateur.grouping": "true"}
SPLIT = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled"
SUBSET = "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled"
MERGED = "spark.sql.sources.v2.bucketing.preserveOrderingOnCoalesce.enabled"
SHUFFLED = "spark.sql.sources.v2.bucketing.shuffle.enabled"
DYNAMIC = "spark.sql.optimizer.dynamicPartitionPruning."
EVERY_JOIN = {f"{DYNAMIC}reuseBroadcastOnly": "false", f"{DYNAMIC}useStats": "false"}
EVERY_JOIN |= {f"{DYNAMIC}fallbackFilterRatio": "1000"}  # values of a join filter without a broadcast


def write(root: Path, first: int) -> None:
    """A table in directories by number and text, NULL among both, of which the index lacks the last files."""
    for at, part in enumerate(PARTS):
        for kind in KINDS if at % 2 else KINDS[:2]:
            names = (
                f"{key}={'__HIVE_DEFAULT_PARTITION__' if v is None else v}"
                for key, v in (("part", part), ("kind", kind))
            )
            directory = root.joinpath(*names)
            directory.mkdir(parents=True)
            for file in range(2):
                ids = np.arange(20) * 7 % 20 + 20 * (file + 2 * at) + first
                rows = pa.table({"id": ids, "uid": ids * 7919 % 97, "x": pa.array(ids % 5, mask=ids % 4 == 0)})
                pq.write_table(rows, directory / f"{file}.parquet", row_group_size=5)
                if at == 2 and file == 0:
                    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["uid"])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Path]:
    """`l` and `r` in the catalog of an enabled session that groups."""
    root = tmp_path_factory.mktemp("grouping")
    for name, first in (("l", 0), ("r", 35)):
        write(root / name, first)
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, uid BIGINT, x BIGINT, part INT, kind STRING) USING parquet "
            f"PARTITIONED BY (part, kind) LOCATION '{root}/{name}'"
        )
        spark.sql(f"MSCK REPAIR TABLE {name}")
    with enabled(spark), settings(spark, SETTINGS | GROUPING):
        yield root
    for name in "lr":
        spark.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def frames(tables: Path, spark: SparkSession) -> Iterator[None]:
    """The same by ``sec.dataframe``, as `dl` and `dr`."""
    for name in "lr":
        table = sec.open_table(str(tables / name))
        sec.dataframe(spark, table, via="transparent").createOrReplaceTempView(f"d{name}")
    yield
    for name in "lr":
        spark.catalog.dropTempView(f"d{name}")


WHERES = ("TRUE", "uid = 77", "id + 0 < 70", "id IN (41, 61, 130)", "uid = 9999", "part = 3 AND x > 1", "kind IS NULL")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
KEYS = (
    "a.part = b.part",
    "a.part = b.part AND a.kind = b.kind",
    "a.part <=> b.part AND a.id = b.id",
    "a.kind = b.kind AND a.id = b.id",
    "a.part = b.id % 5 AND a.kind <=> b.kind",
)
SINGLE = (
    "SELECT part, count(*), sum(x), max(uid) FROM {t} WHERE {w} GROUP BY part",
    "SELECT kind, part, count(DISTINCT x) FROM {t} WHERE {w} GROUP BY kind, part",
    "SELECT DISTINCT part FROM {t} WHERE {w}",
    "SELECT id, part, row_number() OVER (PARTITION BY part ORDER BY id, kind) FROM {t} WHERE {w}",
    "SELECT id, sum(x) OVER (PARTITION BY part, kind ORDER BY id) FROM {t} WHERE {w}",
    "SELECT part, kind, rank() OVER (ORDER BY part) FROM {t} WHERE {w}",
    "SELECT part, kind, id FROM {t} WHERE {w} ORDER BY part, kind, id LIMIT 7",
    "SELECT part, id FROM {t} WHERE {w} AND part > 0 ORDER BY part DESC, id LIMIT 7",
    "SELECT part, collect_set(kind) FROM (SELECT * FROM {t} WHERE {w}) GROUP BY part HAVING count(*) > 3",
    "SELECT * FROM {t} WHERE part IN (SELECT part FROM {t} WHERE {w})",
)
ROADS, CONDITIONS, BOOLEANS = st.sampled_from(["enable", "dataframe"]), st.sampled_from(WHERES), st.booleans()


def same(spark: SparkSession, query: str, road: str) -> None:
    """The rows are those without pruning and without grouping."""
    if road == "enable":
        require_same(spark, query.format(l="l", r="r"))
        return
    rows = sorted(map(repr, spark.sql(query.format(l="dl", r="dr")).collect()))
    with settings(spark, {SWITCH: "false"}):
        assert rows == sorted(map(repr, spark.sql(query.format(l="l", r="r")).collect())), query


@examples(60, shrink=False)
@given(ROADS, CONDITIONS, CONDITIONS, st.sampled_from(JOINS), st.sampled_from(KEYS), *[BOOLEANS] * 4)
def test_joins(
    spark: SparkSession, frames: None, road: str, left: str, right: str, join: str, keys: str, splits: bool,
    filters: bool, subset: bool, shuffled: bool,
) -> None:  # fmt: skip
    """Of any kind, by some of the partition columns, with values of a join at run time, and sides that lose groups."""
    columns = "a.*" if "SEMI" in join or "ANTI" in join else "a.*, b.id AS other, b.kind AS theirs"
    sides = f"(SELECT * FROM {{l}} WHERE {left}) a {join} (SELECT * FROM {{r}} WHERE {right}) b ON {keys}"
    how = {SPLIT: str(splits).lower(), SUBSET: str(subset).lower(), SHUFFLED: str(shuffled).lower()}
    with settings(spark, how | (EVERY_JOIN if filters else {})):
        same(spark, f"SELECT {columns} FROM {sides}", road)


@examples(60, shrink=False)
@given(ROADS, st.sampled_from(SINGLE), CONDITIONS, BOOLEANS)
def test_groups_windows_and_orders(
    spark: SparkSession, frames: None, road: str, query: str, w: str, adapts: bool
) -> None:
    with settings(spark, {"spark.sql.adaptive.enabled": str(adapts).lower()}):
        same(spark, query.format(t="{l}", w=w), road)


def steps(spark: SparkSession, query: str) -> tuple[int, int]:
    """How many shuffles and sorts the plan of a query has."""
    plan = plan_of(spark.sql(query)).split("Subquery")[0]
    return plan.count("Exchange hashpartitioning"), plan.count("Sort [")


@pytest.mark.parametrize("road", ["", "d"])
@pytest.mark.parametrize(
    ("query", "before", "after"),
    [
        ("SELECT a.id, b.id FROM {p}l a JOIN {p}r b ON a.part = b.part", (2, 2), (0, 0)),
        ("SELECT a.id, b.id FROM {p}l a JOIN {p}r b ON a.part = b.part AND a.kind = b.kind", (2, 2), (0, 2)),
        ("SELECT a.id, b.id FROM {p}l a JOIN {p}r b ON a.part = b.part AND a.id = b.id", (2, 2), (0, 2)),
        ("SELECT part, max(x + id) FROM {p}l GROUP BY part", (1, 0), (0, 0)),
        ("SELECT part, row_number() OVER (PARTITION BY part ORDER BY id) FROM {p}l", (1, 1), (0, 1)),
        ("SELECT id, count(x) FROM {p}l GROUP BY id", (1, 0), (1, 0)),
    ],
)
def test_nothing_is_shuffled_by_partition_columns(
    spark: SparkSession, frames: None, road: str, query: str, before: tuple[int, int], after: tuple[int, int]
) -> None:
    asked = query.format(p=road)
    assert steps(spark, asked) == after
    with settings(spark, {"secateur.grouping": "false"}):
        assert steps(spark, asked) == before


@pytest.mark.parametrize(("columns", "keys"), [("id", 0), ("id, part", len(PARTS)), ("id, part, kind", 18)])
def test_keys_are_those_of_the_partition_columns_that_are_read(
    spark: SparkSession, tables: Path, columns: str, keys: int
) -> None:
    assert keys_told(spark, f"SELECT {columns} FROM l") == keys


def keys_told(spark: SparkSession, query: str) -> int:
    """How many keys Spark is told that the only scan of a query has; 0 if it is told of no partitioning."""
    leaf: Any = spark.sql(query)._jdf.queryExecution().executedPlan().collectLeaves().head()
    partitioning = leaf.scan().outputPartitioning()
    assert (partitioning.getClass().getSimpleName() == "KeyGroupedPartitioning") == bool(partitioning.numPartitions())
    return int(partitioning.numPartitions())


def test_zeros_of_either_sign_are_one_key(spark: SparkSession, tables: Path, tmp_path: Path) -> None:
    """They are equal in a join, and have different bits: nothing is told of floats."""
    for zero in ("-0.0", "0.0"):
        (tmp_path / f"x={zero}").mkdir()
        pq.write_table(pa.table({"id": np.arange(10)}), tmp_path / f"x={zero}" / "a.parquet", row_group_size=5)
    sec.build_index(sec.open_table(str(tmp_path)), sort_key=["id"])
    spark.sql(f"CREATE TABLE zeros (id BIGINT, x DOUBLE) USING parquet PARTITIONED BY (x) LOCATION '{tmp_path}'")
    try:
        spark.sql("MSCK REPAIR TABLE zeros")
        query = "SELECT a.id, b.id FROM zeros a JOIN zeros b ON a.x = b.x WHERE a.id > 6"
        require_same(spark, query)
        require_same(spark, "SELECT count(*), sum(id) FROM zeros WHERE id > 2 GROUP BY x")
        assert keys_told(spark, "SELECT * FROM zeros") == 0
        assert steps(spark, query)[0] == 2
    finally:
        spark.sql("DROP TABLE zeros")


@pytest.mark.parametrize("road", ["enable", "dataframe"])
def test_values_of_a_join_leave_a_key_no_more_partitions(
    spark: SparkSession, tables: Path, tmp_path: Path, road: str
) -> None:
    """Spark refuses them. Of fewer bytes it makes smaller splits, in which two files of a key do not lie together."""
    for part in range(8):
        for file in range(2):
            ids = np.arange(20) + 40 * part + 20 * file
            (tmp_path / f"part={part}").mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": ids}), tmp_path / f"part={part}" / f"{file}.parquet", row_group_size=5)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, sort_key=["id"])
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("files")
    sec.dataframe(spark, table, via="transparent").createOrReplaceTempView("frame")
    query = (
        "SELECT a.id, b.id AS other FROM {0} a JOIN (SELECT * FROM {0} WHERE id + 0 BETWEEN 50 AND 70) b USING (part)"
    )
    with settings(spark, EVERY_JOIN):
        if road == "enable":
            require_same(spark, query.format("files"))
        assert len(spark.sql(query.format("files" if road == "enable" else "frame")).collect()) == 40 * 21
    for name in ("files", "frame"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("road", ["enable", "dataframe"])
def test_partitions_of_a_key_are_not_merged_by_their_order(spark: SparkSession, frames: None, road: str) -> None:
    """On request Spark 4.3 does that, reads them side by side, and then fails on Parquet files."""
    query = "SELECT a.id, b.id AS other FROM {l} a JOIN {r} b ON a.part = b.part"
    with settings(spark, {MERGED: "true", "spark.sql.files.maxPartitionBytes": "700"}):
        same(spark, query, road)


def hosts(spark: SparkSession, query: str) -> list[tuple[str, int, list[str]]]:
    """File, start and hosts of what the tasks of the only scan of a query read."""
    leaf: Any = spark.sql(query)._jdf.queryExecution().executedPlan().collectLeaves().head()
    if leaf.getClass().getSimpleName() == "BatchScanExec":
        partitions = list(leaf.scan().toBatch().planInputPartitions())
    else:
        splits = leaf.inputRDD().filePartitions()
        partitions = [splits.apply(i) for i in range(splits.size())]
    files = [file for partition in partitions for file in partition.files()]
    return sorted((str(file.filePath()), file.start(), list(file.locations())) for file in files)


def test_tasks_have_the_hosts_that_spark_has_listed(spark: SparkSession, tables: Path) -> None:
    query = "SELECT id FROM l WHERE id < 90"
    with settings(spark, {SWITCH: "false"}):
        known = {path: names for path, _, names in hosts(spark, query)}
    read = hosts(spark, query)
    assert read and all(names == known[path] == ["localhost"] for path, _, names in read)
