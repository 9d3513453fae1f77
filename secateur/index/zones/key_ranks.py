"""Keys as integers that order as they do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secateur.values.combination import concatenate, less
from secateur.values.keys import Keys


def ranks(parts: Sequence[Keys]) -> list[np.ndarray]:
    """Return integers that order as the keys of all parts do, equal for equal keys: int64, an array for each part."""
    keys = concatenate(parts)
    order = np.lexsort(keys.words[::-1])
    ascending = keys.take(order)
    rank = np.zeros(len(order), np.int64)
    if len(order):
        rank[order] = np.append(0, np.cumsum(less(ascending.take(slice(0, -1)), ascending.take(slice(1, None)))))
    return np.split(rank, np.cumsum([len(part) for part in parts])[:-1])
