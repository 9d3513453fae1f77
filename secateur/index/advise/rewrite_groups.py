"""Choose files to rewrite together, so that queries read the least for every byte that is written anew.

Files that share values are worth rewriting together: once the rows are in order, each block has values of its own. So
the files of a partition are put in a row by their least value, and windows of neighbouring files are compared by what
they save per byte. A window that was rewritten has nothing left to save, and is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.ragged import greatest_between, offsets_of, runs_of

MOST_GROUPS = 100
NEARLY = 0.9  # of the best saving per byte: windows that come so close are compared by what they save as a whole
LEAST_FALL = 0.2  # share of what is read of a group that a rewrite has to save: a sample does not tell less for sure
_STEPS = 4  # windows of 2^k files begin at every 2^k / 4


@dataclass(frozen=True)
class ShareOfBlocks:
    """The share of its blocks that a query reads of ordered rows: measured for `blocks`, and how it falls with more."""

    blocks: int
    share: float
    exponent: float  # the share falls as blocks^-exponent

    def of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the share for other numbers of blocks; of any, one block is read."""
        scaled = self.share * (np.maximum(blocks, 1) / self.blocks) ** -self.exponent
        return np.clip(scaled, 1 / np.maximum(blocks, 1), 1.0)


@dataclass(frozen=True, eq=False)
class AskedFiles:
    """What a query, or many like it, read of every file; arrays of shape (n_files,).

    They ask for one of some files with the probability max(upper) - min(lower). For look-ups of values, these are the
    shares of rows with a value below the file's least, and up to its greatest. For one query they are 0, and 1 where it
    asks for the file.
    """

    weight: float  # of all queries
    bytes_read: np.ndarray  # expected
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False)
class RewriteGroup:
    """Files to rewrite together, ascending, with the bytes that a query is expected to read of them now and then."""

    files: np.ndarray
    bytes_now: float
    bytes_then: float


@dataclass(frozen=True, eq=False)
class RewriteCandidates:
    """The files of a table, in rows by partition, and what queries read of them."""

    asked: Sequence[AskedFiles]
    shares: Sequence[ShareOfBlocks]  # for each of `asked`, of rows in the new order
    size: np.ndarray  # bytes of every file: int64 of shape (n_files,)
    blocks: np.ndarray  # of every file
    partition: np.ndarray  # a number for every file
    least: np.ndarray  # orders the files by the least of their values

    def chosen(self, budget: int | None, least_saved: float, *, whole_partitions: bool = False) -> list[RewriteGroup]:
        """Return the groups to rewrite within a budget of bytes, best first, each of files that no other has.

        A group saves at least `least_saved` bytes per query for each of its bytes, and a fifth of what is read of it.
        With `whole_partitions` a group is all files of a partition.
        """
        left = int(self.size.sum()) if budget is None else budget
        first, after = self._partitions if whole_partitions else self._windows(left)
        size = self._sums(self.size, first, after)
        saved = self._before(first, after) - self._then(first, after)
        rate = saved / np.maximum(size, 1)
        open_ = (rate >= least_saved) & (saved > LEAST_FALL * self._before(first, after))
        groups: list[RewriteGroup] = []
        while len(groups) < MOST_GROUPS:
            at = np.flatnonzero(open_ & (size <= left))
            if not len(at):
                break
            near = at[rate[at] >= NEARLY * rate[at].max()]
            best = int(near[np.argmax(saved[near])])
            groups.append(self._group(slice(int(first[best]), int(after[best]))))
            left -= int(size[best])
            open_ &= (after <= first[best]) | (first >= after[best])
        return groups

    # ---- windows: [first, after) of the files in a row

    @cached_property
    def row(self) -> np.ndarray:
        """The files by partition, and within one by the least of their values."""
        return np.lexsort((self.least, self.partition))

    @cached_property
    def _partitions(self) -> tuple[np.ndarray, np.ndarray]:
        """The windows that are whole partitions."""
        partition = self.partition[self.row]
        begins, ends = runs_of(partition[1:] != partition[:-1], len(partition))
        return begins, ends + 1

    def _windows(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        """Return windows of 1, 2, 4, ... files, and from every file on as many as the budget allows."""
        behind = offsets_of(self.size[self.row])
        first, after = [], []
        for begin, end in zip(*self._partitions, strict=True):
            lengths = [1 << k for k in range(int(end - begin).bit_length())]
            for length in lengths:
                starts = np.arange(begin, end - length + 1, max(1, length // _STEPS))
                first.append(starts)
                after.append(starts + length)
            starts = np.arange(begin, end)
            first.append(starts)
            after.append(np.minimum(np.searchsorted(behind, behind[starts] + budget, "right") - 1, end))
        if not first:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        windows = np.unique(np.stack([np.concatenate(first), np.concatenate(after)]), axis=1)
        fits = (windows[1] > windows[0]) & (behind[windows[1]] - behind[windows[0]] <= budget)
        return windows[0][fits], windows[1][fits]

    def _sums(self, values: np.ndarray, first: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the sum of values over the files of every window."""
        behind = np.append(0, np.cumsum(values[self.row]))
        return behind[after] - behind[first]

    def _before(self, first: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the bytes that a query reads of every window now."""
        now = sum((one.weight * one.bytes_read for one in self.asked), np.zeros(len(self.size)))
        return self._sums(now, first, after)

    def _then(self, first: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the bytes that a query is expected to read of every window when it is rewritten."""
        size, blocks = self._sums(self.size, first, after), self._sums(self.blocks, first, after)
        then = np.zeros(len(first))
        for one, share in zip(self.asked, self.shares, strict=True):
            most = greatest_between(one.upper[self.row], first, after)
            least = -greatest_between(-one.lower[self.row], first, after)
            then += one.weight * np.clip(most - least, 0.0, 1.0) * share.of(blocks) * size
        return then

    def _group(self, window: slice) -> RewriteGroup:
        first, after = np.array([window.start]), np.array([window.stop])
        now, then = self._before(first, after), self._then(first, after)
        return RewriteGroup(np.sort(self.row[window]), float(now[0]), float(then[0]))

    def of_all(self) -> tuple[float, float]:
        """Return the bytes that a query reads of the table now, and if every partition were rewritten."""
        first, after = self._partitions
        return float(self._before(first, after).sum()), float(self._then(first, after).sum())
