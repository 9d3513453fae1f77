"""Outcomes of intervals of keys over a set of keys, computed in chunks that stay in a core's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from secateur.pruning.bounds.outcomes import FALSE, TRUE, of_sides
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.threshold_grid import ThresholdGrid
from secateur.values.key import least_key
from secateur.values.keys import FEW_THRESHOLDS, Keys, common_words
from secateur.values.kinds import Kind

CHUNK = 1 << 18  # intervals: a chunk that is read several times stays in a core's cache
FEW_NEAR = 32  # if at most one interval in this many is near, those are compared by position; else whole words
UNITS_OF_GRID = 4  # thresholds per interval above which building a grid costs more than searching
_NONE = np.arange(0)
_SIDES = (FALSE, TRUE)  # outcome of an interval without thresholds, by the rank of its keys modulo 2


def outcomes_of(ranges: RangeSet, lower: Keys, upper: Keys) -> np.ndarray:
    """Return TRUE where [lower, upper] may hold a key of the set, FALSE where one outside: uint8 of shape (n,).

    Equal to :meth:`.RangeSet.overlap` for non-empty intervals, but computed in chunks, so that data read several times
    stays in a core's cache.
    """
    n, width = len(lower), min(lower.width, upper.width)
    result = np.empty(n, np.uint8)
    thresholds = _Thresholds(ranges, width, n)
    everywhere = thresholds.undecided(thresholds.all, lower.common, upper.common)
    left = []
    for start in range(0, n, CHUNK):
        chunk = slice(start, start + CHUNK)
        rest = thresholds.fill(result[chunk], lower.take(chunk), upper.take(chunk), everywhere)
        if len(rest):
            left.append(rest + start)
    if left:
        rest = np.concatenate(left)
        result[rest] = _by_ranks(ranges, lower.take(rest), upper.take(rest))
    return result


def _by_ranks(ranges: RangeSet, lower: Keys, upper: Keys) -> np.ndarray:
    inside, outside = ranges.overlap(lower, upper)
    return of_sides(inside.view(np.uint8), outside.view(np.uint8))


class _Part(NamedTuple):
    """The thresholds [begin, end), and the word by which they are compared."""

    begin: int
    end: int
    word: int


class _Thresholds:
    """The thresholds of a set, prepared for comparison with many intervals."""

    def __init__(self, ranges: RangeSet, width: int, n: int) -> None:
        self.ranges = ranges
        self.table = ranges.table(width).words
        self.exact = ranges.kind is Kind.WORD  # no words follow the first, so a tie is equality
        self.words = max(1, width) if ranges.kind is Kind.BYTES else len(self.table)
        below = int(len(ranges.thresholds) > 0 and ranges.thresholds[0] == least_key(ranges.kind))
        self.all = _Part(below, len(ranges.thresholds), 0)
        self.spare = np.empty((2, min(n, CHUNK)), bool)
        self.width = width
        self._before: np.ufunc = np.less if self.exact else np.less_equal
        self.worth_a_grid = n * UNITS_OF_GRID > len(ranges.thresholds)

    def fill(self, result: np.ndarray, lower: Keys, upper: Keys, everywhere: _Part) -> np.ndarray:
        """Write the outcomes of one chunk of intervals; return the positions of those still undecided."""
        begin, end, word = self.undecided(
            everywhere, common_words(lower.words[everywhere.word : -1]), common_words(upper.words[everywhere.word : -1])
        )
        thresholds = self.table[word][begin:end]
        low, high = lower.words[word], upper.words[word]
        outside, flipped = _SIDES[begin % 2], begin % 2 == 1
        if not len(thresholds):
            result.fill(outside)
            return _NONE
        if len(thresholds) % 2 == 0:
            near = self._near(result, low, high, thresholds)
            positions = _few(near)
            if positions is not None:
                result.fill(outside)
                return self._compare_at(positions, result, low, high, thresholds, flipped)
        if len(thresholds) <= 2:
            rest = self._compare(result, low, high, thresholds, flipped)
        elif len(thresholds) <= FEW_THRESHOLDS or not self.worth_a_grid:
            rest = None
        else:
            rest = self._grid(begin, end, word).fill(result, low, high)
        if rest is None:
            result[:] = _by_ranks(self.ranges, lower, upper)
            return _NONE
        return rest

    def undecided(self, among: _Part, low: Sequence[np.generic], high: Sequence[np.generic]) -> _Part:
        """Narrow down the thresholds, given the words shared by all lower and all upper bounds.

        Thresholds with a smaller word are below all keys, those with a greater word above; for the others the next word
        decides.
        """
        begin, end, word = among
        for value, other in zip(low, high, strict=False):
            if value != other or begin == end or word + 1 == self.words:
                break
            column = self.table[word][begin:end]
            end = begin + int(np.searchsorted(column, value, side="right"))
            begin += int(np.searchsorted(column, value, side="left"))
            word += 1
        return _Part(begin, end, word)

    def _near(self, result: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return which intervals may reach between the first and the last threshold, in the memory of `result`."""
        near, spare = result.view(bool), self.spare[0, : len(low)]
        np.greater_equal(high, thresholds[0], out=near)
        self._before(low, thresholds[-1], out=spare)
        return np.logical_and(near, spare, out=near)

    def _compare_at(
        self,
        positions: np.ndarray,
        result: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        thresholds: np.ndarray,
        flipped: bool,
    ) -> np.ndarray:
        """Write the outcomes of a few intervals near two thresholds; return the positions still undecided."""
        if len(thresholds) > 2:
            return positions
        outcomes = np.ones(len(positions), np.uint8)
        rest = self._compare(outcomes, low[positions], high[positions], thresholds, flipped)
        result[positions] = outcomes
        return positions if rest is None else positions[rest]

    def _compare(
        self, result: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray, flipped: bool
    ) -> np.ndarray | None:
        """Write the outcomes for one threshold, or for two if `result` is from :meth:`_near`; return positions of ties.

        Words that differ decide both sides. For a word equal to a threshold's, both sides are written.
        """
        inside = result.view(bool)
        outside, spare = self.spare[:, : len(low)]
        self._before(low, thresholds[0], out=outside)
        if len(thresholds) == 1:
            np.greater_equal(high, thresholds[0], out=inside)
        else:
            np.greater_equal(high, thresholds[1], out=spare)
            np.logical_or(outside, spare, out=outside)
        both = None if self.exact else np.logical_and(inside, outside, out=spare)
        doubled = (inside if flipped else outside).view(np.uint8)
        doubled += doubled
        result |= outside.view(np.uint8)
        return _NONE if both is None else self._tied(both, low, high, thresholds)

    def _tied(self, both: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray | None:
        """Return the positions of intervals with a word equal to a threshold's; None if those are most."""
        positions = _few(both)
        if positions is None:
            positions = np.flatnonzero(both & _ties(low, high, thresholds))
            return None if len(positions) * 2 > len(both) else positions
        return positions[_ties(low[positions], high[positions], thresholds)]

    def _grid(self, begin: int, end: int, word: int) -> ThresholdGrid:
        grids, key = self.ranges.grids, (self.width, begin, end, word)
        if key not in grids:
            grids[key] = ThresholdGrid.over(self.table[word][begin:end], begin, self.exact)
        return grids[key]


def _ties(low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return which intervals have a word equal to a threshold."""
    return np.logical_or.reduce([word == threshold for threshold in thresholds for word in (low, high)])


def _few(flags: np.ndarray) -> np.ndarray | None:
    """Return the positions of set flags, scanning eight at a time; None if they are not few."""
    if len(flags) % 8:
        return None if np.count_nonzero(flags) * FEW_NEAR > len(flags) else np.flatnonzero(flags)
    eights = flags.view(np.uint64) != 0
    if np.count_nonzero(eights) * FEW_NEAR > len(flags):
        return None
    bytes_set = np.flatnonzero(eights)
    bits = np.flatnonzero(flags.reshape(-1, 8)[bytes_set])
    return bytes_set[bits >> 3] * 8 + (bits & 7)
