"""Statements of ``sec.plan_recluster`` that Delta's own SQL runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.checks.reclustered import (
    KEY,
    PART,
    PARTS,
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
from tests.support.profiles import by_profile

SORTED = "spark.databricks.io.skipping.mdc.sortWithinFiles"


@pytest.fixture
def sorting(delta: SparkSession) -> Iterator[SparkSession]:
    """Delta writes small row groups, and sorts the rows of a file."""
    delta.conf.set(SORTED, "true")
    with small_row_groups(delta):
        yield delta
    delta.conf.unset(SORTED)


def make(spark: SparkSession, name: str, partitioned: bool) -> None:
    """A table of files in no order, with rows deleted by deletion vectors."""
    of_parts = f"PARTITIONED BY ({quoted(PART)})" if partitioned else ""
    spark.sql(
        f"CREATE TABLE {name} ({quoted(KEY)} BIGINT, {quoted(WORD)} STRING, {quoted(PART)} STRING) USING delta "
        f"{of_parts} TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for part in range(4):
        spark.sql(f"INSERT INTO {name} {unordered(part)}")
    spark.sql(f"DELETE FROM {name} WHERE {quoted(KEY)} % 10 = 3")


FEW = [([KEY, WORD], False), ([KEY], True)]
ALL = [*FEW, ([KEY], False)]


@pytest.mark.parametrize(("by", "partitioned"), by_profile(quick=FEW, full=ALL, nightly=ALL))
def test_delta(sorting: SparkSession, tmp_path: Path, by: list[str], partitioned: bool) -> None:
    spark, path = sorting, str(tmp_path / "it's `odd`")
    name = f"delta.{quoted(path)}"
    make(spark, name, partitioned)
    before = rows(spark, name)
    table = sec.open_table(path)
    names = list(map(quoted, by))
    plan = sec.plan_recluster(table, names)
    assert len(plan.groups) == (len(PARTS) if partitioned else 1)
    was = share_of_look_ups(table, KEY, VALUES)
    run(spark, plan)
    assert rows(spark, name) == before
    after = sec.open_table(path)
    require_look_ups(spark, after, name, KEY, VALUES)
    assert share_of_look_ups(after, KEY, VALUES) < was
    assert not sec.plan_recluster(after, names).groups, "what was rewritten is left alone"


def test_apply_rewrites_the_chosen_partitions(delta: SparkSession, tmp_path: Path) -> None:
    """Rows within files are sorted, though the session does not ask for it; its setting stays as it was."""
    spark, path = delta, str(tmp_path / "lake")
    name = f"delta.{quoted(path)}"
    with small_row_groups(spark):
        make(spark, name, partitioned=True)
        before, files = rows(spark, name), live(path)
        was = share_of_look_ups(path, KEY, VALUES)
        plan = sec.plan_recluster(path, quoted(KEY), budget_bytes="60%", apply=True, spark=spark)
    chosen = {file for group in plan.groups for file in group.files}
    assert plan.applied
    assert 0 < len(chosen) < len(files), "a part of the table"
    assert files - live(path) == chosen
    assert rows(spark, name) == before
    require_look_ups(spark, path, name, KEY, VALUES)
    assert share_of_look_ups(path, KEY, VALUES) < was
    assert spark.conf.get(SORTED, None) is None


def live(path: str) -> set[str]:
    """The files of a table."""
    return set(sec.inspect.files(path)["file"].to_pylist())
