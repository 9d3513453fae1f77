"""Refresh indexes when their tables change: again and again, or once."""

from __future__ import annotations

import datetime as dt
import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secateur.errors import InvalidOption, SecateurError
from secateur.io.storage.redaction import redacted_location, without_secrets
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.refresh import Refreshed, refresh_index
from secateur.maintain.vacuum import DEFAULT_GRACE_SECONDS, vacuum_index
from secateur.pruning.report import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source

INTERVAL = 60.0  # seconds between two looks at a table
JITTER = 0.1  # share of a wait by which it is longer or shorter, so that many watchers do not list at once
MOST_WAIT = 3600.0  # seconds until a table is tried again, however often its refresh has failed
VACUUM_EVERY = 600.0  # seconds at least between two vacuums of a table
_log = logging.getLogger("secateur")


@dataclass(frozen=True)
class Look:
    """The result of one look at a table: what had changed, and what was done."""

    table: str  # its location
    at: dt.datetime
    seconds: float
    refreshed: Refreshed | None = None  # None where the table has not changed, or the refresh failed
    files_vacuumed: int = 0  # index files removed, which no snapshot of the last hour needs
    error: Exception | None = None  # why the refresh, or the vacuum after it, failed
    next_seconds: float | None = None  # until the table is looked at again; None if it is not

    @property
    def is_unchanged(self) -> bool:
        """Whether there was nothing to do."""
        return self.error is None and (self.refreshed is None or self.refreshed.is_current)


def watch(
    *tables: Table | Source,
    interval: float = INTERVAL,
    once: bool = False,
    vacuum: bool = True,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Look]:
    """Refresh the indexes of tables whenever the tables change, and yield what was done.

    A table of Iceberg or Delta has changed if its version has, a directory if its listing has. The first look refreshes
    in any case. A refresh that fails is yielded with its error, and tried again after the interval, then after twice as
    long, and so on up to an hour; it does not end the loop. Nothing happens between two steps of the iterator: if the
    program has other work, iterate in a thread.

    Parameters
    ----------
    interval
        Seconds between two looks at a table, give or take a tenth.
    once
        Look at every table once: for cron and for schedulers.
    vacuum
        After a refresh, remove the index files that no snapshot of the last hour needs.
    spark
        Distributes the refreshes over the executors.
    stop
        Ends the loop when it is set, at once while it waits.

    Yields
    ------
    Look
        One for each look that found a change, or failed; with `once` one per table.

    Raises
    ------
    InvalidOption
        For an interval that is not positive, or no table.
    """
    if not tables:
        raise InvalidOption("there is no table to watch")
    if not interval > 0:
        raise InvalidOption(f"interval is {interval}; give the seconds between two looks, more than 0")
    watched = [Watched(table, spark, interval, vacuum) for table in tables]
    return _looks_once(watched) if once else _looks(watched, stop or threading.Event())


def _looks_once(watched: Sequence[Watched]) -> Iterator[Look]:
    for table in watched:
        yield table.look(again=False)


def _looks(watched: Sequence[Watched], stop: threading.Event) -> Iterator[Look]:
    while not stop.is_set():
        table = min(watched, key=lambda table: table.due)
        if not stop.wait(max(0.0, table.due - time.monotonic())):
            look = table.look(again=True)
            if not look.is_unchanged:
                yield look


class Watched:
    """A table that is looked at again and again."""

    def __init__(self, source: Table | Source, spark: SparkSession | None, interval: float, vacuum: bool) -> None:
        self.source, self.spark, self.interval, self.vacuum = source, spark, interval, vacuum
        self.due = 0.0  # by the monotonic clock
        self.seen: int | None = None  # the version or listing that the index was last refreshed for
        self.failures = 0
        self.vacuumed = -VACUUM_EVERY

    def look(self, *, again: bool) -> Look:
        """Refresh the index if the table has changed; whatever fails is in the result."""
        at, begun = dt.datetime.now(dt.UTC), time.monotonic()
        refreshed, removed, error = None, 0, None
        try:
            table = as_table(self.source)
            refreshed = self._refreshed(table)
            if refreshed is not None and not refreshed.is_current:
                removed = self._vacuumed(table)
        except Exception as raised:  # if the watcher ended unnoticed, nobody would refresh the index
            error = raised
            if not isinstance(raised, SecateurError | OSError):
                _log.exception("refreshing %s failed", _redacted(self.source))
        self.failures = 0 if error is None else self.failures + 1
        wait = self._wait() if again else None
        self.due = time.monotonic() + (wait or 0.0)
        return Look(_redacted(self.source), at, time.monotonic() - begun, refreshed, removed, error, wait)

    def _refreshed(self, table: Table) -> Refreshed | None:
        """Refresh the index; None if the table has not changed. Raises what a refresh raises."""
        snapshot = table.snapshot(fresh=True)
        now = snapshot.fresh_listing(dt.UTC).id if snapshot.id is None else snapshot.id
        if now == self.seen:
            return None
        done = refresh_index(table, spark=self.spark)
        has_all = not any(covered.files_without_entry for covered in done.index.coverage)
        self.seen = now if has_all else None  # files too young to be indexed wait for the next look
        return done

    def _vacuumed(self, table: Table) -> int:
        if not self.vacuum or time.monotonic() - self.vacuumed < VACUUM_EVERY:
            return 0
        self.vacuumed = time.monotonic()
        return len(vacuum_index(table, grace_seconds=DEFAULT_GRACE_SECONDS))

    def _wait(self) -> float:
        """Return the seconds until the next look."""
        wait = self.interval * 2 ** min(max(0, self.failures - 1), 20)
        return min(wait, max(MOST_WAIT, self.interval)) * random.uniform(1 - JITTER, 1 + JITTER)


def _redacted(source: Table | Source) -> str:
    location = getattr(source, "location", source)
    return redacted_location(str(location))


def line_of(look: Look) -> str:
    """Return one line that says what a look found and did."""
    match look:
        case Look(refreshed=None, error=None):
            text = "unchanged"
        case Look(refreshed=None):
            text = f"failed: {without_secrets(str(look.error)) or type(look.error).__name__}"
        case Look(refreshed=Refreshed() as done):
            text = (
                f"{done.changes() or 'up to date'}; snapshot {done.index.number} of {counted(done.index.files, 'file')}"
            )
            text += f"; {look.files_vacuumed:,} old index files removed" if look.files_vacuumed else ""
            text += "" if look.error is None else f"; vacuum failed: {without_secrets(str(look.error))}"
    again = f"; tried again in {look.next_seconds:.0f} s" if look.error is not None and look.next_seconds else ""
    return f"{look.at:%Y-%m-%dT%H:%M:%SZ} {look.table}: {text} ({look.seconds:.1f} s){again}"
