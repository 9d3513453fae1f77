"""Stage "segments": prune whole segments by the tree of merged zone maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning.stages.survivors import Query, SurvivingSegments


def prune_segments(query: Query, left: SurvivingSegments) -> SurvivingSegments:
    """Keep the segments that the tree cannot rule out, and separate those that match fully.

    Sound: a node's zone map contains those of all blocks below it.
    """
    descent = query.catalog.descend(query.predicate, query.implied)
    query.notes.append(descent.note)
    is_left = [np.isin(numbers, left.segments, assume_unique=True) for numbers in (descent.segments, descent.whole)]
    return replace(left, segments=descent.segments[is_left[0]], whole=descent.whole[is_left[1]])
