"""Probe many bloom matrices together for a few values.

Rows of few columns are gathered byte by byte for all matrices at once; longer ones are ANDed matrix by matrix, which
costs less per byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from secateur.index.filters.bands import BitRows, FilterFiles, read_bit_rows
from secateur.index.filters.bloom import members
from secateur.index.filters.bloom_matrix import BloomMatrices

GATHERED = 1 << 10  # bytes of a row up to which it is gathered with those of other matrices


class Probes(NamedTuple):
    """Rows that are asked of some matrices: a column may hold an alternative if it has a 1 in all of its rows."""

    matrix: np.ndarray  # int64 of shape (n,)
    rows: np.ndarray  # int64 of shape (n, alternatives, rows)


class Columns(NamedTuple):
    """Columns of matrices that may hold an alternative: int64 arrays of one shape, in no order."""

    matrix: np.ndarray
    column: np.ndarray
    alternative: np.ndarray


def columns_of_all(bloom_matrices: BloomMatrices, asked: Sequence[Probes], files: FilterFiles) -> list[Columns]:
    """Return the columns that may hold an alternative, for each of the probes of matrices with short rows.

    Raises IndexFault.
    """
    nothing = np.zeros(0, np.int64)
    matrix = np.concatenate([nothing, *(np.repeat(probes.matrix, probes.rows[0].size) for probes in asked)])
    row = np.concatenate([nothing, *(probes.rows.ravel() for probes in asked)])
    data, begin = read_bit_rows(bloom_matrices, matrix, row, files)
    cuts = np.cumsum([probes.rows.size for probes in asked])[:-1]
    return [
        _columns(bloom_matrices, probes.matrix, BitRows(data, of_probes.reshape(probes.rows.shape)))
        for probes, of_probes in zip(asked, np.split(begin, cuts), strict=True)
    ]


def _columns(bloom_matrices: BloomMatrices, matrix: np.ndarray, rows: BitRows) -> Columns:
    """Return the columns that have a 1 in all rows of an alternative."""
    columns = bloom_matrices.columns[matrix]
    is_short = (columns <= 8 * GATHERED) | (columns % 8 != 0)
    short, long = np.flatnonzero(is_short), np.flatnonzero(~is_short)
    which, column, alternative = _gathered(columns[short], BitRows(rows.data, rows.begin[short]))
    parts = [Columns(matrix[short[which]], column, alternative)]
    for i in long.tolist():
        parts += _anded(int(matrix[i]), int(columns[i]) // 8, BitRows(rows.data, rows.begin[i]))
    return Columns(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _gathered(columns: np.ndarray, rows: BitRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the positions of matrices, and the columns and alternatives, of the bits that remain.

    Given are the columns of every matrix, and its rows by alternative: (matrices, alternatives, rows).
    """
    sizes = -(-columns // 8)
    first = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(columns)), sizes)
    offset = np.arange(len(owner)) - first[owner]
    byte, shift = rows.begin >> 3, (rows.begin & 7).astype(np.uint8)
    at, shift = byte[owner] + offset[:, None, None], shift[owner]
    bits = rows.data[at] >> shift
    bits |= rows.data[at + 1] << (8 - shift)  # numpy shifts by 8 to 0
    left = np.bitwise_and.reduce(bits, axis=2)  # (bytes, alternatives)
    left[first + sizes - 1] &= (0xFF >> (-columns % 8)).astype(np.uint8)[:, None]
    some, alternative = np.nonzero(left)
    hit, bit = np.nonzero(np.unpackbits(left[some, alternative][:, None], axis=1, bitorder="little"))
    return owner[some[hit]], offset[some[hit]] * 8 + bit, alternative[hit]


def _anded(matrix: int, size: int, rows: BitRows) -> list[Columns]:
    """Return the columns of a matrix whose rows are whole bytes, by alternative."""
    parts = []
    for alternative, begins in enumerate((rows.begin >> 3).tolist()):
        left = reduce(np.bitwise_and, [rows.data[begin : begin + size] for begin in begins])
        column = members(left)
        parts.append(Columns(np.full(len(column), matrix), column, np.full(len(column), alternative)))
    return parts
