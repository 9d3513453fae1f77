"""Stage "bloom": filters refute equalities and IN lists that bounds cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import fold, leaf_outcomes
from secateur.pruning.outcomes import TRUE
from secateur.pruning.predicate.bound import Field, Leaf, Within, leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.statistics import Blocks
from secateur.pruning.survivors import Query, Survivors

BLOCKS_AT_ONCE = 1 << 15  # between two looks at the clock
MOST_PROBES = 10_000  # values of one IN list; more would cost longer than the blocks they save


def prune_by_bloom(query: Query, survivors: Survivors) -> Survivors:
    """Removes TRUE from a leaf where no value it asks for can be in the block, and folds the predicate again.

    Sound under AND, OR and NOT alike: a filter has no false negatives, and refuting only ever removes TRUE.
    """
    asked = [leaf for leaf in leaves(query.predicate) if asks_for_values(leaf)]
    blocks = survivors.blocks
    if blocks is None or not any(blocks.has_filters(leaf.operand) for leaf in asked if isinstance(leaf.operand, Field)):
        return survivors
    outcomes = survivors.outcomes.copy()
    unsure = np.flatnonzero(~survivors.fully_matching)
    for start in range(0, len(unsure), BLOCKS_AT_ONCE):
        if query.is_late:
            break
        chosen = unsure[start : start + BLOCKS_AT_ONCE]
        outcomes[chosen] = probed(query.predicate, blocks.take(chosen))
    query.notes.append(f"{len(asked)} conditions probed")
    return replace(survivors, known=outcomes).take(np.flatnonzero(sets.survives(outcomes)))


def probed(predicate: Predicate, blocks: Blocks) -> np.ndarray:
    """The outcomes of a predicate by zone maps, once filters have refuted what they can of its leaves."""
    refuted = {leaf: ~found for leaf in leaves(predicate) if (found := may_contain(leaf, blocks)) is not None}

    def outcomes_of(leaf: Leaf) -> np.ndarray:
        possible = leaf_outcomes(leaf, blocks)
        return np.where(refuted[leaf], possible & ~np.uint8(TRUE), possible) if leaf in refuted else possible

    return fold(predicate, blocks.row_count, outcomes_of)


def asks_for_values(leaf: Leaf) -> TypeGuard[Within]:
    """Whether a leaf asks a column for so few values that filters may refute it."""
    if not isinstance(leaf, Within) or not isinstance(leaf.operand, Field):
        return False
    points = leaf.ranges.points
    return points is not None and 0 < len(points) <= MOST_PROBES


def may_contain(leaf: Leaf, blocks: Blocks) -> np.ndarray | None:
    """Which blocks may hold a value that a leaf asks for, or a row on which it fails; None where no filter tells."""
    if not asks_for_values(leaf) or not len(blocks):
        return None
    assert isinstance(leaf.operand, Field)
    assert leaf.ranges.points is not None
    contained = blocks.may_contain(leaf.operand, leaf.ranges.points.tolist())
    return contained if contained is None or leaf.fails is None else contained | _may_fail(leaf, blocks)


def _may_fail(leaf: Within, blocks: Blocks) -> np.ndarray:
    """Which blocks may hold a row on which Spark raises an error: they are read, so that it does."""
    assert isinstance(leaf.operand, Field)
    assert leaf.fails is not None
    zones = blocks.zones(leaf.operand)
    if zones is None:
        return np.ones(len(blocks), bool)
    failing = leaf.fails.outcomes(zones.lower, zones.upper) & TRUE
    return (failing & zones.value) != 0
