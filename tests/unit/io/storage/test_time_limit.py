"""A store that does not answer when a table is opened."""

from __future__ import annotations

import threading

import pyarrow.fs as pafs
import pytest

from secateur.errors import StoreUnreachable
from secateur.io.storage.time_limit import VARIABLE, in_time

REMOTE = pafs.SubTreeFileSystem("/", pafs.LocalFileSystem())


def test_the_answer_and_the_error_come_through() -> None:
    assert in_time(lambda: 7, REMOTE, "gs://lake") == 7
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, REMOTE, "gs://lake")


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.05")
    answered = threading.Event()
    with pytest.raises(StoreUnreachable, match=r"gs://lake did not answer within 0\.05 s.*SECATEUR_OPEN_SECONDS"):
        in_time(answered.wait, REMOTE, "gs://lake")
    answered.set()


def test_a_local_disk_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert in_time(threading.current_thread, pafs.LocalFileSystem(), "lake") is threading.current_thread()
