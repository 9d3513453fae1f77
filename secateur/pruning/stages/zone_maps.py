"""Stage "zone maps": prune blocks by bounds and null counts, conjunct by conjunct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import shorten

import numpy as np

from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.conjuncts import Candidates, conjuncts, ordered
from secateur.pruning.evaluate import may_match
from secateur.pruning.plain_blocks import joined, plain
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import counted
from secateur.pruning.row_ranges import joined_ranges, whole_blocks
from secateur.pruning.stages.survivors import NO_SEGMENTS, Query, SurvivingSegments, Survivors
from secateur.pruning.statistics import Run


def prune_blocks(query: Query, left: SurvivingSegments) -> Survivors:
    """Open the surviving segments, and keep the blocks that their own zone maps and partition values cannot rule out.

    Conjuncts are evaluated one by one, over the runs that still have a candidate: dead blocks are not examined again,
    and a column is loaded only where it is needed, for all runs at once.
    """
    if left.chosen is not None:
        return _of_chosen(query, left.opened(left.chosen))
    elsewhere = None if query.executors is None else query.executors.prune(query, left)
    if elsewhere is None:
        return _pruned(query, left)
    return _beside(elsewhere, _pruned(query, replace(left, segments=NO_SEGMENTS, whole=NO_SEGMENTS)))


def _of_chosen(query: Query, survivors: Survivors) -> Survivors:
    """Return the blocks that neither filters nor zone maps rule out."""
    blocks = survivors.blocks
    alive = survives(survivors.outcomes)
    if query.implied is not None:
        alive &= may_match(query.implied, blocks)
    query.notes.append(f"{counted(len(blocks), 'block')} that filters left")
    return survivors.take(np.flatnonzero(alive))


def _pruned(query: Query, left: SurvivingSegments) -> Survivors:
    """Return the blocks of surviving segments, and of files without a segment, that zone maps cannot rule out."""
    catalog, files = query.catalog, left.files
    runs = [*catalog.runs(files, left.segments), *catalog.loose_runs(files)]
    candidates = [Candidates(len(run), mask=run.candidates) for run in runs]
    order = _order(query, runs)
    for conjunct in (*order, query.implied) if query.implied is not None else order:
        some = [i for i, candidate in enumerate(candidates) if candidate.mask is None or candidate.mask.any()]
        if query.is_late:
            query.notes.append(f"the time is spent before {shorten(str(conjunct), 60)}")
            break
        catalog.load(fields(conjunct), [runs[i] for i in some])
        for i in some:
            candidates[i] = candidates[i].without_dead(conjunct, runs[i])
    numbers = _numbers(runs, candidates, catalog.runs(files, left.whole))
    query.notes.append(_note(runs, order))
    opened = left.opened(catalog.open(numbers, files))
    return opened.take(np.flatnonzero(survives(opened.outcomes))) if left.evidence else opened


def _beside(elsewhere: Survivors, here: Survivors) -> Survivors:
    """Combine two sets of survivors, without their statistics."""
    if not len(here.blocks):
        return elsewhere
    ranges = [part.row_ranges or whole_blocks(part.blocks.row_count) for part in (elsewhere, here)]
    return replace(
        elsewhere,
        blocks=joined([plain(elsewhere.blocks), plain(here.blocks)]),
        known=np.concatenate([elsewhere.outcomes, here.outcomes]),
        row_ranges=joined_ranges(ranges),
    )


def _order(query: Query, runs: Sequence[Run]) -> tuple[Predicate, ...]:
    """Order the conjuncts by least cost, as sampled from the longest run."""
    parts = conjuncts(query.predicate)
    return ordered(parts, max(runs, key=len)) if runs else parts


def _numbers(runs: Sequence[Run], candidates: Sequence[Candidates], whole: Sequence[Run]) -> np.ndarray:
    """Return the numbers of the runs' candidates, and of all blocks of fully matching runs, ascending."""
    chosen = [*zip(runs, candidates, strict=True), *((run, Candidates(len(run), mask=run.candidates)) for run in whole)]
    parts = [candidate.numbers(run.begin) for run, candidate in sorted(chosen, key=lambda pair: pair[0].begin)]
    numbers = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    in_order = not whole or bool((numbers[1:] > numbers[:-1]).all())
    return numbers if in_order else np.sort(numbers)


def _note(runs: Sequence[Run], order: Sequence[Predicate]) -> str:
    scanned = f"{counted(sum(map(len, runs)), 'block')} in {counted(len(runs), 'run')}"
    if len(order) < 2:
        return scanned
    return f"{scanned}, in the order " + ", ".join(shorten(str(conjunct), 60) for conjunct in order)
