"""Estimate which blocks look-ups of a column's values read: now, by their bounds, and in another order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from secateur.index.advise.rewrite_groups import AskedFiles, ShareOfBlocks

Measure: TypeAlias = Callable[[np.ndarray], float]  # of the edges of blocks of rows: the share of blocks that is read

LEAST_ROWS = 32  # of a simulated block: with so many, its bounds span nearly what those of a real block would
MOST_BLOCKS = 1024  # simulated
NULL = -1  # the rank of NULL


@dataclass(frozen=True, eq=False)
class BoundedBlocks:
    """The blocks of a table with the ranks of their bounds in a column; arrays of shape (n_blocks,).

    A block without values has a lower bound above its upper bound.
    """

    file: np.ndarray
    byte_count: np.ndarray
    row_count: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def asked(self, sampled: np.ndarray, files: int, weight: float) -> AskedFiles:
        """Return what a look-up reads of every file if it asks for the value of any row with the same chance.

        Parameters
        ----------
        sampled
            Ranks of values of some rows, in the same scale as the bounds.
        """
        below, up_to = self._shares_of_rows(np.sort(sampled))
        holds = self.lower <= self.upper
        expected = np.where(holds, self.byte_count * (up_to - below), 0.0)
        lower, upper = np.ones(files), np.zeros(files)
        np.minimum.at(lower, self.file[holds], below[holds])
        np.maximum.at(upper, self.file[holds], up_to[holds])
        return AskedFiles(weight, np.bincount(self.file, expected, files), lower, upper)

    def _shares_of_rows(self, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for every block the share of the table's rows below its lower bound, and up to its upper bound.

        The rows of a block are spread evenly over the sampled values between its bounds. Without such, they lie at one
        place halfway between its bounds, where no bound is: hence twice the ranks.
        """
        lower, upper, sampled = 2 * self.lower, 2 * self.upper, 2 * sampled
        rows = np.where(lower <= upper, self.row_count, 0).astype(np.float64)
        begin, end = np.searchsorted(sampled, lower, "right"), np.searchsorted(sampled, upper, "left")
        inside = np.maximum(end - begin, 0)
        of_one = np.where(inside > 0, rows / np.maximum(inside, 1), 0.0)
        steps = np.bincount(begin, of_one, len(sampled) + 1) - np.bincount(begin + inside, of_one, len(sampled) + 1)
        halfway = np.where(lower < upper, (self.lower + self.upper) | 1, lower)
        size = int(max(sampled.max(initial=0), lower.max(initial=0), upper.max(initial=0))) + 2
        mass = np.bincount(halfway, np.where(inside > 0, 0.0, rows), size)
        mass += np.bincount(sampled, np.maximum(np.cumsum(steps)[:-1], 0.0), size)
        up_to = np.append(0.0, np.cumsum(mass)) / max(float(mass.sum()), 1.0)
        return up_to[lower], up_to[upper + 1]


def share_of_look_ups(ranks: np.ndarray, blocks: int) -> ShareOfBlocks:
    """Return the share of blocks that look-ups read of sampled rows, laid out for a table of so many blocks.

    Parameters
    ----------
    ranks
        The rank of each row's value, in the order of the rows; :data:`NULL` for NULL, which no look-up asks for.
    """
    return measured_share(len(ranks), blocks, lambda edges: _share_of_look_ups(ranks, edges))


def _share_of_look_ups(ranks: np.ndarray, edges: np.ndarray) -> float:
    known = np.sort(ranks[ranks != NULL])
    if not len(known):
        return 0.0
    upper = np.maximum.reduceat(ranks, edges[:-1])
    lower = np.minimum.reduceat(np.where(ranks == NULL, np.iinfo(np.int64).max, ranks), edges[:-1])
    enclosed = np.searchsorted(known, upper, "right") - np.searchsorted(known, lower, "left")
    return float(np.maximum(enclosed, 0).mean() / len(known))


def measured_share(rows: int, blocks: int, share: Measure) -> ShareOfBlocks:
    """Measure the share of blocks that are read of sampled rows, cut into blocks, and how it falls with more blocks.

    The sample is thinner than the table, so it may have too few rows for so many blocks. Then it is cut into fewer, and
    into a quarter of these, and the two shares tell the power of their number by which the share falls.
    """
    most = int(max(1, min(blocks, MOST_BLOCKS, rows // LEAST_ROWS)))
    of_most = share(edges_of(rows, most))
    fewer = most // 4
    of_fewer = share(edges_of(rows, fewer)) if fewer else of_most
    falls = np.log(of_fewer / of_most) / np.log(most / fewer) if fewer and of_most > 0 and of_fewer > 0 else 0.0
    return ShareOfBlocks(most, of_most, float(np.clip(falls, 0.0, 1.0)))


def edges_of(rows: int, blocks: int) -> np.ndarray:
    """Return where each of some equal blocks begins, and the end of the last: int64 of shape (n_blocks + 1,)."""
    return np.arange(blocks + 1, dtype=np.int64) * rows // blocks
