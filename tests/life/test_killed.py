"""Processes that write an index are killed: readers see the old index or the new one, and what is left is vacuumed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import secateur as sec
from secateur.index.segments.snapshot_files import snapshot_numbers
from tests.support.profiles import NIGHTLY, by_profile, takes_seconds
from tests.support.programs.killed import PROCESSES, killed_at, start_server, steps_of, work_on
from tests.support.stores.crash_lake import (
    ACTIONS,
    build,
    changed,
    check_answers,
    check_index,
    check_leftovers,
    lake_on,
)
from tests.support.tables import write_file

KILLS = by_profile(quick=4, full=4, nightly=4, fast=1)  # of every action, but in the nightly run


@pytest.fixture(scope="module", autouse=True)
def server() -> None:
    start_server()


@takes_seconds
@pytest.mark.parametrize("name", ACTIONS)
def test_a_process_is_killed_at_every_step(tmp_path: Path, name: str) -> None:
    lake = lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), ACTIONS[name].before)
    saved, numbers = lake.saved(), snapshot_numbers(lake.store)
    count = steps_of(lake.root, name)
    for at in range(count) if NIGHTLY else {i * count // KILLS + count // KILLS // 2 for i in range(KILLS)}:
        lake.restore(saved)
        assert killed_at(lake.root, name, at) == -signal.SIGKILL
        now = snapshot_numbers(lake.store)
        assert not now or now[-1] in {*numbers[-1:], len(numbers) + 1}
        check_index(lake)
        check_leftovers(lake)
    build(lake.open())
    check_answers(lake)


@takes_seconds
def test_processes_are_killed_at_any_time(tmp_path: Path) -> None:
    """Two at once write an index as long as they live; readers of another process find every answer exact."""
    chance = random.Random() if NIGHTLY else random.Random(1)
    lake = lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), changed)
    for _ in range(100 if NIGHTLY else 3):
        writers = [PROCESSES.Process(target=work_on, args=(lake.root,)) for _ in range(2)]
        for writer in writers:
            writer.start()
        deadline = time.monotonic() + 0.2 + chance.random() * 0.4
        while time.monotonic() < deadline:
            check_answers(lake, strict=False)  # for what is dropped is gone
        for writer in writers:
            writer.kill()
            writer.join(30)
        check_index(lake)
        check_leftovers(lake)


@pytest.mark.spark
def test_a_driver_is_killed_in_the_middle_of_a_spark_build(tmp_path: Path) -> None:
    """Its tasks may go on for a moment; what they leave is found."""
    root = tmp_path / "lake"
    for i in range(24):
        ids = range(i * 100, i * 100 + 100)
        write_file(root / f"{i:02d}.parquet", pa.table({"id": ids, "user": [i * 37 % 101 for i in ids]}))
    code = (
        "import sys; import secateur as sec; from secateur.session import local_session\n"
        "sec.build_index(sec.open_table(sys.argv[1]), spark=local_session(), bloom=['user'], segment_blocks=2)"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code, str(root)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    index, end = root / "_secateur", time.monotonic() + 120
    while not list(index.glob("segments/*.segment")) and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    driver.kill()
    assert driver.wait(60) == -signal.SIGKILL
    assert snapshot_numbers(sec.open_table(str(root)).store) == []
    assert sec.prune(sec.open_table(str(root)), "user = 5", strict=True).count() == 24
    while is_written(index):
        time.sleep(0.5)
    assert sec.vacuum_index(sec.open_table(str(root)), grace_seconds=0)
    assert not [path for path in index.rglob("*") if path.is_file()]
    sec.build_index(sec.open_table(str(root)), bloom=["user"])
    assert sec.prune(sec.open_table(str(root)), "user = 5", strict=True).count() == 24


def is_written(directory: Path) -> bool:
    """Whether some file was written in the last two seconds."""
    return any(path.stat().st_mtime > time.time() - 2 for path in directory.rglob("*") if path.is_file())
