"""Pruning on executors finds what pruning on the driver finds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark import executors
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan
from tests.support.profiles import examples

FILES, ROWS = 12, 60


def write(path: Path, first: int) -> None:
    ids = np.arange(first, first + ROWS)
    data = pa.table(
        {
            "id": ids,
            "zig": np.abs(ids % ROWS - ROWS // 2),
            "key": pa.array([None if i % 11 == 0 else f"k{i % 17}" for i in ids.tolist()]),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, row_group_size=20, write_page_index=True, max_rows_per_page=7)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> ParquetDirectory:
    """Twelve files that the index knows, of which one is gone and one was written anew, and one that it does not."""
    root = tmp_path_factory.mktemp("executors") / "lake"
    for i in range(FILES):
        write(root / f"half={i % 2}" / f"{i:02d}.parquet", i * ROWS)
    table = sec.open_table(str(root))
    sec.build_index(
        table, spark=spark, sort_key=["id"], bloom=["key", "id"], postings={"zig": "rows"}, segment_blocks=6
    )
    (root / "half=0/04.parquet").unlink()
    write(root / "half=1/07.parquet", 5000)
    write(root / "half=1/99.parquet", 6000)
    return table


def both(table: ParquetDirectory, spark: SparkSession, predicate: str, **more: int) -> tuple[Scan, Scan]:
    """A plan made on executors, and one on the driver."""
    there = sec.prune(table, predicate, spark=spark, prune_on="executors", strict=True, **more)  # type: ignore[arg-type]
    return there, sec.prune(table, predicate, strict=True, **more)  # type: ignore[arg-type]


PREDICATES = st.sampled_from(
    [
        "id = {}",
        "id > {}",
        "NOT (id > {})",
        "key = 'k{}' AND zig > 3",
        "key IN ('k{}', 'k3') OR half = 0",
        "half = 1 AND id BETWEEN {} AND 5030",
        "half = 0 OR id = {}",
        "key IS NULL AND id >= {}",
        "id >= -{}",
        "id < -{}",
        "zig = 5 AND id <> {}",
        "zig IN (5, {}) OR id = 77",
        "_metadata.file_name = '0{}.parquet' OR zig = 5",
    ]
)


@examples(12)
@given(PREDICATES, st.integers(0, 800))
def test_executors_find_what_the_driver_finds(
    table: ParquetDirectory, spark: SparkSession, shape: str, number: int
) -> None:
    there, here = both(table, spark, shape.format(number))
    assert there.blocks.to_pylist() == here.blocks.to_pylist()
    assert there.to_arrow().to_pylist() == here.to_arrow().to_pylist()
    assert there.count() == here.count()


def test_the_report_says_where(table: ParquetDirectory, spark: SparkSession) -> None:
    there, here = both(table, spark, "zig = 5")
    (stage,) = [s for s in there.report.stages if s.name == "zone maps"]
    assert "pruned by" in stage.notes[0]
    assert there.report.stages[-1].after.blocks == here.report.stages[-1].after.blocks


def test_why_a_block_is_left_out(table: ParquetDirectory, spark: SparkSession) -> None:
    """Executors look at filters and pages too: what left a block out is found, whatever it was."""
    blocks = sec.inspect.blocks(table).select(["file", "row_group"]).to_pylist()
    for predicate in ("key = 'k3' AND zig > 3", "id = 40 AND zig = 28", "zig = 5 AND id % 2 = 0 AND id < 40"):
        there, _ = both(table, spark, predicate)
        kept = there.blocks.select(["file", "row_group"]).to_pylist()
        for block in blocks:
            why = there.why(block)
            assert why.survives == (block in kept)
            assert why.cause is None or "cannot be read again" not in why.cause.statistic


def test_limit_takes_of_what_executors_found(table: ParquetDirectory, spark: SparkSession) -> None:
    there, here = both(table, spark, "id >= 100", limit=30)
    assert there.blocks.to_pylist() == here.blocks.to_pylist()
    assert len(there.to_arrow()) == 30


def test_what_is_in_memory_is_pruned_on_the_driver(table: ParquetDirectory, spark: SparkSession) -> None:
    plan = sec.prune(table, "zig = 5", spark=spark, strict=True)
    assert "tasks" not in " ".join(note for stage in plan.report.stages for note in stage.notes)


def test_many_cold_segments_are_pruned_on_executors(
    table: ParquetDirectory, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what reading takes beside a job: here a job that takes no time."""
    monkeypatch.setattr(executors, "JOB_SECONDS", 0.0)
    cold = sec.open_table(table.location)
    plan = sec.prune(cold, "zig = 5", spark=spark, strict=True)
    assert "tasks of Spark" in " ".join(note for stage in plan.report.stages for note in stage.notes)


@pytest.fixture
def harmed(table: ParquetDirectory, tmp_path: Path) -> Iterator[Path]:
    """A copy of the table."""
    root = tmp_path / "lake"
    shutil.copytree(table.location, root)
    yield root


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
def test_a_broken_index_costs_no_row(harmed: Path, spark: SparkSession, share: float) -> None:
    for file in [*(harmed / "_secateur/segments").iterdir(), *(harmed / "_secateur/filters").iterdir()]:
        data = bytearray(file.read_bytes())
        data[16 + int((len(data) - 64) * share)] ^= 0x10
        file.write_bytes(bytes(data))
    for predicate in ("zig = 5", "key = 'k3'", "id > 300"):
        table = sec.open_table(str(harmed))
        there = sec.prune(table, predicate, spark=spark, prune_on="executors")
        expected = sec.prune(table, predicate, use_index=False).to_arrow().sort_by("id")
        assert there.to_arrow().sort_by("id") == expected


def test_without_a_session_there_are_no_executors(table: ParquetDirectory) -> None:
    with pytest.raises(ValueError, match="prune_on is"):
        sec.prune(table, "id = 1", prune_on="executors")
    with pytest.raises(ValueError, match="not 'cluster'"):
        sec.prune(table, "id = 1", prune_on="cluster")
