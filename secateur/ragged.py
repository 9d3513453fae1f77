"""Runs of elements laid one behind the other: those of thing i are [offsets[i], offsets[i + 1])."""

from __future__ import annotations

import numpy as np


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """The offsets of n runs with so many elements each: int64 of shape (n + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def runs_of(apart: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last of every run, of n elements.

    `apart` tells of all elements but the first whether they begin a run: bool of shape (n - 1,), (0,) where n is 0.
    """
    cut = np.flatnonzero(apart)
    return np.append(0, cut + 1)[:n], np.append(cut, n - 1)[:n]


def elements_of(offsets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The positions of all elements of the chosen runs, run by run: int64."""
    return spread(offsets[chosen], np.diff(offsets)[chosen])


def spread(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The positions of all elements of runs that begin at these positions and have so many each: int64."""
    behind = offsets_of(counts)
    return np.repeat(begins - behind[:-1], counts) + np.arange(behind[-1])
