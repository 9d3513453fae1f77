"""Arrays of integers: their range, consecutive ones, and sets of them as ascending arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce

import numpy as np

KEPT = 1 << 20  # integers: 8 MB


def all_within(values: np.ndarray, least: int, most: int) -> bool:
    """Whether all integers lie in [least, most]; True if there are none."""
    return not len(values) or least <= int(values.min()) <= int(values.max()) <= most


def consecutive(begin: int, end: int) -> np.ndarray:
    """Return the integers of [begin, end), read-only: int64. Small ones are a part of an array that is kept."""
    if end > KEPT:
        return np.arange(begin, end)
    return _first_integers(KEPT)[begin:end]


@cache
def _first_integers(count: int) -> np.ndarray:
    numbers = np.arange(count)
    numbers.flags.writeable = False
    return numbers


def in_all(parts: Sequence[np.ndarray]) -> np.ndarray | None:
    """Intersect ascending arrays of integers: ascending; None without parts."""
    if not parts:
        return None
    return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), sorted(parts, key=len))


def sorted_distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers, ascending; ten times as fast as numpy's ``unique``, which hashes them."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def distinct_and_places(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct integers, or rows of a matrix, ascending, and for each of all where it is among them: int64.

    As numpy's ``unique``, which imports masked arrays on first use: 7 ms of a new process.
    """
    order = np.argsort(values, kind="stable") if values.ndim == 1 else np.lexsort(values.T[::-1])
    ordered = values[order]
    differ = ordered[1:] != ordered[:-1]
    begins = np.append(True, differ if values.ndim == 1 else differ.any(axis=1))[: len(values)]
    places = np.empty(len(values), np.int64)
    places[order] = np.cumsum(begins) - 1
    return ordered[begins], places
