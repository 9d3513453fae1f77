"""The row selection: the rows of one row group to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import flags, from_numpy
from secateur.integers import consecutive
from secateur.ragged import offsets_of, runs_of, spread

MOST_SLICES = 64  # ranges; above it, gathering rows is cheaper than concatenating slices
LEAST_SHARE = 0.25  # of the rows of a table, below which a slice would keep too much memory


@dataclass(frozen=True, eq=False)
class RowSelection:
    """Ranges [start, stop) of rows of one row group: int64, ascending, none empty, none touching the next."""

    start: np.ndarray
    stop: np.ndarray

    def __len__(self) -> int:
        """The number of rows."""
        if len(self.start) == 1:
            return int(self.stop[0] - self.start[0])
        return int((self.stop - self.start).sum())

    @cached_property
    def positions(self) -> np.ndarray:
        """The rows one by one: int64, ascending."""
        return spread(self.start, self.stop - self.start)

    def between(self, begin: int, stop: int) -> RowSelection:
        """Return the rows that lie in [begin, stop)."""
        first, last = np.searchsorted(self.stop, begin, "right"), np.searchsorted(self.start, stop, "left")
        return RowSelection(self.start[first:last].clip(begin), self.stop[first:last].clip(max=stop))

    def among(self, positions: np.ndarray) -> np.ndarray:
        """Return which ascending positions are rows of this selection: bool."""
        first, stop = positions.searchsorted(self.start), positions.searchsorted(self.stop)
        selected = np.zeros(len(positions), bool)
        if len(first) > MOST_SLICES:
            selected[spread(first, stop - first)] = True
            return selected
        for begin, end in zip(first.tolist(), stop.tolist(), strict=True):
            selected[begin:end] = True
        return selected

    def split(self, n: int) -> list[RowSelection]:
        """Split the rows into at most n parts of about equal size, in order."""
        total = len(self)
        ends = np.cumsum(self.stop - self.start)
        cuts = np.unique(np.linspace(0, total, n + 1).astype(np.int64))
        return [self._between(ends, low, high) for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]

    def _between(self, ends: np.ndarray, low: int, high: int) -> RowSelection:
        """Return the rows at the places [low, high)."""
        begins = ends - (self.stop - self.start)
        first, last = int(np.searchsorted(ends, low, "right")), int(np.searchsorted(begins, high, "left"))
        start, stop = self.start[first:last].copy(), self.stop[first:last].copy()
        start[0] += low - begins[first]
        stop[-1] -= ends[last - 1] - high
        return RowSelection(start, stop)

    def within(self, cover: RowSelection, table: pa.Table) -> pa.Table:
        """Select these rows from `table`, which holds exactly the rows of `cover`.

        If they are few they are copied, so that the memory of the other rows is released.
        """
        if not len(self.start):
            return table.slice(0, 0)
        begin = self._begin_within(cover)
        if len(begin) > MOST_SLICES or len(self) < len(table) * LEAST_SHARE:
            places = spread(begin, self.stop - self.start)
            with suppress(pa.ArrowNotImplementedError):  # of views, and of extension types in lists
                if len(places) < len(table) * LEAST_SHARE:
                    return table.take(from_numpy(places))
                mask = np.zeros(len(table), bool)
                mask[places] = True
                return table.filter(flags(mask))
        lengths = (self.stop - self.start).tolist()
        return pa.concat_tables([table.slice(at, n) for at, n in zip(begin.tolist(), lengths, strict=True)])

    def of_batch(self, batch: pa.RecordBatch, begin: int) -> list[pa.RecordBatch]:
        """Select these rows, all in `batch`, whose first is row `begin`; few are copied, as in :meth:`within`."""
        if len(self) < batch.num_rows * LEAST_SHARE:
            with suppress(pa.ArrowNotImplementedError):
                return [batch.take(from_numpy(self.positions - begin))]
        whole = RowSelection(np.array([begin]), np.array([begin + batch.num_rows]))
        return self.within(whole, pa.Table.from_batches([batch])).combine_chunks().to_batches()

    def _begin_within(self, cover: RowSelection) -> np.ndarray:
        """Return where each range begins among the rows of `cover`."""
        if len(cover.start) == 1:
            return self.start - cover.start[0]
        counts = cover.stop - cover.start
        range_ = cover.start.searchsorted(self.start, "right") - 1
        return self.start - cover.start[range_] + (np.cumsum(counts) - counts)[range_]


def all_rows(row_count: int) -> RowSelection:
    """Return a selection of every row of a row group."""
    stop = np.array([row_count] if row_count else [], np.int64)
    return RowSelection(np.zeros_like(stop), stop)


def chosen_rows(positions: np.ndarray) -> RowSelection:
    """Return a selection of the rows at ascending positions."""
    first, last = runs_of(positions[1:] > positions[:-1] + 1, len(positions))
    chosen = RowSelection(positions[first], positions[last] + 1)
    vars(chosen)["positions"] = positions  # so that they are not spread again
    return chosen


def cut_out(batches: Iterator[pa.RecordBatch], rows: RowSelection) -> Iterator[pa.RecordBatch]:
    """Yield the selected rows from batches of all rows of a row group, in order."""
    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        is_whole = not begin and len(rows.stop) and rows.stop[-1] <= end
        here = rows if is_whole else rows.between(begin, end)
        if len(here):
            yield from here.of_batch(batch, begin)
        begin = end


def end_to_end(rows: Sequence[RowSelection | None], counts: np.ndarray) -> RowSelection:
    """Return the selected rows of each of some row groups, or all, numbered through them; `counts` are their rows."""
    begin = offsets_of(counts)[:-1].tolist()
    whole = [
        all_rows(count) if selection is None else selection
        for selection, count in zip(rows, counts.tolist(), strict=True)
    ]
    start = [selection.start + at for selection, at in zip(whole, begin, strict=True)]
    stop = [selection.stop + at for selection, at in zip(whole, begin, strict=True)]
    return merged(np.concatenate(start), np.concatenate(stop))


def without_gaps(rows: RowSelection, counts: Sequence[int]) -> tuple[list[int], RowSelection]:
    """Return which row groups hold selected rows, and the selection numbered through these alone.

    `counts` are the rows of all row groups, through which `rows` are numbered.
    """
    if len(counts) == 1:
        return ([0], rows) if len(rows) else ([], rows)
    stop = np.cumsum(counts)
    start = stop - counts
    has_rows = np.searchsorted(rows.start, stop, "left") > np.searchsorted(rows.stop, start, "right")
    if has_rows.all():
        return list(range(len(counts))), rows
    left_out = np.cumsum(np.where(has_rows, 0, counts))[np.searchsorted(stop, rows.start, "right")]
    return np.flatnonzero(has_rows).tolist(), RowSelection(rows.start - left_out, rows.stop - left_out)


def with_positions(
    batches: Iterator[pa.RecordBatch], rows: RowSelection | None
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield batches of the selected rows, or all, in order, with the positions of their rows."""
    positions = None if rows is None else rows.positions
    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        yield consecutive(begin, end) if positions is None else positions[begin:end], batch
        begin = end


def intersection(a: RowSelection, b: RowSelection) -> RowSelection:
    """Return the rows that are in both."""
    first = np.searchsorted(b.stop, a.start, "right")
    count = np.maximum(np.searchsorted(b.start, a.stop, "left") - first, 0)
    first_range, other = np.repeat(np.arange(len(a.start)), count), spread(first, count)
    return RowSelection(
        np.maximum(a.start[first_range], b.start[other]), np.minimum(a.stop[first_range], b.stop[other])
    )


def merged(start: np.ndarray, stop: np.ndarray) -> RowSelection:
    """Merge ranges that overlap or touch; starts and stops ascend."""
    first, last = runs_of(start[1:] > stop[:-1], len(start))
    return RowSelection(start[first], stop[last])
