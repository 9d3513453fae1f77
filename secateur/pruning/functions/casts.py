"""Casts of intervals with the semantics of Spark's ANSI ``Cast``: what does not fit is an error.

Casts that preserve order map bounds to bounds. The others (text to anything, numbers to text) have no function here,
and conditions with them are left to Spark. Source: Spark's ``Cast``, ``MathUtils``, ``Decimal.changePrecision``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import temporal
from secateur.pruning.functions.joined_text import digits
from secateur.pruning.functions.types import decimal_of, is_decimal, is_integer, is_numeric, is_temporal
from secateur.pruning.interval import Function, Interval, key_range, keys_of_numbers, numbers, strict
from secateur.values.key import Key
from secateur.values.kinds import Kind, is_float, kind_of, same_keys

# maps numbers to numbers, and where they do not fit
Values = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]
_EXACT_DIGITS = 15  # doubles represent all integers of this many digits
_EXACT_POWER = 22  # 10 to this power is exact as a double


def cast(source: pa.DataType, target: pa.DataType, zone: dt.tzinfo) -> Function | None:
    """Return the function of ``CAST(x AS target)`` for x of type `source`, or None if it does not preserve order."""
    if kind_of(source) is None or kind_of(target) is None:
        return None
    if source == target or (same_keys(source, target) and _holds(target, source)):
        return Function(f"cast[{target}]", target, lambda args: replace(args[0], type=target), (1,), inverse=_same)
    if {source, target} == {pa.string(), pa.binary()}:
        return _between_bytes(target)
    if target == pa.string() and is_integer(source):
        return digits(source)
    if is_temporal(source) or is_temporal(target):
        return temporal.cast(source, target, zone)
    if target == pa.float32() and is_numeric(source):
        return _to_float(source)
    values = _number_values(source, target)
    if values is None:
        return None
    return Function(f"cast[{target}]", target, lambda args: _mapped(values, target, args), (1,))


def _same(key: Key) -> Key | None:
    return key


def _holds(target: pa.DataType, source: pa.DataType) -> bool:
    """Return whether every value of one type is one of the other, for types of equal keys."""
    if is_decimal(source):
        return bool(target.precision >= source.precision)
    return bool(target.bit_width >= source.bit_width)


def _between_bytes(target: pa.DataType) -> Function:
    """Cast between text and binary: in Spark, bytes that are not UTF-8 can still be text."""
    return Function(f"cast[{target}]", target, lambda args: replace(args[0], type=target), (1,), inverse=_same)


def _mapped(values: Values, target: pa.DataType, args: Sequence[Interval]) -> Interval:
    """Map both bounds by a function that never decreases; if it fails between them, it fails on one of them."""
    (a,) = args
    (low, low_fails), (high, high_fails) = (values(numbers(keys, a.type)) for keys in (a.lower, a.upper))
    fails = None if low_fails is None or high_fails is None else low_fails | high_fails
    return strict(target, args, keys_of_numbers(low, target), keys_of_numbers(high, target), fails)


def _number_values(source: pa.DataType, target: pa.DataType) -> Values | None:
    """Return the conversion of numbers and booleans from one type to another."""
    if pa.types.is_boolean(source) and is_numeric(target) and not is_decimal(target):
        return lambda x: (x.astype(np.float64) if is_float(target) else x, None)
    if not is_numeric(source) or not is_numeric(target):
        return None
    if is_float(target):
        return _to_double(source)
    if is_float(source):
        return (lambda x: _truncated(x, target)) if is_integer(target) else None
    return lambda x: _rescaled(x, source, target)


def _to_double(source: pa.DataType) -> Values:
    """Convert numbers to the nearest doubles."""
    if not is_decimal(source):
        return lambda x: (x.astype(np.float64), None)
    unit = 10**source.scale
    if source.precision <= _EXACT_DIGITS and source.scale <= _EXACT_POWER:
        return lambda x: (x.astype(np.float64) / float(unit), None)  # exact operands, so one rounding
    quotients = np.frompyfunc(lambda x: int(x) / unit, 1, 1)  # Python integers, whose division rounds once
    return lambda x: (quotients(x).astype(np.float64), None)


def _to_float(source: pa.DataType) -> Function:
    """Convert numbers to floats; where these are inexact, the bounds include the number itself besides its float.

    In code that Spark generates, 16777217 cast to float and on to double is still 16777217 (4.3).
    """
    exact = is_float(source) or source in (pa.int8(), pa.int16())
    doubles = (lambda x: (x, None)) if is_float(source) else _to_double(source)

    def bounds(args: Sequence[Interval]) -> Interval:
        (a,) = args
        low, high = (doubles(numbers(keys, a.type))[0] for keys in (a.lower, a.upper))
        with np.errstate(over="ignore", invalid="ignore"):
            singles = [x.astype(np.float32) for x in (low, high)]
        if not exact:
            low = np.fmin(low, np.nextafter(singles[0], np.float32(-np.inf)))
            high = np.fmax(high, np.nextafter(singles[1], np.float32(np.inf)))
            singles = [low, high]
        lower, upper = (keys_of_numbers(x.astype(np.float64), pa.float32()) for x in singles)
        return strict(pa.float32(), args, lower, upper)

    return Function("cast[float]", pa.float32(), bounds, (1,), exact)


def _truncated(x: np.ndarray, target: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Truncate doubles to integers. A double is out of a type's range if its floor or ceiling is.

    The greatest bigint is compared as the double 2**63, which then becomes that bigint (``DoubleExactNumeric.toLong``).
    """
    least, greatest = key_range(target)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(x)
        fits = (whole >= float(least)) & (whole <= float(greatest))
        inside = fits & (whole < float(greatest))
        return np.where(inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(fits, greatest, 0)), ~fits


def _rescaled(x: np.ndarray, source: pa.DataType, target: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Convert between integers and decimals: to an integer towards zero, to a decimal half up."""
    drop = _scale(source) - _scale(target)
    least, greatest = key_range(target)
    longest = decimal_of(source).precision + max(-drop, 0)
    wide = Kind.WIDE in (kind_of(source), kind_of(target)) or (drop < 0 and longest > 18)
    values = x.astype(object) if wide else x
    if drop > 0 and is_integer(target):
        moved = np.where(values < 0, -(-values // 10**drop), values // 10**drop)
    else:
        moved = half_up(values, drop)
    fails = ((moved < least) | (moved > greatest)).astype(bool)
    return np.clip(moved, least, greatest), fails


def _scale(type_: pa.DataType) -> int:
    return type_.scale if is_decimal(type_) else 0


def half_up(value: np.ndarray, digits: int) -> np.ndarray:
    """Drop the last digits of integers, rounding half away from zero; negative `digits` add zeros."""
    if digits <= 0:
        return value * 10**-digits
    unit = 10**digits
    rounded = (np.abs(value) + unit // 2) // unit
    return np.where(value < 0, -rounded, rounded)
