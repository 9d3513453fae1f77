"""Scans of Iceberg's for Spark 3.5 and 4.0, which do not tell their snapshot: the index is asked for what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.iceberg import listed_files
from tests.support.enabled_session import SWITCH, enabled, pruning, reasons, require_same, settings
from tests.support.formats.iceberg_spark import metadata_file
from tests.support.older_spark import SCANS_TELL_SNAPSHOTS

pytestmark = pytest.mark.skipif(SCANS_TELL_SNAPSHOTS, reason="the runtime of this Spark tells snapshots")
NAME = "lake.db.current"
SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"


@pytest.fixture
def table(iceberg: SparkSession) -> Iterator[str]:
    iceberg.sql(
        f"CREATE TABLE {NAME} USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read', {SMALL}) "
        "AS SELECT /*+ COALESCE(1) */ id FROM range(1000)"
    )
    sec.build_index(sec.open_table(metadata_file(iceberg, NAME)), spark=iceberg, sort_key=["id"])
    with enabled(iceberg):
        yield NAME
    iceberg.sql(f"DROP TABLE {NAME}")


class OnScan:
    """Calls a function once, while Iceberg plans a scan: it has a snapshot, and reads no manifest yet."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.calls = [call]

    def notify(self, event: Any) -> None:
        if self.calls:
            self.calls.pop()()

    class Java:
        implements = ("org.apache.iceberg.events.Listener",)


def delete(spark: SparkSession, table: str) -> None:
    """Commit another snapshot, in which row groups have no row left."""
    spark.conf.set(SWITCH, "false")
    spark.sql(f"DELETE FROM {table} WHERE id < 500")
    spark.conf.unset(SWITCH)


@pytest.mark.parametrize(
    ("grouped", "reason"),
    [
        ("false", "the table has changed while Iceberg planned it"),
        ("true", "Iceberg for this Spark does not tell which snapshot it has planned"),
    ],
)
def test_a_table_that_changes_while_it_is_planned_is_read_whole(
    iceberg: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, grouped: str, reason: str
) -> None:
    """Row groups of which no row is left in one snapshot have rows in the other."""
    monkeypatch.setattr(listed_files, "whole_texts", lambda tasks, table: ["{}"] * len(tasks))  # Iceberg takes none

    def commit() -> None:
        delete(iceberg, table)
        scanned.refresh()  # as a commit does by a catalog that keeps tables, which this one does not

    jvm: Any = iceberg._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    scans = jvm.java.lang.Class.forName("org.apache.iceberg.events.ScanEvent", True, loader)
    query = f"SELECT * FROM {table} WHERE id + 0 < 700"
    with settings(iceberg, {"spark.sql.iceberg.planning.preserve-data-grouping": grouped}):
        assert len(pruning(iceberg.sql(query))) == 1
        frame = iceberg.sql(query)
        scanned: Any = frame._jdf.queryExecution().analyzed().collectLeaves().head().table().table()
        change = OnScan(commit)
        jvm.org.apache.iceberg.events.Listeners.register(change, scans)
        rows = {row.id for row in frame.collect()}
        assert not change.calls
        assert rows in (set(range(700)), set(range(500, 700)))
        last = sec.last_plans(iceberg)[-1]  # a rule is called again: then it may well know the snapshot
        assert reason in reasons(iceberg) and (last.plan is not None or last.reason == reason)
        require_same(iceberg, query)
        assert len(pruning(iceberg.sql(query))) == 1


def test_a_scan_that_the_index_has_planned_keeps_its_snapshot(iceberg: SparkSession, table: str) -> None:
    frame = iceberg.sql(f"SELECT * FROM {table} WHERE id + 0 < 700")
    count = iceberg.sql(f"SELECT count(*) FROM {table} WHERE id + 0 < 700")
    assert len(pruning(frame)) == len(pruning(count)) == 1
    delete(iceberg, table)
    assert {row.id for row in frame.collect()} == set(range(700))
    assert count.collect()[0][0] == 700
    require_same(iceberg, f"SELECT * FROM {table} WHERE id + 0 < 700")
