"""Zone maps: lower, upper, null count and NaN count of a column over n units.

Bounds are keys (:mod:`secateur.values`). A unit that holds NaN, or may, has NaN as its upper bound, and the greatest of
its numbers as its top. An unknown bound is the least or the greatest key. String bounds have at most
:data:`BOUND_BYTES` bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import present
from secateur.index.zones.gaps import GapTable, concat_gaps
from secateur.pruning.bounds.zones import Zones, concat_tops, occupancy, unbounded
from secateur.values.combination import choose, concatenate, greatest_per_group, least_per_group
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, NAN_KEY, prefix_successor
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind

BOUND_BYTES = 64


@dataclass(frozen=True)
class ZoneMap:
    """Zone maps of one column: bounds that hold but may be loose, and counts with -1 for unknown."""

    lower: Keys
    upper: Keys
    null_count: np.ndarray  # int64 of shape (n,)
    nan_count: np.ndarray  # int64 of shape (n,); 0 for types without NaN
    gaps: GapTable | None = None
    top: np.ndarray | None = None  # int64 of shape (n,), as in :class:`secateur.pruning.bounds.zones.Zones`

    def __len__(self) -> int:
        return len(self.null_count)

    def take(self, units: np.ndarray) -> ZoneMap:
        """Return the zone maps of the given units."""
        gaps = None if self.gaps is None else self.gaps.take(units)
        top = None if self.top is None else self.top[units]
        counts = self.null_count[units], self.nan_count[units]
        return ZoneMap(self.lower.take(units), self.upper.take(units), *counts, gaps, top)

    @property
    def numbers_upper(self) -> Keys:
        """The upper bounds of all values except NaN."""
        return self.upper if self.top is None else Keys(Kind.WORD, (self.top,))

    @property
    def stored_gaps(self) -> GapTable | None:
        """The gaps as stored: those between the values, including the one before NaN, or only that one."""
        if self.gaps is not None or self.top is None:
            return self.gaps
        before_nan = self.top < self.upper.words[0]
        if not before_nan.any():
            return None
        ends = (np.where(before_nan, end, INT64_MAX)[None, :] for end in (self.top, self.upper.words[0]))
        return GapTable(*ends)

    def with_stored_gaps(self, gaps: GapTable) -> ZoneMap:
        """Return the zone map with stored gaps: a gap that ends in NaN, the upper bound, begins at the top.

        Sound for keys of other types too: no value lies between the ends of a gap.
        """
        upper = self.upper.words[0]
        before_nan = (gaps.low < gaps.high) & (gaps.high == NAN_KEY) & (upper == NAN_KEY)
        if not before_nan.any():
            return replace(self, gaps=gaps)
        top = np.where(before_nan, gaps.low, upper).min(axis=0)
        only = len(gaps.low) == 1 and bool((before_nan | (gaps.low == gaps.high)).all())
        return replace(self, gaps=None if only else gaps, top=top)

    def zones(self, row_count: np.ndarray) -> Zones:
        """Return these zone maps as the pruning algebra reads them."""
        gaps = None if self.gaps is None else (self.gaps.low, self.gaps.high)
        return Zones(self.lower, self.upper, *occupancy(row_count, self.null_count), gaps, self.top)


def unknown(kind: Kind, n: int) -> ZoneMap:
    """Return unknown zone maps."""
    return ZoneMap(*unbounded(kind, n), np.full(n, -1), np.full(n, -1))


def all_null(kind: Kind, row_count: np.ndarray) -> ZoneMap:
    """Return zone maps of a column that is NULL in every row, such as one missing from a file."""
    nothing = unknown(kind, len(row_count))
    return ZoneMap(nothing.lower, nothing.upper, row_count.astype(np.int64), np.zeros(len(row_count), np.int64))


def from_bounds(
    type_: pa.DataType,
    lower: pa.Array,
    upper: pa.Array,
    null_count: np.ndarray,
    nan_count: np.ndarray,
    row_count: np.ndarray,
) -> ZoneMap:
    """Build zone maps from Arrow bounds, cast to the column's type; null bounds are unknown.

    Bounds of a floating column leave NaN out, as those of Parquet do; `nan_count` (-1: unknown) adds it. If there are
    as many NaNs as rows, there is nothing else. Bounds that cannot be cast to `type_` without loss are unknown.
    """
    kind = ordered_kind(type_)
    try:
        low, high = _cast(lower, type_), _cast(upper, type_)
    except pa.ArrowInvalid:
        return ZoneMap(*unbounded(kind, len(lower)), null_count, nan_count)
    least, greatest = unbounded(kind, len(lower))
    if kind is Kind.BYTES:
        low, high = _truncated(low, high)
    known_low, known_high = present(low), present(high)
    low_keys, high_keys = choose(known_low, keys_of(low), least), choose(known_high, keys_of(high), greatest)
    if is_float(type_):
        return _with_nan(low_keys.words[0], high_keys.words[0], null_count, nan_count, row_count)
    return ZoneMap(low_keys, high_keys, null_count, nan_count)


def _with_nan(
    lower: np.ndarray, upper: np.ndarray, null_count: np.ndarray, nan_count: np.ndarray, row_count: np.ndarray
) -> ZoneMap:
    """Build zone maps of a floating column from bounds of its numbers."""
    null_count = np.where((null_count < 0) & (nan_count == row_count) & (nan_count > 0), 0, null_count)
    only_nan = (nan_count > 0) & (nan_count + null_count == row_count) & (null_count >= 0)
    may_be = nan_count != 0
    top = np.where(only_nan, NAN_KEY, np.minimum(upper, NAN_KEY)) if may_be.any() else None
    low, high = np.where(only_nan, NAN_KEY, lower), np.where(may_be, NAN_KEY, upper)
    return ZoneMap(Keys(Kind.WORD, (low,)), Keys(Kind.WORD, (high,)), null_count, nan_count, top=top)


def _cast(bounds: pa.Array, type_: pa.DataType) -> pa.Array:
    if kind_of(type_) is Kind.BYTES:
        return bounds.cast(pa.binary())
    return bounds if bounds.type == type_ else bounds.cast(type_)


def _truncated(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Truncate bounds to BOUND_BYTES: a prefix is a lower bound, its successor, if there is one, an upper bound."""
    if (pc.max(pc.binary_length(upper)).as_py() or 0) > BOUND_BYTES:
        values = upper.to_pylist()
        cut = [prefix_successor(v[:BOUND_BYTES]) if v is not None and len(v) > BOUND_BYTES else v for v in values]
        upper = pa.array(cut, pa.binary())
    return pc.binary_slice(lower, 0, BOUND_BYTES), upper


def of_values(values: pa.Array, type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar, int, int]:
    """Return lower, upper, null count and NaN count of the values of one unit; the bounds leave NaN out."""
    values = values.cast(type_) if values.type != type_ else values
    null_count = values.null_count
    nan_count = 0
    if is_float(type_):
        nan = pc.fill_null(pc.is_nan(values), False)
        nan_count = pc.sum(nan).as_py() or 0
        values = values.filter(pc.invert(nan)) if nan_count else values
    if kind_of(type_) is Kind.BYTES:
        values = values.cast(pa.binary())
    bounds = pc.min_max(values)
    return bounds["min"], bounds["max"], null_count, nan_count


def merge(zone_map: ZoneMap, row_count: np.ndarray, starts: np.ndarray) -> ZoneMap:
    """Merge zone maps over groups of units, the runs that begin at `starts`.

    Sound: bounds contain those of every unit with values, and a count is unknown if a part of it is.
    """
    kind = zone_map.lower.kind
    value, _ = occupancy(row_count, zone_map.null_count)
    filled = value != 0
    least, greatest = unbounded(kind, len(zone_map))
    lower = least_per_group(choose(filled, zone_map.lower, greatest), starts)
    upper = greatest_per_group(choose(filled, zone_map.upper, least), starts)
    counts = _sum(zone_map.null_count, starts), _sum(zone_map.nan_count, starts)
    return ZoneMap(lower, upper, *counts, top=_merged_tops(zone_map, filled, upper, starts))


def _merged_tops(zone_map: ZoneMap, filled: np.ndarray, upper: Keys, starts: np.ndarray) -> np.ndarray | None:
    """Return the greatest number of every group; units of NaN only have none."""
    if zone_map.top is None:
        return None
    has_numbers = filled & (zone_map.lower.words[0] < NAN_KEY)
    tops = np.maximum.reduceat(np.where(has_numbers, zone_map.top, INT64_MIN), starts)
    return np.where(np.logical_or.reduceat(has_numbers, starts), tops, upper.words[0])


def _sum(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    known = np.minimum.reduceat(counts, starts) >= 0
    return np.where(known, np.add.reduceat(counts, starts), -1)


def concat(parts: Sequence[ZoneMap]) -> ZoneMap:
    """Concatenate the zone maps of all parts; at least one part."""
    return ZoneMap(
        concatenate([part.lower for part in parts]),
        concatenate([part.upper for part in parts]),
        np.concatenate([part.null_count for part in parts]),
        np.concatenate([part.nan_count for part in parts]),
        concat_gaps([part.gaps for part in parts]),
        concat_tops([(part.top, part.upper) for part in parts]),
    )
