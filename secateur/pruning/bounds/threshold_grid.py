"""Compare many intervals with many thresholds, by counting the thresholds in buckets of equal width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.pruning.bounds.outcomes import FALSE, TRUE

BUCKETS_OF_THRESHOLD = 4
STEPS = 2  # thresholds of a bucket tried one by one before searching the others


@dataclass(frozen=True)
class ThresholdGrid:
    """Many thresholds counted in buckets of equal width: most intervals span only empty buckets."""

    thresholds: np.ndarray
    below: int  # thresholds before these
    exact: bool  # whether equal words mean equal keys
    first: np.generic
    last: np.generic
    shift: np.uint64
    counts: np.ndarray  # int32: thresholds before each bucket, and before what follows the last

    @staticmethod
    def over(thresholds: np.ndarray, below: int, exact: bool) -> ThresholdGrid:
        """Build the grid over sorted words."""
        first, last = thresholds[0], thresholds[-1]
        wanted = len(thresholds) * BUCKETS_OF_THRESHOLD
        shift = np.uint64(max(0, (int(last) - int(first)).bit_length() - wanted.bit_length()))
        buckets = (thresholds.view(np.uint64) - first.view(np.uint64)) >> shift
        counts = np.cumsum(np.bincount(buckets.view(np.int64) + 1))
        return ThresholdGrid(thresholds, below, exact, first, last, shift, counts.astype(np.int32))

    def fill(self, result: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
        """Write the outcomes; return the positions of undecided intervals, or None if those are most."""
        start = self._bucket(low)
        start += low > self.last
        stop = self._bucket(high)
        ranks = self.counts.take(start)
        np.subtract(FALSE, (ranks + self.below) & 1, out=result, casting="unsafe")
        touched = self.counts.take(stop + 1) > ranks
        touched &= high >= self.first
        near = np.flatnonzero(touched)
        crossed = self.counts[stop[near]] > self.counts[start[near] + 1]  # a threshold in a bucket between
        result[near[crossed]] = TRUE | FALSE
        near = near[~crossed]
        if self.exact:
            near = self._walk(result, low, high, near, ranks[near])
        return None if len(near) * 2 > len(low) else near

    def _walk(
        self, result: np.ndarray, low: np.ndarray, high: np.ndarray, near: np.ndarray, ranks: np.ndarray
    ) -> np.ndarray:
        """Write the outcomes where the lower bound's rank is at most a few thresholds past its bucket's first."""
        lowest, n = low[near], len(self.thresholds)
        for _ in range(STEPS):
            ranks += (self.thresholds.take(ranks, mode="clip") <= lowest) & (ranks < n)
        following = self.thresholds.take(ranks, mode="clip")
        crosses = (following <= high[near]) & (ranks < n)
        result[near] = np.where(crosses, TRUE | FALSE, FALSE - ((ranks + self.below) & 1))
        return near[(following <= lowest) & (ranks < n)]

    def _bucket(self, words: np.ndarray) -> np.ndarray:
        offsets = np.clip(words, self.first, self.last).view(np.uint64)
        offsets -= self.first.view(np.uint64)
        offsets >>= self.shift
        return offsets.view(np.int64)
