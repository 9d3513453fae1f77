"""Dates and timestamps plus an interval, or plus a number of units of time.

Source: Spark's ``DateTimeUtils``. For an interval of days or less, however written, its whole days, cut toward zero,
are added to the local time, which is converted back to an instant, and the rest is added to that
(``timestampAddDayTime``). Months are added to the local time (``timestampAddMonths``). ``timestampadd`` adds hours and
less to the instant, however many.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import calendar
from secateur.pruning.functions.calendar import DAY, SECOND, Map
from secateur.pruning.functions.clocks import FARTHEST, clock
from secateur.pruning.functions.or_null import null_on_error
from secateur.pruning.functions.spans import (
    DATE,
    Span,
    Step,
    chain,
    function_of,
    instants_of,
    integers,
    rising,
    same,
    within,
    zone_if,
)
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL, is_temporal
from secateur.pruning.interval import Argument, Function, Rule
from secateur.values.key import INT64_MAX, INT64_MIN

_MICROS = {b"HOUR": 3600 * SECOND, b"MINUTE": 60 * SECOND, b"SECOND": SECOND, b"MILLISECOND": 1000, b"MICROSECOND": 1}
_DAYS = {b"DAY": 1, b"DAYOFYEAR": 1, b"WEEK": 7}
_MONTHS = {b"MONTH": 1, b"QUARTER": 3, b"YEAR": 12}
_FARTHEST = FARTHEST * SECOND
_MOST_MONTHS = 12 * 100_000
_MOST_DAYS = 366 * 100_000  # beyond this the sums might not fit


def _plus_interval(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Add a constant interval, in MONTH, DAY or MICROSECOND, to a moment; a date plus days is a date."""
    match arguments:
        case [Argument(key=bytes(unit)), Argument(key=int(amount)), Argument(type=source)] if is_temporal(source):
            pass
        case _:
            return None
    match unit:
        case b"MONTH":
            return _months_later(source, source, amount, zone)
        case b"DAY" if source == DATE:
            return _time_function(f"plus[{amount} days]", DATE, source, rising(lambda days: days + amount))
        case b"DAY":
            return _time_later(source, amount, 0, zone)
        case _:
            days = abs(amount) // DAY * (1 if amount > 0 else -1)
            return _time_later(source, days, amount - days * DAY, zone)


def _try_plus_interval(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    plain = _plus_interval(arguments, zone)
    if plain is None:
        return None
    return null_on_error(plain, f"try_{plain.name}", certain=False, keeps_order=False)


def _timestampadd(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Compute ``timestampadd(unit, count, moment)`` for a constant unit and count; a date counts as midnight."""
    match arguments:
        case [Argument(key=bytes(unit)), Argument(type=type_, key=int(count)), Argument(type=source)]:
            if type_ not in INTEGERS or not is_temporal(source):
                return None
        case _:
            return None
    if unit in _DAYS:
        return _time_later(source, count * _DAYS[unit], 0, zone)
    if unit in _MONTHS:
        return _months_later(source, INSTANT if source == DATE else source, count * _MONTHS[unit], zone)
    return _time_later(source, 0, count * _MICROS[unit], zone) if unit in _MICROS else None


def _time_function(
    name: str, result: pa.DataType, source: pa.DataType, step: Step, zone: dt.tzinfo | None = None, direction: int = 1
) -> Function | None:
    return function_of(name, integers(result), source, step, zone=zone, direction=direction, position=(2, 3))


def _time_later(source: pa.DataType, days: int, micros: int, zone: dt.tzinfo) -> Function | None:
    """Add days to a timestamp's local time, and then microseconds to the instant."""
    if abs(days) > _MOST_DAYS or abs(micros) > INT64_MAX:
        return None
    name = f"plus[{days} days, {micros} microseconds]"
    if source == LOCAL:
        return _time_function(name, LOCAL, source, _plus(days * DAY + micros))
    at_instant = instants_of(source, zone) or same
    on_clock = _on_clock(zone, _plus(days * DAY)) if days else same
    matters = zone_if(bool(days) or source == DATE, zone)
    return _time_function(name, INSTANT, source, chain(at_instant, on_clock, _plus(micros)), matters)


def _months_later(source: pa.DataType, result: pa.DataType, months: int, zone: dt.tzinfo) -> Function | None:
    """Add months to a date or timestamp. Several last days of a month become one, whatever their time."""
    if abs(months) > _MOST_MONTHS:
        return None
    name, add = f"plus[{months} months]", np.asarray(months)
    if result == DATE:
        return _time_function(name, DATE, source, rising(lambda days: calendar.plus_months(days, add)))
    on_clock = _of_day(lambda days: calendar.plus_months(days, add), (abs(months) + 2) * 31)
    if result == LOCAL:
        return _time_function(name, LOCAL, source, on_clock, direction=0)
    step = chain(instants_of(source, zone) or same, _on_clock(zone, on_clock))
    return _time_function(name, INSTANT, source, step, zone, direction=0)


def _plus(amount: int) -> Step:
    least, greatest = INT64_MIN + max(0, -amount), INT64_MAX - max(0, amount)
    return chain(within(least, greatest), rising(lambda micros: micros + amount))


def _of_day(move: Map, most_days: int) -> Step:
    """Move to another day, keeping the time of day, in microseconds of local time."""

    def step(span: Span) -> Span:
        days = span.map(lambda micros: micros // DAY).map(move)
        single = span.lower == span.upper
        lower = days.lower * DAY + np.where(single, span.lower % DAY, 0)
        upper = days.upper * DAY + np.where(single, span.upper % DAY, DAY - 1)
        return Span(lower, upper, span.fails)

    margin = most_days * DAY
    return chain(within(INT64_MIN + margin, INT64_MAX - margin), step)


def _on_clock(zone: dt.tzinfo, move: Step) -> Step:
    """Move a time on the clock; if the result occurs twice, prefer the offset from before the move.

    Source: ``ZonedDateTime.plusDays`` and ``plusMonths``. Between bounds it may be both.
    """
    there, back, later = clock(zone, SECOND).local, clock(zone, SECOND).instants, clock(zone, SECOND).later

    def step(span: Span) -> Span:
        span = span.within(INT64_MIN + _FARTHEST, INT64_MAX - _FARTHEST)  # so that no clock shows less or more
        local = span.through(there)
        moved = move(local).within(INT64_MIN + _FARTHEST, INT64_MAX - _FARTHEST)
        first, last = moved.through(back), moved.through(later)
        if back.constant is not None:
            return first
        single = (span.lower == span.upper) & (local.lower == local.upper) & (moved.lower == moved.upper)
        kept = moved.lower - (local.lower - span.lower)
        stays = single & (moved.lower == there.hull(kept, kept)[0])
        lower = np.where(single, first.lower, np.minimum(first.lower, last.lower))
        upper = np.where(single, first.upper, np.maximum(first.upper, last.upper))
        return Span(np.where(stays, kept, lower), np.where(stays, kept, upper), moved.fails)

    return chain(step, within(INT64_MIN + 1, INT64_MAX - 1))


RULES: dict[str, Rule] = {
    "plus_interval": _plus_interval,
    "timestampadd": _timestampadd,
    "try_plus_interval": _try_plus_interval,
}
