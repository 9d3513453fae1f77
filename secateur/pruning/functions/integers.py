"""Operators on whole numbers: ``DIV``, shifts, ``~``.

Sources: Spark's ``IntegralDivide``, ``ShiftLeft``, ``ShiftRight``, ``ShiftRightUnsigned``, ``BitwiseNot``. Shifts are
Java's: an int uses the last 5 bits of the count, a long the last 6; bits shifted out on the left are lost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.types import is_integer
from secateur.pruning.interval import Argument, Function, Interval, Rule, key_range, keys_of_numbers, strict
from secateur.values.key import INT64_MAX, INT64_MIN

Shift = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # numbers, counts, width in bits


def _div(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute the quotient towards zero, a bigint. For divisors of one sign it is monotone in both arguments."""
    if len(arguments) != 2 or not all(is_integer(a.type) for a in arguments):
        return None
    divisor = arguments[1].key
    direction = 0 if not isinstance(divisor, int) or divisor == 0 else 1 if divisor > 0 else -1

    def bounds(args: Sequence[Interval]) -> Interval:
        (low, high), (least, greatest) = ((a.lower.words[0], a.upper.words[0]) for a in args)
        below, above = np.minimum(greatest, -1), np.maximum(least, 1)  # the divisors next to zero
        divisors = [
            np.where(least < 0, least, above),
            np.where(least < 0, below, above),
            np.where(greatest > 0, above, below),
            np.where(greatest > 0, greatest, below),
        ]
        values = [_quotient(x, y) for x in (low, high) for y in divisors]
        fails = (least <= 0) & (greatest >= 0)
        fails |= (low == INT64_MIN) & (least <= -1) & (greatest >= -1)
        lower, upper = reduce(np.minimum, values), reduce(np.maximum, values)
        return strict(pa.int64(), args, keys_of_numbers(lower, pa.int64()), keys_of_numbers(upper, pa.int64()), fails)

    return Function("div", pa.int64(), bounds, (direction, 0))


def _quotient(x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Divide towards zero; the least bigint by -1, which overflows, gives the greatest."""
    safe = np.where(divisor == -1, 1, divisor)
    quotient = (x - np.fmod(x, safe)) // safe
    return np.where(divisor == -1, -np.maximum(x, -INT64_MAX), quotient)


def _complement(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if len(arguments) != 1 or not is_integer(arguments[0].type):
        return None
    type_ = arguments[0].type

    def bounds(args: Sequence[Interval]) -> Interval:
        (a,) = args
        lower, upper = ~a.upper.words[0], ~a.lower.words[0]
        return strict(type_, args, keys_of_numbers(lower, type_), keys_of_numbers(upper, type_))

    return Function("~", type_, bounds, (-1,))


# ---- shifts ----------------------------------------------------------------------------------------------------------


def _shift(name: str, shifted: Shift, *, rises: bool) -> Rule:
    """Make a shift; `rises`: for a constant count it never decreases."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 2 or not all(is_integer(a.type) for a in arguments):
            return None
        type_ = pa.int64() if arguments[0].type == pa.int64() else pa.int32()
        bits = type_.bit_width

        def bounds(args: Sequence[Interval]) -> Interval:
            value, count = args
            low, high = value.lower.words[0], value.upper.words[0]
            by = count.lower.words[0] & (bits - 1)
            ends = shifted(low, by, bits), shifted(high, by, bits)
            ordered = count.is_point & (value.is_point | _keeps_order(name, low, high, by, ends, bits))
            least, greatest = key_range(type_)
            lower, upper = np.where(ordered, ends[0], least), np.where(ordered, ends[1], greatest)
            first, last = count.lower.words[0], count.upper.words[0]
            fails = (first < -(2**31)) | (last >= 2**31)  # a count is an int
            return strict(type_, args, keys_of_numbers(lower, type_), keys_of_numbers(upper, type_), fails)

        constant = isinstance(arguments[1].key, int)
        return Function(f"{name}[{type_}]", type_, bounds, (int(rises and constant), 0))

    return rule


def _keeps_order(
    name: str, low: np.ndarray, high: np.ndarray, by: np.ndarray, ends: tuple[np.ndarray, np.ndarray], bits: int
) -> np.ndarray:
    """Return where the ends of an interval become those of the shifted one."""
    match name:
        case "shiftleft":  # unless a bit is lost
            return np.logical_and.reduce([_right(end, by, bits) == x for end, x in zip(ends, (low, high), strict=True)])
        case "shiftrightunsigned":  # of numbers of one sign
            return (low >= 0) | (high < 0)
        case _:
            return np.ones(len(low), bool)


def _left(x: np.ndarray, by: np.ndarray, bits: int) -> np.ndarray:
    moved = (x.view(np.uint64) << by.astype(np.uint64)).view(np.int64)
    return moved if bits == 64 else moved.astype(np.int32).astype(np.int64)


def _right(x: np.ndarray, by: np.ndarray, bits: int) -> np.ndarray:
    return x >> by


def _right_unsigned(x: np.ndarray, by: np.ndarray, bits: int) -> np.ndarray:
    plain = x.view(np.uint64) if bits == 64 else x.view(np.uint64) & np.uint64(0xFFFF_FFFF)
    moved = (plain >> by.astype(np.uint64)).view(np.int64)
    return moved if bits == 64 else moved.astype(np.int32).astype(np.int64)


RULES: dict[str, Rule] = {
    "div": _div,
    "~": _complement,
    "shiftleft": _shift("shiftleft", _left, rises=False),
    "shiftright": _shift("shiftright", _right, rises=True),
    "shiftrightunsigned": _shift("shiftrightunsigned", _right_unsigned, rises=False),
}
