"""Run work in processes that are killed: each counts its steps on index files, and dies at a chosen one.

A step is an operation of the store, or within it the opening, linking, renaming or removal of a file.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import forkserver, get_context
from typing import Any
from unittest.mock import patch

import pyarrow.fs as pafs

from secateur.errors import SecateurError
from secateur.io.storage.index_location import INDEX_DIRECTORY
from tests.support.stores.crash_lake import ACTIONS, Lake, build, drop, rebuild, refresh, vacuum
from tests.support.stores.faulty_store import FaultyStore, Script

EVENTS = ("open", "os.link", "os.rename", "os.remove")
PROCESSES = get_context("forkserver")
# All that an action imports, also where it is first called; pandas by pyarrow: 0.3 s of every process otherwise.
PRELOADED = [
    "tests.support.programs.killed",
    "secateur.index.build.spark_tasks",
    "secateur.io.parquet.parquet_file",
    "secateur.maintain.build",
    "secateur.maintain.optimize",
    "secateur.maintain.refresh",
    "sqlglot",
    "pyarrow.pandas_compat",
    "pandas",
]


def start_server() -> None:
    """Start the process that processes are forked from, with all modules imported."""
    PROCESSES.set_forkserver_preload(PRELOADED)
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()


@dataclass
class Steps(Script):
    """Counts, and kills this process at one step."""

    count: int = 0

    def take(self) -> None:
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


@dataclass(frozen=True)
class DeadlyStore(FaultyStore):
    script: Steps = field(default_factory=Steps, compare=False)

    def _run(self, what: str, work: Callable[[], Any], error: Exception, *_: object) -> Any:
        if not what.startswith(("read", "size", "list")):
            self.script.take()
        return work()


def work(root: str, name: str, at: int) -> int:
    """Do an action until the step with this number; the number of steps where there are fewer."""
    steps = Steps(at)

    def listen(event: str, args: tuple[Any, ...]) -> None:
        if event in EVENTS and INDEX_DIRECTORY in str(args[0]) and not (event == "open" and args[1] in (None, "r")):
            steps.take()

    lake = Lake(pafs.LocalFileSystem(), root)
    table = lake.open(DeadlyStore(lake.filesystem, lake.store.root, steps))
    sys.addaudithook(listen)
    ACTIONS[name].do(table)
    return steps.count


def work_on(root: str) -> None:
    """Build, refresh, vacuum and drop again and again, until somebody kills this process."""
    while True:
        for do in (build, refresh, rebuild, vacuum, refresh, drop):
            try:
                do(Lake(pafs.LocalFileSystem(), root).open())
            except SecateurError:  # as others do the same at the same time
                continue


def _told(queue: Any, root: str, name: str, at: int) -> None:
    queue.put(work(root, name, at))


def steps_of(root: str, name: str) -> int:
    """How many steps an action takes."""
    queue = PROCESSES.Queue()
    process = PROCESSES.Process(target=_told, args=(queue, root, name, -1))
    process.start()
    count: int = queue.get(timeout=60)
    process.join(60)
    return count


def killed_at(root: str, name: str, at: int) -> int | None:
    """The exit code of a process that dies at a step: -9."""
    process = PROCESSES.Process(target=work, args=(root, name, at))
    process.start()
    process.join(60)
    return process.exitcode
