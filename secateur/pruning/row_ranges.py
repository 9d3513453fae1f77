"""Row ranges: the rows of each of n blocks that may match.

They are combined as if the rows of all blocks were numbered by one integer: the block's position in its upper bits, the
row in the lower 40. A range of one block never touches one of the next, because no block has 2^40 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.ragged import elements_of, offsets_of, runs_of, spread

ROW_BITS = 40


@dataclass(frozen=True)
class RowRanges:
    """Rows of each block that may match: the ranges of block b are [offsets[b], offsets[b + 1]) of [start, stop)."""

    offsets: np.ndarray  # int64 of shape (n_blocks + 1,)
    start: np.ndarray  # int64, within the block
    stop: np.ndarray

    @property
    def row_counts(self) -> np.ndarray:
        """Return the number of rows of each block in its ranges: int64."""
        return np.diff(offsets_of(self.stop - self.start)[self.offsets])

    def are_whole(self, row_count: np.ndarray) -> np.ndarray:
        """Return which blocks are fully covered, given their row counts: bool."""
        return self.row_counts >= row_count

    def take(self, blocks: np.ndarray) -> RowRanges:
        """Return the ranges of the given blocks."""
        chosen = elements_of(self.offsets, blocks)
        return RowRanges(offsets_of(np.diff(self.offsets)[blocks]), self.start[chosen], self.stop[chosen])

    def between(self, start: int, stop: int) -> RowRanges:
        """Return the ranges of the blocks [start, stop)."""
        begin, end = self.offsets[[start, stop]].tolist()
        return RowRanges(self.offsets[start : stop + 1] - begin, self.start[begin:end], self.stop[begin:end])

    def partial(self, row_count: np.ndarray) -> RowRanges:
        """Return the ranges of blocks that are not fully covered, given their row counts; none for the other blocks."""
        counts, partly = np.diff(self.offsets), ~self.are_whole(row_count)
        kept = np.repeat(partly, counts)
        return RowRanges(offsets_of(np.where(partly, counts, 0)), self.start[kept], self.stop[kept])


def no_ranges(blocks: int) -> RowRanges:
    """Return empty ranges for `blocks` blocks."""
    nothing = np.zeros(0, np.int64)
    return RowRanges(np.zeros(blocks + 1, np.int64), nothing, nothing)


def in_ranges(start: np.ndarray, stop: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return which rows lie in one of the ranges of a block, which ascend without overlap: bool, like `rows`."""
    return np.searchsorted(start, rows, "right") > np.searchsorted(stop, rows, "right")


def whole_blocks(row_count: np.ndarray) -> RowRanges:
    """Return ranges that cover every row of every block."""
    n = len(row_count)
    return RowRanges(np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int64), row_count)


def joined_ranges(parts: Sequence[RowRanges]) -> RowRanges:
    """Concatenate the ranges of all parts; at least one part."""
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return RowRanges(
        offsets_of(counts), *(np.concatenate([getattr(part, side) for part in parts]) for side in ("start", "stop"))
    )


# ---- combined --------------------------------------------------------------------------------------------------------


def rows_of_blocks(block: np.ndarray, row: np.ndarray, row_count: np.ndarray, unknown: np.ndarray) -> RowRanges:
    """Return ranges of single rows, in any order, given the block of each; all rows of the blocks that are `unknown`.

    `row_count` and `unknown` (bool) have the shape (n_blocks,).
    """
    whole = np.flatnonzero(unknown)
    rows = (block << ROW_BITS) + row
    start = np.concatenate([rows, whole << ROW_BITS])
    stop = np.concatenate([rows + 1, (whole << ROW_BITS) + row_count[whole]])
    return _by_block(*_merged(start, stop), len(row_count))


def intersection(a: RowRanges, b: RowRanges) -> RowRanges:
    """Return the rows that are in both, of the same blocks."""
    (a_start, a_stop), (b_start, b_stop) = _numbered(a), _numbered(b)
    first = np.searchsorted(b_stop, a_start, "right")
    count = np.maximum(np.searchsorted(b_start, a_stop, "left") - first, 0)
    one, other = np.repeat(np.arange(len(a_start)), count), spread(first, count)
    start, stop = np.maximum(a_start[one], b_start[other]), np.minimum(a_stop[one], b_stop[other])
    return _by_block(start, stop, len(a.offsets) - 1)


def union(a: RowRanges, b: RowRanges) -> RowRanges:
    """Return the rows that are in one of them or both, of the same blocks."""
    start, stop = (np.concatenate(sides) for sides in zip(_numbered(a), _numbered(b), strict=True))
    return _by_block(*_merged(start, stop), len(a.offsets) - 1)


def complement(ranges: RowRanges, row_count: np.ndarray) -> RowRanges:
    """Return the rows of every block that are in none of its ranges, which ascend without overlap."""
    (start, stop), (begin, end) = _numbered(ranges), _numbered(whole_blocks(row_count))
    starts, stops = (np.sort(np.concatenate(sides)) for sides in ((begin, stop), (start, end)))
    is_left = stops > starts
    return _by_block(starts[is_left], stops[is_left], len(row_count))


def coarsened(ranges: RowRanges, least: np.ndarray) -> RowRanges:
    """Join ranges of a block that are less than so many rows apart: int64 of shape (n_blocks,)."""
    block = np.repeat(np.arange(len(ranges.offsets) - 1), np.diff(ranges.offsets))
    apart = (block[1:] != block[:-1]) | (ranges.start[1:] - ranges.stop[:-1] >= least[block[1:]])
    first, last = runs_of(apart, len(block))
    counts = np.bincount(block[first], minlength=len(least))
    return RowRanges(offsets_of(counts), ranges.start[first], ranges.stop[last])


def _numbered(ranges: RowRanges) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and stops, ascending, as numbers that include the block."""
    behind = np.repeat(np.arange(len(ranges.offsets) - 1) << ROW_BITS, np.diff(ranges.offsets))
    return ranges.start + behind, ranges.stop + behind


def _merged(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge ranges in any order that overlap or touch, and drop empty ones."""
    order = np.argsort(start, kind="stable")
    order = order[stop[order] > start[order]]
    start, reach = start[order], np.maximum.accumulate(stop[order])
    first, last = runs_of(start[1:] > reach[:-1], len(start))
    return start[first], reach[last]


def _by_block(start: np.ndarray, stop: np.ndarray, blocks: int) -> RowRanges:
    """Return ascending ranges of numbered rows by block."""
    block = start >> ROW_BITS
    behind = block << ROW_BITS
    return RowRanges(offsets_of(np.bincount(block, minlength=blocks)), start - behind, stop - behind)
