"""Collect the values of a block with the rows that hold them: for row lists of postings, and for ordered postings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from secateur.arrays import numbers, present
from secateur.index.build.column_sketch import Sketch, elements
from secateur.index.filters import hashing, heads
from secateur.index.filters.hashing import MOST, hash_each
from secateur.index.filters.heads import Heads, heads_of
from secateur.index.filters.ordered import BlockEntries
from secateur.index.filters.row_lists import MOST_ROWS, ValueRows
from secateur.index.model import Filter
from secateur.ragged import runs_of

MOST_VALUES = MOST_ROWS // 2  # of a block; one with more is unknown
MOST_ROW = (1 << 32) - 1  # the last whose number is kept

Part = TypeVar("Part")
Block = TypeVar("Block")


@dataclass
class RowSketch(Sketch, Generic[Part, Block]):
    """Passes on what is kept of every block's values and their rows when it ends; None for an unknown block.

    A block is unknown, too, if it has more values than are held at once, or rows beyond uint32.
    """

    filter: Filter
    part_of: Callable[[pa.Array], Part]  # of single values, none of them NULL
    block_of: Callable[[Sequence[Part], np.ndarray], Block | None]  # of all parts, and the row of every value
    take: Callable[[Block | None], None]
    _row_count: int = 0  # of the block so far
    _last_begin: int = 0  # the first of the rows added last
    _value_count: int = 0
    _parts: list[Part] = field(default_factory=list)
    _rows: list[np.ndarray] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        """Add the values of the next rows of the block."""
        self._last_begin = self._row_count
        self._row_count += len(values)
        self.add_others(values, np.arange(len(values)))

    def add_others(self, values: pa.Array, rows: np.ndarray) -> None:
        """Add other values that some of the rows added last may have; `rows` are counted from the first of those."""
        if self._value_count <= MOST_VALUES:
            rows, single = _with_elements(values, rows), elements(values)
            self._rows.append((rows[present(single)] + self._last_begin).astype(np.uint32))
            single = single.drop_null()
            single = single.cast(self.filter.type) if single.type != self.filter.type else single
            self._parts.append(self.part_of(single))
            self._value_count += len(single)

    def end(self) -> None:
        """End the block."""
        is_known = self._value_count <= MOST_VALUES and self._row_count <= MOST_ROW + 1
        rows = np.concatenate([np.zeros(0, np.uint32), *self._rows])
        self.take(self.block_of(self._parts, rows) if is_known else None)
        self._begin()

    def give_up(self) -> None:
        """End the block as unknown, since some of its values cannot be known."""
        self.take(None)
        self._begin()

    def _begin(self) -> None:
        self._row_count = self._value_count = self._last_begin = 0
        self._parts.clear()
        self._rows.clear()


def row_list_sketch(filter_: Filter, take: Callable[[ValueRows | None], None]) -> RowSketch[np.ndarray, ValueRows]:
    """Return a sketch for the row lists of postings; a block with too many distinct values is unknown."""
    return RowSketch(filter_, hash_each, _value_rows, take)


def ordered_sketch(filter_: Filter, take: Callable[[BlockEntries | None], None]) -> RowSketch[Heads, BlockEntries]:
    """Return a sketch for ordered postings."""
    return RowSketch(filter_, heads_of, _block_entries, take)


def _with_elements(values: pa.Array, rows: np.ndarray) -> np.ndarray:
    """Return the row of every value that :func:`.column_sketch.elements` gives, from the rows of `values`: int64."""
    if not pa.types.is_list(values.type) and not pa.types.is_map(values.type):
        return rows
    there = present(values)
    offsets = numbers(values.offsets, np.int32).astype(np.int64)
    return np.repeat(rows[there], np.diff(offsets)[there])


def _value_rows(parts: Sequence[np.ndarray], rows: np.ndarray) -> ValueRows | None:
    """Group rows by the hash of their value; a row that has it twice, as arrays may, counts once."""
    hashes = hashing.joined(parts)
    ascend = bool((rows[1:] >= rows[:-1]).all())  # not where some rows may have other texts
    order = np.argsort(hashes, kind="stable") if ascend else np.lexsort((rows, hashes))
    hashes, rows = hashes[order], rows[order]
    is_other = np.append(True, (hashes[1:] != hashes[:-1]) | (rows[1:] != rows[:-1]))[: len(rows)]
    hashes, rows = hashes[is_other], rows[is_other]
    first, last = runs_of(hashes[1:] != hashes[:-1], len(hashes))
    return ValueRows(hashes[first], last - first + 1, rows) if len(first) <= MOST else None


def _block_entries(parts: Sequence[Heads], rows: np.ndarray) -> BlockEntries:
    return BlockEntries(heads.joined(parts), rows)
