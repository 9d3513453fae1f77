"""One scan measured: all blocks, those that pruning leaves, and those that hold a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import secateur as sec
from benchmarks.rates.copies import Copy, sums
from benchmarks.rates.questions import Question
from benchmarks.rates.skipping import formats_own
from benchmarks.rates.truth import Rows
from secateur.io.scan.first_rows import FirstRows
from secateur.io.tables.table import Table
from secateur.scan import Scan

ZONE_MAPS, FILTERS, JOINS, LIMIT, TOP_N = TECHNIQUES = ("zone maps", "filters", "joins", "limit", "top-n")
GOAL = 1.2  # blocks kept over those that hold a match


@dataclass(frozen=True)
class Amount:
    """Some blocks, their rows and bytes."""

    blocks: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Measured:
    """One scan: all of its table, what pruning keeps, what holds a match, and what others keep."""

    table: str  # workload, layout and format
    name: str
    text: str
    technique: str
    served: str  # the structures that serve it; empty: none does, and there is no goal
    all: Amount
    kept: Amount
    ideal: Amount
    pruned: Mapping[str, int]  # blocks, by technique
    others: Mapping[str, int] = field(default_factory=dict)  # blocks that others keep
    apart: int = 0  # blocks kept in vain in which every condition is met, each by another row

    @property
    def label(self) -> str:
        """The scan as one line."""
        return f"{self.name}: {self.text}"

    @property
    def over(self) -> float:
        """Blocks kept over the ideal; where nothing matches, as if one block did."""
        return self.kept.blocks / max(1, self.ideal.blocks)

    @property
    def misses(self) -> bool:
        """Whether more is kept than the goal allows. One block is never too many."""
        return bool(self.served) and self.kept.blocks > max(1, GOAL * self.ideal.blocks)


def measured(copy: Copy, rows: Rows, question: Question) -> Measured:
    """Plan a question over a copy, and look at all rows. Raises AssertionError if a block is lost."""
    ideal = rows.holding(question)
    plan, pruned = _stepwise(copy, question)
    kept, kept_rows = _chosen(copy, plan, np.arange(len(plan.blocks))), plan.report.stages[-1].after.rows or 0
    if question.order_by:
        read = _first_rows(copy, plan, rows.first_values(question))
        pruned[TOP_N] += int(kept.sum() - read.sum())
        kept, (kept_rows, _) = read, sums(copy, read)
    elif question.limit is None:
        assert not (ideal.blocks & ~kept).any(), f"{copy.name}: {question.text} loses blocks"
    return Measured(
        copy.name,
        question.name,
        question.text,
        question.technique,
        question.served,
        Amount(len(kept), *sums(copy, np.ones(len(kept), bool))),
        Amount(int(kept.sum()), kept_rows, sums(copy, kept)[1]),
        Amount(int(ideal.blocks.sum()), ideal.rows, sums(copy, ideal.blocks)[1]),
        pruned,
        {name: int(blocks.sum()) for name, blocks in formats_own(copy, question).items()},
        rows.met_apart(question, kept & ~ideal.blocks),
    )


def _stepwise(copy: Copy, question: Question) -> tuple[Scan, dict[str, int]]:
    """The plan of a question, and what each technique prunes of what those before it left.

    Bounds and filters decide together, so what bounds prune alone is measured with an index without filters.
    """
    steps = [(ZONE_MAPS, _plan(copy.bounds, question.sql)), (FILTERS, _plan(copy.table, question.sql))]
    if question.keys is not None:
        steps.append((JOINS, _plan(copy.table, question.sql, keys=question.keys.values, on=question.keys.column)))
    if question.limit is not None:
        order = question.order_by or ()
        name = TOP_N if question.order_by else LIMIT
        steps.append((name, _plan(copy.table, question.sql, order_by=order, limit=question.limit)))
    pruned, left = {}, len(copy.blocks)
    for name, plan in steps:
        pruned[name], left = left - len(plan.blocks), len(plan.blocks)
    return steps[-1][1], pruned


def _plan(table: Table, sql: str, **asked: Any) -> Scan:
    return sec.prune(table, sql, strict=True, session_time_zone="UTC", **asked)


def _chosen(copy: Copy, plan: Scan, which: np.ndarray) -> np.ndarray:
    """Some blocks of a plan, as a mask over all of the table."""
    blocks = plan.survivors.blocks
    paths = [copy.path(file) for file in plan.paths.to_pylist()]
    chosen = np.zeros(len(copy.blocks), bool)
    for file, row_group in zip(blocks.file[which].tolist(), blocks.row_group[which].tolist(), strict=True):
        chosen[copy.numbers[paths[file], row_group]] = True
    return chosen


def _first_rows(copy: Copy, plan: Scan, expected: list[object]) -> np.ndarray:
    """The blocks that are read to find the first rows of an order, as a mask over all."""
    assert plan.order_by is not None
    search = FirstRows(plan, plan.fields())
    search.run()
    values = search.ranked.rows[plan.order_by.names[0]].to_pylist()
    assert values == expected, f"{copy.name}: {plan.report.predicate} has other first rows"
    return _chosen(copy, plan, np.flatnonzero(~search.unread))
