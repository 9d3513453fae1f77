"""Stage "bloom": filters refute equalities and IN lists that bounds cannot."""

from __future__ import annotations

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import fold, leaf_outcomes
from secateur.pruning.outcomes import TRUE
from secateur.pruning.predicate.bound import Field, Leaf, Within, leaves
from secateur.pruning.statistics import Blocks
from secateur.pruning.survivors import Query, Survivors, opened

MOST_PROBES = 10_000  # values of one IN list; more would cost longer than the blocks they save


def prune_by_bloom(query: Query, survivors: Survivors) -> Survivors:
    """Removes TRUE from a leaf where no value it asks for can be in the block, and folds the predicate again.

    Sound under AND, OR and NOT alike: a filter has no false negatives, and refuting only ever removes TRUE.
    """
    survivors = opened(query, survivors)
    blocks = survivors.blocks
    assert blocks is not None
    probed = {leaf: found for leaf in leaves(query.predicate) if (found := may_contain(leaf, blocks)) is not None}
    query.notes.append(f"{len(probed)} conditions probed")
    if not probed:
        return survivors

    def outcomes_of(leaf: Leaf) -> np.ndarray:
        possible = leaf_outcomes(leaf, blocks)
        return np.where(probed[leaf], possible, possible & ~np.uint8(TRUE)) if leaf in probed else possible

    outcomes = fold(query.predicate, blocks.row_count, outcomes_of)
    return survivors.take(np.flatnonzero(sets.survives(outcomes)), outcomes[sets.survives(outcomes)])


def may_contain(leaf: Leaf, blocks: Blocks) -> np.ndarray | None:
    """Which blocks may hold a value that a leaf asks for, or a row on which it fails; None where no filter tells."""
    if not isinstance(leaf, Within) or not isinstance(leaf.operand, Field) or not len(blocks):
        return None
    points = leaf.ranges.points
    if points is None or not 0 < len(points) <= MOST_PROBES:
        return None
    contained = blocks.may_contain(leaf.operand, points.tolist())
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
