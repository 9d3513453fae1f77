"""Reporters: functions that receive the report of every plan; and listeners to reads that went to their end."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from secateur.pruning.report import Report

Reporter = Callable[[Report], object]

_log = logging.getLogger("secateur")
_lock = threading.Lock()
_reporters: tuple[Reporter, ...] = ()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # the lock may be held by a thread that the child does not have


def add_reporter(reporter: Reporter) -> None:
    """Register a function that is called with the report of every plan of this process, in the planning thread.

    The report has the table, the predicate, every stage, and in ``report.metrics()`` Iceberg's scan metrics. An
    exception of the function is logged and fails no query; its run time delays the query. A function that is added
    twice is called once.
    """
    global _reporters
    with _lock:
        if reporter not in _reporters:
            _reporters = (*_reporters, reporter)


def remove_reporter(reporter: Reporter) -> None:
    """Unregister a function; it need not be registered."""
    global _reporters
    with _lock:
        _reporters = tuple(other for other in _reporters if other != reporter)


def notify(report: Report) -> None:
    """Call every reporter."""
    for reporter in _reporters:
        try:
            reporter(report)
        except Exception:
            _log.exception("the reporter %r failed", reporter)


@dataclass(frozen=True)
class Matches:
    """The blocks that a plan left and their bytes, and those among them that held a match: an ideal index leaves these.

    Bytes are those of whole blocks, as in the plan's report.
    """

    blocks: int
    bytes: int
    matched_blocks: int
    matched_bytes: int


MatchListener = Callable[[Report, Callable[[], Matches | None]], object]
# gets the report of a plan that was read to its end, and how to learn what held a match: None if that is not known

_listeners: list[MatchListener] = []


def listen_to_reads(listener: MatchListener) -> None:
    """Call a function after every read to the end of a plan in this process; it is called once if given twice."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell_of_read(report: Report, measure: Callable[[], Matches | None]) -> None:
    """Call every listener, which measures only if it wants to know."""
    for listener in _listeners:
        listener(report, measure)
