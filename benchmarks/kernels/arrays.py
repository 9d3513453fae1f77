"""Zone maps in memory: statistics of many units without an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from secateur.pruning.bounds.zones import Zones, occupancy
from secateur.pruning.predicate.bound import Field
from secateur.values.keys import Keys

ROWS_PER_UNIT = 1000


@dataclass(frozen=True)
class ArrayStatistics:
    """Summaries of n units held in arrays; see :class:`secateur.pruning.statistics.Statistics`."""

    row_count: np.ndarray
    columns: Mapping[Field, Zones]

    def __len__(self) -> int:
        return len(self.row_count)

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of a column, or None where nothing is known of it."""
        return self.columns.get(column)


def statistics_of(bounds: Mapping[Field, tuple[Keys, Keys]]) -> ArrayStatistics:
    """Statistics of units without NULL, from the lower and upper keys of every column."""
    n = len(next(iter(bounds.values()))[0])
    row_count = np.full(n, ROWS_PER_UNIT, np.int64)
    value, null = occupancy(row_count, np.zeros(n, np.int64))
    columns = {column: Zones(lower, upper, value, null) for column, (lower, upper) in bounds.items()}
    return ArrayStatistics(row_count, columns)
