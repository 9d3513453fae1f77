"""How many NULLs a column has in each block."""

from __future__ import annotations

import numpy as np

from secateur.pruning.predicate.bound import Field
from secateur.pruning.statistics import Blocks


def null_counts(field: Field, blocks: Blocks) -> np.ndarray:
    """Return the NULL count of a column per block, -1 if unknown; looked up if zone maps do not have it."""
    zones = blocks.zones(field)
    if zones is None:
        return np.full(len(blocks), -1)
    counts = np.where(zones.value == 0, blocks.row_count, np.where(zones.null == 0, 0, -1))
    some = np.flatnonzero(counts < 0)
    if len(some):
        counts[some] = blocks.take(some).null_counts(field)
    return counts
