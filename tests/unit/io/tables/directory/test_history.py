"""The snapshots of an index as those of its directory."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import UnknownBlock, UnknownSnapshot
from secateur.index.read import coverage
from tests.support.formats.delta_tables import numbered


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An indexed file of two rows."""
    at = tmp_path / "lake"
    write(at, 0)
    sec.build_index(at)
    return at


def write(at: Path, i: int, rows: pa.Table | None = None) -> None:
    at.mkdir(exist_ok=True)
    pq.write_table(numbered(2 * i, 2 * i + 2) if rows is None else rows, at / f"{i}.parquet")


def new(at: Path, since: int, **options: bool) -> list[int]:
    rids: list[int] = sorted(sec.prune(at, "true", since=since, **options).to_arrow()["rid"].to_pylist())
    return rids


def test_new_rows_indexed_or_not(lake: Path) -> None:
    write(lake, 1)
    assert new(lake, 1) == new(lake, 1, use_index=False) == [2, 3]
    assert sec.refresh_index(lake).index.number == 2
    write(lake, 2)
    assert new(lake, 1) == [2, 3, 4, 5]
    assert new(lake, 2) == [4, 5]
    write(lake, 0)
    assert new(lake, 2) == [0, 1, 4, 5]
    assert "of 3 files, 2 came after snapshot 2" in sec.prune(lake, "true", since=2).explain()


def test_the_snapshot_of_a_plan_has_exactly_its_files(lake: Path) -> None:
    """C2, C7: else the next plan would see rows twice, or never."""
    plan = sec.prune(lake, "true")
    assert plan.snapshot == 1
    write(lake, 1)
    late = sec.prune(lake, "true", since=1)
    with pytest.raises(UnknownSnapshot, match=r"1 of the 2 files .* not in index snapshot 1: call refresh_index"):
        _ = late.snapshot
    before = sec.prune(lake, "rid = 0", use_index=False)
    write(lake, 2)
    sec.refresh_index(lake)
    with pytest.raises(UnknownSnapshot, match=r"index snapshot 2 of .* plan again"):
        _ = before.snapshot
    assert sec.prune(lake, "true", since=1).snapshot == 2
    (lake / "2.parquet").unlink()
    assert sec.prune(lake, "true", since=1).snapshot == 2  # an entry of a file that is gone
    bare = lake.parent / "bare"
    write(bare, 0)
    with pytest.raises(UnknownSnapshot, match="no index"):
        _ = sec.prune(bare, "true").snapshot


def test_other_files_are_no_part_of_the_plan(lake: Path) -> None:
    write(lake, 1)
    sec.refresh_index(lake)
    plan = sec.prune(lake, "rid = 3", since=1)
    assert plan.why("1.parquet", 0).survives
    with pytest.raises(UnknownBlock, match=r"0\.parquet"):
        plan.why("0.parquet")
    assert "1 came after snapshot 1" in plan.to_html()
    sent = pickle.loads(pickle.dumps(plan))
    assert sent.snapshot == plan.replanned().snapshot == 2
    assert sent.to_arrow()["rid"].to_pylist() == plan.replanned().to_arrow()["rid"].to_pylist() == [3]


def test_snapshots_that_are_gone(lake: Path) -> None:
    write(lake, 1)
    sec.refresh_index(lake)
    sec.vacuum_index(lake, grace_seconds=-1)
    for number in (1, 3):
        with pytest.raises(UnknownSnapshot, match=f"no snapshot {number} .*grace_seconds; its newest is 2"):
            new(lake, number)
    assert new(lake, 2) == []


def test_columns_of_other_files_are_known(lake: Path) -> None:
    """C12: the predicate names a column that only older files have."""
    write(lake, 1, pa.table({"rid": pa.array([7], pa.int64())}))
    assert sec.prune(lake, "s IS NULL", since=1).count() == 1
    plan = sec.prune(lake, "s IS NULL", since=1, use_index=False)
    assert plan.to_arrow().to_pylist() == [{"rid": 7, "s": None}]
    sec.refresh_index(lake)
    assert sec.prune(lake, "s IS NULL", since=2, use_index=False).to_arrow().schema.names == ["rid", "s"]


def test_a_copy_with_its_index_has_nothing_new(lake: Path) -> None:
    """The files have other inodes and change times, and the same bytes."""
    moved = lake.parent / "moved"
    shutil.copytree(lake, moved, copy_function=shutil.copy2)
    os.utime(moved)
    assert new(moved, 1) == []


def test_files_that_are_not_asked_for_do_not_make_the_index_look_wrong(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index has more blocks of others than the new files could hold."""
    monkeypatch.setattr(coverage, "MOST_GONE", 0)
    pq.write_table(numbered(100, 1100), lake / "many.parquet", row_group_size=1)
    sec.refresh_index(lake)
    write(lake, 1)
    sec.refresh_index(lake)
    plan = sec.prune(lake, "true", since=2, strict=True)
    assert plan.count() == 2
    assert plan.report.index.startswith("snapshot 3")
