"""Gaps: the widest intervals between the values of a block in which it has none.

Bounds only give the least and the greatest value, so one outlier, a NaN or two distant clusters make them cover values
that are not there. A gap is an open interval of keys (low, high) whose ends are neighbours among the block's values: no
value lies strictly between them. Its width is measured on the values: by the difference of integers, days, microseconds
or unscaled decimals, and by that of doubles, where infinities and NaN are infinitely far from the others. A gap takes
16 bytes per block; :func:`pays` says where gaps are worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.integers import sorted_distinct
from secateur.values.conversion import doubles_of, keys_of
from secateur.values.key import INT64_MAX
from secateur.values.kinds import Kind, is_float, kind_of

MOST_GAPS = 4  # per block
LEAST_SPARED = 0.5  # share of blocks that gaps must rule out to be worth their bytes
_SIGNED = np.dtype("<i8")

Gaps = tuple[np.ndarray, np.ndarray]  # low and high ends of one block's gaps: int64, ascending


@dataclass(frozen=True)
class GapTable:
    """The gaps of n blocks, ascending within each block.

    Missing gaps are empty ones at the end, from the greatest key to itself; a block with unknown gaps has only those.
    """

    low: np.ndarray  # int64 of shape (g, n_blocks)
    high: np.ndarray  # int64 of shape (g, n_blocks)

    def __len__(self) -> int:
        return self.low.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.low.nbytes + self.high.nbytes

    def take(self, blocks: np.ndarray) -> GapTable:
        """Return the gaps of the given blocks."""
        return GapTable(self.low[:, blocks], self.high[:, blocks])


def widest_gaps(values: pa.Array, g: int) -> Gaps:
    """Return the g widest gaps between the non-null values of one block, or all if fewer; the first of equal ones.

    `values` are all values of the block, of a type with WORD keys. An interval without a key in it is no gap.
    """
    assert kind_of(values.type) is Kind.WORD, "gaps are recorded for types with WORD keys only"
    assert 1 <= g <= MOST_GAPS, f"{g} gaps"
    keys = sorted_distinct(keys_of(values.drop_null()).words[0])
    low, high = keys[:-1], keys[1:]
    widths = _widths(low, high) if is_float(values.type) else _distances(low, high)
    wide = np.flatnonzero((_distances(low, high) > 1) & (widths > 0))
    chosen = wide[_greatest(widths[wide], g)]
    return low[chosen], high[chosen]


def _distances(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the differences of integers: uint64, since that of two int64 may need all 64 bits."""
    return high.view(np.uint64) - low.view(np.uint64)


def _widths(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the differences of the doubles with these keys: float64, infinite where they overflow.

    NaN is as far away as infinity. There is no distance between the two.
    """
    a, b = doubles_of(low), doubles_of(high)
    b[np.isnan(b)] = np.inf
    with np.errstate(over="ignore"):
        return np.subtract(b, a, out=np.zeros(len(a)), where=a != b)


def _greatest(widths: np.ndarray, g: int) -> np.ndarray:
    """Return the positions of the g greatest numbers, ascending; among equal ones the first."""
    if len(widths) <= g:
        return np.arange(len(widths))
    least = np.partition(widths, len(widths) - g)[len(widths) - g]
    above = np.flatnonzero(widths > least)
    return np.sort(np.append(above, np.flatnonzero(widths == least)[: g - len(above)]))


def gap_table(blocks: Sequence[Gaps | None], g: int) -> GapTable:
    """Build the table of some blocks' gaps, at most g per block; None where unknown."""
    ends = np.full((2, g, len(blocks)), INT64_MAX, np.int64)
    for block, gaps in enumerate(blocks):
        if gaps is not None:
            ends[:, : len(gaps[0]), block] = gaps
    return GapTable(ends[0], ends[1])


def concat_gaps(parts: Sequence[GapTable | None]) -> GapTable | None:
    """Concatenate the gaps of all parts; None if a part has none, or another number per block."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({len(part.low) for part in known}) > 1:
        return None
    return GapTable(np.concatenate([p.low for p in known], axis=1), np.concatenate([p.high for p in known], axis=1))


def spared(table: GapTable, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the share of blocks that gaps rule out, among those whose bounds hold a value: 0.9 leaves a tenth.

    The average over look-ups of each distinct value known to exist, the ends of all bounds and gaps. A value that no
    block holds is rarely asked for, however wide its gap is; a placeholder in many blocks, such as 9999-12-31, is asked
    for no more often than others. `lower` and `upper` are int64 of shape (n_blocks,), of blocks that hold values.
    """
    filled = table.low < table.high
    low, high = np.sort(table.low[filled]), np.sort(table.high[filled])
    lower, upper = np.sort(lower), np.sort(upper)
    asked = sorted_distinct(np.concatenate([lower, upper, low, high]))
    within = np.searchsorted(lower, asked, "right") - np.searchsorted(upper, asked, "left")
    in_gaps = np.searchsorted(low, asked, "left") - np.searchsorted(high, asked, "right")
    return float(in_gaps.sum() / within.sum()) if len(asked) else 0.0


def pays(table: GapTable, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether gaps rule out enough of the blocks that bounds leave to be worth keeping."""
    return spared(table, lower, upper) >= LEAST_SPARED


def gap_arrays(table: GapTable) -> list[np.ndarray]:
    """Return the arrays of a chunk: the low ends of the first gaps, of the second, ..., then the high ends."""
    return [*table.low, *table.high]


def gaps_of(arrays: Sequence[np.ndarray], n: int, where: str) -> GapTable:
    """Decode the gaps of n blocks. Raises IndexFault."""
    g, odd = divmod(len(arrays), 2)
    if odd or not 1 <= g <= MOST_GAPS or any((array.dtype, len(array)) != (_SIGNED, n) for array in arrays):
        raise IndexFault(f"{where}: these {len(arrays)} arrays are not gaps of {n} blocks")
    low, high = np.stack(arrays[:g]), np.stack(arrays[g:])
    if (low > high).any() or (high[:-1] > low[1:]).any():
        raise IndexFault(f"{where}: the gaps are out of order")
    return GapTable(low, high)
