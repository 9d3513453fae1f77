"""Start Spark quietly for a command, with a progress bar."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from typing import IO, TYPE_CHECKING

import click

from secateur.cli.output import is_terminal, say
from secateur.errors import SecateurError
from secateur.index.build.build import OnProgress
from secateur.pruning.report import human_bytes
from secateur.session import session_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.table import Table

LINE_SECONDS = 5.0  # between lines of progress where there is no terminal
IN_PROCESS_BYTES = 4 << 30  # threads index a table of up to this size within a minute or two


@dataclass(frozen=True)
class Cluster:
    """Where Spark runs, as named on the command line; by default in this process, or as spark-submit says."""

    master: str | None = None
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def session(self) -> SparkSession:
        """Return the running session, or start one."""
        return session_on(self.master, self.remote, self.settings)


def settings_of(conf: Sequence[str]) -> Mapping[str, str]:
    """Parse ``KEY=VALUE`` settings. Raises BadParameter for a setting without ``=``."""
    for setting in conf:
        if "=" not in setting:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
    return dict(setting.split("=", 1) for setting in conf)


@contextmanager
def spark_for_build(table: Table, cluster: Cluster | None, verbose: bool) -> Iterator[SparkSession | None]:
    """Yield a session if one is wanted or the table is large; None if this process builds as fast."""
    if cluster is not None or int(table.snapshot().fresh_listing(UTC).size.sum()) > IN_PROCESS_BYTES:
        with spark_session(cluster, verbose) as spark:
            yield spark
    else:
        yield None


@contextmanager
def spark_session(cluster: Cluster | None = None, verbose: bool = False) -> Iterator[SparkSession]:
    """Yield the running session, or start one, by default in local mode.

    Unless `verbose`, the JVM's output goes to a file, which is shown if an unexpected error occurs.
    """
    running = _running_session()
    start = (cluster or Cluster()).session
    if running is not None or verbose:
        yield running or start()
        return
    if is_terminal(sys.stderr):
        say("starting Spark", "dim")
    with tempfile.TemporaryFile() as log:
        try:
            with _stderr_into(log):
                session = start()
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
    """Yield a build's callbacks `on_survey` and `on_progress`: a bar on a terminal, elsewhere a line now and then."""
    if not is_terminal(sys.stderr):
        lines = ProgressLines(title)
        yield lines.on_survey, lines.on_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    times = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(12), TextColumn("{task.fields[done]}"), *times)
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

        def on_step(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], total=total, completed=done)

        yield on_step


def _done(done: tuple[int, int, int], totals: tuple[int, int, int]) -> str:
    return f"{done[0]:,}/{totals[0]:,} files  {human_bytes(done[2])}/{human_bytes(totals[2])}"


@dataclass
class ProgressLines:
    """Prints a build's progress to stderr, a line every few seconds, with an estimate of the time left."""

    title: str
    totals: tuple[int, int, int] = (0, 0, 0)
    begun: float = 0.0
    due: float = 0.0

    def on_survey(self, files: int, rows: int, size: int) -> None:
        """Take the totals."""
        self.totals, self.begun = (files, rows, size), time.monotonic()
        self.due = self.begun + LINE_SECONDS

    def on_progress(self, files: int, rows: int, size: int) -> None:
        """Print the progress, if a line is due."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + LINE_SECONDS
        left = (now - self.begun) / size * (self.totals[2] - size) if size else None
        say(
            f"{self.title}: {_done((files, rows, size), self.totals)}"
            + ("" if left is None else f"  about {left:.0f} s left")
        )
