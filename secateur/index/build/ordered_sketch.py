"""Collect the values of a block with their rows, for ordered postings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.arrays import present
from secateur.index.filters.heads import Heads, heads_of, joined
from secateur.index.filters.ordered import MOST_ROW, BlockEntries
from secateur.index.model import Filter

MOST_VALUES = 1 << 25  # of a block; one with more is unknown


@dataclass
class OrderedSketch:
    """Passes on the values of every block and their rows when it ends; None for an unknown block."""

    filter: Filter
    take: Callable[[BlockEntries | None], None]
    _row_count: int = 0  # of the block so far
    _value_count: int = 0
    _heads: list[Heads] = field(default_factory=list)
    _rows: list[np.ndarray] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        """Add some values of the block."""
        if self._value_count <= MOST_VALUES:
            rows = np.flatnonzero(present(values)) + self._row_count
            there = values.drop_null()
            there = there.cast(self.filter.type) if there.type != self.filter.type else there
            self._heads.append(heads_of(there))
            self._rows.append(rows.astype(np.uint32))
            self._value_count += len(rows)
        self._row_count += len(values)

    def end(self) -> None:
        """End the block."""
        if self._value_count > MOST_VALUES or self._row_count > MOST_ROW + 1:
            self.give_up()
            return
        rows = np.concatenate([np.zeros(0, np.uint32), *self._rows])
        self.take(BlockEntries(joined(self._heads), rows))
        self._begin()

    def give_up(self) -> None:
        """End the block as unknown, since some of its values cannot be known."""
        self.take(None)
        self._begin()

    def _begin(self) -> None:
        self._row_count = self._value_count = 0
        self._heads.clear()
        self._rows.clear()
