"""MERGE into an Iceberg table by the keys of its source: few row groups are read, and the rows are those without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from secateur.io.spark.version import IS_3
from tests.support.enabled_session import settings as settings_of_session
from tests.support.merged_tables import (
    DELETE,
    SAME_ID,
    TABLE,
    UPDATE,
    UPSERT,
    change,
    files_replaced,
    merged_tables,
    source,
)
from tests.support.older_spark import SCANS_TELL_SNAPSHOTS
from tests.support.profiles import one_in

STATEMENTS = [  # and whether few row groups are read
    (f"{SAME_ID} {UPSERT}", True),
    (f"{SAME_ID} {UPDATE}", True),
    (f"MERGE INTO {{}} t USING s ON s.id = t.id AND t.uid > 3 {DELETE}", True),
    (f"{SAME_ID} AND t.kind = 0 {UPSERT}", True),
    (f"MERGE INTO {{}} t USING (SELECT *, 0 AS k FROM s) s ON t.id = s.id AND t.kind = k {UPDATE}", True),
    (f"MERGE INTO {{}} t USING (SELECT * FROM s WHERE id < 900 LIMIT 3) s ON t.id = s.id {UPDATE}", True),
    (
        "MERGE INTO {} t USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY name) AS nth "
        f"FROM s) WHERE nth = 1) s ON t.id = s.id {UPSERT}",
        True,
    ),
    (f"MERGE INTO {{}} t USING (SELECT id, max(name) name FROM s GROUP BY id) s ON t.id = s.id {UPSERT}", True),
    ("UPDATE {} SET name = 'u' WHERE id IN (SELECT id FROM s)", True),
    ("DELETE FROM {} WHERE id IN (SELECT id FROM s)", True),
    (
        f"{SAME_ID} {UPDATE} WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE",
        False,
    ),
    (f"MERGE INTO {{}} t USING s ON t.id <=> s.id {UPSERT}", False),
    (f"MERGE INTO {{}} t USING s ON t.id > s.id + 1989 {UPDATE}", False),
]


@pytest.fixture(scope="module", params=["merge-on-read", "copy-on-write"])
def mode(iceberg: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    with merged_tables(iceberg, request.param):
        yield request.param


@pytest.mark.parametrize(("statement", "few"), one_in(5, STATEMENTS))
def test_few_row_groups_are_read(iceberg: SparkSession, mode: str, statement: str, few: bool) -> None:
    if mode == "copy-on-write" and "AS k FROM" in statement:
        pytest.skip(
            "Spark 4.1 fails on this without pruning too: the plan that asks for files lacks a column of the source"
        )
    source(iceberg, [(5, "five"), (40, "forty"), (1800, "last"), (3000, "new"), (None, "none")])
    left = change(iceberg, statement)
    assert (left is not None) == few, statement
    assert left is None or left <= 3, statement


def test_files_without_a_match_stay(iceberg: SparkSession, mode: str) -> None:
    """Of files with one, copy-on-write writes all rows anew."""
    source(iceberg, [(40, "forty"), (1800, "last"), (3000, "new")])
    assert change(iceberg, f"{SAME_ID} {UPSERT}") == 2
    assert files_replaced(iceberg) == (2 if mode == "copy-on-write" else 0)
    assert iceberg.table(TABLE).count() == 1999
    assert iceberg.table(TABLE).where("name = concat('name-', id)").count() == 1976 - 1


@given(
    keys=st.lists(st.none() | st.integers(-5, 2100), unique=True, max_size=12),
    action=st.sampled_from([UPSERT, UPDATE, DELETE]),
    column=st.sampled_from(["id", "uid"]),
)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_are_those_without(
    iceberg: SparkSession, mode: str, keys: list[int | None], action: str, column: str
) -> None:
    """Any keys, also none, and NULL."""
    source(iceberg, [(key, f"of-{key}") for key in keys])
    change(iceberg, f"MERGE INTO {{}} t USING s ON t.{column} = s.id {action}")


@pytest.mark.skipif(SCANS_TELL_SNAPSHOTS, reason="since Spark 4.1, no thread waits for a lock to show a plan")
@pytest.mark.parametrize("mode", ["merge-on-read"], indirect=True)  # for files, Spark has such a subquery of its own
def test_no_scan_waits_for_a_subquery_that_may_wait_for_it(iceberg: SparkSession, mode: str) -> None:
    source(iceberg, [(40, "forty")])
    for adaptive in ("true", "false"):
        with settings_of_session(iceberg, {"spark.sql.adaptive.enabled": adaptive}):
            row = iceberg.sql(f"EXPLAIN {SAME_ID.format(TABLE)} {UPSERT}").head()
            assert row is not None
            assert ("dynamicpruning" in row[0]) == (adaptive == "false" and not IS_3)
