"""The pipeline: stages in order, cheap ones first, each working on what the previous ones left.

Start reading here. A stage takes the survivors and returns fewer; it may drop only what it has a proof against. If the
index cannot be read, the stage keeps the blocks concerned, and the report lists a degradation
(:class:`secateur.pruning.report.Faults`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from secateur.pruning.predicate.bound_walks import unbounded
from secateur.pruning.report import Counts, Faults, Report, StageReport, summary
from secateur.pruning.stages.deletes import has_deletes, prune_deleted
from secateur.pruning.stages.files import prune_files
from secateur.pruning.stages.filters import prune_by_filters
from secateur.pruning.stages.first_rows import has_first_values, prune_first_rows
from secateur.pruning.stages.limit import is_unordered, prune_by_limit
from secateur.pruning.stages.pages import prune_pages
from secateur.pruning.stages.remembered import has_verdicts, prune_remembered
from secateur.pruning.stages.rows import lists_rows, prune_rows
from secateur.pruning.stages.segments import prune_segments
from secateur.pruning.stages.survivors import Left, Query, SurvivingSegments, Survivors, count
from secateur.pruning.stages.top_n import is_ordered, prune_by_order, prune_segments_by_order
from secateur.pruning.stages.zone_maps import prune_blocks

_log = logging.getLogger("secateur")
Before = TypeVar("Before", SurvivingSegments, Survivors)
After = TypeVar("After", SurvivingSegments, Survivors)


@dataclass(frozen=True)
class Stage(Generic[Before, After]):
    """A named step of pruning."""

    name: str
    prune: Callable[[Query, Before], After]
    applies: Callable[[Query], bool] = lambda query: True


@dataclass(frozen=True)
class Stages:
    """The stages that drop files and segments, the one that opens blocks, and those that drop blocks."""

    of_segments: tuple[Stage[SurvivingSegments, SurvivingSegments], ...]
    opening: Stage[SurvivingSegments, Survivors]  # runs even when time is up
    of_blocks: tuple[Stage[Survivors, Survivors], ...]


STAGES = Stages(
    of_segments=(
        Stage("files", prune_files),  # partition values and file names
        Stage("segments", prune_segments),  # the tree of merged zone maps
        Stage("top-n segments", prune_segments_by_order, applies=is_ordered),  # before their blocks are looked at
        Stage("filters", prune_by_filters),  # bloom filters, postings, n-grams, tokens
    ),
    opening=Stage("zone maps", prune_blocks),  # lower, upper, null count per block
    of_blocks=(
        Stage("remembered", prune_remembered, applies=has_verdicts),  # what earlier reads found
        Stage("deletes", prune_deleted, applies=has_deletes),  # blocks with all rows deleted
        Stage("limit", prune_by_limit, applies=is_unordered),
        Stage("top-n", prune_by_order, applies=is_ordered),  # ORDER BY with a limit
        Stage("rows", prune_rows, applies=lists_rows),  # the rows that postings list
        Stage("first rows", prune_first_rows, applies=has_first_values),  # of an order, by values kept in order
        Stage("pages", prune_pages),  # row ranges within blocks
    ),
)


@dataclass(frozen=True)
class PruningResult:
    """What a query has to read, what each stage left on the way, in order, and the report."""

    survivors: Survivors
    trail: tuple[Left, ...]
    report: Report


def run(query: Query, faults: Faults, *, predicate: str, index: str) -> PruningResult:
    """Run all stages over all live files."""
    catalog = query.catalog
    left = SurvivingSegments(query.predicate, None, catalog.everywhere(None))
    steps = _Steps(query, faults, count(left, catalog))
    for of_segments in STAGES.of_segments:
        if of_segments.applies(query):
            left = steps.take(of_segments, left)
    survivors = steps.open(STAGES.opening, left)
    for of_blocks in STAGES.of_blocks:
        if of_blocks.applies(query):
            survivors = steps.take(of_blocks, survivors)
    unsupported = tuple(dict.fromkeys(unbounded(query.predicate, survivors.evidence)))
    _log.info("pruned by %s: %s", predicate, summary(steps.reports))
    report = Report(predicate, tuple(steps.reports), unsupported, index, catalog.reads)
    return PruningResult(survivors, tuple(steps.trail), report)


@dataclass
class _Steps:
    """Runs the stages of one query, and records what each of them left."""

    query: Query
    faults: Faults
    before: Counts
    reports: list[StageReport] = field(default_factory=list)
    trail: list[Left] = field(default_factory=list)

    def take(self, stage: Stage[Before, Before], survivors: Before) -> Before:
        """Run one stage; on an index fault that it did not handle itself, its input becomes its output."""
        started = time.perf_counter()
        after = survivors
        if self.query.is_late:
            self.query.notes.append("not run: the time is spent")
        else:
            with self.faults.tolerated():
                after = stage.prune(self.query, survivors)
        self._record(stage.name, after, started, changed=after is not survivors)
        return after

    def open(self, stage: Stage[SurvivingSegments, Survivors], left: SurvivingSegments) -> Survivors:
        """Run the stage that opens blocks; on an index fault, all blocks of the files are opened by their footers."""
        started = time.perf_counter()
        survivors: Survivors | None = None
        with self.faults.tolerated():
            survivors = stage.prune(self.query, left)
        if survivors is None:
            self.trail = [step.detached for step in self.trail]  # the index that numbers its blocks is given up
            survivors = left.opened(self.query.catalog.by_footers(left.files))
        self._record(stage.name, survivors, started, changed=True)
        return survivors

    def _record(self, name: str, after: SurvivingSegments | Survivors, started: float, *, changed: bool) -> None:
        seconds, before = time.perf_counter() - started, self.before
        if changed:
            self.before = count(after, self.query.catalog)
        if isinstance(after, Survivors) and after.pages is not None and before.pages is None:
            before = replace(before, pages=after.pages.before)
        self.reports.append(
            StageReport(name, before, self.before, seconds, self.faults.drain(), tuple(self.query.notes))
        )
        self.trail.append(after.left_by(name, self.trail[-1] if self.trail else None))
        self.query.notes.clear()
