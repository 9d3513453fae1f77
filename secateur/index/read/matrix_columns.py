"""Find the columns of a filter's bloom matrices that may hold some values.

For a few values all matrices are read together; for many, or over many blocks, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from secateur.errors import IndexFault
from secateur.index.filters import parquet_bloom
from secateur.index.filters.bands import FilterFiles, have_short_rows
from secateur.index.filters.bloom import positions, positions_by_size
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.probe import ANY, columns_by_alternative, columns_with
from secateur.index.filters.probe_together import Probes, columns_of_all
from secateur.index.filters.size_class import FilterShape, families_of, shape_of
from secateur.integers import sorted_distinct
from secateur.pruning.report import Faults

MOST_ROWS = 512  # of a matrix that is read together with others
MOST_BYTES = 1 << 22  # of the rows of all that are
LEAST_TOGETHER = 2  # matrices: a single one costs less by itself


class AskedHashes(NamedTuple):
    """Hashes that a filter must all hold, uint64 of shape (alternatives, hashes), and the value of each alternative."""

    hashes: np.ndarray
    value: np.ndarray


class Hits(NamedTuple):
    """Columns of matrices that may hold a value, in no order; `value` is its position, or ANY."""

    matrix: np.ndarray
    column: np.ndarray
    value: np.ndarray


# By the encoding of filters; None: they cannot be asked. Raises IndexFault.
HashesOf = Callable[[int | None], AskedHashes | None]


@dataclass(frozen=True)
class MatrixReader:
    """Reads the bloom matrices of a filter; `runs` are those whose columns are wanted, ascending."""

    bloom_matrices: BloomMatrices
    runs: np.ndarray
    files: FilterFiles
    faults: Faults


class _Asked(NamedTuple):
    """Matrices whose filters hash alike, and what is asked of them."""

    matrices: np.ndarray
    shape: FilterShape  # of the first one: only the sizes differ
    of: AskedHashes


def find_columns(reader: MatrixReader, hashes_of: HashesOf) -> tuple[Hits, np.ndarray]:
    """Return the columns that may hold a value, and for every matrix whether it is known: bool of shape (matrices,).

    Of matrices that cannot be asked all columns are returned; of unreadable ones, whose fault is recorded, none.
    """
    asked, unasked = _questions(reader, hashes_of)
    parts = [_all_columns(reader, matrices) for matrices in unasked]
    few, many = _by_rows(reader.bloom_matrices, asked)
    known = np.zeros(len(reader.bloom_matrices.size_class), bool)
    try:
        parts += _together(reader, few)
    except IndexFault:  # read them one by one, so that only the unreadable ones are lost
        few, many = [], [*few, *many]
    for matrices in (*unasked, *(one.matrices for one in few)):
        known[matrices] = True
    for one in many:
        for matrix in one.matrices.tolist():
            with reader.faults.tolerated():
                parts.append(_singly(reader, matrix, one))
                known[matrix] = True
    return _joined(parts), known


def _questions(reader: MatrixReader, hashes_of: HashesOf) -> tuple[list[_Asked], list[np.ndarray]]:
    """Return what is asked of the matrices, and those that cannot be asked."""
    bloom_matrices = reader.bloom_matrices
    matrices = sorted_distinct(bloom_matrices.run_matrix[reader.runs])
    family = families_of(bloom_matrices.size_class[matrices])
    asked: list[_Asked] = []
    unasked: list[np.ndarray] = []
    for number in sorted_distinct(family).tolist():
        alike = matrices[family == number]
        shape = shape_of(int(bloom_matrices.size_class[alike[0]]))
        with reader.faults.tolerated():
            of = hashes_of(shape.encoding)
            if of is None:
                unasked.append(alike)
            else:
                asked.append(_Asked(alike, shape, of))
    return asked, unasked


def _by_rows(bloom_matrices: BloomMatrices, asked: Sequence[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
    """Return matrices of which few rows are read, together, and others."""
    few: list[_Asked] = []
    many: list[_Asked] = []
    for one in asked:
        rows = one.of.hashes.size * one.shape.probes
        size = -(-bloom_matrices.columns[one.matrices] // 8) * rows
        short = have_short_rows(bloom_matrices, one.matrices) & (np.cumsum(size) <= MOST_BYTES) & (rows <= MOST_ROWS)
        few += [one._replace(matrices=one.matrices[short])] if short.any() else []
        many += [one._replace(matrices=one.matrices[~short])] if not short.all() else []
    if sum(len(one.matrices) for one in few) < LEAST_TOGETHER:
        return [], [*few, *many]
    return few, many


def _joined(parts: Sequence[Hits]) -> Hits:
    nothing = np.zeros(0, np.int64)
    return Hits(*(np.concatenate(arrays) for arrays in zip(Hits(nothing, nothing, nothing), *parts, strict=True)))


def _all_columns(reader: MatrixReader, matrices: np.ndarray) -> Hits:
    """Return all columns of the runs of some matrices."""
    bloom_matrices = reader.bloom_matrices
    runs = reader.runs[np.isin(bloom_matrices.run_matrix[reader.runs], matrices)]
    begin, count = bloom_matrices.begin[runs], bloom_matrices.count[runs]
    first = np.cumsum(count) - count
    column = np.arange(int(count.sum())) + np.repeat(begin - first, count)
    return Hits(np.repeat(bloom_matrices.run_matrix[runs], count), column, np.full(len(column), ANY))


def _hits(matrix: np.ndarray, column: np.ndarray, alternative: np.ndarray, of: AskedHashes) -> Hits:
    if len(of.value) == 1:  # for a single value the zone maps decide later anyway
        return Hits(matrix, column, np.full(len(column), ANY))
    return Hits(matrix, column, np.where(alternative == ANY, ANY, of.value[alternative]))


# ---- together


def _together(reader: MatrixReader, asked: Sequence[_Asked]) -> list[Hits]:
    """Return the columns that may hold a value. Raises IndexFault."""
    if not asked:
        return []
    probes = [Probes(one.matrices, _rows_by_size(reader.bloom_matrices, one)) for one in asked]
    columns = columns_of_all(reader.bloom_matrices, probes, reader.files)
    return [_hits(*columns_of_one, one.of) for columns_of_one, one in zip(columns, asked, strict=True)]


def _rows_by_size(bloom_matrices: BloomMatrices, asked: _Asked) -> np.ndarray:
    """Return the rows of every matrix: int64 of shape (matrices, alternatives, rows)."""
    bits = bloom_matrices.bits[asked.matrices]
    if asked.shape.encoding is not None:
        return np.stack([_rows(replace(asked.shape, bits=size), asked.of) for size in bits.tolist()])
    rows = positions_by_size(asked.of.hashes.ravel(), asked.shape.probes, bits)
    return rows.reshape(len(bits), len(asked.of.hashes), -1)


def _rows(shape: FilterShape, of: AskedHashes) -> np.ndarray:
    """Return the rows of a matrix of filters of one shape: int64 of shape (alternatives, rows)."""
    if shape.encoding is None:
        rows = positions(of.hashes.ravel(), shape.probes, shape.bits)
    else:
        rows = parquet_bloom.positions(of.hashes.ravel(), shape.bits)
    return rows.reshape(len(of.hashes), of.hashes.shape[1] * shape.probes)


# ---- one by one


def _singly(reader: MatrixReader, matrix: int, asked: _Asked) -> Hits:
    """Return the columns of a matrix that may hold a value. Raises IndexFault."""
    bloom_matrices = reader.bloom_matrices
    runs = reader.runs[bloom_matrices.run_matrix[reader.runs] == matrix]
    ends = int(bloom_matrices.begin[runs[0]]), int(bloom_matrices.begin[runs[-1]] + bloom_matrices.count[runs[-1]])
    rows = _rows(replace(asked.shape, bits=int(bloom_matrices.bits[matrix])), asked.of)
    if len(rows) == 1:
        column = columns_with(bloom_matrices, matrix, rows, ends, reader.files)
        alternative = np.zeros(len(column), np.int64)
    else:
        column, alternative = columns_by_alternative(bloom_matrices, matrix, rows, ends, reader.files)
    return _hits(np.full(len(column), matrix), column, alternative, asked.of)
