"""What reads for Spark have found is remembered: by the driver, and by tasks, which send it. No row is lost by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark import task_verdicts

VIA = ("local", "blocks")
PREDICATES = (
    "id * 37 % 50 = 9",
    "id * 37 % 50 = 9 OR name IS NULL",
    "name LIKE '%7%' AND id % 2 = 0",
    "NOT (id % 25 < 20)",
    "id * 37 % 50 = 9 AND id > 120",
)
pytestmark = pytest.mark.usefixtures("remembering")


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": ids, "name": [None if i % 31 == 0 else f"n{i * 7 % 100}" for i in ids]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for file in range(3):
        pq.write_table(rows(file * 100, file * 100 + 100), tmp_path / f"{file}.parquet", row_group_size=10)
    return tmp_path


def blocks(plan: sec.Scan) -> set[tuple[str, int]]:
    return {(block["file"], block["row_group"]) for block in plan.blocks.to_pylist()}


def ids(spark: SparkSession, plan: sec.Scan, via: str) -> list[int]:
    return sorted(row.id for row in plan.to_spark(spark, ["id"], via=via).collect())


@pytest.mark.parametrize("via", VIA)
def test_row_groups_without_a_match_are_not_read_again(spark: SparkSession, lake: Path, via: str) -> None:
    """Which these are, plain Spark tells; the next predicates ask for as much, for more, and for something else."""
    oracle = spark.read.parquet(str(lake))
    for predicate in PREDICATES:
        expected = sorted(row.id for row in oracle.where(predicate).collect())
        with_match = {(f"{i // 100}.parquet", i % 100 // 10) for i in expected}
        assert ids(spark, sec.prune(str(lake), predicate), via) == expected, predicate
        again = sec.prune(str(lake), predicate)
        assert blocks(again) == with_match, predicate
        assert ids(spark, again, via) == expected, predicate


def test_an_index_and_pages_count(spark: SparkSession, lake: Path) -> None:
    sec.build_index(str(lake), sort_key=["id"], bloom=["id"])
    assert ids(spark, sec.prune(str(lake), "id * 37 % 50 = 9 AND id BETWEEN 95 AND 212"), "blocks") == [107, 157, 207]
    again = sec.prune(str(lake), "id * 37 % 50 = 9 AND id BETWEEN 95 AND 212")
    assert blocks(again) == {("1.parquet", 0), ("1.parquet", 5), ("2.parquet", 0)}
    sec.build_index(str(lake), sort_key=["id"], bloom=["id"])
    assert ids(spark, sec.prune(str(lake), "id * 37 % 50 = 9 AND id BETWEEN 95 AND 212"), "blocks") == [107, 157, 207]


@pytest.mark.parametrize("via", VIA)
def test_reads_that_must_not_leave_any(spark: SparkSession, lake: Path, via: str) -> None:
    sec.prune(str(lake), "id * 37 % 50 = 9", limit=1).to_spark(spark, via=via).collect()
    sec.prune(str(lake), "id * 37 % 50 = 9", use_verdicts=False).to_spark(spark, via=via).collect()
    assert len(blocks(sec.prune(str(lake), "id * 37 % 50 = 9"))) == 30


def test_a_task_that_stops_early_tells_what_it_has_read(spark: SparkSession, lake: Path) -> None:
    """It may have read all of a row group, or not."""
    assert len(sec.prune(str(lake), "id * 37 % 50 = 9").to_spark(spark, via="blocks").take(1)) == 1
    assert ids(spark, sec.prune(str(lake), "id * 37 % 50 = 9"), "blocks") == [7, 57, 107, 157, 207, 257]


def test_a_task_that_fails_tells_nothing(spark: SparkSession, lake: Path) -> None:
    frame = sec.prune(str(lake), "id * 37 % 50 = 9").to_spark(spark, via="blocks")
    pq.write_table(rows(1000, 1100), lake / "1.parquet", row_group_size=10)
    with pytest.raises(Exception, match="stale"):
        frame.collect()
    expected = [7, 57, 207, 257, 1007, 1057]
    assert ids(spark, sec.prune(str(lake), "id * 37 % 50 = 9"), "blocks") == expected
    assert len(blocks(sec.prune(str(lake), "id * 37 % 50 = 9"))) == 6


def test_few_plans_are_listened_to(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tasks of an older one send is dropped."""
    monkeypatch.setattr(task_verdicts, "MOST_PLANS", 1)
    older = sec.prune(str(lake), "id * 37 % 50 = 9").to_spark(spark, ["id"], via="blocks")
    newer = sec.prune(str(lake), "id * 37 % 50 = 46").to_spark(spark, ["id"], via="blocks")
    assert (len(older.collect()), len(newer.collect())) == (6, 6)
    assert len(blocks(sec.prune(str(lake), "id * 37 % 50 = 9"))) == 30
    assert len(blocks(sec.prune(str(lake), "id * 37 % 50 = 46"))) == 6
