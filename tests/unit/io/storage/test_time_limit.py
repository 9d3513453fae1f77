"""A store that does not answer when a table is opened."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace

import pyarrow.fs as pafs
import pytest

import secateur as sec
from secateur.errors import StoreUnreachable
from secateur.io.storage import locations
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


@pytest.mark.parametrize("uri", ["s3://k:s@lake/t?region=us-east-1&scheme=http&endpoint_override={}", "gs://lake/t"])
def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    """It takes connections, and says nothing."""
    monkeypatch.setenv(VARIABLE, "0.5")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://{address}")
        with pytest.raises(StoreUnreachable, match=r"lake/t.* did not answer within 0\.5 s.*SECATEUR_OPEN_SECONDS"):
            sec.open_table(uri.format(address))


def test_making_a_filesystem_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """For some stores pyarrow asks for the region of a bucket."""
    monkeypatch.setenv(VARIABLE, "0.05")
    answered = threading.Event()
    silent = SimpleNamespace(from_uri=lambda uri: answered.wait())
    monkeypatch.setattr(locations, "pafs", SimpleNamespace(FileSystem=silent))
    with pytest.raises(StoreUnreachable, match=r"s3://lake/t did not answer within 0\.05 s"):
        locations.resolve_location("s3://lake/t", None)
    answered.set()


def test_a_local_disk_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert in_time(threading.current_thread, pafs.LocalFileSystem(), "lake") is threading.current_thread()
