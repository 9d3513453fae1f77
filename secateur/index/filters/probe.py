"""Probe bloom matrices for values: find the columns that have all bits of some alternative.

A few rows of a matrix leave few columns, so a long list of values is probed in two steps: whole rows are ANDed until
hardly any 64-bit word has a bit left; further rows are read only at the words that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from secateur.index.container.checked_matrix import STRIP, read_rows
from secateur.index.filters.bands import FilterFiles
from secateur.index.filters.bloom import members
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.packed_rows import rows_packed, unpack
from secateur.integers import distinct_and_places, sorted_distinct

WORD = 8  # bytes, of which rows in memory have a whole number
MOST_READ = 1 << 28  # bytes of rows held at once
WORDS = 512  # of every row, processed together: those of a thousand rows fit the shared cache
AT_ONCE = 256  # alternatives whose bits of that many words are held at once: 1 MiB
SPARSE = 1 / 16  # share of words with a bit left below which only those words are processed
SAMPLE = 1 << 10  # words sampled to estimate the share of bits set

MOST_TOLD_APART = 1 << 18  # words with a bit left, over all alternatives
ANY = -1  # stands for any alternative

Hits = tuple[np.ndarray, np.ndarray, np.ndarray]  # alternatives, words, and the remaining bits of each word


def columns_with(
    bloom_matrices: BloomMatrices, matrix: int, alternatives: np.ndarray, columns: tuple[int, int], files: FilterFiles
) -> np.ndarray:
    """Return the columns in [first, end) of a matrix that have a 1 in all rows of some alternative, ascending.

    `alternatives` are row numbers: int64 of shape (alternatives, rows). Raises IndexFault.
    """
    if columns[0] >= columns[1]:
        return np.zeros(0, np.int64)
    strips = range(columns[0] // (8 * STRIP), -(-columns[1] // (8 * STRIP)))
    width = _width(bloom_matrices, matrix, strips)
    may_hold = np.zeros(width // WORD, np.uint64)
    for batch in _batches(alternatives, width):
        rows = sorted_distinct(batch.ravel())
        bits = matrix_rows(bloom_matrices, matrix, rows, strips, files).view(np.uint64)
        may_hold |= _any_of(bits, np.searchsorted(rows, batch))
    columns_found = members(may_hold.view(np.uint8)) + strips.start * STRIP * 8
    return columns_found[slice(*np.searchsorted(columns_found, columns))]


def columns_by_alternative(
    bloom_matrices: BloomMatrices, matrix: int, alternatives: np.ndarray, columns: tuple[int, int], files: FilterFiles
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of :func:`columns_with`, ascending, once per alternative, and the alternatives; -1 means any.

    Alternatives are not distinguished if there are more than MOST_TOLD_APART hits. Raises IndexFault.
    """
    if columns[0] >= columns[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    strips = range(columns[0] // (8 * STRIP), -(-columns[1] // (8 * STRIP)))
    may_hold = np.zeros(_width(bloom_matrices, matrix, strips) // WORD, np.uint64)
    hits, before, count = [], 0, 0
    for batch in _batches(alternatives, may_hold.nbytes):
        rows = sorted_distinct(batch.ravel())
        bits = matrix_rows(bloom_matrices, matrix, rows, strips, files).view(np.uint64)
        for which, word, left in _hits(bits, np.searchsorted(rows, batch)):
            np.bitwise_or.at(may_hold, word, left)
            count += len(word)
            if count <= MOST_TOLD_APART:
                hits.append((which + before, word, left))
        before += len(batch)
    if count > MOST_TOLD_APART:
        at = members(may_hold.view(np.uint8))
        which = np.full(len(at), ANY)
    else:
        at, which = _bits_of(hits)
    at = at + strips.start * STRIP * 8
    inside = slice(*np.searchsorted(at, columns))
    return at[inside], which[inside]


def _bits_of(hits_of_batches: Sequence[Hits]) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the set bits, ascending, and the alternative of each."""
    nothing = np.zeros(0, np.int64)
    which, word = (np.concatenate([nothing, *(hits[i] for hits in hits_of_batches)]) for i in (0, 1))
    left = np.concatenate([nothing.view(np.uint64), *(hits[2] for hits in hits_of_batches)])
    hit, bit = np.nonzero(np.unpackbits(left.view(np.uint8), bitorder="little").reshape(-1, 64))
    at = word[hit] * 64 + bit
    order = np.argsort(at, kind="stable")
    return at[order], which[hit][order]


def _width(bloom_matrices: BloomMatrices, matrix: int, strips: range) -> int:
    """Return the bytes of these strips of a row in memory."""
    return -(-_stored_width(bloom_matrices, matrix, strips) // WORD) * WORD


def _stored_width(bloom_matrices: BloomMatrices, matrix: int, strips: range) -> int:
    """Return the bytes of these strips of a row."""
    return min(strips.stop * STRIP, bloom_matrices.row_bytes(matrix)) - strips.start * STRIP


def _batches(alternatives: np.ndarray, width: int) -> Sequence[np.ndarray]:
    """Return arrays of shape (alternatives, rows), each with about as many rows as may be held at once.

    Long lists share many rows of a small matrix: if all fit at once, no row is read twice.
    """
    if len(sorted_distinct(alternatives.ravel())) * width <= MOST_READ:
        return [alternatives]
    step = max(1, MOST_READ // (width * max(alternatives.shape[1], 1)))
    return [alternatives[start : start + step] for start in range(0, len(alternatives), step)]


def matrix_rows(
    bloom_matrices: BloomMatrices, matrix: int, rows: np.ndarray, strips: range, files: FilterFiles
) -> np.ndarray:
    """Read strips of ascending rows of a matrix from its parts: uint8 of shape (n_rows, bytes), in whole words.

    Raises IndexFault.
    """
    first, end = np.searchsorted(bloom_matrices.part_matrix, [matrix, matrix + 1]).tolist()
    cuts = np.searchsorted(rows, [*bloom_matrices.first_row[first:end].tolist(), 1 << 40]).tolist()
    columns = int(bloom_matrices.columns[matrix])
    together, width = rows_packed(columns), _stored_width(bloom_matrices, matrix, strips)
    whole = np.empty((len(rows), _width(bloom_matrices, matrix, strips)), np.uint8)
    whole[:, width:] = 0
    result = whole[:, :width]

    def read_part(which: tuple[int, int, int]) -> None:
        part, begin, stop = which
        name = bloom_matrices.file_name[int(bloom_matrices.file[part])]
        rows_in_part, stored = rows[begin:stop] - bloom_matrices.first_row[part], bloom_matrices.part(part)
        read = partial(files.read, name)
        if together == 1:
            read_rows(stored, rows_in_part, read, name, strips, result[begin:stop])
        else:
            numbers, which_row = distinct_and_places(rows_in_part // together)
            unpacked = unpack(read_rows(stored, numbers, read, name)[which_row], rows_in_part % together, columns)
            result[begin:stop] = unpacked[:, strips.start * STRIP : strips.stop * STRIP]

    parts = [(part, begin, stop) for part, (begin, stop) in enumerate(pairwise(cuts), first) if begin < stop]
    files.concurrently(read_part, parts)
    return whole


def _any_of(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the OR over alternatives of the AND over their rows: uint64 of shape (words,)."""
    if len(wanted) == 1:
        return np.bitwise_and.reduce(rows[wanted[0]], axis=0)
    columns = np.zeros(rows.shape[1], np.uint64)
    for _, word, left in _hits(rows, wanted):
        np.bitwise_or.at(columns, word, left)
    return columns


def _hits(rows: np.ndarray, wanted: np.ndarray) -> Iterator[Hits]:
    """Yield the words in which the AND of an alternative's rows has a bit."""
    dense = _dense_steps(rows, wanted.shape[1])
    for start in range(0, rows.shape[1], WORDS):
        here = np.ascontiguousarray(rows[:, start : start + WORDS])
        for first in range(0, len(wanted), AT_ONCE):
            which, word, left = _anded(here, wanted[first : first + AT_ONCE], dense)
            yield which + first, word + start, left


def _anded(rows: np.ndarray, wanted: np.ndarray, dense: int) -> Hits:
    """Return the words left by the AND of every alternative's rows; the first `dense` rows are ANDed whole."""
    bits = rows[wanted[:, 0]]
    for step in range(1, dense):
        bits &= rows[wanted[:, step]]
    flat = np.flatnonzero(bits != 0)  # on a mask this is several times faster than on words
    which, word = np.divmod(flat, bits.shape[1])
    left = bits.reshape(-1)[flat]
    for step in range(dense, wanted.shape[1]):
        left &= rows[wanted[which, step], word]
        some = np.flatnonzero(left)
        which, word, left = which[some], word[some], left[some]
    return which, word, left


def _dense_steps(rows: np.ndarray, steps: int) -> int:
    """Estimate from the share of set bits after how many rows hardly any word has a bit left."""
    sample = rows[:, : max(1, SAMPLE // max(len(rows), 1))]
    share = float(np.bitwise_count(sample).mean()) / 64 if sample.size else 0.0
    if share <= 0:
        return 1
    left = 1.0
    for step in range(1, steps + 1):
        left *= share
        if 64 * left < SPARSE:
            return step
    return steps
