"""The last of the numbered names is always that of the directory as it is, though it is seldom listed."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from secateur.io.storage import greatest_name as module
from secateur.io.storage.greatest_name import greatest_name

FORM = re.compile(r"\d{3}\.snapshot")
TICK = 0.02  # seconds; clocks of filesystems advance at least so often


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by the directory that is listed."""
    listed: list[str] = []
    usual = os.listdir

    def counted(directory: str) -> list[str]:
        listed.append(directory)
        return usual(directory)

    monkeypatch.setattr(module.os, "listdir", counted)
    monkeypatch.setattr(module, "_kept", {})
    return listed


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def test_it_is_listed_again_when_it_has_changed(
    tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names come, go, come in others' places and with gaps; between two changes one listing is enough."""
    monkeypatch.setattr(module, "SETTLED", 0)
    present: set[str] = set()
    changes = ["+001", "+002", "+003", "-003", "+007", "-002", "+008", "-008", "-007", "+005", "-001", "-005", "+001"]
    for number, change in enumerate(changes, 1):
        name = f"{change[1:]}.snapshot"
        touch(tmp_path, name) if change[0] == "+" else (tmp_path / name).unlink()
        (present.add if change[0] == "+" else present.remove)(name)
        time.sleep(TICK)
        for _ in range(3):
            assert greatest_name(str(tmp_path), FORM) == max(present, default=None)
        if present:
            assert len(listings) <= 3 * number
    touch(tmp_path, "zzz.other", "999.snapshot.tmp")
    time.sleep(TICK)
    assert greatest_name(str(tmp_path), FORM) == "001.snapshot"
    before = len(listings)
    assert greatest_name(str(tmp_path), FORM) == "001.snapshot"
    assert len(listings) == before
    assert greatest_name(str(tmp_path), FORM, {"001.snapshot"}) is None


def test_one_that_changed_just_now_is_listed_each_time(tmp_path: Path, listings: list[str]) -> None:
    """Another change may come within the step in which its filesystem counts time."""
    touch(tmp_path, "001.snapshot", "003.snapshot")
    for asked in range(1, 4):
        assert greatest_name(str(tmp_path), FORM) == "003.snapshot"
        assert len(listings) == asked
    (tmp_path / "003.snapshot").unlink()
    assert greatest_name(str(tmp_path), FORM) == "001.snapshot"


def test_without_times_the_next_number_tells(
    tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "001.snapshot")
    still, usual = SimpleNamespace(st_mtime_ns=0, st_ctime_ns=0, st_ino=1, st_dev=1), os.stat
    monkeypatch.setattr(module.os, "stat", lambda path, **more: still if path == str(tmp_path) else usual(path, **more))
    for number in range(1, 12):
        touch(tmp_path, f"{number:03}.snapshot")
        assert greatest_name(str(tmp_path), FORM) == f"{number:03}.snapshot"
    assert len(listings) == 11


def test_another_directory_in_its_place(tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED", 0)
    asked, other = tmp_path / "asked", tmp_path / "other"
    for directory, name in ((asked, "005.snapshot"), (other, "002.snapshot")):
        directory.mkdir()
        touch(directory, name)
    time.sleep(TICK)
    assert greatest_name(str(asked), FORM) == "005.snapshot"
    asked.rename(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        greatest_name(str(asked), FORM)
    other.rename(asked)
    assert greatest_name(str(asked), FORM) == "002.snapshot"
