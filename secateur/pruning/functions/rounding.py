"""``ceil``, ``floor``, ``round`` and ``bround`` on intervals; none ever decreases.

Sources: Spark's ``Ceil``, ``Floor``, ``RoundBase``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.casts import half_up
from secateur.pruning.functions.types import MOST_DIGITS, is_decimal, is_integer
from secateur.pruning.interval import Argument, Function, Interval, Rule, key_range, keys_of_numbers, numbers, strict
from secateur.values.kinds import Kind, is_float, kind_of

_LONG = 2.0**63


def _whole(name: str) -> Rule:
    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 1:
            return None
        type_ = arguments[0].type
        if is_integer(type_):
            return Function(name, pa.int64(), lambda args: _mapped(args, pa.int64(), lambda x: x), (1,))
        if is_float(type_):
            operation = np.ceil if name == "ceil" else np.floor
            return Function(name, pa.int64(), lambda args: _float_to_long(args, operation), (1,))
        if is_decimal(type_):
            result = _decimal(type_.precision - type_.scale + (type_.scale > 0), 0)
            up = name == "ceil"
            return Function(name, result, lambda args: _mapped(args, result, lambda x: _cut(x, type_.scale, up)), (1,))
        return None

    return rule


def _decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(max(1, min(precision, MOST_DIGITS)), scale)


def _cut(x: np.ndarray, scale: int, up: bool) -> np.ndarray:
    unit = 10**scale
    return -(-x // unit) if up else x // unit


def _mapped(args: Sequence[Interval], type_: pa.DataType, values: Callable[[np.ndarray], np.ndarray]) -> Interval:
    (a,) = args
    low, high = (values(numbers(keys, a.type)) for keys in (a.lower, a.upper))
    least, greatest = key_range(type_)
    fails = ((low < least) | (high > greatest)).astype(bool)
    low, high = np.clip(low, least, greatest), np.clip(high, least, greatest)
    return strict(type_, args, keys_of_numbers(low, type_), keys_of_numbers(high, type_), fails)


def _float_to_long(args: Sequence[Interval], operation: Callable[[np.ndarray], np.ndarray]) -> Interval:
    """Convert doubles to bigints. NaN and values beyond bigint are left to Spark, whose versions differ on them."""
    (a,) = args
    with np.errstate(invalid="ignore"):
        low, high = (operation(numbers(keys, a.type)) for keys in (a.lower, a.upper))
    fits = [(x >= -_LONG) & (x < _LONG) for x in (low, high)]
    lower, upper = (np.where(inside, x, 0.0).astype(np.int64) for x, inside in zip((low, high), fits, strict=True))
    return strict(
        pa.int64(), args, keys_of_numbers(lower, pa.int64()), keys_of_numbers(upper, pa.int64()), ~(fits[0] & fits[1])
    )


def _rounding(name: str, rounded: Callable[[np.ndarray, int], np.ndarray]) -> Rule:
    """Make ``round`` or ``bround``, which round halves away from zero, or to even digits."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        return _round(name, rounded, arguments)

    return rule


def half_even(value: np.ndarray, digits: int) -> np.ndarray:
    """Drop the last digits of integers, rounding half to even; negative `digits` add zeros."""
    if digits <= 0:
        return value * 10**-digits
    unit = 10**digits
    quotient = value // unit
    twice = 2 * (value - quotient * unit)
    return quotient + ((twice > unit) | ((twice == unit) & (quotient % 2 == 1)))


def _round(
    function: str, rounded: Callable[[np.ndarray, int], np.ndarray], arguments: Sequence[Argument]
) -> Function | None:
    match arguments:
        case [Argument(type=type_)]:
            digits = 0
        case [Argument(type=type_), Argument(key=int(digits))]:
            pass
        case _:
            return None
    directions = (1, *(0 for _ in arguments[1:]))
    name = f"{function}[{digits}]"
    if is_integer(type_) and digits >= 0:
        return Function(name, type_, lambda args: _mapped(args[:1], type_, lambda x: x), directions)
    if is_decimal(type_) and digits >= 0:
        scale = min(type_.scale, digits)
        result = _decimal(type_.precision - type_.scale + 1 + scale, scale)  # rounding up may need one more digit
        if kind_of(result) is Kind.WIDE or kind_of(type_) is Kind.WORD:
            return Function(
                name,
                result,
                lambda args: _mapped(args[:1], result, lambda x: rounded(x, type_.scale - scale)),
                directions,
            )
    if is_float(type_) and 0 <= digits <= 15:
        return Function(name, type_, lambda args: _rounded_floats(args, digits), (0,) * len(arguments), exact=False)
    return None


def _rounded_floats(args: Sequence[Interval], digits: int) -> Interval:
    """Round floats: a double moves by at most half a unit of its last digit, plus the rounding of the result."""
    a = args[0]
    low, high = numbers(a.lower, a.type), numbers(a.upper, a.type)
    reach = 0.5 * 10.0**-digits * (1 + 2.0**-20)
    with np.errstate(invalid="ignore"):
        slack = 2.0**-20 if a.type == pa.float32() else 2.0**-50
        lower, upper = low - reach - np.abs(low) * slack, high + reach + np.abs(high) * slack
    lower, upper = np.where(np.isinf(low) | np.isnan(low), low, lower), np.where(np.isinf(high), high, upper)
    return strict(a.type, args[:1], keys_of_numbers(lower, a.type), keys_of_numbers(upper, a.type))


RULES: dict[str, Rule] = {
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _rounding("round", half_up),
    "bround": _rounding("bround", half_even),
}
