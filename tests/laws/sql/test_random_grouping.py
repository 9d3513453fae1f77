"""Law: to tell Spark by which columns tables are partitioned changes no answer, whatever Spark makes of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.drawn.grouped_tables import GroupedSql, partition_columns, write
from tests.support.enabled_session import answer, enabled, settings
from tests.support.profiles import by_profile

SEEDS = by_profile(range(1), range(6), range(60))
QUERIES = by_profile(5, 60, 100)
BUCKETING = "spark.sql.sources.v2.bucketing."
GROUPING = {"secateur.grouping": "true", f"{BUCKETING}enabled": "true", f"{BUCKETING}pushPartValues.enabled": "true"}
PLAIN = {"secateur.grouping": "false", "spark.sql.adaptive.enabled": "false"}
DYNAMIC = "spark.sql.optimizer.dynamicPartitionPruning."
VALUES_OF_JOINS = {f"{DYNAMIC}reuseBroadcastOnly": "false", f"{DYNAMIC}useStats": "false"}
VALUES_OF_JOINS |= {f"{DYNAMIC}fallbackFilterRatio": "1000"}  # at run time, without a broadcast


def switches(spark: SparkSession) -> list[str]:
    """The settings of this Spark that say what it may do with partitions that have keys."""
    known = {row.key: row.value for row in spark.sql("SET -v").collect()}
    return sorted(key for key, value in known.items() if key.startswith(BUCKETING) and value in ("true", "false"))


def drawn_settings(chance: random.Random, of_keys: list[str]) -> dict[str, str]:
    chosen = {key: chance.choice(("true", "false")) for key in of_keys} | GROUPING
    if chance.random() < 0.3:
        chosen[f"{BUCKETING}pushPartValues.enabled"] = "false"
    chosen |= {f"spark.sql.requireAllClusterKeysFor{what}": "false" for what in ("CoPartition", "Distribution")}
    chosen |= {
        "spark.sql.adaptive.enabled": chance.choice(("true", "false")),
        "spark.sql.autoBroadcastJoinThreshold": chance.choice(("-1", "-1", "10485760")),
        "spark.sql.shuffle.partitions": chance.choice(("1", "3")),
        "spark.sql.session.timeZone": chance.choice(("UTC", "America/New_York")),
    }
    if chance.random() < 0.3:
        chosen["spark.sql.files.maxPartitionBytes"] = "900"
    return chosen | (VALUES_OF_JOINS if chance.random() < 0.5 else {})


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_those_without(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    names = tuple(f"grouped_{seed}_{number}" for number in range(3))
    tables = dict(zip(names, partition_columns(chance, len(names)), strict=True))
    of_keys = switches(spark)
    with enabled(spark):
        for name, columns in tables.items():
            write(spark, name, tmp_path / name, columns, chance)
        sql = GroupedSql(chance, tables)
        for _ in range(QUERIES):
            query, chosen = sql.query(), drawn_settings(chance, of_keys)
            with settings(spark, chosen):
                grouped = answer(spark, query, pruned=True)
                with settings(spark, PLAIN):
                    assert grouped == answer(spark, query, pruned=False), (query, chosen, tables)
        for name in names:
            spark.sql(f"DROP TABLE {name}")
