"""Read the pages and bitmaps of postings, which a plan asks for twice: for blocks, and then for rows of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.segment_file import StoredPostings

MOST_KEPT = 64  # rows that are kept in memory at once, of a page each; a long list of values is read anew


def posting_rows(memory: IndexMemory, segment: str, stored: StoredPostings) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that reads rows of postings from a segment file; it raises IndexFault.

    If the postings have row lists and few rows are asked for, these are kept in memory, verified.
    """
    where = f"{segment}: postings"

    def read(ranges: Sequence[Range]) -> list[bytes]:
        return memory.chunks.read_ranges(segment, ranges)

    def rows(numbers: np.ndarray) -> np.ndarray:
        if stored.lists is None or len(numbers) > MOST_KEPT:
            return read_rows(stored.rows, numbers, read, where)
        key = ("posting rows", segment, stored.rows.at, numbers.tobytes())
        return memory.cache.get(key, lambda: read_rows(stored.rows, numbers, read, where))

    return rows
