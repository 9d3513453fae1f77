"""Build postings by inverting blocks: from the values of every block to the blocks of every value.

The number of hash bits that a prefix drops, s, decides how often an absent value is found: with d values, with
probability d 2^s / 2^64.

- s is at least the bits of a block number, so that a pair fits one uint64 and pairs are sorted as integers. By itself
  that makes d 2^-52 for 4,096 blocks, and d 2^-48 at worst, for 65,536.
- In pairs, s is the least for which the steps of prefixes fit 32 bits, so 2^32 2^s is less than twice the widest gap
  between hashes. Hashes are random points: a gap is wider than x 2^64 / d with probability e^-x, and any of the d gaps
  is with probability d e^-x. So the probability is at most 2^-31 x. The widest gap is about x = ln d, which gives 2^-27
  to 2^-28 for a million values; with x = ln d + 10 it is below 2^-26 for up to 10^8 values, except with probability
  e^-10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from secateur.index.filters.postings import (
    PAIRS_AT_ONCE,
    STEP,
    Form,
    Postings,
    PostingTable,
    bitmap_bytes,
    number_type,
    page_for,
    size_of_bitmaps,
    size_of_pairs,
)
from secateur.index.filters.row_lists import ValueRows, row_lists_of
from secateur.ragged import elements_of, offsets_of

MOST_BLOCKS = 1 << 16  # limit of a pair's block number
_BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


def postings_of(hashes: Sequence[np.ndarray | None], known_from: int = 0) -> Postings:
    """Build the postings of blocks from the hashes of their values: uint64 in any order; None where unknown.

    The last `known_from` bits of the hashes are unknown and never part of a prefix. Raises ValueError for more blocks
    than a pair can number.
    """
    bits = _least_shift(len(hashes), known_from)
    unknown = [block for block, of_block in enumerate(hashes) if of_block is None]
    return _encoded(_sorted_pairs(hashes, bits), bits, len(hashes), unknown)


def postings_with_rows(values: Sequence[ValueRows | None], known_from: int = 0) -> Postings:
    """Build the postings of blocks, and their row lists, from their values; None where unknown.

    `known_from` is that of :func:`postings_of`, which says what is raised.
    """
    bits = _least_shift(len(values), known_from)
    unknown = [block for block, of_block in enumerate(values) if of_block is None]
    pairs, counts, rows = _sorted_rows(values, bits)
    postings = _encoded(pairs, bits, len(values), unknown, (Form.PAIRS,))
    return replace(postings, lists=row_lists_of(counts, rows))


def _least_shift(blocks: int, known_from: int) -> int:
    """Return the least number of bits that prefixes drop. Raises ValueError."""
    if blocks > MOST_BLOCKS:
        raise ValueError(f"postings number at most {MOST_BLOCKS} blocks, not {blocks}")
    return max(max(blocks - 1, 0).bit_length(), known_from)


def _encoded(
    pairs: np.ndarray, bits: int, blocks: int, unknown: Sequence[int], forms: Sequence[Form] = tuple(Form)
) -> Postings:
    """Encode ascending pairs in the smaller of the forms allowed; without a pair there is nothing but bitmaps."""
    values, widest = 0, 0
    for steps in _steps(pairs, bits):
        values += int(np.count_nonzero(steps))
        widest = max(widest, int(steps.max(initial=0)))
    values += len(pairs) > 0
    sizes = {Form.BITMAPS: size_of_bitmaps(values, blocks), Form.PAIRS: size_of_pairs(len(pairs), blocks)}
    form = min(forms, key=sizes.__getitem__) if len(pairs) else Form.BITMAPS
    match form:
        case Form.BITMAPS:
            shift, page = bits, 0
            prefixes, rows = _bitmaps(pairs, bits, values, blocks)
        case Form.PAIRS:
            shift, page = bits + _narrowing(widest), page_for(len(pairs))
            prefixes, rows = _pages(pairs, bits, shift, page, number_type(blocks))
    table = PostingTable(blocks, form, shift, page, values, len(pairs), prefixes, np.array(unknown, np.int32))
    return Postings(table, rows)


def _sorted_rows(values: Sequence[ValueRows | None], bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs, ascending, as :func:`_sorted_pairs` does, the rows per pair, and the rows by pair."""
    known = [(block, of_block) for block, of_block in enumerate(values) if of_block is not None]
    shift, nothing = np.uint64(bits), np.zeros(0, np.int64)
    pairs = [(of_block.hashes >> shift << shift) | np.uint64(block) for block, of_block in known]
    whole = np.concatenate([nothing.astype(np.uint64), *pairs])
    counts = np.concatenate([nothing, *(of_block.counts for _, of_block in known)])
    rows = np.concatenate([nothing.astype(np.uint32), *(of_block.rows for _, of_block in known)])
    order = np.argsort(whole, kind="stable")
    rows = rows[elements_of(offsets_of(counts), order)]
    whole, counts = whole[order], counts[order]
    is_new = np.append(True, whole[1:] != whole[:-1])[: len(whole)]
    return (whole, counts, rows) if is_new.all() else (whole[is_new], *_joined(is_new, counts, rows))


def _joined(is_new: np.ndarray, counts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join the lists of values of a block that share a prefix: every list that is not new with the one before it."""
    pair = np.repeat(np.cumsum(is_new) - 1, counts)
    order = np.lexsort((rows, pair))
    pair, rows = pair[order], rows[order]
    is_other = np.append(True, (pair[1:] != pair[:-1]) | (rows[1:] != rows[:-1]))  # an array may hold both values
    return np.bincount(pair[is_other]), rows[is_other]


def _sorted_pairs(hashes: Sequence[np.ndarray | None], bits: int) -> np.ndarray:
    """Return the distinct pairs, ascending, as uint64: a hash whose last bits are the number of its block."""
    pairs = np.empty(sum(len(of_block) for of_block in hashes if of_block is not None), np.uint64)
    end = 0
    for block, of_block in enumerate(hashes):
        if of_block is not None:
            begin, end = end, end + len(of_block)
            pairs[begin:end] = (of_block >> np.uint64(bits) << np.uint64(bits)) | np.uint64(block)
    pairs.sort()
    repeated = pairs[1:] == pairs[:-1]
    return pairs[np.append(True, ~repeated)] if repeated.any() else pairs


def _steps(pairs: np.ndarray, bits: int) -> Iterator[np.ndarray]:
    """Yield the differences of neighbouring prefixes, in chunks."""
    for start in range(0, len(pairs) - 1, PAIRS_AT_ONCE):
        prefixes = pairs[start : start + PAIRS_AT_ONCE + 1] >> np.uint64(bits)
        yield prefixes[1:] - prefixes[:-1]


def _narrowing(widest: int) -> int:
    """Return the bits to drop so that all steps fit: truncation makes a step at most one greater than the truncated
    step.
    """
    return next(bits for bits in range(64) if (widest >> bits) + (bits > 0) < 1 << 8 * STEP.itemsize)


def _bitmaps(pairs: np.ndarray, bits: int, values: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the prefix of every row, and the rows."""
    prefixes = np.empty(values, np.uint64)
    rows = np.zeros((values, bitmap_bytes(blocks)), np.uint8)
    done = 0  # prefixes of earlier chunks
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        chunk = pairs[start : start + PAIRS_AT_ONCE]
        prefix = chunk >> np.uint64(bits)
        first = np.append(done == 0 or bool(prefix[0] != prefixes[done - 1]), prefix[1:] != prefix[:-1])
        row = np.cumsum(first) + (done - 1)
        done += int(np.count_nonzero(first))
        prefixes[row[first]] = prefix[first]
        block = chunk & np.uint64((1 << bits) - 1)
        np.bitwise_or.at(rows, (row, (block >> np.uint64(3)).astype(np.intp)), _BITS[block & np.uint64(7)])
    return prefixes, rows


def _pages(pairs: np.ndarray, bits: int, shift: int, page: int, number: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the prefix at the start of every page and the last one, and the pages; needs at least one pair.

    The last page is padded with its last pair, which adds nothing.
    """
    pages = -(-len(pairs) // page)
    rows = np.empty((pages, page * (STEP.itemsize + number.itemsize)), np.uint8)
    at_once = max(1, PAIRS_AT_ONCE // page)
    for start in range(0, pages, at_once):
        stop = min(start + at_once, pages)
        chunk = pairs.take(np.arange(start * page, stop * page + 1), mode="clip")
        prefixes = chunk >> np.uint64(shift)
        steps = (prefixes[1:] - prefixes[:-1]).astype(STEP)
        blocks = (chunk[:-1] & np.uint64((1 << bits) - 1)).astype(number)
        rows[start:stop, : page * STEP.itemsize] = steps.reshape(-1, page).view(np.uint8)
        rows[start:stop, page * STEP.itemsize :] = blocks.reshape(-1, page).view(np.uint8)
    return np.append(pairs[::page], pairs[-1:]) >> np.uint64(shift), rows
