"""Plans of this process, kept for when the same is asked again of the same files.

A plan is used again only where all that it follows from is the same: the text and the settings, the listing and the
index snapshot as objects, which are immutable, the schema, and what earlier reads found. So no plan outlives a state of
its table. A degraded plan is not kept, nor one whose predicate depends on the time or on
the session beyond its zone, mode and case: what Spark evaluates, and constants that it computed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from secateur.forks import lock_for
from secateur.io.scan.kept.verdict_memory import MEMORY, is_sharing, most_bytes
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.storage.cache_directory import bytes_set
from secateur.pruning.plan import ScanPlan
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.stages.survivors import LeftSegments
from secateur.pruning.verdicts import can_be_remembered

BYTES_VARIABLE = "SECATEUR_PLAN_BYTES"
MOST_BYTES = 64 << 20  # of the plans of one table
SHARE = 4  # a plan takes at most one part in so many of them
OF_PLAN, OF_BLOCK, OF_TABLE = 16 << 10, 64, 12  # bytes in memory, about: of a plan, and of a block that is left or read

Plan = TypeVar("Plan", bound=ScanPlan)


@dataclass(frozen=True)
class PlanRequest:
    """What was asked: the predicate, and all of its text and of the settings that a plan depends on."""

    predicate: Predicate  # as parsed; equal texts may be parsed twice, and equal nodes may print differently
    key: Hashable
    uses_verdicts: bool


@dataclass(frozen=True)
class _Kept(Generic[Plan]):
    plan: Plan
    opened: OpenedTable
    predicate: Predicate
    nbytes: int


class PlanMemory(Generic[Plan]):
    """The plans of one table, the one used last at the end; threads share it."""

    def __init__(self) -> None:
        self.nbytes = 0  # in memory, about
        self._plans: OrderedDict[Hashable, _Kept[Plan]] = OrderedDict()
        self._lock = lock_for(self, "_lock")

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, key: Hashable, predicate: Predicate, opened: OpenedTable) -> Plan | None:
        """Return the plan that was made when the same was asked of a table in the same state; None if there is none."""
        with self._lock:
            kept = self._plans.get(key)
            if kept is None:
                return None
            if not (kept.predicate is predicate and _is_same(kept.opened, opened)):
                self._forget(key)
                return None
            self._plans.move_to_end(key)
            return kept.plan

    def keep(self, key: Hashable, predicate: Predicate, opened: OpenedTable, plan: Plan) -> None:
        """Keep a plan if it will be the same when it is asked for again, and forget those of other states."""
        nbytes, most = _bytes_of(plan, opened), most_plan_bytes()
        if opened.state is None or plan.report.degraded or nbytes > most // SHARE:
            return
        if not can_be_remembered(plan.predicate):
            return
        with self._lock:
            if self._plans and not _is_same(next(iter(self._plans.values())).opened, opened):
                self._forget_all()  # for all that are kept are of one state
            if key in self._plans:
                self._forget(key)
            self._plans[key] = _Kept(plan, opened, predicate, nbytes)
            self.nbytes += nbytes
            while self.nbytes > most:
                self._forget(next(iter(self._plans)))

    def _forget(self, key: Hashable) -> None:
        self.nbytes -= self._plans.pop(key).nbytes

    def _forget_all(self) -> None:
        self._plans.clear()
        self.nbytes = 0


def most_plan_bytes() -> int:
    """Return how many bytes the plans of a table may take: ``SECATEUR_PLAN_BYTES``, else MOST_BYTES; 0: none are kept.

    Raises ValueError if the variable is not a number of bytes.
    """
    return bytes_set(BYTES_VARIABLE, MOST_BYTES)


def can_keep_plans() -> bool:
    """Whether plans are kept: not where they rest on verdicts on disk, which come from other processes too."""
    return most_plan_bytes() > 0 and not is_sharing()


def key_of(asked: PlanRequest, opened: OpenedTable) -> Hashable:
    """Return what is compared at once: what was asked, and what earlier reads have found."""
    if not asked.uses_verdicts:
        return asked.key, None, None
    return asked.key, most_bytes(), MEMORY.version(opened.table.location)


def _is_same(before: OpenedTable, now: OpenedTable) -> bool:
    """Whether a table is in the same state; its files and its index are immutable objects."""
    return before.table is now.table and before.state == now.state and before.schema.equals(now.schema, True)


def _bytes_of(plan: ScanPlan, opened: OpenedTable) -> int:
    """Return the bytes of a plan, about, with those of the block tables that it read, which plans may share."""
    nbytes = OF_PLAN + OF_BLOCK * len(plan.survivors.blocks)
    nbytes += OF_TABLE * sum(len(resident.table) for resident in opened.catalog.memory.tables.values())
    for left in plan.trail:
        if isinstance(left, LeftSegments):
            nbytes += left.segments.nbytes + (0 if left.files is None else left.files.nbytes)
        else:
            nbytes += OF_BLOCK * len(left.blocks)
    return nbytes
