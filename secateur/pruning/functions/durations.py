"""Dates and timestamps plus a number of units of time.

Source: Spark's ``timestampAddDayTime`` and ``timestampAddMonths``: hours and less are added to the instant, days and
more to the clock, which is then read again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np

from secateur.pruning.functions import calendar
from secateur.pruning.functions.calendar import DAY, SECOND
from secateur.pruning.functions.clocks import clock
from secateur.pruning.functions.spans import (
    DATE,
    Span,
    Step,
    chain,
    function_of,
    instants_of,
    integers,
    locals_of,
    rising,
    within,
    zone_if,
)
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.interval import Argument, Function, Rule
from secateur.values import INT64_MAX, INT64_MIN

_MICROS = {b"HOUR": 3_600_000_000, b"MINUTE": 60_000_000, b"SECOND": 1_000_000}
_DAYS = {b"DAY": 1, b"WEEK": 7}
_MONTHS = {b"MONTH": 1, b"YEAR": 12}
_LONGEST = 10_000 * 366  # days; of longer ones the sums would not fit


def _timestampadd(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """``timestampadd(unit, count, moment)``, of a constant unit and count."""
    match arguments:
        case [Argument(key=bytes(unit)), Argument(key=int(count)), Argument(type=source)] if abs(count) <= _LONGEST:
            pass
        case _:
            return None
    name = f"timestampadd[{unit.decode()}, {count}]"
    if unit in _MICROS:
        result = LOCAL if source == LOCAL else INSTANT
        to = locals_of(source, zone) if source == LOCAL else instants_of(source, zone)
        step = None if to is None else chain(to, _plus(count * _MICROS[unit]))
        return function_of(name, integers(result), source, step, zone=zone_if(source == DATE, zone), position=(2, 3))
    if source == DATE:
        return function_of(name, integers(DATE), source, _of_days(unit, count), position=(2, 3))
    to = locals_of(source, zone)
    on_clock = _of_clock(unit, count)
    if to is None or on_clock is None:
        return None
    back = [_read_again(zone)] if source == INSTANT else []
    direction = 1 if unit in _DAYS else 0  # the last days of a month become one, whatever their time
    step, matters = chain(to, on_clock, *back), zone_if(source == INSTANT, zone)
    return function_of(name, integers(source), source, step, zone=matters, direction=direction, position=(2, 3))


def _plus(amount: int) -> Step:
    return chain(
        within(INT64_MIN + max(0, -amount), INT64_MAX - max(0, amount)), rising(lambda micros: micros + amount)
    )


def _of_days(unit: bytes, count: int) -> Step | None:
    if unit in _DAYS:
        return rising(lambda days: days + count * _DAYS[unit])
    return (
        rising(lambda days: calendar.plus_months(days, np.asarray(count * _MONTHS[unit]))) if unit in _MONTHS else None
    )


def _of_clock(unit: bytes, count: int) -> Step | None:
    """Whole days or months later on the clock, in microseconds; the time of day stays."""
    if unit in _DAYS:
        return _plus(count * _DAYS[unit] * DAY)
    months = _of_days(unit, count)
    if months is None:
        return None

    def step(span: Span) -> Span:
        days = months(span.map(lambda micros: micros // DAY))
        single = span.lower == span.upper
        lower = days.lower * DAY + np.where(single, span.lower % DAY, 0)
        upper = days.upper * DAY + np.where(single, span.upper % DAY, DAY - 1)
        return Span(lower, upper, span.fails)

    margin = _LONGEST * DAY
    return chain(within(INT64_MIN + margin, INT64_MAX - margin), step)


def _read_again(zone: dt.tzinfo) -> Step:
    """The instant of a time on the clock: of one that comes twice, either."""
    back = clock(zone, SECOND)

    def step(span: Span) -> Span:
        first, last = span.through(back.instants), span.through(back.later)
        return Span(np.minimum(first.lower, last.lower), np.maximum(first.upper, last.upper), span.fails)

    return chain(step, within(INT64_MIN + 1, INT64_MAX - 1))


RULES: dict[str, Rule] = {"timestampadd": _timestampadd}
