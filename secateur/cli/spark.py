"""Start Spark quietly for a command, with a progress bar."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from typing import IO, TYPE_CHECKING

from secateur.cli.output import is_terminal, say
from secateur.errors import SecateurError
from secateur.index.build.build import OnProgress
from secateur.pruning.report import human_bytes
from secateur.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.table import Table

IN_PROCESS_BYTES = 4 << 30  # threads index a table of up to this size within a minute or two


@contextmanager
def spark_for_build(table: Table, wanted: bool, verbose: bool) -> Iterator[SparkSession | None]:
    """Yield a session if one is wanted or the table is large; None if this process builds as fast."""
    if wanted or int(table.snapshot().fresh_listing(UTC).size.sum()) > IN_PROCESS_BYTES:
        with spark_session(verbose) as spark:
            yield spark
    else:
        yield None


@contextmanager
def spark_session(verbose: bool, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Yield the running session, or start one in local mode, with some more settings.

    Unless `verbose`, the JVM's output goes to a file, which is shown if an unexpected error occurs.
    """
    running = _running_session()
    if running is not None or verbose:
        yield running or local_session(**(settings or {}))
        return
    if is_terminal(sys.stderr):
        say("starting Spark", "dim")
    with tempfile.TemporaryFile() as log:
        try:
            with _stderr_into(log):
                session = local_session(**(settings or {}))
            yield session
        except (SecateurError, KeyboardInterrupt):
            raise
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise


def _running_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def _stderr_into(log: IO[bytes]) -> Iterator[None]:
    """Make child processes started inside inherit a file as their stderr, for as long as they run."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def build_progress(title: str) -> Iterator[tuple[OnProgress | None, OnProgress | None]]:
    """Yield a build's callbacks `on_survey` and `on_progress`, which draw a bar on a terminal."""
    if not is_terminal(sys.stderr):
        yield None, None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, done="reading footers")
        totals = (0, 0, 0)

        def on_survey(files: int, rows: int, size: int) -> None:
            nonlocal totals
            totals = (files, rows, size)
            progress.update(task, total=max(size, 1), completed=0, done=_done((0, 0, 0), totals))

        def on_progress(files: int, rows: int, size: int) -> None:
            progress.update(task, completed=size, done=_done((files, rows, size), totals))
            if (files, rows, size) == totals:
                progress.update(task, total=None, done=f"{files:,} files read, putting their filters together")

        yield on_survey, on_progress


@contextmanager
def step_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback for step, amount done and total, which draws a bar per step on a terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def on_step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], total=total, completed=done)

        yield on_step


def _done(done: tuple[int, int, int], totals: tuple[int, int, int]) -> str:
    files, rows, size = (f"{part:,}/{whole:,}" for part, whole in zip(done, totals, strict=True))
    size = f"{human_bytes(done[2])}/{human_bytes(totals[2])}"
    return f"{files} files  {rows} rows  {size}"
