"""Arithmetic and casts without errors: without ANSI integers wrap around, and other failures give NULL.

Every function here is made from its ANSI form (:attr:`secateur.pruning.interval.Function.strict`), whose `fails` say
where the two differ. Source: Spark's ``EvalMode.LEGACY`` in ``arithmetic.scala``, ``Cast``, ``Decimal``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import casts
from secateur.pruning.functions.or_null import all_points, any_fails, null_on_error
from secateur.pruning.functions.types import INSTANT, is_decimal, is_integer
from secateur.pruning.interval import Function, Interval, key_range, keys_of_numbers, numbers, strict, widened
from secateur.values.kinds import is_float

_NULL_AT_ZERO = ("/", "%")
_WRAPPED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}  # by number of bits
_LOW = 2**64


def without_errors(name: str, function: Function) -> Function:
    """Return the non-ANSI form of an arithmetic function, by its name in SQL; others have one form."""
    if name in _NULL_AT_ZERO or (name in ("+", "-", "*") and is_decimal(function.type)):
        return null_on_error(function, f"{function.name}[or null]")
    if name in ("+", "-", "*", "negative", "abs") and is_integer(function.type):
        return wrapping(function)
    return function


def cast(source: pa.DataType, target: pa.DataType, zone: dt.tzinfo) -> Function | None:
    """Return ``CAST(x AS target)`` without ANSI, or None if it does not preserve order, overflow aside."""
    plain = casts.cast(source, target, zone)
    if plain is None or source == target:
        return plain
    if is_decimal(target):
        return null_on_error(plain, f"{plain.name}[or null]")
    if not is_integer(target):
        return plain
    if is_float(source):
        return _converted(plain, _truncated(target))
    if is_decimal(source):
        return _converted(plain, _whole(source, target))
    if is_integer(source) and target.bit_width < source.bit_width:
        return _converted(plain, lambda x: _wrapped(x, target))
    if source == INSTANT and target != pa.int64():
        seconds = casts.cast(source, pa.int64(), zone)
        assert seconds is not None, "an instant can be cast to a bigint"
        return _converted(plain, lambda x: _wrapped(x, target), seconds)
    return plain


def try_cast(source: pa.DataType, target: pa.DataType, zone: dt.tzinfo) -> Function | None:
    """Return the function of ``TRY_CAST``, in every session: NULL where CAST fails under ANSI."""
    plain = casts.cast(source, target, zone)
    return None if plain is None else null_on_error(plain, f"try_{plain.name}")


# ---- wrapping around -------------------------------------------------------------------------------------------------


def wrapping(plain: Function) -> Function:
    """Return an integer function that keeps the low bits of values that do not fit.

    On single values, the bounds of `plain` are the value before truncation to its type.
    """

    def bounds(arguments: Sequence[Interval]) -> Interval:
        interval = plain.bounds(arguments)
        before = any_fails(arguments)
        failing = interval.fails & ~before
        value = _wrapped(interval.lower.words[0], plain.type)
        low, high = (np.where(failing, value, keys.words[0]) for keys in (interval.lower, interval.upper))
        kept = replace(interval, lower=keys_of_numbers(low, plain.type), upper=keys_of_numbers(high, plain.type))
        lower, upper = widened(kept, failing & ~all_points(arguments))
        return replace(kept, lower=lower, upper=upper, fails=before)

    return replace(plain, name=f"{plain.name}[wraps]", bounds=bounds, strict=plain)


def _wrapped(values: np.ndarray, type_: pa.DataType) -> np.ndarray:
    """Return the low bits of integers; Python integers may have more than 64."""
    if values.dtype == object:
        values = ((values + _LOW // 2) % _LOW - _LOW // 2).astype(np.int64)
    return values.astype(_WRAPPED[type_.bit_width]).astype(np.int64)


def _converted(plain: Function, values: Callable[[np.ndarray], np.ndarray], first: Function | None = None) -> Function:
    """Return a cast that gives `values` of its argument, or of a `first` function of it, and never fails.

    If `plain` fails on neither bound, it fails nowhere between them, and never decreases there.
    """

    def bounds(arguments: Sequence[Interval]) -> Interval:
        (a,) = arguments if first is None else [first.bounds(arguments)]
        failing = plain.bounds(arguments).fails & ~a.fails
        low, high = (keys_of_numbers(values(numbers(keys, a.type)), plain.type) for keys in (a.lower, a.upper))
        kept = strict(plain.type, [a], low, high)
        lower, upper = widened(kept, failing & ~all_points(arguments))
        return replace(kept, lower=lower, upper=upper)

    return replace(plain, name=f"{plain.name}[wraps]", bounds=bounds, strict=plain)


def _truncated(target: pa.DataType) -> Callable[[np.ndarray], np.ndarray]:
    """Truncate doubles as Java's casts: NaN is 0, values beyond an int or bigint are clamped; narrower types wrap."""
    wide = pa.int64() if target == pa.int64() else pa.int32()
    least, greatest = key_range(wide)

    def values(x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            whole = np.trunc(x)
            inside = (whole >= float(least)) & (whole < float(greatest + 1))
            ends = np.where(whole > 0, greatest, np.where(whole < 0, least, 0))  # 0 for NaN
            return _wrapped(np.where(inside, np.where(inside, whole, 0.0).astype(np.int64), ends), target)

    return values


def _whole(source: pa.DataType, target: pa.DataType) -> Callable[[np.ndarray], np.ndarray]:
    """Convert decimals to integers, towards zero."""
    unit = 10**source.scale

    def values(x: np.ndarray) -> np.ndarray:
        return _wrapped(np.where(x < 0, -(-x // unit), x // unit), target)

    return values
