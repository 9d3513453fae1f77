"""Differences of dates and timestamps: intervals, and whole units of time.

Sources: Spark's ``SubtractTimestamps``, ``SubtractDates``, ``DateTimeUtils.timestampDiff`` and ``monthsBetween``. All
compare local times, so an hour that a clock skips or repeats does not count.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import calendar
from secateur.pruning.functions.calendar import DAY, SECOND
from secateur.pruning.functions.spans import (
    DATE,
    Span,
    Step,
    chain,
    instants_of,
    integers,
    locals_of,
    named,
    rising,
    span_of,
    steadiness,
    within,
    zone_if,
)
from secateur.pruning.functions.types import INSTANT, LOCAL, is_temporal
from secateur.pruning.interval import Argument, Function, Interval, Rule, keys_of_numbers, strict

_HALF = 2**61  # microseconds: the difference of two such times fits in 64 bits
_SIZES = {
    b"MICROSECOND": 1,
    b"MILLISECOND": 1000,
    b"SECOND": SECOND,
    b"MINUTE": 60 * SECOND,
    b"HOUR": 3600 * SECOND,
    b"DAY": DAY,
    b"WEEK": 7 * DAY,
}
_MONTHS = {b"MONTH": 1, b"QUARTER": 3, b"YEAR": 12}
_ODD_DAY = 1.05  # greatest part of a month that days and seconds can make, with a day of 25 hours

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]  # takes the later and the earlier time on the clock


def _elapsed(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the microseconds of the interval ``a - b``, for two values of one type."""
    types = [argument.type for argument in arguments]
    if len(types) != 2 or types[0] != types[1] or not is_temporal(types[0]):
        return None
    later, earlier = ((argument, _local_of(argument.type, zone)) for argument in arguments)
    return _increasing("elapsed", later, earlier, np.subtract, (0, 1), zone)


def _timestampdiff(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute ``timestampdiff(unit, a, b)``: whole units from a to b, toward zero; both are cast to TIMESTAMP."""
    match arguments:
        case [Argument(key=bytes(unit)), earlier, later] if is_temporal(earlier.type) and is_temporal(later.type):
            pass
        case _:
            return None
    first, second = ((argument, _timestamp_local_of(argument.type, zone)) for argument in (later, earlier))
    name = f"timestampdiff[{unit.decode()}]"
    if unit in _SIZES:
        size = _SIZES[unit]
        return _increasing(name, first, second, lambda b, a: _toward_zero(b - a, size), (2, 1), zone)
    return _whole_months(name, first[1], second[1], _MONTHS[unit], zone) if unit in _MONTHS else None


def _local_of(type_: pa.DataType, zone: dt.tzinfo) -> Step:
    if type_ == DATE:
        return chain(within(-(_HALF // DAY), _HALF // DAY), rising(lambda days: days * DAY))
    return chain(locals_of(type_, zone) or within(0, 0), within(-_HALF, _HALF))


def _timestamp_local_of(type_: pa.DataType, zone: dt.tzinfo) -> Step:
    """Return the local time of a value cast to TIMESTAMP, which is never a time that the clock skips."""
    return chain(instants_of(type_, zone) or within(0, 0), _local_of(INSTANT, zone))


def _increasing(
    name: str,
    later: tuple[Argument, Step],
    earlier: tuple[Argument, Step],
    combine: Combine,
    position: tuple[int, int],
    zone: dt.tzinfo,
) -> Function:
    """Make a function that grows with the later time and falls with the earlier, at these positions."""
    (first, there), (second, before), (at, other) = later, earlier, position

    def bounds(args: Sequence[Interval]) -> Interval:
        a, b = there(span_of(args[at])), before(span_of(args[other]))
        span = Span(combine(a.lower, b.upper), combine(a.upper, b.lower), a.fails | b.fails)
        return integers(pa.int64()).interval([args[at], args[other]], span)

    types = (first.type, second.type)
    matters = zone_if(types != (LOCAL, LOCAL) and types != (DATE, DATE), zone)
    directions = [0] * (max(position) + 1)
    directions[at], directions[other] = 1, -1
    is_steady = steadiness(there, first.type, matters)
    if is_steady is not None and second.key is None:
        directions, is_steady = [0] * len(directions), None  # steadiness is defined for one argument only
    return Function(named(name, matters), pa.int64(), bounds, tuple(directions), is_steady=is_steady)


def _toward_zero(values: np.ndarray, size: int) -> np.ndarray:
    return np.sign(values) * (np.abs(values) // size)


# ---- months ----------------------------------------------------------------------------------------------------------


def _whole_months(name: str, later: Step, earlier: Step, size: int, zone: dt.tzinfo) -> Function:
    """Compute whole months, toward zero: the difference of the calendar months, or one more or less."""

    def bounds(args: Sequence[Interval]) -> Interval:
        a, b = later(span_of(args[2])), earlier(span_of(args[1]))
        low, high = _months(a.lower) - _months(b.upper) - 1, _months(a.upper) - _months(b.lower) + 1
        single = (a.lower == a.upper) & (b.lower == b.upper)
        exact = _full_months(a.lower, b.lower)
        low, high = np.where(single, exact, low), np.where(single, exact, high)
        span = Span(_toward_zero(low, size), _toward_zero(high, size), a.fails | b.fails)
        return integers(pa.int64()).interval(args[1:], span)

    return Function(named(name, zone), pa.int64(), bounds, (0, 0, 0))


def _months(micros: np.ndarray) -> np.ndarray:
    return calendar.months(micros // DAY)


def _full_months(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """Compute ``LocalDateTime.until`` in months: the end moves a day closer if its time of day is not reached."""
    end, start = later // DAY, earlier // DAY
    time = np.sign(later % DAY - earlier % DAY)
    end = end + np.where((end > start) & (time < 0), -1, np.where((end < start) & (time > 0), 1, 0))
    packed = [calendar.months(days) * 32 + days - calendar.first_of_month(days) for days in (end, start)]
    return _toward_zero(packed[0] - packed[1], 32)


def _months_between(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Bound ``months_between(a, b)`` within a month of the calendar difference. Rows are left to Spark."""
    if len(arguments) not in (2, 3) or not all(is_temporal(argument.type) for argument in arguments[:2]):
        return None
    later, earlier = (_timestamp_local_of(argument.type, zone) for argument in arguments[:2])

    def bounds(args: Sequence[Interval]) -> Interval:
        a, b = later(span_of(args[0])), earlier(span_of(args[1]))
        low, high = _months(a.lower) - _months(b.upper) - _ODD_DAY, _months(a.upper) - _months(b.lower) + _ODD_DAY
        lower, upper = (keys_of_numbers(values, pa.float64()) for values in (low, high))
        return strict(pa.float64(), args, lower, upper, a.fails | b.fails)

    return Function(named("months_between", zone), pa.float64(), bounds, (0,) * len(arguments), exact=False)


RULES: dict[str, Rule] = {"elapsed": _elapsed, "months_between": _months_between, "timestampdiff": _timestampdiff}
