"""Look up which rows of blocks may hold what a predicate asks for, by the row lists of postings.

The answer has all rows of a block where nothing is known: in files without a segment, in segments without row lists,
in blocks skipped when these were built, and where a value is in so many rows that almost every page has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, Range, read_rows
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.postings import pairs_with
from secateur.index.filters.row_lists import rows_in
from secateur.index.read.loader import IndexMemory
from secateur.index.read.posting_rows import posting_rows
from secateur.index.segments.segment_file import StoredLists, StoredPostings
from secateur.pruning.questions import Values
from secateur.pruning.row_ranges import RowRanges, joined_ranges, rows_of_blocks, whole_blocks
from secateur.ragged import runs_of
from secateur.values.kinds import ordered_kind, same_keys

MOST_SHARE = 1 / 16  # of a block's rows; lists of more are not read, since hardly a page would be without one


def rows_with(memory: IndexMemory, question: Values, numbers: np.ndarray, row_count: np.ndarray) -> RowRanges | None:
    """Return the rows that may hold one of the values, of ascending blocks of segments; None where nothing lists rows.

    `question` has the index's name of its column.
    """
    serving = (
        f
        for f, filter_ in enumerate(memory.snapshot.filters)
        if filter_.rows and filter_.path == question.column.path and same_keys(filter_.type, question.type)
    )
    f = next(serving, None)
    if f is None or not len(numbers):
        return None
    hashes = hash_keys(question.points.tolist(), ordered_kind(question.type))
    begin = memory.groups.block_begin
    segment = np.searchsorted(begin, numbers, "right") - 1
    first, last = runs_of(segment[1:] != segment[:-1], len(segment))
    segments = segment[first]
    spans = list(zip(segments.tolist(), first.tolist(), (last + 1).tolist(), strict=True))
    tables = memory.postings(f, segments)
    if all(table is None or table.lists is None for table in tables):
        return None

    def rows(pair: tuple[tuple[int, int, int], StoredPostings | None]) -> RowRanges:
        (number, low, high), stored = pair
        counts = row_count[low:high]
        with memory.faults.tolerated():
            if stored is not None and stored.lists is not None:
                asked = _Asked(memory, memory.groups.names[number], numbers[low:high] - begin[number], counts)
                return asked.rows(stored, stored.lists, hashes)
        return whole_blocks(counts)

    return joined_ranges(memory.chunks.concurrently(rows, list(zip(spans, tables, strict=True))))


@dataclass(frozen=True)
class _Asked:
    """Some blocks of a segment, by their ascending positions in it."""

    memory: IndexMemory
    name: str  # of the segment's file
    within: np.ndarray
    row_count: np.ndarray

    def rows(self, stored: StoredPostings, lists: StoredLists, hashes: np.ndarray) -> RowRanges:
        """Return the rows that may hold a value with one of the hashes. Raises IndexFault."""
        table, n = stored.table, len(self.within)
        place = np.full(table.blocks, -1)
        place[self.within] = np.arange(n)
        read = posting_rows(self.memory, self.name, stored)
        pairs, block = pairs_with(table, hashes, read, f"{self.name}: postings")
        at = place[block]
        pairs, at = pairs[at >= 0], at[at >= 0]
        unknown = np.bincount(at, lists.table.expected_rows(pairs), n) > MOST_SHARE * self.row_count
        skipped = place[table.unknown]
        unknown[skipped[skipped >= 0]] = True
        pairs, at = pairs[~unknown[at]], at[~unknown[at]]
        where = f"{self.name}: row lists"
        counts, rows = rows_in(lists.table, pairs, self._lists(lists.bands, where), where)
        block = np.repeat(at, counts)
        if (rows >= self.row_count[block]).any():
            raise IndexFault(f"{where}: a list has a row beyond the last of its block")
        return rows_of_blocks(block, rows, self.row_count, unknown)

    def _lists(self, matrix: Matrix, where: str) -> Callable[[np.ndarray], np.ndarray]:
        def read(ranges: Sequence[Range]) -> list[bytes]:
            return self.memory.chunks.read_ranges(self.name, ranges)

        return lambda rows: read_rows(matrix, rows, read, where)
