"""The last file of a folder, by names alone on a local disk."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from secateur.errors import IndexFault
from secateur.io.storage.index_store import FileStore

FORM = re.compile(r"\d{3}\.snapshot")


@pytest.fixture(params=["local", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    """A store on a local disk, and one of which only pyarrow's interface is known."""
    local = pafs.LocalFileSystem()
    if request.param == "local":
        return FileStore(local, str(tmp_path))
    return FileStore(pafs.SubTreeFileSystem(str(tmp_path), local), "")


def test_the_last_is_the_greatest_name_of_a_form(store: FileStore) -> None:
    assert store.last("snapshots", FORM) is None
    for name in ("001.snapshot", "010.snapshot", "009.snapshot", ".99.partial", "zzz", "0100.snapshot"):
        store.put_aside(posixpath.join("snapshots", name), name.encode())
    last = store.last("snapshots", FORM)
    assert last is not None
    assert (last.name, last.size) == ("snapshots/010.snapshot", len("010.snapshot"))
    assert last in store.files("snapshots")
    store.delete(last.name)
    last = store.last("snapshots", FORM)
    assert last is not None and last.name == "snapshots/009.snapshot"


def test_a_file_in_the_place_of_the_store_has_no_last(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("no directory")
    assert FileStore(pafs.LocalFileSystem(), str(tmp_path / "index")).last("snapshots", FORM) is None


def test_a_folder_that_cannot_be_listed_is_a_fault(tmp_path: Path) -> None:
    name = "x" * 300  # longer than a name may be
    with pytest.raises(IndexFault, match="cannot list"):
        FileStore(pafs.LocalFileSystem(), str(tmp_path)).last(name, FORM)


def test_what_is_no_file_is_not_the_last(store: FileStore, tmp_path: Path) -> None:
    store.put_aside("snapshots/001.snapshot", b"a file")
    (tmp_path / "snapshots" / "002.snapshot").mkdir()
    (tmp_path / "snapshots" / "003.snapshot").symlink_to(tmp_path / "nowhere")
    (tmp_path / "snapshots" / "004.snapshot").symlink_to("004.snapshot")
    last = store.last("snapshots", FORM)
    assert last is not None and last.name == "snapshots/001.snapshot"
