"""Runs of elements laid one behind the other: those of thing i are [offsets[i], offsets[i + 1])."""

from __future__ import annotations

import numpy as np


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """The offsets of n runs with so many elements each: int64 of shape (n + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def elements_of(offsets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The positions of all elements of the chosen runs, run by run: int64."""
    counts = np.diff(offsets)[chosen]
    behind = offsets_of(counts)
    return np.repeat(offsets[chosen] - behind[:-1], counts) + np.arange(behind[-1])
