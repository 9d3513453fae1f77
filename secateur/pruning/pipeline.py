"""The pipeline: stages in order, cheap ones first, each working on what the previous ones left.

Start reading here. A stage takes the survivors and returns fewer; it may drop only what it has a proof against. If the
index cannot be read, the stage keeps the blocks concerned, and the report lists a degradation
(:class:`secateur.pruning.report.Faults`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from secateur.pruning.predicate.bound import unbounded
from secateur.pruning.report import Counts, Faults, Report, StageReport, summary
from secateur.pruning.stages.deletes import has_deletes, prune_deleted
from secateur.pruning.stages.files import prune_files
from secateur.pruning.stages.filters import prune_by_filters
from secateur.pruning.stages.limit import is_unordered, prune_by_limit
from secateur.pruning.stages.pages import prune_pages
from secateur.pruning.stages.segments import prune_segments
from secateur.pruning.stages.survivors import Query, Survivors, count
from secateur.pruning.stages.top_n import is_ordered, prune_by_order, prune_segments_by_order
from secateur.pruning.stages.zone_maps import prune_blocks

_log = logging.getLogger("secateur")


@dataclass(frozen=True)
class Stage:
    """A named step of pruning."""

    name: str
    prune: Callable[[Query, Survivors], Survivors]
    needed: bool = False  # runs even when time is up: it opens the blocks
    applies: Callable[[Query], bool] = lambda query: True


STAGES = (
    Stage("files", prune_files),  # partition values and file names
    Stage("segments", prune_segments),  # the tree of merged zone maps
    Stage("top-n segments", prune_segments_by_order, applies=is_ordered),  # before their blocks are looked at
    Stage("filters", prune_by_filters),  # bloom filters, postings, n-grams, tokens
    Stage("zone maps", prune_blocks, needed=True),  # lower, upper, null count per block
    Stage("deletes", prune_deleted, applies=has_deletes),  # blocks with all rows deleted
    Stage("limit", prune_by_limit, applies=is_unordered),
    Stage("top-n", prune_by_order, applies=is_ordered),  # ORDER BY with a limit
    Stage("pages", prune_pages),  # row ranges within blocks
)


def run(query: Query, faults: Faults, *, predicate: str, index: str) -> tuple[Survivors, Report]:
    """Run all stages over all live files; return the survivors and the report."""
    survivors = Survivors(query.predicate, None, query.catalog.everywhere(None))
    reports = []
    before = count(query, survivors)
    for stage in (each for each in STAGES if each.applies(query)):
        survivors, report = _run_stage(stage, query, survivors, before, faults)
        reports.append(report)
        query.trail.append(survivors.left_by(stage.name, query.trail[-1] if query.trail else None))
        before = report.after
    unsupported = tuple(dict.fromkeys(unbounded(query.predicate, survivors.evidence)))
    _log.info("pruned by %s: %s", predicate, summary(reports))
    return survivors, Report(predicate, tuple(reports), unsupported, index, query.catalog.reads)


def _run_stage(
    stage: Stage, query: Query, survivors: Survivors, before: Counts, faults: Faults
) -> tuple[Survivors, StageReport]:
    """Run one stage; on an index fault that it did not handle itself, its input becomes its output."""
    query.notes.clear()
    started = time.perf_counter()
    after = survivors
    if query.is_late and not stage.needed:
        query.notes.append("not run: the time is spent")
    else:
        with faults.tolerated():
            after = stage.prune(query, survivors)
    if stage.needed and after.blocks is None:
        after = replace(after, blocks=query.catalog.by_footers(after.files))
    seconds = time.perf_counter() - started
    left = before if after is survivors else count(query, after)
    if after.pages is not None and before.pages is None:
        before = replace(before, pages=after.pages.before)
    return after, StageReport(stage.name, before, left, seconds, faults.drain(), tuple(query.notes))
