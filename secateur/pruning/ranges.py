"""Stages "segments" and "zone maps": bounds and null counts decide segments through the tree, then blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import evaluate
from secateur.pruning.survivors import Query, Survivors, opened


def prune_segments(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the segments that the tree of merged zone maps cannot rule out.

    Sound: a node's zone map contains those of all blocks below it.
    """
    alive, note = query.catalog.descend(query.predicate)
    query.notes.append(note)
    return replace(survivors, segments=np.intersect1d(survivors.segments, alive, assume_unique=True))


def prune_blocks(query: Query, survivors: Survivors) -> Survivors:
    """Keeps the blocks that their own zone maps and partition values cannot rule out, with their outcomes."""
    survivors = opened(query, survivors)
    assert survivors.blocks is not None
    outcomes = evaluate(query.predicate, survivors.blocks)
    return replace(survivors, outcomes=outcomes).take(np.flatnonzero(sets.survives(outcomes)))
