"""Add up the values of every block."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.index.build.column_sketch import Sketch
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.aggregates.sums import Total
from secateur.pruning.bounds.zones import unbounded
from secateur.values.combination import choose
from secateur.values.key import INT128_MAX, INT128_MIN
from secateur.values.keys import keys_from
from secateur.values.kinds import Kind


@dataclass
class SumSketch(Sketch):
    """Measures exact sums of integers or decimals, and counts NULLs; a sum beyond 128 bits is unknown."""

    totals: list[Total | None] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    _total: Total = field(default_factory=Total)
    _nulls: int = 0

    def add(self, values: pa.Array) -> None:
        """Add some values of the block."""
        self._total = self._total.joined(Total.of(values))
        self._nulls += values.null_count

    def end(self) -> None:
        """End the block."""
        is_held = INT128_MIN < self._total.sum < INT128_MAX
        self._take(self._total if is_held else None, self._nulls if is_held else -1)

    def give_up(self) -> None:
        """End the block as unknown, since some of its values cannot be known."""
        self._take(None, -1)

    def _take(self, total: Total | None, nulls: int) -> None:
        self.totals.append(total)
        self.nulls.append(nulls)
        self._total, self._nulls = Total(), 0

    def zone_map(self) -> ZoneMap:
        """Return the sums of all blocks so far: both bounds of a block are its sum."""
        is_known = np.array([total is not None for total in self.totals], bool)
        sums = keys_from(Kind.WIDE, [0 if total is None else total.sum for total in self.totals], 0)
        least, greatest = unbounded(Kind.WIDE, len(self.totals))
        lower, upper = choose(is_known, sums, least), choose(is_known, sums, greatest)
        return ZoneMap(lower, upper, np.array(self.nulls, np.int64), np.where(is_known, 0, -1))
