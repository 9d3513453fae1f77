"""Scans of Iceberg 1.11, for Spark 4.0, which do not tell their snapshot: the index is asked for the one they plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import SWITCH, enabled, pruning, reasons, require_same
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


def test_a_table_that_changes_while_it_is_planned_is_read_whole(iceberg: SparkSession, table: str) -> None:
    """Row groups of which no row is left in one snapshot have rows in the other."""

    def delete() -> None:
        iceberg.conf.set(SWITCH, "false")
        iceberg.sql(f"DELETE FROM {table} WHERE id < 500")
        iceberg.conf.unset(SWITCH)
        scanned.refresh()  # as a commit does by a catalog that keeps tables, which this one does not

    jvm: Any = iceberg._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    scans = jvm.java.lang.Class.forName("org.apache.iceberg.events.ScanEvent", True, loader)
    query = f"SELECT * FROM {table} WHERE id + 0 < 700"
    assert len(pruning(iceberg.sql(query))) == 1
    frame = iceberg.sql(query)
    scanned: Any = frame._jdf.queryExecution().analyzed().collectLeaves().head().table().table()
    change = OnScan(delete)
    jvm.org.apache.iceberg.events.Listeners.register(change, scans)
    rows = {row.id for row in frame.collect()}
    assert not change.calls
    assert rows in (set(range(700)), set(range(500, 700)))
    assert "the table has changed while Iceberg planned it" in reasons(iceberg)
    require_same(iceberg, query)
    assert len(pruning(iceberg.sql(query))) == 1


def test_the_index_alone_answers_nothing(iceberg: SparkSession, table: str) -> None:
    for query in (f"SELECT count(*) FROM {table} WHERE id < 400", f"SELECT * FROM {table} ORDER BY id LIMIT 3"):
        require_same(iceberg, query)
        iceberg.sql(query).collect()
        assert "on Spark 4.0, nothing of Iceberg's scans is answered from the index alone" in reasons(iceberg)
