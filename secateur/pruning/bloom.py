"""Stage "bloom": filters refute equalities and IN lists that bounds cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import fold, leaf_outcomes
from secateur.pruning.outcomes import TRUE
from secateur.pruning.predicate.bound import Field, Leaf, Within
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
    assert survivors.outcomes is not None
    refuted_leaves = 0

    def outcomes_of(leaf: Leaf) -> np.ndarray:
        nonlocal refuted_leaves
        possible = leaf_outcomes(leaf, blocks)
        may_contain = _may_contain(leaf, survivors)
        if may_contain is None:
            return possible
        refuted_leaves += 1
        return np.where(may_contain, possible, possible & ~np.uint8(TRUE))

    outcomes = fold(query.predicate, blocks.row_count, outcomes_of)
    query.notes.append(f"{refuted_leaves} conditions probed")
    return replace(survivors, outcomes=outcomes).take(np.flatnonzero(sets.survives(outcomes)))


def _may_contain(leaf: Leaf, survivors: Survivors) -> np.ndarray | None:
    assert survivors.blocks is not None
    if not isinstance(leaf, Within) or not isinstance(leaf.operand, Field) or not len(survivors.blocks):
        return None
    points = leaf.ranges.points
    if points is None or not 0 < len(points) <= MOST_PROBES:
        return None
    may_contain = survivors.blocks.may_contain(leaf.operand, points.tolist())
    return may_contain if may_contain is None or leaf.fails is None else may_contain | _may_fail(leaf, survivors.blocks)


def _may_fail(leaf: Within, blocks: Blocks) -> np.ndarray:
    """Which blocks may hold a row on which Spark raises an error: they are read, so that it does."""
    assert isinstance(leaf.operand, Field)
    assert leaf.fails is not None
    zones = blocks.zones(leaf.operand)
    if zones is None:
        return np.ones(len(blocks), bool)
    failing = leaf.fails.outcomes(zones.lower, zones.upper) & TRUE
    return (failing & zones.value) != 0
