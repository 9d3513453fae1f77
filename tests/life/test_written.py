"""Jobs that index what they have written: when one returns, all that was in the table is covered."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import IndexConflict, IndexMissing, InvalidOption
from secateur.maintain import written
from secateur.maintain.stream_listener import Refresher
from secateur.maintain.watch import Look, Watched
from tests.support.profiles import takes_seconds
from tests.support.tables import write_file

BUILD = {"sort_key": ["id"], "bloom": ["id"]}


def write(root: Path, i: int) -> str:
    root.mkdir(exist_ok=True)
    write_file(root / f"{i:03}.parquet", pa.table({"id": range(i * 10, i * 10 + 10)}), row_group_size=5)
    return f"{i:03}.parquet"


def covered(root: Path) -> int:
    """The number of live files that the index covers; entries of others count too, so nothing is removed here."""
    return sec.describe_index(str(root)).files


def test_files_are_covered_and_found(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    write(root, 0)
    with pytest.raises(IndexMissing):
        sec.index_written(str(root))
    assert sec.index_written(str(root), build=BUILD).bloom == ("id",)
    for i in range(1, 4):
        write(root, i)
        index = sec.index_written(str(root), build=BUILD)
        assert index.files == i + 1
        plan = sec.prune(str(root), f"id = {i * 10 + 7}", strict=True)
        assert plan.files == [f"{i:03}.parquet"]
        assert plan.to_arrow()["id"].to_pylist() == [i * 10 + 7]


def test_what_build_may_hold(tmp_path: Path) -> None:
    write(tmp_path / "lake", 0)
    with pytest.raises(InvalidOption, match="build has dry_run, spark: give only what the index is to hold"):
        sec.index_written(str(tmp_path / "lake"), build={"dry_run": True, "spark": None})


@takes_seconds
def test_jobs_that_write_at_once(tmp_path: Path) -> None:
    """Each writes a file and indexes it, the first ones without an index; in the end every file has an entry."""
    root, jobs = tmp_path / "lake", 6
    begin = threading.Barrier(jobs)

    def job(i: int) -> int:
        begin.wait()
        for number in (i, jobs + i):
            write(root, number)
            sec.index_written(str(root), build=BUILD)
        return i

    with ThreadPoolExecutor(jobs) as pool:
        assert sorted(pool.map(job, range(jobs))) == list(range(jobs))
    assert covered(root) == 2 * jobs
    for value in range(0, 20 * jobs, 7):
        assert sec.prune(str(root), f"id = {value}", strict=True).to_arrow()["id"].to_pylist() == [value]
    assert sec.verify_index(str(root)).sound


def test_a_job_that_always_loses_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "lake"
    write(root, 0)
    sec.build_index(str(root))
    lost = []

    def refresh_that_loses(*_: object, **__: object) -> object:
        lost.append(1)
        raise IndexConflict("another refresh came first")

    monkeypatch.setattr(written, "refresh_with", refresh_that_loses)
    monkeypatch.setattr(written, "LONGEST_WAIT", 0.0)
    with pytest.raises(IndexConflict, match="another refresh came first"):
        sec.index_written(str(root))
    assert len(lost) == written.TRIES


# ---- the thread of a stream listener


def test_a_thread_refreshes_when_it_is_woken(tmp_path: Path) -> None:
    """Wakings while it works are one look; closing looks once more, though a callback fails."""
    root, looks, looked = tmp_path / "lake", [], threading.Event()
    write(root, 0)
    sec.build_index(str(root))

    def on_look(look: Look) -> None:
        looks.append(look)
        looked.set()
        raise ValueError("of the user")

    refresher = Refresher([Watched(str(root), None, 60.0, vacuum=True)], on_look)
    write(root, 1)
    refresher.wake()
    assert looked.wait(60)
    assert covered(root) == 2
    for i in range(2, 5):
        write(root, i)
        refresher.wake()
    assert refresher.close(60)
    assert covered(root) == 5
    assert sum(look.refreshed.files_added for look in looks if look.refreshed is not None) == 4


def test_a_thread_tries_again(tmp_path: Path) -> None:
    """A refresh that failed is tried again without being woken; closing says whether the last one failed."""
    root, done = tmp_path / "lake", threading.Event()
    write(root, 0)

    def on_look(look: Look) -> None:
        if look.error is None:
            done.set()
        else:
            assert isinstance(look.error, IndexMissing)
            sec.build_index(str(root))
            write(root, 1)

    refresher = Refresher([Watched(str(root), None, 0.05, vacuum=True)], on_look)
    refresher.wake()
    assert done.wait(60)
    assert refresher.close(60)
    write(tmp_path / "other", 0)
    failing = Refresher([Watched(str(tmp_path / "other"), None, 0.05, vacuum=True)], None)
    assert not failing.close(60)
