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

MOST_BLOCKS = 1 << 16  # limit of a pair's block number
_BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


def postings_of(hashes: Sequence[np.ndarray | None], known_from: int = 0) -> Postings:
    """Build the postings of blocks from the hashes of their values: uint64 in any order; None where unknown.

    The last `known_from` bits of the hashes are unknown and never part of a prefix. Raises ValueError for more blocks
    than a pair can number.
    """
    blocks = len(hashes)
    if blocks > MOST_BLOCKS:
        raise ValueError(f"postings number at most {MOST_BLOCKS} blocks, not {blocks}")
    bits = max(max(blocks - 1, 0).bit_length(), known_from)
    pairs = _sorted_pairs(hashes, bits)
    values, widest = 0, 0
    for steps in _steps(pairs, bits):
        values += int(np.count_nonzero(steps))
        widest = max(widest, int(steps.max(initial=0)))
    values += len(pairs) > 0
    if size_of_bitmaps(values, blocks) <= size_of_pairs(len(pairs), blocks):
        form, shift, page = Form.BITMAPS, bits, 0
        prefixes, rows = _bitmaps(pairs, bits, values, blocks)
    else:
        form, shift, page = Form.PAIRS, bits + _narrowing(widest), page_for(len(pairs))
        prefixes, rows = _pages(pairs, bits, shift, page, number_type(blocks))
    unknown = np.array([block for block, of_block in enumerate(hashes) if of_block is None], np.int32)
    return Postings(PostingTable(blocks, form, shift, page, values, len(pairs), prefixes, unknown), rows)


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
