"""Row lists: for every pair of a value's prefix and a block, the rows of the block that hold the value.

docs/format.md, "Row lists". The lists are in the order of the pairs of postings, and numbered as they are. They lie in
pages, each of which is a chunk of its own, so that a look-up decodes what it asks for and little else. Pages lie end to
end in the bytes of a matrix, whose checksums prove them.

Sound: the list of a pair has every row of the block whose value has the prefix, so no other row of the block does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk
from secateur.index.filters.page_bytes import ReadBands, bands_of, laid, read_pages
from secateur.integers import sorted_distinct
from secateur.ragged import elements_of, offsets_of

PAGE_ROWS = 2048  # 1 to 6 KB; a list of more rows has a page of its own
LONG = 64  # rows; shorter lists have other pages than longer ones, so that the mean of a page tells what its lists are
MOST_ROWS = 1 << 26  # of a page that a reader accepts; a block with more values than half of it is unknown
_SIGNED = np.dtype("<i8")


@dataclass(frozen=True)
class ValueRows:
    """The values of a block, by their hashes, and the rows that hold them."""

    hashes: np.ndarray  # uint64, distinct
    counts: np.ndarray  # int64, rows of each value, at least one
    rows: np.ndarray  # those of one value after the other, ascending in each


@dataclass(frozen=True)
class ListTable:
    """The in-memory part of row lists, used to find their pages: int64 arrays of shape (n_pages + 1,)."""

    first: np.ndarray  # the first list of every page, then the number of lists
    begin: np.ndarray  # the byte where every page begins, then where the last one ends
    before: np.ndarray  # rows in earlier pages, then in all

    @property
    def bands(self) -> int:
        """Rows of the matrix."""
        return bands_of(self.begin)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.first.nbytes + self.begin.nbytes + self.before.nbytes

    def page_of(self, lists: np.ndarray) -> np.ndarray:
        """Return the page of each list."""
        return np.searchsorted(self.first, lists, "right") - 1

    def expected_rows(self, lists: np.ndarray) -> np.ndarray:
        """Return the mean rows of the lists in the page of each list: float64."""
        return (np.diff(self.before) / np.diff(self.first))[self.page_of(lists)]


@dataclass(frozen=True)
class RowLists:
    """Row lists as stored."""

    table: ListTable
    bands: np.ndarray  # uint8 of shape (table.bands, BAND)


# ---- reading ---------------------------------------------------------------------------------------------------------


def rows_in(table: ListTable, lists: np.ndarray, read: ReadBands, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows each of some ascending lists has, and their rows, list by list: int64.

    `read` is called once, or not at all if nothing is asked for. Raises IndexFault, prefixed by `where`, for pages that
    contradict the table.
    """
    page = table.page_of(lists)
    pages = sorted_distinct(page)
    if not len(pages):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    contents = read_pages(table.begin, pages, read)
    decoded = [_decoded(table, *page, where) for page in zip(pages.tolist(), contents, strict=True)]
    counts, steps = (np.concatenate([part[i] for part in decoded], dtype=np.int64) for i in (0, 1))
    behind = offsets_of(np.diff(table.first)[pages])[:-1]  # lists in the earlier of these pages
    chosen = lists - (table.first[pages] - behind)[np.searchsorted(pages, page)]
    return counts[chosen], _rows_of(steps[elements_of(offsets_of(counts), chosen)], counts[chosen])


def _decoded(table: ListTable, page: int, data: memoryview, where: str) -> list[np.ndarray]:
    """Return the rows per list of a page, and the steps between them. Raises IndexFault."""
    arrays = decode_chunk(data, where)
    lists, rows = int(table.first[page + 1] - table.first[page]), int(table.before[page + 1] - table.before[page])
    if [len(array) for array in arrays] != [lists, rows] or any(array.dtype.kind != "u" for array in arrays):
        raise IndexFault(f"{where}: page {page} does not have {lists} lists of {rows} rows")
    counts, steps = arrays
    most = max(int(counts.max()), int(steps.max()))
    if not counts.min() or not steps.min() or most >= 1 << 32 or int(counts.sum(dtype=np.uint64)) != rows:
        raise IndexFault(f"{where}: the lists of page {page} do not have {rows} rows, ascending")
    return arrays


def _rows_of(steps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the rows of lists, given the steps to each row from the one before; to the first row from -1."""
    reached = np.cumsum(steps)
    begin = offsets_of(counts)[:-1]
    return reached - np.repeat(reached[begin] - steps[begin], counts) - 1


def all_rows(lists: RowLists, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows each list has, and the rows of all. Raises IndexFault."""
    return rows_in(lists.table, np.arange(lists.table.first[-1]), lambda bands: lists.bands[bands], where)


# ---- encoding --------------------------------------------------------------------------------------------------------


def row_lists_of(counts: np.ndarray, rows: np.ndarray) -> RowLists:
    """Encode lists: how many rows each has, at least one, and the rows of one after the other, ascending in each."""
    begin = offsets_of(counts)
    steps = np.diff(rows.astype(np.int64), prepend=-1)
    steps[begin[:-1]] = rows[begin[:-1]].astype(np.int64) + 1
    first = _pages(counts, begin)
    pages = [
        encode_chunk([_narrow(counts[low:high]), _narrow(steps[begin[low] : begin[high]])])
        for low, high in pairwise(first.tolist())
    ]
    page_begin, bands = laid(pages)
    return RowLists(ListTable(first, page_begin, begin[first]), bands)


def _pages(counts: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Cut lists into pages of about PAGE_ROWS rows; return the first list of every page, then their number."""
    is_long, is_alone = counts >= LONG, counts >= PAGE_ROWS
    page = np.where(is_alone, np.arange(len(counts)), begin[:-1] // PAGE_ROWS)
    apart = (page[1:] != page[:-1]) | (is_long[1:] != is_long[:-1]) | (is_alone[1:] != is_alone[:-1])
    cuts = np.flatnonzero(apart) + 1
    return np.concatenate([np.zeros(min(len(counts), 1), np.int64), cuts, [len(counts)]])


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Return positive numbers in the narrowest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def list_arrays(table: ListTable) -> list[np.ndarray]:
    """Return the table as arrays of a chunk."""
    return [table.first, table.begin, table.before]


def list_table_of(arrays: Sequence[np.ndarray], lists: int, where: str) -> ListTable:
    """Decode the table of n lists. Raises IndexFault."""
    shapes = [(array.dtype, array.shape) for array in arrays]
    if len(arrays) != 3 or not arrays[0].size or shapes != [(_SIGNED, arrays[0].shape)] * 3:
        raise IndexFault(f"{where}: these are not the row lists of {lists} pairs")
    table = ListTable(*arrays)
    if not _fits(table, lists):
        raise IndexFault(f"{where}: the pages of the row lists are out of order")
    return table


def _fits(table: ListTable, lists: int) -> bool:
    """Whether the pages have that many lists, each at least a row, and neither overlap nor exceed what a page may
    hold.
    """
    arrays = list_arrays(table)
    if len(table.first) > lists + 1 or any(array[0] for array in arrays) or table.first[-1] != lists:
        return False
    if not all((array[1:] > array[:-1]).all() for array in arrays):
        return False
    rows = np.diff(table.before)
    return bool((rows >= np.diff(table.first)).all()) and int(rows.max(initial=0)) <= MOST_ROWS
