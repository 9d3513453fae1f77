"""Arithmetic on intervals with Spark's ANSI semantics: overflow and division by zero are errors.

The bounds of ``+``, ``-``, ``*`` and ``/`` are at the corners of the argument intervals (Moore, 1966), because each
operation is monotone in each argument with the other fixed; rounding of floats and decimals preserves that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.casts import cast, half_up
from secateur.pruning.functions.types import adjusted, decimal_of, is_decimal, is_integer, is_numeric
from secateur.pruning.interval import Argument, Function, Interval, Rule, key_range, keys_of_numbers, numbers, strict
from secateur.values.key import INT64_MAX
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float

Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]

_SYMBOLS: dict[str, Operation] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_LONG = float(2**63)


def _binary(symbol: str) -> Rule:
    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 2 or not all(is_numeric(a.type) for a in arguments):
            return None
        left, right = (a.type for a in arguments)
        directions = _directions(symbol, arguments)
        if is_float(left) or is_float(right):
            return _float_function(symbol, arguments, directions)
        if is_decimal(left) or is_decimal(right):
            return _decimal_function(symbol, arguments, directions)
        if symbol == "/":
            return _float_function(symbol, arguments, directions)
        wider = max(left, right, key=lambda type_: type_.bit_width)
        return Function(symbol, wider, lambda args: _integers(symbol, wider, args), directions)

    return rule


def _directions(symbol: str, arguments: Sequence[Argument]) -> tuple[int, int]:
    """Return how the value moves with each argument, if the other is a constant of known sign."""
    signs = [_sign(argument) for argument in reversed(arguments)]
    if any(is_float(argument.type) for argument in arguments):
        return _float_directions(symbol, arguments, signs)
    match symbol:
        case "+":
            return 1, 1
        case "-":
            return 1, -1
        case "*":
            return signs[0], signs[1]
        case _:
            return signs[0], 0


def _float_directions(symbol: str, arguments: Sequence[Argument], signs: list[int]) -> tuple[int, int]:
    """Do the same for floats: NaN stays the greatest even under a falling function, and infinite constants make NaN."""
    finite = [argument.key is not None and _is_finite(argument) for argument in reversed(arguments)]
    match symbol:
        case "+":
            return int(finite[0]), int(finite[1])
        case "-":
            return int(finite[0]), 0
        case "*":
            return max(signs[0], 0), max(signs[1], 0)
        case _:
            return max(signs[0], 0), 0


def _is_finite(argument: Argument) -> bool:
    least, greatest = key_range(argument.type)
    infinite = 2**51  # number of keys between infinity and the one NaN
    return not is_float(argument.type) or least < int(argument.key or 0) < greatest - infinite


def _sign(argument: Argument) -> int:
    """Return the sign of a finite constant; 0 if it is zero, or not a finite constant."""
    key = argument.key
    if not isinstance(key, int) or key == 0 or not _is_finite(argument):
        return 0
    return 1 if key > 0 else -1


# ---- integers --------------------------------------------------------------------------------------------------------


def _integers(symbol: str, type_: pa.DataType, arguments: Sequence[Interval]) -> Interval:
    operation = _SYMBOLS[symbol]
    corners = _corners(symbol, *((a.lower.words[0], a.upper.words[0]) for a in arguments))
    values = [operation(x, y) for x, y in corners]
    least, greatest = key_range(type_)
    if type_ == pa.int64():
        beyond = [_wraps(symbol, x, y, v) for (x, y), v in zip(corners, values, strict=True)]
    else:
        beyond = [(v < least) | (v > greatest) for v in values]
    lower, upper = reduce(np.minimum, values), reduce(np.maximum, values)
    keys = Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,))
    return strict(type_, arguments, *keys, reduce(np.logical_or, beyond))


def _wraps(symbol: str, x: np.ndarray, y: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return where an int64 result overflowed: by sign, or for products by a double product, rounded conservatively."""
    match symbol:
        case "+":
            return ((x ^ value) & (y ^ value)) < 0
        case "-":
            return ((x ^ y) & (x ^ value)) < 0
        case _:
            return np.abs(x.astype(np.float64) * y.astype(np.float64)) >= _LONG * (1 - 2.0**-50)


def _corners(
    symbol: str, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the pairs of ends at which the least and the greatest value are."""
    match symbol:
        case "+":
            return [(left[0], right[0]), (left[1], right[1])]
        case "-":
            return [(left[0], right[1]), (left[1], right[0])]
        case _:
            return [(x, y) for x in left for y in right]


# ---- floats ----------------------------------------------------------------------------------------------------------


def _float_function(symbol: str, arguments: Sequence[Argument], directions: tuple[int, int]) -> Function | None:
    single = all(a.type == pa.float32() for a in arguments) and symbol != "/"
    type_ = pa.float32() if single else pa.float64()
    casts = [cast(a.type, type_, dt.UTC) for a in arguments]
    if any(c is None for c in casts):
        return None
    into = [c for c in casts if c is not None]
    exact = all(c.exact for c in into)

    def bounds(args: Sequence[Interval]) -> Interval:
        return _floats(symbol, type_, [c.bounds([a]) for c, a in zip(into, args, strict=True)])

    return Function(f"{symbol}[{type_}]", type_, bounds, directions, exact)


def _floats(symbol: str, type_: pa.DataType, arguments: Sequence[Interval]) -> Interval:
    width = np.float32 if type_ == pa.float32() else np.float64
    operation: Operation = np.divide if symbol == "/" else _SYMBOLS[symbol]
    with np.errstate(all="ignore"):
        (a, b), (c, d) = [
            (numbers(x.lower, x.type).astype(width), numbers(x.upper, x.type).astype(width)) for x in arguments
        ]
        values = [operation(x, y) for x, y in _corners(symbol, (a, b), (c, d))]
    least, greatest = reduce(np.fmin, values), reduce(np.fmax, values)
    single = (arguments[0].is_point & arguments[1].is_point) | np.isfinite(np.array([a, b, c, d])).all(axis=0)
    # With an infinite end or a NaN among the arguments, NaN is possible, and so is every value in between.
    first = values[0]  # of both lower ends, for sums and differences
    lowest = np.where(np.isnan(first), -np.inf, first) if symbol in "+-" else np.full_like(least, -np.inf)
    lowest = np.where(np.isnan(a) | np.isnan(c), np.nan, lowest)  # only NaN gives only NaN
    lower = np.where(single, least, lowest)
    upper = np.where(single, greatest, np.nan)
    keys = keys_of_numbers(lower, type_), keys_of_numbers(upper, type_)
    fails = np.less_equal(c, 0) & ~np.less(d, 0) if symbol == "/" else None
    return strict(type_, arguments, *keys, fails)


# ---- decimals --------------------------------------------------------------------------------------------------------


def _decimal_function(symbol: str, arguments: Sequence[Argument], directions: tuple[int, int]) -> Function | None:
    left, right = (_decimal_type(a) for a in arguments)
    if left is None or right is None:
        return None
    type_ = _result(symbol, left, right)

    def bounds(args: Sequence[Interval]) -> Interval:
        return _decimals(symbol, left, right, type_, args)

    return Function(f"{symbol}[{left}, {right}]", type_, bounds, directions)


def _decimal_type(argument: Argument) -> pa.DataType | None:
    """Return the decimal type of an operand: for an integer literal one of exactly its digits; None if uncertain.

    It determines the digits of the result, and so the rounding. Source: ``DecimalPrecisionTypeCoercion``.
    """
    if not is_integer(argument.type) or argument.written is False:
        return decimal_of(argument.type)
    return pa.decimal128(len(str(abs(int(argument.key or 0)))), 0) if argument.written else None


def _result(symbol: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    match symbol:
        case "+" | "-":
            whole = max(left.precision - left.scale, right.precision - right.scale)
            return adjusted(whole + scale + 1, scale)
        case "*":
            return adjusted(left.precision + right.precision + 1, left.scale + right.scale)
        case _:
            scale = max(6, left.scale + right.precision + 1)
            return adjusted(left.precision - left.scale + right.scale + scale, scale)


def _decimals(
    symbol: str, left: pa.DataType, right: pa.DataType, type_: pa.DataType, arguments: Sequence[Interval]
) -> Interval:
    """Compute exact integers at the corners, rounded half up to the scale of the result."""
    wide = symbol == "/" or max(type_.precision, left.precision, right.precision) > 18
    ends = [tuple(_unscaled(keys, a.type, wide) for keys in (a.lower, a.upper)) for a in arguments]
    scales = left.scale, right.scale
    values = [_decimal_value(symbol, x, y, scales, type_.scale) for x, y in _corners(symbol, *ends)]  # type: ignore[arg-type]
    lower, upper = reduce(np.minimum, values), reduce(np.maximum, values)
    limit = 10**type_.precision
    fails = (lower <= -limit) | (upper >= limit)
    if symbol == "/":
        low, high = ends[1]
        fails = fails | ((low <= 0) & (high >= 0))
    lower, upper = (np.clip(v, 1 - limit, limit - 1) for v in (lower, upper))
    return strict(type_, arguments, keys_of_numbers(lower, type_), keys_of_numbers(upper, type_), fails.astype(bool))


def _unscaled(keys: Keys, type_: pa.DataType, wide: bool) -> np.ndarray:
    values = numbers(keys, type_)
    return values.astype(object) if wide else values


def _decimal_value(symbol: str, x: np.ndarray, y: np.ndarray, scales: tuple[int, int], scale: int) -> np.ndarray:
    left, right = scales
    match symbol:
        case "+" | "-":
            both = max(scales)
            exact = _SYMBOLS[symbol](x * 10 ** (both - left), y * 10 ** (both - right))
            return half_up(exact, both - scale)
        case "*":
            return half_up(x * y, left + right - scale)
        case _:  # Spark divides to 38 fraction digits and rounds again (``Decimal./``)
            divisor = np.where(y == 0, 1, y)
            power = 38 - left + right
            sign = np.where((x < 0) != (divisor < 0), -1, 1)
            twice = 2 * abs(x) * 10 ** max(power, 0)
            by = abs(divisor) * 10 ** max(-power, 0)
            return half_up(sign * ((twice + by) // (2 * by)), 38 - scale)


# ---- one argument ----------------------------------------------------------------------------------------------------


def _negative(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if len(arguments) != 1 or not is_numeric(arguments[0].type):
        return None
    type_ = arguments[0].type

    def bounds(args: Sequence[Interval]) -> Interval:
        (a,) = args
        low, high = numbers(a.lower, type_), numbers(a.upper, type_)
        if is_float(type_):  # NaN stays NaN, which is the greatest value before and after
            lower = np.where(np.isnan(high) & ~np.isnan(low), -np.inf, -high)
            upper = np.where(np.isnan(high), np.nan, -low)
            return strict(type_, args, keys_of_numbers(lower, type_), keys_of_numbers(upper, type_))
        least = key_range(type_)[0] if is_integer(type_) else None
        fails = None if least is None else low <= least
        return strict(type_, args, keys_of_numbers(-high, type_), keys_of_numbers(-low, type_), fails)

    return Function("negative", type_, bounds, (0 if is_float(type_) else -1,))


def _abs(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if len(arguments) != 1 or not is_numeric(arguments[0].type):
        return None
    type_ = arguments[0].type

    def bounds(args: Sequence[Interval]) -> Interval:
        (a,) = args
        low, high = numbers(a.lower, type_), numbers(a.upper, type_)
        crosses = (low < 0) & (high > 0) if not is_float(type_) else (low < 0) & ~(high <= 0)
        least, greatest = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        if is_float(type_):
            least = np.fmin(np.abs(low), np.abs(high))
        lower = np.where(crosses, np.zeros_like(least), least)
        fails = low <= key_range(type_)[0] if is_integer(type_) else None
        return strict(type_, args, keys_of_numbers(lower, type_), keys_of_numbers(greatest, type_), fails)

    return Function("abs", type_, bounds, (0,))


def _remainder(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the remainder of integers, with the sign of the dividend: exact if both ends have one quotient."""
    if len(arguments) != 2 or not all(is_integer(a.type) for a in arguments):
        return None
    type_ = max((a.type for a in arguments), key=lambda argument_type: argument_type.bit_width)

    def bounds(args: Sequence[Interval]) -> Interval:
        (low, high), (least, greatest) = ((a.lower.words[0], a.upper.words[0]) for a in args)
        divisor = np.where(least == 0, 1, least)
        size = np.maximum(np.abs(np.maximum(least, -INT64_MAX)), np.abs(np.maximum(greatest, -INT64_MAX))) - 1
        alike = (least == greatest) & (_quotient(low, divisor) == _quotient(high, divisor)) & ((low < 0) == (high < 0))
        lower = np.where(alike, np.fmod(low, divisor), np.maximum(np.minimum(low, 0), -size))
        upper = np.where(alike, np.fmod(high, divisor), np.minimum(np.maximum(high, 0), size))
        fails = (least <= 0) & (greatest >= 0)
        return strict(type_, args, Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,)), fails)

    return Function("%", type_, bounds, (0, 0))


def _positive_remainder(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return ``pmod`` of integers by a positive constant: exact if both ends have one quotient, rounded down."""
    match arguments:
        case [Argument(type=dividend), Argument(type=divisor, key=int(size))] if size > 0:
            if not is_integer(dividend) or not is_integer(divisor):
                return None
        case _:
            return None

    def bounds(args: Sequence[Interval]) -> Interval:
        low, high = args[0].lower.words[0], args[0].upper.words[0]
        alike = low // size == high // size
        lower, upper = np.where(alike, low % size, 0), np.where(alike, high % size, size - 1)
        return strict(type_, args, Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,)))

    type_ = max((dividend, divisor), key=lambda argument_type: argument_type.bit_width)
    return Function("pmod", type_, bounds, (0, 0))


def _quotient(x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Return the quotient rounded towards zero; arbitrary for the least bigint by -1, which overflows."""
    safe = np.where(divisor == -1, 1, divisor)
    return (x - np.fmod(x, safe)) // safe


RULES: dict[str, Rule] = {
    "%": _remainder,
    **{symbol: _binary(symbol) for symbol in "+-*/"},
    "negative": _negative,
    "abs": _abs,
    "pmod": _positive_remainder,
}
