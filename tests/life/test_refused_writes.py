"""Where an index cannot be written: the error says what, where and what to do, and the old index stays in use."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pyarrow.fs as pafs
import pytest

import secateur as sec
from secateur.errors import IndexNotWritable, SecateurError
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.io.storage import index_store
from tests.support.profiles import FAST, sweep, takes_seconds
from tests.support.programs.killed import PROCESSES, start_server
from tests.support.stores.crash_lake import (
    ACTIONS,
    Action,
    Lake,
    build,
    changed,
    check_index,
    check_leftovers,
    lake_on,
    nothing,
)

NOBODY = 65534
ALLOWED = (0, 3, 39) if FAST else range(0, 40, 3)  # files that are written before the disk is full
SIZES = (0, 500, 1 << 20) if FAST else (0, 500, 2000, 3000, 1 << 20)
WRITERS = {name: action for name, action in ACTIONS.items() if name not in ("vacuum", "drop")}
is_root = os.geteuid() == 0


@pytest.fixture(scope="module", autouse=True)
def server() -> None:
    start_server()


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter: pytest closes its own to others whenever a run begins."""
    with TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def lake_in(tmp_path: Path, action: Action) -> Lake:
    return lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), action.before)


def check_refused(lake: Lake, saved: dict[str, bytes], error: object, advice: str) -> None:
    """The error tells; every file of the old index is as it was, and nothing else is left but for a vacuum."""
    assert isinstance(error, IndexNotWritable), error
    assert advice in str(error)
    assert lake.store.root in str(error)
    assert "index_location=" in str(error)
    assert saved.items() <= lake.saved().items()
    check_index(lake)


CODES = [*((name, "ENOSPC") for name in WRITERS), *(("refresh", code) for code in ("EDQUOT", "EROFS", "EIO"))]


@pytest.mark.parametrize(("name", "code"), CODES)
def test_a_disk_is_full_after_some_files(tmp_path: Path, name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is: while the file is written, or once it is brought to the disk."""
    action = WRITERS[name]
    lake = lake_in(tmp_path, action)
    saved, advice = lake.saved(), {"ENOSPC": "Make room", "EDQUOT": "Make room"}.get(code, "write permission")
    refused = 0
    for after in ALLOWED:
        lake.restore(saved)
        left = iter(range(after))

        def full(*args: Any, left: Iterator[int] = left, **kwargs: Any) -> IO[Any]:
            if next(left, None) is None:
                raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)), str(args[0]))
            return open(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(index_store, "open", full, raising=False)
            try:
                action.do(lake.open())
            except SecateurError as error:
                refused += 1
                check_refused(lake, saved, error, advice)
        check_leftovers(lake)
    assert refused >= 2


def limited(root: str, name: str, size: int, queue: Any) -> None:
    """An action in a process that may write files of so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    queue.put(outcome(root, name))


def outcome(root: str, name: str) -> SecateurError | None:
    lake = Lake(pafs.LocalFileSystem(), root)
    try:
        ACTIONS[name].do(lake.open())
    except SecateurError as error:
        return error
    return None


@takes_seconds
@pytest.mark.parametrize("name", WRITERS)
def test_files_may_be_limited_in_size(tmp_path: Path, name: str) -> None:
    lake = lake_in(tmp_path, WRITERS[name])
    saved = lake.saved()
    refused = 0
    for size in SIZES:
        lake.restore(saved)
        queue = PROCESSES.Queue()
        process = PROCESSES.Process(target=limited, args=(lake.root, name, max(size, 200), queue))
        process.start()
        error = queue.get(timeout=60)
        process.join(60)
        if error is not None:
            refused += 1
            check_refused(lake, saved, error, "ulimit -f")
        assert (error is None) or size < 1 << 20
        check_leftovers(lake)
    assert refused >= 2


def as_nobody(root: str, name: str, queue: Any) -> None:
    """An action of a user who owns nothing, once all is imported that it needs: that user may not read it."""
    if is_root:
        with TemporaryDirectory() as aside:
            ACTIONS[name].do(lake_in(Path(aside), ACTIONS[name]).open())
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    queue.put(outcome(root, name))


@pytest.mark.parametrize(
    ("name", "closed"), sweep(product(["rebuild", "refresh", "vacuum", "drop"], ["index", "segments", "snapshots"]), 5)
)
def test_directories_without_permission(place: Path, name: str, closed: str) -> None:
    lake = lake_in(place, ACTIONS[name])
    saved, numbers = lake.saved(), snapshot_numbers(lake.store)
    index = Path(lake.store.root)
    folders = [index, *(path for path in index.iterdir() if path.is_dir())]
    for folder in folders:
        folder.chmod(0o777)
    for folder in folders if closed == "index" else [index / closed]:
        folder.chmod(0o555)
    queue = PROCESSES.Queue()
    process = PROCESSES.Process(target=as_nobody, args=(lake.root, name, queue))
    process.start()
    error = queue.get(timeout=60)
    process.join(60)
    for folder in folders:
        folder.chmod(0o777)
    check_refused(lake, {n: saved[n] for n in lake.index_files() & saved.keys()}, error, "write permission")
    is_dropped = (name, closed) == ("drop", "segments")  # of a drop the snapshots go first
    assert snapshot_numbers(lake.store)[-1:] == ([] if is_dropped else numbers[-1:])
    check_leftovers(lake)


def test_a_file_is_where_the_index_should_be(tmp_path: Path) -> None:
    lake = lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), nothing)
    Path(lake.store.root).write_text("not an index")
    with pytest.raises(IndexNotWritable, match=r"cannot write the index file .*_secateur/segments"):
        build(lake.open())
    check_index(lake)


@takes_seconds
def test_ctrl_c_in_the_middle_of_a_command(tmp_path: Path) -> None:
    lake = lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), changed)
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "refresh", lake.root], env=env, stderr=subprocess.PIPE, text=True
    )
    _, message = command.communicate(timeout=120)
    assert command.returncode == 130
    assert message.endswith("secateur: interrupted: nothing was published, the index is as it was\n")
    assert snapshot_numbers(lake.store) == [1]
    check_index(lake)
    check_leftovers(lake)


# The command, of which the process is sent SIGINT as its first segment is written; its tasks are done in the process.
INTERRUPTED = """
import os, signal, sys
from secateur.cli import main
from secateur.io.storage.index_store import FileStore
put = FileStore.put
def interrupted(self, name, data):
    put(self, name, data)
    if name.endswith(".segment"):
        os.kill(os.getpid(), signal.SIGINT)
FileStore.put = interrupted
main()
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small filesystem in memory, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320k", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no filesystem can be mounted: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@takes_seconds
def test_a_disk_is_really_full(small_disk: Path, tmp_path: Path) -> None:
    """The first build has room; of those that follow one has none until a vacuum makes some."""
    lake = lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), changed)
    shutil.rmtree(lake.store.root)
    (small_disk / "index").mkdir()
    Path(lake.store.root).symlink_to(small_disk / "index")
    refused: list[IndexNotWritable] = []
    for _ in range(12):
        try:
            build(lake.open())
        except IndexNotWritable as error:
            refused.append(error)
            assert "Make room" in str(error)
            check_index(lake)
            sec.vacuum_index(lake.open(), grace_seconds=0)
            build(lake.open())
        check_index(lake)
    assert refused
    check_leftovers(lake)
