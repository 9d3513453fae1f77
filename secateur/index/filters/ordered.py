"""Ordered postings: the values of a segment in order, each with its block and row.

docs/format.md, "Ordered postings". A range of values is a range of entries. The first head of every page is in memory,
so a look-up reads the pages that hold a range, and decodes no others.

Sound: every value of a block that is not unknown has an entry, under a head that orders as the value does
(:mod:`secateur.index.filters.heads`). So no other block and no other row has a value in the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk, is_repeated
from secateur.index.filters.heads import MOST_PREFIX, Cuts, Heads, joined, spans_of
from secateur.index.filters.page_bytes import ReadBands, bands_of, laid, read_pages
from secateur.integers import all_within, sorted_distinct
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.ragged import offsets_of, runs_of, spread

PAGE = 2048  # entries: 6 to 14 KB
MOST_PAGE = 1 << 16  # largest that a reader accepts
MOST_ROW = (1 << 32) - 1
_SIGNED, _SHORT, _BYTE = np.dtype("<i8"), np.dtype("<i4"), np.dtype("u1")


@dataclass(frozen=True)
class BlockEntries:
    """The values of a block and the row of each; rows of equal heads ascend."""

    heads: Heads
    rows: np.ndarray  # uint32


@dataclass(frozen=True)
class OrderedTable:
    """The in-memory part of the ordered postings of one column of a segment, used to find their pages."""

    blocks: int
    entries: int
    page: int  # entries of every page but the last
    is_exact: bool  # whether a value is known by its head
    prefix: bytes  # that all values, if they are bytes, begin with
    heads: np.ndarray  # int64: the first of every page, then the last of all; empty without an entry
    begin: np.ndarray  # int64: the byte where every page begins, then where the last one ends
    unknown: np.ndarray  # int32, ascending: blocks with unknown values

    @property
    def pages(self) -> int:
        """The number of pages."""
        return len(self.begin) - 1

    @property
    def bands(self) -> int:
        """Rows of the matrix."""
        return bands_of(self.begin)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.heads.nbytes + self.begin.nbytes + self.unknown.nbytes

    def page_of(self, cuts: Cuts) -> np.ndarray:
        """Return the page in which each cut falls, after its first entry; -1 where it is before all entries."""
        return cuts.among(self.heads[:-1]) - 1

    def pages_within(self, ranges: RangeSet) -> EntrySpans:
        """Return the pages of the entries that may lie in ranges."""
        starts, stops = spans_of(ranges, self.prefix, is_exact=self.is_exact)
        if not self.entries:
            nowhere = np.zeros(0, np.int64)
            return EntrySpans(starts, stops, nowhere, nowhere)
        first, last = np.maximum(self.page_of(starts), 0), self.page_of(stops)
        is_beyond = np.where(starts.after, starts.head >= self.heads[-1], starts.head > self.heads[-1])
        inside = np.flatnonzero((last >= 0) & ~is_beyond)
        starts, stops = (Cuts(*(side[inside] for side in cuts)) for cuts in (starts, stops))
        return EntrySpans(starts, stops, first[inside], last[inside])


class EntrySpans(NamedTuple):
    """Where the entries of some ranges begin and end, and the first and the last page of each."""

    starts: Cuts
    stops: Cuts
    first: np.ndarray
    last: np.ndarray

    @property
    def inner(self) -> int:
        """Pages all of whose entries are in some range, at least: each is between the two ends of one."""
        return int(np.maximum(self.last - self.first - 1, 0).sum())

    @property
    def pages(self) -> np.ndarray:
        """The pages, ascending."""
        return sorted_distinct(spread(self.first, self.last - self.first + 1))


@dataclass(frozen=True)
class Ordered:
    """Ordered postings as stored."""

    table: OrderedTable
    bands: np.ndarray  # uint8 of shape (table.bands, BAND)


class PageEntries(NamedTuple):
    """Entries of some pages: distinct heads of each page, how many entries each has, and all blocks and rows."""

    heads: np.ndarray
    counts: np.ndarray
    blocks: np.ndarray
    rows: np.ndarray


# ---- reading ---------------------------------------------------------------------------------------------------------


def places_within(table: OrderedTable, spans: EntrySpans, read: ReadBands, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the block and the row of every value that may lie in some ranges, in no order, some of them repeatedly.

    `spans` are those of the ranges. `read` is called once, or not at all. Raises IndexFault, prefixed by `where`.
    """
    entries = _entries_of(table, spans.pages, read, where)
    offsets = offsets_of(entries.counts)
    begin, end = (offsets[cuts.among(entries.heads)] for cuts in (spans.starts, spans.stops))
    chosen = spread(begin, np.maximum(end - begin, 0))
    return entries.blocks[chosen], entries.rows[chosen]


def entries_before(table: OrderedTable, cuts: Cuts, read: ReadBands, where: str) -> np.ndarray:
    """Return how many entries come before each cut: int64.

    `read` is called once, or not at all. Raises IndexFault, prefixed by `where`.
    """
    if not table.entries:
        return np.zeros(len(cuts.head), np.int64)
    pages = table.page_of(cuts)
    known = sorted_distinct(pages[pages >= 0])
    entries = _entries_of(table, known, read, where)
    skipped = np.maximum(pages, 0) - np.searchsorted(known, np.maximum(pages, 0))  # pages before it that are not read
    return np.where(pages < 0, 0, offsets_of(entries.counts)[cuts.among(entries.heads)] + skipped * table.page)


def entries_at(
    table: OrderedTable, spans: EntrySpans, pages: np.ndarray, read: ReadBands, where: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the head, the block and the row of every entry of ascending pages that may lie in some ranges, in order.

    `read` is called once. Raises IndexFault, prefixed by `where`.
    """
    entries = _entries_of(table, pages, read, where)
    begin, end = (cuts.among(entries.heads) for cuts in (spans.starts, spans.stops))
    change = np.zeros(len(entries.heads) + 1, np.int64)
    np.add.at(change, begin[begin < end], 1)
    np.add.at(change, end[begin < end], -1)
    inside = np.repeat(np.cumsum(change[:-1]) > 0, entries.counts)
    return np.repeat(entries.heads, entries.counts)[inside], entries.blocks[inside], entries.rows[inside]


def all_entries(ordered: Ordered, where: str) -> list[BlockEntries | None]:
    """Return the values of every block; None where they are unknown. Raises IndexFault, prefixed by `where`."""
    table = ordered.table
    entries = _entries_of(table, np.arange(table.pages), lambda bands: ordered.bands[bands], where)
    order = np.argsort(entries.blocks, kind="stable")
    cuts = np.cumsum(np.bincount(entries.blocks, minlength=table.blocks))[:-1]
    heads = np.split(np.repeat(entries.heads, entries.counts)[order], cuts) if table.blocks else []
    rows = np.split(entries.rows.astype(np.uint32)[order], cuts) if table.blocks else []
    blocks: list[BlockEntries | None] = [
        BlockEntries(Heads(part, table.prefix, table.is_exact), of_block)
        for part, of_block in zip(heads, rows, strict=True)
    ]
    for block in table.unknown.tolist():
        blocks[block] = None
    return blocks


def _entries_of(table: OrderedTable, pages: np.ndarray, read: ReadBands, where: str) -> PageEntries:
    """Return the entries of some ascending pages. Raises IndexFault."""
    contents = read_pages(table.begin, pages, read) if len(pages) else ()
    decoded = [_decoded(table, *page, where) for page in zip(pages.tolist(), contents, strict=True)]
    nothing = np.zeros(0, np.int64)
    return PageEntries(*(np.concatenate([nothing, *(part[i] for part in decoded)]) for i in range(4)))


def _decoded(table: OrderedTable, page: int, data: memoryview, where: str) -> PageEntries:
    """Return the entries of a page. Raises IndexFault."""
    arrays = decode_chunk(data, where)
    expected = min(table.page, table.entries - page * table.page)
    if len(arrays) != 4 or arrays[0].dtype != _SIGNED or any(array.dtype.kind != "u" for array in arrays[1:]):
        raise IndexFault(f"{where}: page {page} does not have heads, counts, blocks and rows")
    heads, counts, blocks, rows = entries = PageEntries(*arrays)
    if not len(heads) == len(counts) <= expected == len(blocks) == len(rows) or not len(heads):
        raise IndexFault(f"{where}: page {page} does not have {expected} entries")
    is_within = heads[0] == table.heads[page] and heads[-1] <= table.heads[page + 1]
    if not is_within or not (heads[1:] > heads[:-1]).all():
        raise IndexFault(f"{where}: the heads of page {page} are out of order")
    if not counts.min() or int(counts.max()) > expected or int(counts.sum(dtype=np.uint64)) != expected:
        raise IndexFault(f"{where}: page {page} does not have {expected} entries")
    if int(blocks.max()) >= table.blocks or int(rows.max()) > MOST_ROW:
        raise IndexFault(f"{where}: page {page} has a block or a row out of range")
    return PageEntries(heads, *(array.astype(np.int64) for array in entries[1:]))


# ---- encoding --------------------------------------------------------------------------------------------------------


def ordered_of(blocks: Sequence[BlockEntries | None]) -> Ordered:
    """Order the values of some blocks; None for a block whose values are unknown."""
    known = [(number, block) for number, block in enumerate(blocks) if block is not None]
    unknown = [number for number, block in enumerate(blocks) if block is None]
    whole = joined([block.heads for _, block in known])
    number = np.repeat([number for number, _ in known], [len(block.rows) for _, block in known]).astype(np.uint32)
    rows = np.concatenate([np.zeros(0, np.uint32), *(block.rows for _, block in known)])
    order = np.argsort(whole.heads, kind="stable")
    heads, number, rows = whole.heads[order], number[order], rows[order]
    starts = range(0, len(heads), PAGE)
    begin, bands = laid([_encoded(*(part[at : at + PAGE] for part in (heads, number, rows))) for at in starts])
    bounds = np.append(heads[::PAGE], heads[-1:])
    described = len(blocks), len(heads), PAGE, whole.is_exact, whole.prefix, bounds, begin
    return Ordered(OrderedTable(*described, np.array(unknown, np.int32)), bands)


def _encoded(heads: np.ndarray, blocks: np.ndarray, rows: np.ndarray) -> bytes:
    """Encode the entries of a page."""
    first, last = runs_of(heads[1:] != heads[:-1], len(heads))
    return encode_chunk([heads[first], *map(_narrow, (last - first + 1, blocks, rows))])


def _narrow(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def ordered_arrays(table: OrderedTable) -> list[np.ndarray]:
    """Return the table as the arrays of a chunk."""
    counts = np.array([table.entries, table.page, table.is_exact], np.int64)
    return [counts, np.frombuffer(table.prefix, np.uint8), table.heads, table.begin, table.unknown]


def ordered_table_of(arrays: Sequence[np.ndarray], blocks: int, where: str) -> OrderedTable:
    """Decode the ordered postings of n blocks. Raises IndexFault."""
    if [array.dtype for array in arrays] != [_SIGNED, _BYTE, _SIGNED, _SIGNED, _SHORT] or len(arrays[0]) != 3:
        raise IndexFault(f"{where}: these are not the ordered postings of {blocks} blocks")
    (entries, page, is_exact), prefix, heads, begin, unknown = arrays[0].tolist(), *arrays[1:]
    if len(unknown) > blocks or not all_within(unknown, 0, blocks - 1) or not (unknown[1:] > unknown[:-1]).all():
        raise IndexFault(f"{where}: the blocks without ordered postings are out of range")
    if not 1 <= page <= MOST_PAGE or entries < 0 or is_exact not in (0, 1) or len(prefix) > MOST_PREFIX:
        raise IndexFault(f"{where}: {entries} ordered postings in pages of {page}")
    pages = -(-entries // page)
    if len(begin) != pages + 1 or is_repeated(begin) or begin[0] or not (begin[1:] > begin[:-1]).all():
        raise IndexFault(f"{where}: the pages of the ordered postings are out of order")
    if len(heads) != pages + (pages > 0) or not (heads[1:] >= heads[:-1]).all():
        raise IndexFault(f"{where}: the heads of the ordered postings are out of order")
    return OrderedTable(blocks, entries, page, bool(is_exact), prefix.tobytes(), heads, begin, unknown)
