"""Stages "segments" and "zone maps": bounds and null counts decide segments through the tree, then blocks."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten

import numpy as np

from secateur.pruning.conjuncts import alive
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
    found = alive(query.predicate, survivors.blocks)
    if len(found.order) > 1:
        query.notes.append("in the order " + ", ".join(shorten(str(conjunct), 60) for conjunct in found.order))
    return survivors.take(found.units, found.outcomes)
