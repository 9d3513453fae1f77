"""An index that is behind its table costs time, never rows; a refresh catches up. (Bug classes C1, C3, C7.)"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import IndexConflict, IndexMissing, StalePlan
from secateur.index.read.open_index import current_snapshot
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.maintain.publish import publish

PREDICATES = ["id = 250", "id BETWEEN 95 AND 305", "word = 'w7'", "id > 1000", "extra IS NULL", "TRUE"]


def rows(first: int, last: int, **extra: pa.Array) -> pa.Table:
    ids = range(first, last)
    return pa.table({"id": pa.array(ids, pa.int64()), "word": [f"w{i % 10}" for i in ids], **extra})


def write(root: Path, name: str, data: pa.Table) -> Path:
    pq.write_table(data, root / name, row_group_size=25, compression="none", use_dictionary=False)
    return root / name


@pytest.fixture
def root(tmp_path: Path, spark: SparkSession) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    for part in range(3):
        extra = pa.array([None if i % 2 else i for i in range(100)], pa.int32())
        write(root, f"{part}.parquet", rows(part * 100, part * 100 + 100, extra=extra))
    sec.build_index(sec.open_table(str(root)), spark=spark, sort_key=["id"], bloom=["id", "word"])
    return root


def check(spark: SparkSession, root: Path, table: ParquetDirectory | None = None) -> None:
    """The rows of every predicate are Spark's, with the table opened anew or long ago."""
    table = table or sec.open_table(str(root))
    frame = spark.read.option("mergeSchema", "true").parquet(str(root))
    for predicate in PREDICATES:
        expected = Counter(tuple(row) for row in frame.where(predicate).select("id", "word", "extra").collect())
        plan = sec.prune(table, predicate, strict=True)
        rows = plan.to_arrow(columns=["id", "word", "extra"])
        assert Counter(tuple(row.values()) for row in rows.to_pylist()) == expected, predicate
        assert plan.count() == expected.total(), predicate


def test_a_file_is_appended(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    check(spark, root, table)
    write(root, "new.parquet", rows(225, 1100))
    check(spark, root, table)
    assert sec.prune(table, "TRUE").report.index == "snapshot 1, 1 segment, covers 3 of 4 files"
    refreshed = sec.refresh_index(table, spark=spark).index
    assert (refreshed.number, refreshed.files) == (2, 4)
    check(spark, root, table)


def test_a_file_is_removed(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    (root / "1.parquet").unlink()
    check(spark, root, table)
    sec.refresh_index(table, spark=spark)
    check(spark, root)


def test_a_file_is_overwritten_in_place(spark: SparkSession, root: Path) -> None:
    """C3: the same name and size, other rows; the time of modification tells."""
    table = sec.open_table(str(root))
    check(spark, root, table)
    size = (root / "1.parquet").stat().st_size
    extra = pa.array([None if i % 2 else i for i in range(100)], pa.int32())
    write(root, "1.parquet", rows(900, 1000, extra=extra))
    assert (root / "1.parquet").stat().st_size == size
    check(spark, root, table)
    sec.refresh_index(table, spark=spark)
    check(spark, root, table)
    assert sec.prune(table, "id = 950", strict=True).blocks.num_rows == 1


def test_a_column_is_added_and_another_widened(spark: SparkSession, root: Path) -> None:
    """C12: files that lack a column have NULL there, whether the index knows the column or not."""
    table = sec.open_table(str(root))
    write(root, "new.parquet", rows(300, 350, extra=pa.array(range(50), pa.int32()), later=pa.array(range(50))))
    for _ in range(2):
        assert sec.prune(table, "later = 7", strict=True).to_arrow()["id"].to_pylist() == [307]
        assert sec.prune(table, "later IS NULL", strict=True).count() == 300
        sec.refresh_index(table, spark=spark)
    check(spark, root, table)


def test_a_refresh_without_changes_publishes_nothing(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    assert sec.refresh_index(table, spark=spark).index.number == 1


def test_a_refresh_finds_what_a_listing_in_use_does_not_have(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root), freshness=float("inf"))
    assert sec.prune(table, "TRUE").count() == 300
    write(root, "new.parquet", rows(500, 510, extra=pa.nulls(10, pa.int32())))
    assert sec.prune(table, "TRUE").count() == 300
    assert sec.verify_index(table).files_uncovered == 1
    write(root, "newer.parquet", rows(510, 520, extra=pa.nulls(10, pa.int32())))
    assert sec.refresh_index(table, spark=spark).index.files == 5
    assert sec.prune(table, "TRUE", strict=True).count() == 320


def test_an_overwritten_file_is_told_though_its_listing_is_old(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root), freshness=float("inf"))
    assert sec.prune(table, "id = 150", strict=True).count() == 1
    write(root, "1.parquet", rows(150, 150 + 7))
    with pytest.raises(StalePlan, match=r"1\.parquet has changed"):
        sec.prune(table, "id = 150", strict=True).to_arrow()


def test_a_thousand_rows_in_single_appends(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    for i in range(3):
        write(root, f"more-{i}.parquet", rows(400 + i * 10, 410 + i * 10, extra=pa.nulls(10, pa.int32())))
        sec.refresh_index(table, spark=spark)
    assert sec.describe_index(table).segments < 4, "small increments are merged"
    check(spark, root, table)


def test_a_file_vanishes_between_plan_and_read(spark: SparkSession, root: Path) -> None:
    plan = sec.prune(sec.open_table(str(root)), "id = 150")
    (root / "1.parquet").unlink()
    with pytest.raises(StalePlan, match=r"1\.parquet has vanished"):
        plan.to_arrow()


def test_a_file_changes_between_plan_and_read(spark: SparkSession, root: Path) -> None:
    plan = sec.prune(sec.open_table(str(root)), "id = 150")
    write(root, "1.parquet", rows(0, 7))
    with pytest.raises(StalePlan, match=r"1\.parquet has changed"):
        plan.to_arrow()


@pytest.mark.parametrize("switch", ["argument", "environment"])
def test_the_index_can_be_left_out(
    spark: SparkSession, root: Path, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sec.open_table(str(root))
    if switch == "environment":
        monkeypatch.setenv("SECATEUR_DISABLE", "1")
    for predicate in PREDICATES:
        plan = sec.prune(table, predicate, use_index=switch == "environment")
        assert plan.report.index == "none"
        assert plan.count() == spark.read.parquet(str(root)).where(predicate).count()


def test_builders_that_publish_at_once(spark: SparkSession, root: Path) -> None:
    """C7: of two refreshes that began with the same snapshot the later is told, and nothing is lost."""
    table = sec.open_table(str(root))
    before = current_snapshot(table.store)
    write(root, "new.parquet", rows(500, 510, extra=pa.nulls(10, pa.int32())))
    sec.refresh_index(table, spark=spark)
    with pytest.raises(IndexConflict, match="refresh again"):
        publish(table, "build", [], pa.schema([]), sec.describe_index(table), expected=before)  # type: ignore[arg-type]
    check(spark, root, table)


def left_over(root: Path) -> list[Path]:
    """A file of every kind of a build that is under way, or was killed."""
    left = []
    for folder, suffix in (
        ("segments", "segment"),
        ("filters", "filter"),
        ("fragments", "fragment"),
        ("manifests", "manifests"),
    ):
        (root / "_secateur" / folder).mkdir(exist_ok=True)
        left.append(root / "_secateur" / folder / f"0123456789ab-000000.{suffix}")
        left[-1].write_bytes(b"half a file")
    return left


def test_vacuum_removes_what_nobody_uses(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    sec.build_index(table, spark=spark)
    left = left_over(root)
    old = time.time() - 7200
    for file in (root / "_secateur").rglob("*.*"):
        os.utime(file, (old, old))
    unused = {file.name for file in sec.vacuum_index(table, dry_run=True)}
    assert all(file.exists() for file in left)
    assert {"snapshots/0000000001.snapshot", *(f"{file.parent.name}/{file.name}" for file in left)} <= unused
    assert {file.name for file in sec.vacuum_index(table)} == unused
    assert not any(file.exists() for file in left)
    assert sec.verify_index(table).sound
    check(spark, root, table)


def test_vacuum_spares_what_a_build_is_writing(spark: SparkSession, root: Path) -> None:
    young = left_over(root)
    assert sec.vacuum_index(sec.open_table(str(root))) == []
    assert all(file.exists() for file in young)


def test_after_a_drop_there_is_no_index(spark: SparkSession, root: Path) -> None:
    table = sec.open_table(str(root))
    sec.drop_index(table)
    check(spark, root, table)
    with pytest.raises(IndexMissing, match="build_index"):
        sec.describe_index(table)
    sec.build_index(table, spark=spark)
    check(spark, root, table)
