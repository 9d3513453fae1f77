"""Convert a value list of IN to keys, all values at once.

If the array has the column's own kind, its values become keys in a few steps. The result is the set that
:func:`secateur.pruning.predicate.literals.positions` gives literal by literal, which also handles everything without a
rule here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.calendar import DAY, SECOND
from secateur.pruning.functions.clocks import FARTHEST, agreed, clock
from secateur.pruning.predicate.binding.literals import Position, double_position, fits
from secateur.values.conversion import float_keys, keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, Key
from secateur.values.kinds import Kind, is_float, kind_of

_WHOLE = 2.0**53  # below it, no two integers round to the same double


def listed_keys(type_: pa.DataType, values: pa.Array, zone: dt.tzinfo) -> RangeSet | None:
    """Return the keys of a column type that equal one of the values of a value list without nulls.

    None if the values must be handled one by one: for another kind of column, or if Spark refuses them.
    """
    kind = kind_of(type_)
    if kind is None:
        return None
    if not len(values):
        return rangeset.empty(kind)
    given = values.type
    if given == pa.int64():
        return _of_integers(type_, values.to_numpy())
    if given == pa.float64():
        return _of_doubles(type_, values.to_numpy())
    if given in (pa.large_string(), pa.large_binary()):
        return rangeset.byte_points(values.cast(pa.large_binary())) if kind is Kind.BYTES else None
    if pa.types.is_boolean(given):
        return rangeset.integer_points(keys_of(values).words[0]) if given == type_ else None
    if pa.types.is_decimal(given):
        return _of_decimals(type_, values)
    return _of_moments(type_, values, zone)


def _of_integers(type_: pa.DataType, numbers: np.ndarray) -> RangeSet | None:
    if pa.types.is_signed_integer(type_):
        return rangeset.integer_points(numbers)
    if is_float(type_):
        return rangeset.integer_points(float_keys(numbers.astype(np.float64)))
    if pa.types.is_decimal128(type_) and kind_of(type_) is Kind.WORD:
        if not fits(type_, max((Decimal(int(end)) for end in (numbers.min(), numbers.max())), key=abs)):
            return None
        unit = 10**type_.scale
        reachable = (numbers <= INT64_MAX // unit) & (numbers >= -(-INT64_MIN // unit))
        return rangeset.integer_points(numbers[reachable] * unit)
    return None


def _of_doubles(type_: pa.DataType, numbers: np.ndarray) -> RangeSet | None:
    """Return the keys of doubles beside an integer: Spark rounds the column to doubles, merging those from 2**53 on."""
    if is_float(type_):
        return rangeset.integer_points(float_keys(numbers))
    if not pa.types.is_signed_integer(type_):
        return None
    small = numbers[np.abs(numbers) < _WHOLE]  # also drops NaN, which equals no integer
    whole = rangeset.integer_points(small[small == np.trunc(small)].astype(np.int64))
    great = np.unique(numbers[np.abs(numbers) >= _WHOLE]).tolist()
    if not great:
        return whole
    return rangeset.union(whole, of_positions(Kind.WORD, (double_position(type_, number) for number in great)))


def of_positions(kind: Kind, positions: Iterable[Position]) -> RangeSet:
    """Return the keys that equal a literal: points at once, rare wider spans (double against integer) one by one."""
    single: list[Key] = []
    ranges = rangeset.empty(kind)
    for at, after in ((p.at, p.after) for p in positions):
        if at is None or at == after:
            continue
        if isinstance(at, bytes) or (after is not None and after - at == 1):  # type: ignore[operator]
            single.append(at)
        else:
            ranges = rangeset.union(ranges, rangeset.between(kind, at, after))
    return rangeset.union(ranges, rangeset.points(kind, single))


def _of_decimals(type_: pa.DataType, values: pa.Array) -> RangeSet | None:
    """Return the keys of decimals of the column's scale: their unscaled integers."""
    if not pa.types.is_decimal128(type_) or type_.scale != values.type.scale:
        return None
    kind, ends = kind_of(type_), pc.min_max(values)
    if kind is not kind_of(values.type) or not all(fits(type_, ends[end].as_py()) for end in ("min", "max")):
        return None
    keys = keys_of(values)
    if kind is Kind.WORD:
        return rangeset.integer_points(keys.words[0])
    high, low = (word.astype(object) for word in keys.words)
    return rangeset.points(Kind.WIDE, (high << 64 | low).tolist())


def _of_moments(type_: pa.DataType, values: pa.Array, zone: dt.tzinfo) -> RangeSet | None:
    """Return the keys of dates and times beside the same; local times beside instants are in the session's zone."""
    numbers = keys_of(values).words[0]
    is_instant = pa.types.is_timestamp(values.type) and values.type.tz is not None
    if pa.types.is_timestamp(type_):
        if is_instant:
            return None if type_.tz is None else rangeset.integer_points(numbers)
        local = numbers * DAY if pa.types.is_date32(values.type) else numbers
        keys = local if type_.tz is None else instants(local, zone)
        return None if keys is None else rangeset.integer_points(keys)
    if not pa.types.is_date32(type_) or is_instant:
        return None
    days = numbers if pa.types.is_date32(values.type) else numbers[numbers % DAY == 0] // DAY
    return rangeset.integer_points(days)


def instants(local: np.ndarray, zone: dt.tzinfo) -> np.ndarray | None:
    """Return the instants of wall clocks in a zone, or None if its offset is not known for all of them."""
    if not isinstance(zone, dt.timezone) and local.min() < (agreed(zone) + FARTHEST) * SECOND:
        return None
    least, _ = clock(zone, SECOND).instants.hull(local, local)
    return least
