"""Ragged arrays: runs of elements stored one after another; run i is [offsets[i], offsets[i + 1])."""

from __future__ import annotations

import numpy as np


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Return the offsets of n runs with these element counts: int64 of shape (n + 1,)."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, dtype=np.int64, out=offsets[1:])
    return offsets


def runs_of(apart: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last position of every run, of n elements.

    `apart` marks the elements, from the second on, that begin a run: bool of shape (n - 1,), (0,) where n is 0.
    """
    cut = apart.nonzero()[0]
    first, last = np.zeros((2, len(cut) + 1), np.int64)
    first[1:], last[:-1], last[-1] = cut + 1, cut, n - 1
    return first[:n], last[:n]


def elements_of(offsets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the positions of all elements of the chosen runs, run by run: int64."""
    return spread(offsets[chosen], np.diff(offsets)[chosen])


def spread(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the positions of all elements of runs with these begins and counts: int64."""
    if len(counts) == 1:
        return np.arange(begins[0], begins[0] + counts[0])
    behind = offsets_of(counts)
    return np.repeat(begins - behind[:-1], counts) + np.arange(behind[-1])


def greatest_between(values: np.ndarray, first: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the greatest of values[first:after] for each pair, none empty.

    Each is the greater of two overlapping runs of 2^k values.

    Source: Bender and Farach-Colton, "The LCA Problem Revisited", 2000; of its table only one row is held at a time.
    """
    greatest = np.zeros(len(first), values.dtype)
    power = np.frexp(after - first)[1] - 1
    for k in range(int(power.max(initial=-1)) + 1):
        chosen = np.flatnonzero(power == k)
        greatest[chosen] = np.maximum(values[first[chosen]], values[after[chosen] - (1 << k)])
        values = np.maximum(values[: -(1 << k)], values[1 << k :])
    return greatest
