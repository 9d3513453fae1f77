"""Look up where the values of some ranges are, by ordered postings.

The answer has all blocks, and all rows, where nothing is known: in segments without ordered postings, in blocks skipped
when these were built, and where ranges hold so many values that hardly a block or page would be without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.filters.ordered import places_within
from secateur.index.model import ORDERED
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.segment_file import StoredOrdered
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Ranges
from secateur.pruning.row_ranges import RowRanges, joined_ranges, rows_of_blocks, whole_blocks
from secateur.ragged import runs_of
from secateur.values.kinds import same_keys

MOST_SHARE = 1 / 64  # of the pages may lie within ranges; with more, hardly a block would be without a value
LEAST_PAGES = 16  # are read whatever their share
MOST_PAGES = 1 << 11  # for a long list of values; decoding them takes some 60 ms
MOST_KEPT = 64  # rows of the matrix that are kept in memory at once; a plan asks twice: for blocks, then for their rows

Places = tuple[np.ndarray, np.ndarray]  # blocks by their positions in a segment, and rows


def blocks_within(memory: IndexMemory, question: Ranges, segments: np.ndarray) -> np.ndarray | None:
    """Return the blocks of some segments, ascending, that may hold a value in the ranges; None if nothing tells."""
    f = ordered_filter(memory, question.column)
    tables = [] if f is None else memory.ordered(f, segments)
    if all(table is None for table in tables):
        return None

    def numbers(pair: tuple[int, StoredOrdered | None]) -> np.ndarray:
        segment, stored = pair
        begin, end = memory.groups.block_begin[segment : segment + 2].tolist()
        holds = np.ones(end - begin, bool)
        with memory.faults.tolerated():
            places = None if stored is None else _places(memory, memory.groups.names[segment], stored, question)
            if stored is not None and places is not None:
                holds[:] = False
                holds[places[0]] = True
                holds[stored.table.unknown] = True
        return begin + np.flatnonzero(holds)

    pairs = list(zip(segments.tolist(), tables, strict=True))
    return np.concatenate([np.zeros(0, np.int64), *memory.chunks.concurrently(numbers, pairs)])


def rows_within(memory: IndexMemory, question: Ranges, numbers: np.ndarray, row_count: np.ndarray) -> RowRanges | None:
    """Return the rows that may hold a value in the ranges, of ascending blocks of segments; None if nothing tells."""
    f = ordered_filter(memory, question.column)
    if f is None or not len(numbers):
        return None
    begin = memory.groups.block_begin
    segment = np.searchsorted(begin, numbers, "right") - 1
    first, last = runs_of(segment[1:] != segment[:-1], len(segment))
    segments = segment[first]
    spans = list(zip(segments.tolist(), first.tolist(), (last + 1).tolist(), strict=True))
    tables = memory.ordered(f, segments)
    if all(table is None for table in tables):
        return None

    def rows(pair: tuple[tuple[int, int, int], StoredOrdered | None]) -> RowRanges:
        (number, low, high), stored = pair
        with memory.faults.tolerated():
            name = memory.groups.names[number]
            places = None if stored is None else _places(memory, name, stored, question)
            if stored is not None and places is not None:
                return _rows(stored, places, numbers[low:high] - begin[number], row_count[low:high], name)
        return whole_blocks(row_count[low:high])

    return joined_ranges(memory.chunks.concurrently(rows, list(zip(spans, tables, strict=True))))


def ordered_filter(memory: IndexMemory, column: Field) -> int | None:
    """Return the number of the ordered postings of a column, which has the index's name; None where it has none."""
    serving = (
        f
        for f, filter_ in enumerate(memory.snapshot.filters)
        if filter_.kind == ORDERED and filter_.path == column.path and same_keys(filter_.type, column.type)
    )
    return next(serving, None)


def _places(memory: IndexMemory, name: str, stored: StoredOrdered, question: Ranges) -> Places | None:
    """Return where values of a segment may lie in the ranges; None where too many do. Raises IndexFault."""
    where = f"{name}: ordered postings"
    spans = stored.table.pages_within(question.ranges)
    pages = spans.pages
    if spans.inner > max(LEAST_PAGES, MOST_SHARE * stored.table.pages) or len(pages) > MOST_PAGES:
        return None

    def read(ranges: Sequence[Range]) -> list[bytes]:
        return memory.chunks.read_ranges(name, ranges)

    def rows(numbers: np.ndarray) -> np.ndarray:
        if len(numbers) > MOST_KEPT:
            return read_rows(stored.bands, numbers, read, where)
        key = ("ordered postings", name, stored.bands.at, numbers.tobytes())
        return memory.cache.get(key, lambda: read_rows(stored.bands, numbers, read, where))

    return places_within(stored.table, spans, rows, where)


def _rows(stored: StoredOrdered, places: Places, within: np.ndarray, row_count: np.ndarray, name: str) -> RowRanges:
    """Return the rows of some blocks, by their ascending positions in a segment. Raises IndexFault."""
    place = np.full(stored.table.blocks, -1)
    place[within] = np.arange(len(within))
    at = place[places[0]]
    at, rows = at[at >= 0], places[1][at >= 0]
    if (rows >= row_count[at]).any():
        raise IndexFault(f"{name}: ordered postings have a row beyond the last of its block")
    unknown = np.zeros(len(within), bool)
    skipped = place[stored.table.unknown]
    unknown[skipped[skipped >= 0]] = True
    return rows_of_blocks(at, rows, row_count, unknown)
