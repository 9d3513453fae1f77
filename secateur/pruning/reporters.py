"""Who is told of every plan: functions that take its report."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from secateur.pruning.report import Report

Reporter = Callable[[Report], object]

_log = logging.getLogger("secateur")
_lock = threading.Lock()
_reporters: tuple[Reporter, ...] = ()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # of a thread that the child does not have


def add_reporter(reporter: Reporter) -> None:
    """Have a function called with the report of every plan that this process makes, once, in the thread that planned.

    The report tells the table, the predicate, every stage, and by ``report.metrics()`` the metrics that Iceberg reports
    of a scan. What the function raises is logged, and fails no query; what time it takes, a query waits. One that is
    added twice is called once.
    """
    global _reporters
    with _lock:
        if reporter not in _reporters:
            _reporters = (*_reporters, reporter)


def remove_reporter(reporter: Reporter) -> None:
    """Have a function called no more; one that was not added is fine."""
    global _reporters
    with _lock:
        _reporters = tuple(each for each in _reporters if each != reporter)


def tell(report: Report) -> None:
    """Call every reporter."""
    for reporter in _reporters:
        try:
            reporter(report)
        except Exception:
            _log.exception("the reporter %r failed", reporter)
