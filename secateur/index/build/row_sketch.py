"""Collect which rows of a block hold which value, for postings with row lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.arrays import numbers, present
from secateur.index.build.column_sketch import elements
from secateur.index.filters.hashing import MOST, hash_each, joined
from secateur.index.filters.row_lists import MOST_ROWS, ValueRows
from secateur.index.model import Filter
from secateur.ragged import runs_of

MOST_ROW = (1 << 32) - 1  # the last whose number is kept


@dataclass
class RowSketch:
    """Passes on the values of every block and the rows that hold them when it ends; None for an unknown block.

    A block is unknown, too, if it has more values, or more distinct ones, than are held at once, or rows beyond uint32.
    """

    filter: Filter
    take: Callable[[ValueRows | None], None]
    _row_count: int = 0  # of the block so far
    _value_count: int = 0
    _hashes: list[np.ndarray] = field(default_factory=list)
    _positions: list[np.ndarray] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        """Add some values of the block."""
        if self._value_count <= MOST_ROWS // 2:
            rows = _rows_with_elements(values)
            inner = elements(values)
            inner = inner.cast(self.filter.type) if inner.type != self.filter.type else inner
            self._hashes.append(hash_each(inner))
            self._positions.append((rows[present(inner)] + self._row_count).astype(np.uint32))
            self._value_count += len(self._hashes[-1])
        self._row_count += len(values)

    def end(self) -> None:
        """End the block."""
        values = _grouped(joined(self._hashes), np.concatenate([_NO_ROWS, *self._positions]))
        is_known = (
            self._value_count <= MOST_ROWS // 2 and len(values.hashes) <= MOST and self._row_count <= MOST_ROW + 1
        )
        self.take(values if is_known else None)
        self._begin()

    def give_up(self) -> None:
        """End the block as unknown, since some of its values cannot be known."""
        self.take(None)
        self._begin()

    def _begin(self) -> None:
        self._row_count = self._value_count = 0
        self._hashes.clear()
        self._positions.clear()


_NO_ROWS = np.zeros(0, np.uint32)


def _rows_with_elements(values: pa.Array) -> np.ndarray:
    """Return the row of every value that :func:`.column_sketch.elements` gives: int64."""
    rows = np.arange(len(values))
    if not pa.types.is_list(values.type) and not pa.types.is_map(values.type):
        return rows
    there = present(values)
    offsets = numbers(values.offsets, np.int32).astype(np.int64)
    return np.repeat(rows[there], np.diff(offsets)[there])


def _grouped(hashes: np.ndarray, rows: np.ndarray) -> ValueRows:
    """Group rows, which ascend, by the hash of their value; a row that has it twice, as arrays may, counts once."""
    order = np.argsort(hashes, kind="stable")
    hashes, rows = hashes[order], rows[order]
    is_other = np.append(True, (hashes[1:] != hashes[:-1]) | (rows[1:] != rows[:-1]))[: len(rows)]
    hashes, rows = hashes[is_other], rows[is_other]
    first, last = runs_of(hashes[1:] != hashes[:-1], len(hashes))
    return ValueRows(hashes[first], last - first + 1, rows)
