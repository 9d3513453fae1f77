"""Answer for blocks of a plan by the values that its index keeps in order, in the place of reading them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from secateur.errors import IndexFault
from secateur.io.scan.live_rows import rows_alive
from secateur.io.scan.opened_table import OpenedTable
from secateur.pruning.aggregates.answers import COUNT, Aggregate, Result
from secateur.pruning.aggregates.in_order import Doubts
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.stages.survivors import Survivors

_log = logging.getLogger("secateur")
ROWS = Aggregate(COUNT, None, "")


class CountedPlan(Protocol):
    """The parts of a plan that are needed to answer for its blocks."""

    @property
    def opened(self) -> OpenedTable: ...
    @property
    def predicate(self) -> Predicate: ...
    @property
    def residuals(self) -> Residuals: ...
    @property
    def survivors(self) -> Survivors: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def is_part(self) -> bool: ...
    @property
    def complete_blocks(self) -> np.ndarray: ...


def answered_in_order(
    plan: CountedPlan, asked: Sequence[Aggregate], wanted: np.ndarray, most_bytes: float = np.inf
) -> tuple[np.ndarray, list[Result]]:
    """Return those of some blocks, by ascending positions, that need not be read, and the aggregates over them.

    Deleted positions are read of files that have some, unless their delete files have more than so many bytes.
    An index that cannot be read, or contradicts itself, answers for none: a plan needs no index once it is made.
    """
    answer: tuple[np.ndarray, list[Result]] = (np.zeros(0, np.int64), [])
    catalog, touched, blocks = plan.opened.catalog, plan.opened.listing.touched, plan.survivors.blocks
    if not catalog.keeps_order or not len(wanted):
        return answer
    alive = rows_alive(plan, wanted, most_bytes)
    is_all = touched is None and plan.limit is None and not plan.is_part
    doubts = Doubts(plan.predicate, plan.residuals, blocks, alive, plan.complete_blocks, is_all, catalog)
    reasons: list[str] = []
    try:
        answer = doubts.answered(asked, wanted)
    except IndexFault as fault:
        reasons.append(str(fault))
    for reason in (*reasons, *catalog.faults.drain()):
        _log.warning("%s: rows are read, and not counted by the index: %s", plan.opened.table.location, reason)
    return answer
