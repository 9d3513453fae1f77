"""Looking for values in the matrices of slabs: the columns that have all bits of some alternative.

A few rows of a matrix leave few columns, so a long list of values is looked for in two steps: rows are ANDed as they
lie until hardly a 64-bit word has a bit left, and further rows only at the words that have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from secateur.index.container.checked_matrix import STRIP, Range, read_rows
from secateur.index.filters.bloom import members
from secateur.index.filters.bloom_matrix import WORD, Slabs

MOST_READ = 1 << 28  # bytes of rows held at once
WORDS = 512  # of every row, looked at together: those of a thousand rows stay in the cache that cores share
AT_ONCE = 256  # alternatives whose bits of so many words are held at once: 1 MiB
SPARSE = 1 / 16  # share of words with a bit left below which only those are looked at
SAMPLE = 1 << 10  # words by which the share of bits set is estimated

Alternatives = Sequence[np.ndarray] | np.ndarray  # rows of a matrix, of one of which all must be set
ReadFile = Callable[[str, Sequence[Range]], Sequence[bytes]]  # ranges of a filter file


def columns_with(
    slabs: Slabs, matrix: int, alternatives: Alternatives, columns: tuple[int, int], read: ReadFile
) -> np.ndarray:
    """The columns of [first, end) of a matrix that have a 1 in all rows of some alternative, ascending.

    `alternatives` are arrays of row numbers; those of one shape may be one array of two dimensions. Raises IndexFault.
    """
    if columns[0] >= columns[1]:
        return np.zeros(0, np.int64)
    strips = range(columns[0] // (8 * STRIP), -(-columns[1] // (8 * STRIP)))
    width = _width(slabs, matrix, strips)
    found = np.zeros(width // WORD, np.uint64)
    for batch in _batches(alternatives, width):
        rows = np.unique(batch)
        bits = matrix_rows(slabs, matrix, rows, strips, read).view(np.uint64)
        found |= _any_of(bits, np.searchsorted(rows, batch))
    columns_found = members(found.view(np.uint8)) + strips.start * STRIP * 8
    return columns_found[slice(*np.searchsorted(columns_found, columns))]


def _width(slabs: Slabs, matrix: int, strips: range) -> int:
    """Bytes of these strips of a row."""
    return min(strips.stop * STRIP, int(slabs.width[matrix])) - strips.start * STRIP


def _batches(alternatives: Alternatives, width: int) -> Sequence[np.ndarray]:
    """Arrays of shape (alternatives, rows), each of about as many rows as may be held at once.

    Long lists have many rows of a small matrix in common: where all fit at once, none is read twice.
    """
    if not isinstance(alternatives, np.ndarray):
        return [each[None, :] for each in alternatives]
    if len(np.unique(alternatives)) * width <= MOST_READ:
        return [alternatives]
    step = max(1, MOST_READ // (width * max(alternatives.shape[1], 1)))
    return [alternatives[start : start + step] for start in range(0, len(alternatives), step)]


def matrix_rows(slabs: Slabs, matrix: int, rows: np.ndarray, strips: range, read: ReadFile) -> np.ndarray:
    """Strips of rows of a matrix, which ascend, from its parts: uint8 of shape (n_rows, bytes). Raises IndexFault."""
    first, end = np.searchsorted(slabs.part_matrix, [matrix, matrix + 1]).tolist()
    cuts = np.searchsorted(rows, [*slabs.first_row[first:end].tolist(), 1 << 40]).tolist()
    found = np.empty((len(rows), _width(slabs, matrix, strips)), np.uint8)
    for part, (begin, stop) in enumerate(pairwise(cuts), first):
        if begin < stop:
            name = slabs.file_name[int(slabs.file[part])]
            mine = rows[begin:stop] - slabs.first_row[part]
            read_rows(slabs.part(part), mine, _reader(read, name), name, strips, found[begin:stop])
    return found


def _reader(read: ReadFile, name: str) -> Callable[[Sequence[Range]], Sequence[bytes]]:
    return lambda ranges: read(name, ranges)


def _any_of(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The OR over alternatives of the AND over their rows: uint64 of shape (words,)."""
    if len(wanted) == 1:
        return np.bitwise_and.reduce(rows[wanted[0]], axis=0)
    dense = _dense_steps(rows, wanted.shape[1])
    found = np.zeros(rows.shape[1], np.uint64)
    for start in range(0, rows.shape[1], WORDS):
        here = np.ascontiguousarray(rows[:, start : start + WORDS])
        for first in range(0, len(wanted), AT_ONCE):
            _merge(here, wanted[first : first + AT_ONCE], dense, found[start : start + WORDS])
    return found


def _merge(rows: np.ndarray, wanted: np.ndarray, dense: int, found: np.ndarray) -> None:
    """OR into `found` the AND of every alternative's rows: the first `dense` of them as they lie."""
    bits = rows[wanted[:, 0]]
    for step in range(1, dense):
        bits &= rows[wanted[:, step]]
    flat = np.flatnonzero(bits != 0)  # of a mask, which is several times as fast as of words
    which, word = np.divmod(flat, bits.shape[1])
    left = bits.reshape(-1)[flat]
    for step in range(dense, wanted.shape[1]):
        left &= rows[wanted[which, step], word]
        some = np.flatnonzero(left)
        which, word, left = which[some], word[some], left[some]
    np.bitwise_or.at(found, word, left)


def _dense_steps(rows: np.ndarray, steps: int) -> int:
    """After how many rows hardly a word has a bit left, by the share of bits that are set."""
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
