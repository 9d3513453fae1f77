"""Each stage of the pipeline on a table large enough for it: a tree of two levels, limits, pages of several columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan
from tests.support.profiles import examples

FILES, ROWS = 40, 60  # of two blocks each; segments of one file, so that the tree has 40 leaves below 2 nodes
IDS = np.arange(FILES * ROWS)
# In every file `zig` runs up and down, so that its pages cut a block elsewhere than those of `id` do.
ZIG = np.abs(IDS % ROWS - ROWS // 2)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> ParquetDirectory:
    root = tmp_path_factory.mktemp("stages") / "lake"
    for i in range(FILES):
        folder = root / f"half={i // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        rows = slice(i * ROWS, (i + 1) * ROWS)
        data = pa.table({"id": IDS[rows], "zig": ZIG[rows], "key": pa.array([f"k{v % 7}" for v in IDS[rows]])})
        pq.write_table(data, folder / f"{i:02d}.parquet", row_group_size=30, write_page_index=True, max_rows_per_page=7)
    table = sec.open_table(str(root))
    sec.build_index(table, spark=spark, sort_key=["id"], bloom=["key", "id"], segment_blocks=2)
    return table


def stage(plan: Scan, name: str) -> tuple[int | None, int | None]:
    """The blocks before and after a stage."""
    (report,) = [stage_report for stage_report in plan.report.stages if stage_report.name == name]
    return report.before.blocks, report.after.blocks


def ids(plan: Scan) -> list[int]:
    return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist())


def rows_in_ranges(plan: Scan) -> set[int]:
    """The ids of all rows that lie in the row ranges of the plan."""
    row_ids: set[int] = set()
    for block in plan.blocks.to_pylist():
        first = int(block["file"][7:9]) * ROWS + block["row_group"] * 30
        for span in block["row_ranges"]:
            row_ids.update(range(first + span["start"], first + span["stop"]))
    return row_ids


def test_files_by_partition(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "half = 1 AND id < 1250", strict=True)
    assert stage(plan, "files") == (80, 40)
    assert ids(plan) == list(range(1200, 1250))


@pytest.mark.parametrize(
    ("predicate", "leaves"), [("id = 5", 1), ("id IN (5, 2000)", 2), ("id < 0", 0), ("zig = 3", 40)]
)
def test_the_tree_is_descended_only_where_it_survives(table: ParquetDirectory, predicate: str, leaves: int) -> None:
    plan = sec.prune(table, predicate, strict=True)
    (report,) = [stage_report for stage_report in plan.report.stages if stage_report.name == "segments"]
    assert report.after.segments == leaves
    assert (report.after.segments or 0) <= 40
    visited = int(report.notes[0].split(", ")[1].split()[0])
    below = {"id = 5": 32, "id IN (5, 2000)": 40, "id < 0": 0, "zig = 3": 40}[predicate]
    assert visited == 2 + below


def test_bloom_refutes_under_or(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "key = 'k77' OR id = 1234", strict=True)
    assert stage(plan, "zone maps")[1] == 1
    assert ids(plan) == [1234]


def test_bloom_under_not_and_is_not_refuted(table: ParquetDirectory) -> None:
    """C25: what a filter denies is FALSE, so its NOT may well be TRUE."""
    plan = sec.prune(table, "NOT (key = 'k77')", strict=True)
    assert ids(plan) == IDS.tolist()


@examples(25)
@given(limit=st.integers(0, FILES * ROWS + 5), low=st.integers(0, 2400), width=st.integers(0, 2400))
def test_limit(table: ParquetDirectory, limit: int, low: int, width: int) -> None:
    """C31: as many rows as there are or are wanted, and all of them match."""
    plan = sec.prune(table, f"id >= {low} AND id < {low + width}", limit=limit, strict=True)
    matching = max(0, min(low + width, FILES * ROWS) - low)
    row_ids = ids(plan)
    assert len(row_ids) == len(set(row_ids)) == plan.count() == min(limit, matching)
    assert all(low <= value < low + width for value in row_ids)


def test_limit_takes_no_more_blocks_than_surely_hold_the_rows(table: ParquetDirectory) -> None:
    assert sec.prune(table, "id >= 7", limit=61, strict=True).blocks.num_rows == 3
    assert sec.prune(table, "zig = 3", limit=1, strict=True).blocks.num_rows > 1, "no block is sure to hold a match"


@examples(25)
@given(
    st.integers(0, FILES * ROWS),
    st.integers(0, 200),
    st.integers(0, 30),
    st.sampled_from(["{} AND {}", "{} OR {}", "NOT ({} OR {})", "{} AND NOT {}"]),
)
def test_pages_of_several_columns(table: ParquetDirectory, low: int, width: int, zig: int, shape: str) -> None:
    """No row that matches lies outside the row ranges, whatever connects the columns."""
    predicate = shape.format(f"(id BETWEEN {low} AND {low + width})", f"(zig > {zig})")
    plan = sec.prune(table, predicate, strict=True)
    by_id, by_zig = (low <= IDS) & (low + width >= IDS), zig < ZIG
    match shape:
        case "{} AND {}":
            expected = by_id & by_zig
        case "{} OR {}":
            expected = by_id | by_zig
        case "NOT ({} OR {})":
            expected = ~(by_id | by_zig)
        case _:
            expected = by_id & ~by_zig
    assert ids(plan) == IDS[expected].tolist()
    assert set(IDS[expected].tolist()) <= rows_in_ranges(plan)


def test_pages_narrow_the_rows(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "id = 40 AND zig = 10", strict=True)
    assert rows_in_ranges(plan) == set(range(37, 44)), "the one page of seven rows that holds it"
    assert plan.report.to_table()["pages_after"].to_pylist()[-1] == 2


def test_blocks_of_a_plan_are_values(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "id BETWEEN 25 AND 64", strict=True)
    assert plan.blocks.select(["file", "row_group", "row_count", "fully_matching"]).to_pylist() == [
        {"file": "half=0/00.parquet", "row_group": 0, "row_count": 30, "fully_matching": False},
        {"file": "half=0/00.parquet", "row_group": 1, "row_count": 30, "fully_matching": True},
        {"file": "half=0/01.parquet", "row_group": 0, "row_count": 30, "fully_matching": False},
    ]
    assert plan.residual == "(`id` >= 25 AND `id` <= 64)"
    assert plan.files == ["half=0/00.parquet", "half=0/01.parquet"]


def test_a_residual_leaves_out_what_holds_everywhere(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "id >= 0 AND zig > 5 AND half IS NOT NULL", strict=True)
    assert plan.residual == "`zig` > 5"
