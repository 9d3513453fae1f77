"""A forked child plans and reads: whatever threads and locks its parent had."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from tests.support.profiles import takes_seconds
from tests.support.s3_server import REGION, S3Server

FILES, ROWS = 12, 10
SOURCES = Path(sec.__file__).parent

BEGIN = """
    import multiprocessing, os, signal, threading, time
    import secateur as sec
    from secateur import forks
    WHERE = "id >= 5 AND v < 1000 AND w = 3"
    def rows(table, where=WHERE):
        plan = sec.prune(table, where, strict=True)
        return plan.count(), plan.to_arrow(columns=["id"]).num_rows, sum(b.num_rows for b in plan.to_batches())
    def reads(opened):
        count = {files} * {rows} // 10 - 1  # not 3
        fresh = sec.open_table({root!r})
        return all(
            rows(each, WHERE) == (count, count, count) and rows(each, "v = 17 OR id = 3")[0] == 2
            for each in (opened, fresh)
        ) and sec.verify_index(fresh).sound
    def in_child(work):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if work() else 1)
        assert os.waitpid(child, 0)[1] == 0
    opened = sec.open_table({root!r})
"""

READ_PATHS = {
    "after a read": """
        assert rows(opened)[0]
        in_child(lambda: reads(opened))
    """,
    "of a child": """
        assert rows(opened)[0]
        def child():
            in_child(lambda: reads(opened))
            return reads(opened)
        in_child(child)
    """,
    "before a read": "in_child(lambda: reads(opened))",
    "while every lock is held": """
        assert rows(opened)[0]
        held = [getattr(owner, name) for (_, name), owner in list(forks._owners.items())]
        assert len(held) > 3
        held += [each.lock for each in forks._cached_properties() if hasattr(each, "lock")]
        for lock in held:
            lock.acquire()
        in_child(lambda: reads(opened))
    """,
    "while the lock of a module is held": """
        from secateur.io.spark.planner import compiled
        with compiled._lock:
            in_child(lambda: compiled._lock.acquire(timeout=30) and reads(opened))
    """,
    "while threads read": """
        assert rows(opened)[0]  # and all modules are imported: Python's own locks of these are not renewed
        done = threading.Event()
        def work():
            while not done.is_set():
                rows(sec.open_table({root!r}))
                rows(opened)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            in_child(lambda: reads(opened))
        done.set()
        for thread in threads:
            thread.join()
    """,
    "by multiprocessing": """
        assert rows(opened)[0]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map_async(rows, [opened] * 4).get(60) == [rows(opened)] * 4
    """,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many segments, 24, that several threads decode what is read of them."""
    lake = tmp_path_factory.mktemp("forks") / "lake"
    lake.mkdir()
    for i in range(FILES):
        ids = np.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"id": ids, "v": ids, "w": ids % 10})
        pq.write_table(table, lake / f"{i:02d}.parquet", row_group_size=5)
    sec.build_index(sec.open_table(str(lake)), bloom=["v"], segment_blocks=1)
    return lake


def run(code: str, root: str) -> None:
    """Run it in a process of its own. A child that waits for ever is stopped by its alarm, and fails it."""
    filled = (textwrap.dedent(BEGIN) + textwrap.dedent(code)).format(root=root, files=FILES, rows=ROWS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", filled], check=True, env=environment, timeout=150)


@takes_seconds
@pytest.mark.parametrize("read_path", READ_PATHS)
def test_a_forked_child_reads(root: Path, read_path: str) -> None:
    run(READ_PATHS[read_path], str(root))


def test_no_lock_and_no_pool_is_kept_that_a_child_would_wait_for() -> None:
    """Locks of objects come from `forks`; the others are renewed where they stand, or guard what no child uses."""
    modules_with_locks = {"forks.py", "pruning/reporters.py", "pruning/predicate/recursion.py"}
    having = {p for p in SOURCES.rglob("*.py") if "threading.Lock()" in p.read_text(encoding="utf-8")}
    assert {path.relative_to(SOURCES).as_posix() for path in having} == modules_with_locks


def test_an_object_that_was_open_before_a_fork_says_so(s3: S3Server) -> None:
    code = f"""
        import os, signal
        import pyarrow.fs as pafs
        from secateur.io.storage.object_file import open_file
        s3 = pafs.S3FileSystem(endpoint_override={s3.endpoint!r}, region={REGION!r})
        with s3.open_output_stream("{s3.bucket}/forked") as file:
            file.write(b"data")
        opened = open_file(s3, "{s3.bucket}/forked")
        assert opened.read_at(2, 0) == b"da"
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                open_file(s3, "{s3.bucket}/forked").read() == b"data" or os._exit(1)
                opened._source.end = (0, b"")
                opened.read_at(2, 0)
            except OSError as error:
                os._exit(0 if "before this process was forked" in str(error) else 2)
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env=environment, timeout=120)
