"""Gaps between the values of a block: keys within its bounds that it does not hold."""

from __future__ import annotations

import numpy as np

from secateur.pruning.bounds.outcomes import TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.set_outcomes import outcomes_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind


def reaches(ranges: RangeSet, lower: np.ndarray, upper: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which blocks may hold a key of `ranges`, a set of WORD keys: bool of shape (n_blocks,).

    Blocks have their keys within [lower, upper] (int64 of shape (n_blocks,)) and none in an open interval (low, high)
    (int64 of shape (g, n_blocks), ascending per block; low = high means no gap). So their keys are in [lower, low 1],
    [high 1, low 2], ..., [high g, upper], each cut to the bounds, and the set reaches a block iff it reaches one of
    these. Sound even for unordered gaps: if low j is the first that is not below a key, the key is above low j-1, hence
    at least high j-1.
    """
    reached = np.zeros(len(lower), bool)
    begin = lower
    for gap_low, gap_high in zip(low, high, strict=True):
        reached |= _reached(ranges, begin, np.minimum(gap_low, upper))
        begin = np.maximum(gap_high, lower)
    reached |= _reached(ranges, begin, upper)
    return reached


def _reached(ranges: RangeSet, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return which intervals [begin, end] are non-empty and hold a key of the set."""
    reached = ranges.reaches(_keys(begin), _keys(end), inside=True)
    if reached is None:
        reached = (outcomes_of(ranges, _keys(begin), _keys(np.maximum(begin, end))) & TRUE).astype(bool)
    reached &= begin <= end
    return reached


def _keys(words: np.ndarray) -> Keys:
    return Keys(Kind.WORD, (words,))
