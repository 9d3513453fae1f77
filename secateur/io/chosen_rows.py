"""Rows of one row group that are to be read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.ragged import spread

MOST_SLICES = 64  # ranges; beyond them it is cheaper to gather rows than to cut slices and put them together
LEAST_SHARE = 0.25  # of the rows of a table, below which a slice would keep too much memory


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Ranges [start, stop) of rows of one row group: int64, ascending, none empty, none touching the next."""

    start: np.ndarray
    stop: np.ndarray

    def __len__(self) -> int:
        """The number of rows."""
        return int((self.stop - self.start).sum())

    @property
    def positions(self) -> np.ndarray:
        """The rows one by one: int64, ascending."""
        return spread(self.start, self.stop - self.start)

    def at(self, places: np.ndarray) -> ChosenRows:
        """Of these rows the ones at some places, which ascend."""
        return chosen_rows(self.positions[places])

    def pieces(self, n: int) -> list[ChosenRows]:
        """The same rows in up to n pieces of about equal numbers of rows, in order."""
        total = len(self)
        ends = np.cumsum(self.stop - self.start)
        cuts = np.unique(np.linspace(0, total, n + 1).astype(np.int64))
        return [self._between(ends, low, high) for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]

    def _between(self, ends: np.ndarray, low: int, high: int) -> ChosenRows:
        """The rows of the places [low, high)."""
        begins = ends - (self.stop - self.start)
        first, last = int(np.searchsorted(ends, low, "right")), int(np.searchsorted(begins, high, "left"))
        start, stop = self.start[first:last].copy(), self.stop[first:last].copy()
        start[0] += low - begins[first]
        stop[-1] -= ends[last - 1] - high
        return ChosenRows(start, stop)

    def within(self, cover: ChosenRows, table: pa.Table) -> pa.Table:
        """Of a table that holds the rows of `cover`, in which these lie, these alone.

        Where they are few they are copied, so that the memory of the others is not kept.
        """
        held = np.cumsum(cover.stop - cover.start) - (cover.stop - cover.start)  # where each range begins in the table
        piece = np.searchsorted(cover.start, self.start, "right") - 1
        begin = self.start - cover.start[piece] + held[piece]
        if len(begin) > MOST_SLICES or len(self) < len(cover) * LEAST_SHARE:
            with suppress(pa.ArrowNotImplementedError):  # of views, and of extension types in lists
                return table.take(from_numpy(spread(begin, self.stop - self.start)))
        lengths = (self.stop - self.start).tolist()
        return pa.concat_tables([table.slice(at, n) for at, n in zip(begin.tolist(), lengths, strict=True)])


def all_rows(row_count: int) -> ChosenRows:
    """Every row of a row group."""
    n = np.array([row_count], np.int64)
    return ChosenRows(n[:0] if not row_count else n - row_count, n[:0] if not row_count else n)


def chosen_rows(positions: np.ndarray) -> ChosenRows:
    """The rows at some positions, which ascend."""
    cut = np.flatnonzero(np.diff(positions) > 1)
    first = np.append(0, cut + 1)[: len(positions)]
    last = np.append(cut, len(positions) - 1)[: len(positions)]
    return ChosenRows(positions[first], positions[last] + 1)


def merged(start: np.ndarray, stop: np.ndarray) -> ChosenRows:
    """Ranges whose starts and stops ascend, with those made one that overlap or touch."""
    apart = np.flatnonzero(start[1:] > stop[:-1])
    return ChosenRows(
        start[np.append(0, apart + 1)[: len(start)]], stop[np.append(apart, len(start) - 1)[: len(start)]]
    )
