"""Postings: for every value of a segment, the blocks that hold it.

A value is identified by its *prefix*, the leading bits of the first half of its hash
(:mod:`secateur.index.filters.bloom`). The smaller of two forms is used:

- *bitmaps*, for few values: a matrix with a row per prefix, whose bit b (least significant first) is that of block b.
- *pairs*, for many: all pairs of a prefix and a block, ordered by prefix, in pages, which are the rows of a matrix. A
  page of p pairs has p uint32, the steps from the prefix of each pair to that of the next (from the last to the first
  of the next page), and p block numbers: uint8 for at most 256 blocks, else uint16. The first prefix of every page is
  in memory, so a probe reads one page, or as many as hold the pairs of its value.

Postings with row lists (:mod:`secateur.index.filters.row_lists`) are always pairs, whose numbers their lists share.

Sound: a block that holds a value has a bit in the row, or a pair, of its prefix. Wrong hits come only from values that
share a prefix. A prefix drops the last s bits of a hash: with d values, an absent one meets one of their prefixes with
probability d 2^s / 2^64. :mod:`secateur.index.filters.postings_build` chooses s and explains why that is about 2^-27,
whatever d is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix
from secateur.index.filters.row_lists import RowLists, ValueRows, all_rows
from secateur.integers import all_within, sorted_distinct
from secateur.ragged import elements_of, offsets_of, spread

PAGE_PAIRS = 512  # 2.5 or 3 KB: one small read, and few prefixes in memory
MOST_PAGE_PAIRS = 1 << 16  # largest that a reader accepts
PAIRS_AT_ONCE = 1 << 18  # pairs processed at once; bounds the working memory
STEP = np.dtype("<u4")
_SIGNED, _UNSIGNED, _SHORT = np.dtype("<i8"), np.dtype("<u8"), np.dtype("<i4")


class Form(enum.IntEnum):
    """How postings are laid out in rows."""

    BITMAPS = 0
    PAIRS = 1


@dataclass(frozen=True)
class PostingTable:
    """The in-memory part of the postings of one column of a segment, used to find its rows."""

    blocks: int
    form: Form
    shift: int  # bits of a hash that its prefix drops
    page: int  # pairs of a page; 0 for bitmaps
    values: int
    pairs: int
    prefixes: np.ndarray  # uint64, ascending: of every row; in pairs the first of every page, then the last of all
    unknown: np.ndarray  # int32, ascending: blocks with unknown values

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return len(self.prefixes) - (self.form is Form.PAIRS)

    @property
    def width(self) -> int:
        """Bytes of a row, without its checksum."""
        return self.page * pair_bytes(self.blocks) if self.form is Form.PAIRS else bitmap_bytes(self.blocks)

    @property
    def wrong_rate(self) -> float:
        """The probability that an absent value is found in some block."""
        return min(1.0, self.values * 2.0 ** (self.shift - 64))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.prefixes.nbytes + self.unknown.nbytes


@dataclass(frozen=True)
class Postings:
    """The postings of one column of a segment, as stored."""

    table: PostingTable
    rows: np.ndarray  # uint8 of shape (table.rows, table.width)
    lists: RowLists | None = None  # which rows of a block hold a value; None: not kept


def size_of_bitmaps(values: int, blocks: int) -> int:
    """Return the bytes of bitmaps: rows with their checksums, and prefixes before compression."""
    return Matrix(0, values, bitmap_bytes(blocks), 0).nbytes + values * _UNSIGNED.itemsize


def size_of_pairs(pairs: int, blocks: int) -> int:
    """Return the bytes of pairs: pages with their checksums, and prefixes before compression."""
    page = page_for(pairs)
    pages = -(-pairs // page)
    return Matrix(0, pages, page * pair_bytes(blocks), 0).nbytes + (pages + 1) * _UNSIGNED.itemsize


def bitmap_bytes(blocks: int) -> int:
    """Return the bytes of a bitmap."""
    return -(-blocks // 8)


def pair_bytes(blocks: int) -> int:
    """Return the bytes of a pair."""
    return STEP.itemsize + number_type(blocks).itemsize


def number_type(blocks: int) -> np.dtype:
    """Return the dtype of a block number."""
    return np.dtype("u1") if blocks <= 256 else np.dtype("<u2")


def page_for(pairs: int) -> int:
    """Return the pairs of a page, chosen so that the last page is nearly as full as the others."""
    return max(1, -(-pairs // max(1, -(-pairs // PAGE_PAIRS))))


# ---- probing ---------------------------------------------------------------------------------------------------------


def blocks_with(
    table: PostingTable, hashes: np.ndarray, read_rows: Callable[[np.ndarray], np.ndarray], where: str
) -> np.ndarray:
    """Mark the blocks that may hold a value with any of the hashes (uint64): bool of shape (table.blocks,).

    `read_rows` reads distinct, ascending rows. It is called once, or not at all if no prefix is near. Raises
    IndexFault, prefixed by `where`, for rows that contradict the table.
    """
    holds = np.zeros(table.blocks, bool)
    holds[table.unknown] = True
    wanted = sorted_distinct(hashes >> np.uint64(table.shift))
    if not table.rows:
        return holds
    match table.form:
        case Form.BITMAPS:
            chosen = _bitmaps_of(table, wanted)
            if len(chosen):
                holds |= _set_bits(table, read_rows(chosen), where)
        case Form.PAIRS:
            chosen = _pages_of(table, wanted)
            if len(chosen):
                for _, blocks in _pairs_in(table, wanted, chosen, read_rows(chosen), where):
                    holds[blocks] = True
    return holds


def pairs_with(
    table: PostingTable, hashes: np.ndarray, read_rows: Callable[[np.ndarray], np.ndarray], where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the pairs of any of the hashes, ascending, and their blocks; `table` has pairs.

    Reads and raises as :func:`blocks_with` does.
    """
    wanted = sorted_distinct(hashes >> np.uint64(table.shift))
    nothing = np.zeros(0, np.int64)
    chosen = _pages_of(table, wanted) if table.form is Form.PAIRS else nothing
    parts = list(_pairs_in(table, wanted, chosen, read_rows(chosen), where)) if len(chosen) else []
    number, block = (np.concatenate([nothing, *(part[i] for part in parts)]) for i in (0, 1))
    return number, block


def _bitmaps_of(table: PostingTable, wanted: np.ndarray) -> np.ndarray:
    """Return the bitmaps of the wanted prefixes that exist, ascending."""
    at = np.searchsorted(table.prefixes, wanted)
    return at[table.prefixes.take(at, mode="clip") == wanted]


def _set_bits(table: PostingTable, bitmaps: np.ndarray, where: str) -> np.ndarray:
    """Mark the blocks in any of some bitmaps: bool of shape (table.blocks,). Raises IndexFault."""
    bits = np.unpackbits(np.bitwise_or.reduce(bitmaps, axis=0), bitorder="little")
    if bits[table.blocks :].any():
        raise IndexFault(f"{where}: a bitmap has more than {table.blocks} blocks")
    return bits[: table.blocks].view(bool)


def _pages_of(table: PostingTable, wanted: np.ndarray) -> np.ndarray:
    """Return the pages that may have pairs of the wanted prefixes, ascending.

    These are the pages that begin with the prefix, and the one before them, which may end with it. Every earlier page
    ends with the smaller prefix that the next page begins with.
    """
    wanted = wanted[: np.searchsorted(wanted, table.prefixes[-1], "right")]
    heads = table.prefixes[:-1]
    begin = np.maximum(np.searchsorted(heads, wanted) - 1, 0)
    return sorted_distinct(spread(begin, np.searchsorted(heads, wanted, "right") - begin))


def _pairs_in(
    table: PostingTable, wanted: np.ndarray, pages: np.ndarray, rows: np.ndarray, where: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers and the blocks of the pairs of wanted prefixes in some pages. Raises IndexFault."""
    at_once = max(1, PAIRS_AT_ONCE // table.page)
    for start in range(0, len(pages), at_once):
        few = slice(start, start + at_once)
        prefixes, blocks = _decoded(table, pages[few], rows[few], where)
        here = wanted[np.searchsorted(wanted, prefixes[0]) : np.searchsorted(wanted, prefixes[-1], "right")]
        begin, end = np.searchsorted(prefixes, here), np.searchsorted(prefixes, here, "right")
        places = spread(begin, end - begin)
        number = pages[few][places // table.page] * table.page + places % table.page
        is_pair = number < table.pairs  # the last page is filled up
        yield number[is_pair], blocks[places[is_pair]]


def _decoded(table: PostingTable, pages: np.ndarray, rows: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the prefixes (ascending) and blocks of all pairs of some pages. Raises IndexFault.

    Prefixes ascend because steps are not negative and each page ends with the prefix that begins the next.
    """
    cut = table.page * STEP.itemsize
    steps = np.ascontiguousarray(rows[:, :cut]).view(STEP)
    prefixes = np.cumsum(steps, axis=1, dtype=np.uint64)
    prefixes += table.prefixes[pages, None]
    if not np.array_equal(prefixes[:, -1], table.prefixes[pages + 1]):
        raise IndexFault(f"{where}: a page does not end with what the next one begins with")
    prefixes -= steps
    blocks = np.ascontiguousarray(rows[:, cut:]).view(number_type(table.blocks))
    if blocks.max() >= table.blocks:
        raise IndexFault(f"{where}: a pair has block {blocks.max()} of {table.blocks}")
    return prefixes.ravel(), blocks.ravel()


def values_by_block(postings: Postings, where: str) -> list[np.ndarray | None]:
    """Return the prefixes of every block's values, as hashes whose last ``shift`` bits are 0; None where unknown.

    Raises IndexFault, prefixed by `where`.
    """
    table = postings.table
    prefixes, blocks = _all_pairs(postings, where)
    order = np.argsort(blocks, kind="stable")
    hashes = prefixes[order] << np.uint64(table.shift)
    values: list[np.ndarray | None] = []
    values += np.split(hashes, np.searchsorted(blocks[order], np.arange(1, table.blocks))) if table.blocks else []
    for block in table.unknown.tolist():
        values[block] = None
    return values


def rows_by_block(postings: Postings, where: str) -> list[ValueRows | None]:
    """Return every block's values, as :func:`values_by_block` does, with the rows that hold them.

    Raises IndexFault, prefixed by `where`, also for postings without row lists.
    """
    if postings.lists is None:
        raise IndexFault(f"{where}: the row lists are missing")
    _, blocks = _all_pairs(postings, where)
    counts, rows = all_rows(postings.lists, where)
    order = np.argsort(blocks, kind="stable")
    rows, counts = rows[elements_of(offsets_of(counts), order)], counts[order]
    cuts = offsets_of(np.bincount(blocks, minlength=postings.table.blocks))[1:-1]
    parts = np.split(counts, cuts), np.split(rows, offsets_of(counts)[cuts])
    return [
        None if hashes is None else ValueRows(hashes, *of_block)
        for hashes, *of_block in zip(values_by_block(postings, where), *parts, strict=False)
    ]


def _all_pairs(postings: Postings, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return every pair of a prefix and a block. Raises IndexFault."""
    table = postings.table
    match table.form:
        case Form.BITMAPS:
            bits = np.unpackbits(postings.rows, axis=1, bitorder="little")
            if bits[:, table.blocks :].any():
                raise IndexFault(f"{where}: a bitmap has more than {table.blocks} blocks")
            value, block = np.nonzero(bits[:, : table.blocks])
            return table.prefixes[value], block
        case Form.PAIRS:
            prefixes, blocks = _decoded(table, np.arange(table.rows), postings.rows, where)
            return prefixes[: table.pairs], blocks[: table.pairs]


# ---- encoding --------------------------------------------------------------------------------------------------------


def posting_arrays(table: PostingTable) -> list[np.ndarray]:
    """Return the table as the arrays of a chunk."""
    described = [table.form, table.shift, table.page, table.values, table.pairs]
    return [np.array(described, np.int64), table.prefixes, table.unknown]


def posting_table_of(arrays: Sequence[np.ndarray], blocks: int, where: str) -> PostingTable:
    """Decode the postings of n blocks. Raises IndexFault."""
    if [array.dtype for array in arrays] != [_SIGNED, _UNSIGNED, _SHORT] or len(arrays[0]) != 5:
        raise IndexFault(f"{where}: these are not postings of {blocks} blocks")
    (form, shift, page, values, pairs), prefixes, unknown = arrays[0].tolist(), *arrays[1:]
    if form not in list(Form) or not 0 <= shift < 64 or not 0 <= values <= pairs:
        raise IndexFault(f"{where}: postings of form {form} with {values} values in {pairs} pairs, less {shift} bits")
    if len(unknown) > blocks or not all_within(unknown, 0, blocks - 1) or not (unknown[1:] > unknown[:-1]).all():
        raise IndexFault(f"{where}: the blocks without postings are out of range")
    table = PostingTable(blocks, Form(form), shift, page, values, pairs, prefixes, unknown)
    if not _fits(table):
        raise IndexFault(f"{where}: the prefixes of the postings are out of order")
    return table


def _fits(table: PostingTable) -> bool:
    """Whether there are as many prefixes as expected, in order.

    If the first equals the last, there is one value, and no block holds it twice: this bounds what a constant array can
    claim before it is expanded.
    """
    prefixes = table.prefixes
    if len(prefixes) and prefixes[0] == prefixes[-1] and table.pairs > table.blocks:
        return False
    if not all_within(prefixes[-1:], 0, (2**64 - 1) >> table.shift):
        return False
    match table.form:
        case Form.BITMAPS:
            return table.rows == table.values and bool((prefixes[1:] > prefixes[:-1]).all())
        case Form.PAIRS:
            if not 1 <= table.page <= min(table.pairs, MOST_PAGE_PAIRS) or table.rows != -(-table.pairs // table.page):
                return False
            return bool((prefixes[1:] >= prefixes[:-1]).all())
