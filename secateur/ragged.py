"""Ragged arrays: runs of elements stored one after another; run i is [offsets[i], offsets[i + 1])."""

from __future__ import annotations

import numpy as np


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Return the offsets of n runs with these element counts: int64 of shape (n + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def runs_of(apart: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last position of every run, of n elements.

    `apart` marks the elements, from the second on, that begin a run: bool of shape (n - 1,), (0,) where n is 0.
    """
    cut = np.flatnonzero(apart)
    return np.append(0, cut + 1)[:n], np.append(cut, n - 1)[:n]


def elements_of(offsets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the positions of all elements of the chosen runs, run by run: int64."""
    return spread(offsets[chosen], np.diff(offsets)[chosen])


def spread(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the positions of all elements of runs with these begins and counts: int64."""
    behind = offsets_of(counts)
    return np.repeat(begins - behind[:-1], counts) + np.arange(behind[-1])
