"""Columns of Iceberg tables in Spark's cost-based optimizer: what Iceberg knows of them, and what the index adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.planner.enabled import Enabled
from tests.support.enabled_session import enabled, require_same, settings
from tests.support.formats.iceberg_spark import metadata_file

NAME, SMALL = "lake.db.told", "lake.db.told_small"
CBO = {f"spark.sql.cbo.{name}": "true" for name in ("enabled", "joinReorder.enabled", "planStats.enabled")}
ROWS = 800


@pytest.fixture(scope="module")
def tables(iceberg: SparkSession) -> Iterator[None]:
    """A table of which Iceberg has counted the different values, `part` having few, and one without such numbers."""
    for name, rows in ((NAME, ROWS), (SMALL, 40)):
        iceberg.sql(f"DROP TABLE IF EXISTS {name}")
        iceberg.sql(
            f"CREATE TABLE {name} (id BIGINT, x INT, part INT, kind STRING, at TIMESTAMP, f DOUBLE) USING iceberg "
            "TBLPROPERTIES ('write.parquet.row-group-size-bytes'='4000', "
            "'write.parquet.row-group-check-min-record-count'='50', "
            "'write.parquet.row-group-check-max-record-count'='50')"
        )
        iceberg.sql(
            f"INSERT INTO {name} SELECT id, IF(id % 4 = 0, NULL, CAST(id * 7919 % 101 AS INT)), "
            "CAST(id DIV 100 AS INT), concat('k', id % 3), timestamp_seconds(id DIV 50), "
            f"IF(id = 9, double('NaN'), id / 2) FROM range(0, {rows}, 1, 1)"
        )
        if name == NAME:
            iceberg.sql(f"CALL lake.system.compute_table_stats(table => '{name}')")
        sec.build_index(sec.open_table(metadata_file(iceberg, name)), sort_key=["id"])
    with enabled(iceberg), settings(iceberg, CBO):
        yield
    for name in (NAME, SMALL):
        iceberg.sql(f"DROP TABLE {name}")


def told(frame: DataFrame) -> dict[str, tuple[str | None, ...]]:
    """Of the one scan of a plan: different values, NULLs, least and greatest value of its columns."""
    leaf: Any = frame._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    columns, attributes = leaf.output(), leaf.stats().attributeStats()
    known = {columns.apply(i).name(): attributes.get(columns.apply(i)) for i in range(columns.size())}
    return {
        name: tuple(
            str(part.get()) if part.isDefined() else None
            for part in (
                statistics.get().distinctCount(),
                statistics.get().nullCount(),
                statistics.get().min(),
                statistics.get().max(),
            )
        )
        for name, statistics in known.items()
        if statistics.isDefined()
    }


def expected_rows(frame: DataFrame) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


def test_numbers_of_iceberg_get_bounds_and_nulls_of_the_index(iceberg: SparkSession, tables: None) -> None:
    columns = told(iceberg.sql(f"SELECT * FROM {NAME} WHERE id >= 0"))
    assert int(columns["id"][0] or -1) == pytest.approx(ROWS, rel=0.05)  # estimated by a sketch
    assert columns["id"][1:] == ("0", "0", "799")


def test_without_numbers_of_iceberg_those_of_the_index_count(iceberg: SparkSession, tables: None) -> None:
    columns = told(iceberg.sql(f"SELECT id, x, part, at FROM {SMALL} WHERE id >= 0"))
    assert columns["part"] == ("1", "0", "0", "0")
    assert columns["at"] == ("1", "0", "0", "0")
    assert columns["x"] == (None, "10", None, None)


def test_a_comparison_is_expected_to_leave_rows(iceberg: SparkSession, tables: None) -> None:
    query = f"SELECT * FROM {NAME} WHERE part = 3 AND id >= 0"
    assert 10 < expected_rows(iceberg.sql(query)) < 300


def test_joins_are_put_in_order_by_columns(
    iceberg: SparkSession, tables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before scans are narrowed: then Spark asks what the index expects."""
    sizes: list[int] = []
    plain = Enabled._estimated

    def estimated(self: Enabled, files: Any, question: Any) -> bytes:
        reply = plain(self, files, question)
        sizes.append(len(reply))
        return reply

    monkeypatch.setattr(Enabled, "_estimated", estimated)
    require_same(
        iceberg,
        f"SELECT a.id, b.x, c.kind FROM {NAME} a JOIN {SMALL} b ON a.id = b.id JOIN {NAME} c ON c.part = b.part "
        "WHERE a.part >= 0 AND b.id > 3 AND c.id < 200",
    )
    assert sizes and min(sizes) > 24


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM {NAME} WHERE x = 5 OR part > 7",
        f"SELECT * FROM {NAME} WHERE f > 100 AND at < timestamp'1970-01-01 00:00:05'",
        f"SELECT * FROM {NAME} WHERE f = double('NaN')",
        f"SELECT a.id, b.id FROM {NAME} a JOIN {SMALL} b ON a.x = b.x WHERE a.id > 100 AND b.id < 30",
        f"SELECT kind, count(*), min(x) FROM {NAME} WHERE part IN (1, 99) GROUP BY kind",
        f"SELECT * FROM {NAME} WHERE x IS NULL AND id > 700",
        f"SELECT * FROM {SMALL} a LEFT JOIN {NAME} b ON a.part = b.part AND b.id < 5 WHERE a.x <=> b.x",
    ],
)
def test_answers_are_those_without_statistics(iceberg: SparkSession, tables: None, query: str) -> None:
    require_same(iceberg, query)
