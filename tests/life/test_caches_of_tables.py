"""Bounds of a plan: the time that it may take, and the memory and disk that keep the index near."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.fs as pafs
import pytest

import secateur as sec
from secateur.io.storage.cache_directory import disk_cache_for, memory_cache
from secateur.io.storage.disk_cache import DiskCache
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.programs.make_golden import GOLDEN, stamp

PREDICATES = ("id = 17", "id > 30 AND ratio > 5", "name LIKE 'name-05%' OR wide = 0", "part = 1 AND id < 50", "TRUE")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of two files whose index covers it."""
    root = tmp_path / "lake"
    shutil.copytree(GOLDEN / "v1", root)
    stamp(root)
    return root


def ids(table: ParquetDirectory, predicate: str, **more: float) -> list[int]:
    plan = sec.prune(table, predicate, strict=True, **more)  # type: ignore[arg-type]
    return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist())


# ---- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("budget", [0, 0.5, 60_000])
def test_a_budget_changes_no_row(lake: Path, predicate: str, budget: float) -> None:
    table = sec.open_table(str(lake))
    assert ids(table, predicate, budget_ms=budget) == ids(table, predicate)


def test_without_time_everything_is_kept(lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id = 17", budget_ms=0, strict=True)
    assert len(plan.blocks) == 4
    notes = {stage.name: stage.notes for stage in plan.report.stages}
    assert notes["segments"] == notes["filters"] == notes["pages"] == ("not run: the time is spent",)
    assert "the time is spent before" in notes["zone maps"][0]


def test_a_negative_budget_is_refused(lake: Path) -> None:
    with pytest.raises(ValueError, match="budget_ms is -1"):
        sec.prune(sec.open_table(str(lake)), "id = 17", budget_ms=-1)


# ---- memory and disk -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_cache_without_room_changes_no_row(lake: Path, predicate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    roomy = sec.open_table(str(lake))
    monkeypatch.setenv("SECATEUR_MEMORY_BYTES", "0")
    cramped = sec.open_table(str(lake))
    assert ids(cramped, predicate) == ids(cramped, predicate) == ids(roomy, predicate)
    assert cramped.cache.counters.bytes == 0


def test_the_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_MEMORY_BYTES", "20 MB")
    assert memory_cache().most_bytes == 20_000_000
    monkeypatch.setenv("SECATEUR_MEMORY_BYTES", "much")
    with pytest.raises(ValueError, match="SECATEUR_MEMORY_BYTES"):
        memory_cache()


def opened(lake: Path, cache: Path) -> ParquetDirectory:
    """A new handle on the table, whose index is read through a cache on disk."""
    return sec.open_table(str(lake), disk_cache=DiskCache(cache, 10**8))


@pytest.mark.parametrize("predicate", PREDICATES)
def test_another_handle_reads_from_disk(lake: Path, tmp_path: Path, predicate: str) -> None:
    first = sec.prune(opened(lake, tmp_path / "cache"), predicate, strict=True)
    second = sec.prune(opened(lake, tmp_path / "cache"), predicate, strict=True)
    assert second.blocks == first.blocks
    assert first.report.reads.cached == 0 < first.report.reads.stored
    assert second.report.reads.cached > 0
    assert second.report.reads.stored <= first.report.reads.stored - second.report.reads.cached


@pytest.mark.parametrize("flip", [0, 0.3, 0.6, 0.99])
def test_a_broken_disk_cache_changes_nothing(lake: Path, tmp_path: Path, flip: float) -> None:
    cache = tmp_path / "cache"
    expected = [ids(opened(lake, cache), predicate) for predicate in PREDICATES]
    for entry in cache.rglob("*.entry"):
        data = bytearray(entry.read_bytes())
        data[int(flip * (len(data) - 1))] ^= 0x40
        entry.write_bytes(bytes(data))
    assert [ids(opened(lake, cache), predicate) for predicate in PREDICATES] == expected


def test_what_is_near_is_not_cached_on_disk(lake: Path) -> None:
    assert disk_cache_for(pafs.LocalFileSystem()) is None
    assert sec.open_table(str(lake)).disk is None


def test_what_is_far_is_cached_on_disk(lake: Path) -> None:
    far = pafs.SubTreeFileSystem(str(lake.parent), pafs.LocalFileSystem())
    table = sec.open_table("lake", filesystem=far)
    assert isinstance(table.disk, DiskCache)
    assert ids(table, "id = 17") == ids(sec.open_table("lake", filesystem=far), "id = 17") == [17]
