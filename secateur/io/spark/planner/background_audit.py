"""Audits of plans that Spark was given, off the way of its queries: in one thread, one plan after the other."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from secateur.errors import AuditFailed
from secateur.forks import lock_for
from secateur.io.scan.audit import audited
from secateur.io.scan.planned_scan import PlannedScan, Settings
from secateur.pruning.predicate.nodes import Predicate

_log = logging.getLogger("secateur")

MOST_WAITING = 16  # a query does not wait for audits: with more of them, its plan is not audited


@dataclass(frozen=True)
class PlanCheck:
    """A plan to audit, and what is done with the audited one."""

    scan: PlannedScan
    predicate: Predicate
    settings: Settings
    share: float  # of the pruned blocks
    done: Callable[[PlannedScan], None]


@dataclass
class BackgroundAudit:
    """Audits plans, and keeps which tables have failed: their index loses rows."""

    failed: dict[str, str] = field(default_factory=dict)  # location -> the row that was lost
    _waiting: queue.Queue[PlanCheck] = field(default_factory=lambda: queue.Queue(MOST_WAITING))
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._lock = lock_for(self, "_lock")

    def submit(self, check: PlanCheck) -> None:
        """Audit a plan soon, unless many others wait."""
        try:
            self._waiting.put_nowait(check)
        except queue.Full:
            _log.debug("%s: too many plans wait for their audit", check.scan.opened.table.location)
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="secateur-audit", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return when all plans submitted so far are audited."""
        self._waiting.join()

    def _work(self) -> None:
        while True:
            check = self._waiting.get()
            location = check.scan.opened.table.location
            try:
                bound = check.settings.bind(check.predicate, check.scan.opened.binding_schema)
                check.done(audited(check.scan, bound, check.share))
            except AuditFailed as error:
                self.failed[location] = str(error)
                _log.error("%s is read unpruned from now on: %s", location, error)
            except Exception as error:
                _log.warning("%s: an audit could not be done: %s", location, error)
            finally:
                self._waiting.task_done()


def share_of(setting: str) -> float:
    """Return the share of pruned blocks that a session has audited: 0 unless it is a number above 0, and at most 1."""
    try:
        share = float(setting or 0)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        _log.warning("secateur.audit is %r; it is the share of pruned blocks to audit, from 0 to 1", setting)
        return 0.0
    return share
