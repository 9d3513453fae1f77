"""Functions and casts of dates and timestamps.

Sources: Spark's ``DateTimeUtils``, ``datetimeExpressions`` and ``Cast`` (ANSI).

Every function is a chain of steps: from keys to days or seconds, through the clock of the session's zone where Spark
uses it, to the field. If a zone's offset is unknown (before 1970) bounds stay apart even for single values, though most
answers do not depend on it. Where Spark fails, and where it overflows silently, `fails` is set.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.pruning.functions import calendar
from secateur.pruning.functions.calendar import DAY, DAY_SECONDS, SECOND, Map
from secateur.pruning.functions.clocks import clock
from secateur.pruning.functions.spans import (
    DATE,
    GREATEST_SECOND,
    LEAST_SECOND,
    TEXT,
    TO_MICROS,
    TO_SECONDS,
    Result,
    Span,
    Step,
    chain,
    cyclic,
    date_to_seconds,
    days_of,
    fractional_seconds,
    function_of,
    instants_of,
    integers,
    local_seconds_of,
    locals_of,
    named,
    rising,
    same,
    span_of,
    steadiness,
    text,
    through,
    within,
    zone_if,
)
from secateur.pruning.functions.types import INSTANT, INTEGERS, LOCAL, is_temporal
from secateur.pruning.interval import Argument, Function, Interval, Rule
from secateur.values.key import INT64_MAX
from secateur.values.kinds import is_float

_SMALL = INTEGERS[:3]  # types for a number of days or months


def _with(first: Step | None, *others: Step) -> Step | None:
    return None if first is None else chain(first, *others)


def _unit(argument: Argument) -> str | None:
    return argument.key.decode("utf-8", "replace").upper() if isinstance(argument.key, bytes) else None


# ---- fields ----------------------------------------------------------------------------------------------------------


def _field_of_date(name: str, step: Step, direction: int, result: pa.DataType) -> Rule:
    """Make a function of one argument's date."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 1:
            return None
        (source,) = (argument.type for argument in arguments)
        steps, matters = _with(days_of(source, zone), step), zone_if(source == INSTANT, zone)
        return function_of(name, integers(result), source, steps, zone=matters, direction=direction)

    return rule


def _field_of_time(name: str, cycle: calendar.Cyclic) -> Rule:
    """Make a function of the time of day."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 1:
            return None
        (source,) = (argument.type for argument in arguments)
        steps, matters = _with(local_seconds_of(source, zone), cyclic(cycle)), zone_if(source != LOCAL, zone)
        return function_of(name, integers(pa.int32()), source, steps, zone=matters, direction=0)

    return rule


# ---- truncation ------------------------------------------------------------------------------------------------------

_ON_CLOCK = {"DAY": DAY_SECONDS, "DD": DAY_SECONDS, "HOUR": 3600, "MINUTE": 60}  # seconds
# microseconds: all offsets are multiples of these
_EVERYWHERE = {"SECOND": SECOND, "MILLISECOND": 1000, "MICROSECOND": 1}


def _trunc(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the first day of the year, quarter, month or week."""
    if len(arguments) != 2:
        return None
    source, start = arguments[0].type, calendar.STARTS.get(_unit(arguments[1]) or "")
    if start is None:
        return None
    inside = within(-(2**31) + 16, 2**31 - 1)  # getNextDateForDayOfWeek wraps around below
    steps, matters = _with(days_of(source, zone), inside, rising(start)), zone_if(source == INSTANT, zone)
    return function_of("trunc", integers(DATE), source, steps, zone=matters, position=(0, 2))


_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _next_day(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the first day with a name, of two letters, three or all, after a date."""
    if len(arguments) != 2:
        return None
    source, name = arguments[0].type, _unit(arguments[1]) or ""
    wanted = [i for i, day in enumerate(_WEEKDAYS) if name in (day, day[:2], day[:3])]
    if not wanted:
        return None
    inside = within(-(2**31) + 16, 2**31 - 16)  # getNextDateForDayOfWeek wraps around
    after = rising(lambda days: days + 1 + (wanted[0] - calendar.weekday(days + 1)) % 7)
    steps, matters = _with(days_of(source, zone), inside, after), zone_if(source == INSTANT, zone)
    return function_of(
        f"next_day[{_WEEKDAYS[wanted[0]]}]", integers(DATE), source, steps, zone=matters, position=(0, 2)
    )


def _date_trunc(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the instant at which the unit of time began; dates and times without zone are cast to TIMESTAMP first."""
    if len(arguments) != 2 or not is_temporal(arguments[1].type):
        return None
    unit, source = _unit(arguments[0]), arguments[1].type
    if unit in calendar.STARTS:
        first = partial(_midnight_of, calendar.STARTS[unit])
        floor = chain(TO_SECONDS, _floor_on_clock(zone, first, keeps_offset=False), TO_MICROS)
    elif unit in _ON_CLOCK:
        size = _ON_CLOCK[unit]
        floor = chain(TO_SECONDS, _floor_on_clock(zone, lambda s: s - s % size, keeps_offset=True), TO_MICROS)
    elif unit in _EVERYWHERE:
        size = _EVERYWHERE[unit]
        floor = chain(within(-(2**63 // size) * size, INT64_MAX), rising(lambda micros: micros - micros % size))
    else:
        return None
    matters = zone_if(source != INSTANT or unit not in _EVERYWHERE, zone)
    steps = _with(instants_of(source, zone), floor)
    return function_of("date_trunc", integers(INSTANT), source, steps, zone=matters, position=(1, 2))


def _midnight_of(start: Map, seconds: np.ndarray) -> np.ndarray:
    return start(seconds // DAY_SECONDS) * DAY_SECONDS


def _floor_on_clock(zone: dt.tzinfo, floor: Map, keeps_offset: bool) -> Step:
    """Return seconds at which the unit began on the clock, keeping the offset if it applied then, else as a cast does.

    Sources: ``ZonedDateTime.truncatedTo``, and ``truncTimestamp``, which handles weeks and more as dates: a midnight
    that the clock repeats is then the earlier one, and from Spark 4.3 on the one of the same offset. Between bounds it
    may be any instant with that local time.
    """
    there, back, later = clock(zone).local, clock(zone).instants, clock(zone).later

    def step(span: Span) -> Span:
        local = span.through(there)
        begin = (floored := local.map(floor)).through(back)
        if back.constant is not None:
            return begin
        kept = floored.lower - (local.lower - span.lower)
        least, greatest = there.hull(kept, kept)
        single = (span.lower == span.upper) & (local.lower == local.upper) & (least == greatest)
        stays = single & (least == floored.lower)
        last = np.where(single, begin.upper, np.maximum(begin.upper, floored.through(later).upper))
        first = np.where(stays & keeps_offset, kept, begin.lower)
        return Span(first, np.where(stays, kept, last), span.fails)

    return step


# ---- days ------------------------------------------------------------------------------------------------------------


def _of_two(
    name: str,
    result: pa.DataType,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray],
    direction: int,
    others: Sequence[pa.DataType],
) -> Rule:
    """Make a function that grows with the first argument's date, and moves with the second as specified."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 2 or arguments[1].type not in others:
            return None
        first, second = (argument.type for argument in arguments)
        days, number = days_of(first, zone), days_of(second, zone) or same
        if days is None:
            return None

        def bounds(args: Sequence[Interval]) -> Interval:
            a, b = days(span_of(args[0])), number(span_of(args[1]))
            low, high = (b.lower, b.upper) if direction > 0 else (b.upper, b.lower)
            span = Span(combine(a.lower, low), combine(a.upper, high), a.fails | b.fails)
            return integers(result).interval(args, span)

        matters = zone_if(INSTANT in (first, second), zone)
        is_steady = steadiness(days_of(INSTANT, zone) or same, INSTANT, matters)
        directions = (1, direction)
        if is_steady is not None and (first != INSTANT or arguments[1].key is None):
            directions, is_steady = (0, 0), None  # steadiness is defined for one argument only
        return Function(named(name, matters), result, bounds, directions, is_steady=is_steady)

    return rule


def _make_date(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the date of a year, a month and a day; Spark fails if it does not exist."""
    if len(arguments) != 3 or any(argument.type not in _SMALL for argument in arguments):
        return None

    def bounds(args: Sequence[Interval]) -> Interval:
        years, months, days = (
            span_of(argument).within(least, greatest)
            for argument, (least, greatest) in zip(args, ((-9999, 99_999), (1, 12), (1, 31)), strict=True)
        )
        lower = calendar.date_of(years.lower, months.lower, days.lower)
        upper = calendar.date_of(years.upper, months.upper, days.upper)
        single = (years.lower == years.upper) & (months.lower == months.upper) & (days.lower == days.upper)
        exists = (days.upper <= 28) | (single & (upper - calendar.first_of_month(upper) + 1 == days.upper))
        fails = years.fails | months.fails | days.fails | ~exists
        return integers(DATE).interval(args, Span(lower, upper, fails))

    return Function("make_date", DATE, bounds, (0, 0, 0))


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _number(name: str, source: pa.DataType, result: Result, step: Step) -> Rule:
    """Make a function of one argument that does not depend on clocks."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        types = [argument.type for argument in arguments]
        widened = source in INTEGERS and len(types) == 1 and types[0] in INTEGERS
        return function_of(name, result, types[0], step) if types == [source] or widened else None

    return rule


def _unix_timestamp(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return seconds since 1970, rounded towards it; a time without zone counts as UTC."""
    if len(arguments) != 1:
        return None
    (source,) = (argument.type for argument in arguments)
    if source == DATE:
        steps = chain(date_to_seconds(zone), within(LEAST_SECOND, GREATEST_SECOND))
        return function_of("unix_timestamp", integers(pa.int64()), source, steps, zone=zone)
    if source not in (INSTANT, LOCAL):
        return None
    towards = rising(lambda micros: micros // SECOND + ((micros < 0) & (micros % SECOND != 0)))
    return function_of("unix_timestamp", integers(pa.int64()), source, towards)


def _from_unixtime(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Supports the default format only."""
    if len(arguments) != 1 or arguments[0].type not in INTEGERS:
        return None
    (source,) = (argument.type for argument in arguments)
    steps = chain(within(LEAST_SECOND, GREATEST_SECOND), through(clock(zone).local))
    return function_of("from_unixtime", text(DAY_SECONDS, calendar.second_text), source, steps, zone=zone)


def _times(size: int) -> Step:
    return chain(within(-(INT64_MAX // size), INT64_MAX // size), rising(lambda x: x * size))


def _floor(size: int) -> Step:
    return rising(lambda x: x // size)


_LONG, _INT = pa.int64(), pa.int32()
RULES: dict[str, Rule] = {
    **{name: _field_of_date(name, cyclic(cycle), 0, _INT) for name, cycle in calendar.OF_DAYS.items()},
    **{name: _field_of_time(name, cycle) for name, cycle in calendar.OF_SECONDS.items()},
    "add_months": _of_two("add_months", DATE, calendar.plus_months, 1, _SMALL),
    "date_add": _of_two("date_add", DATE, np.add, 1, _SMALL),
    "date_from_unix_date": _number("date_from_unix_date", _INT, integers(DATE), same),
    "date_sub": _of_two("date_sub", DATE, np.subtract, -1, _SMALL),
    "date_trunc": _date_trunc,
    "datediff": _of_two("datediff", _INT, np.subtract, -1, (DATE, INSTANT, LOCAL)),
    "from_unixtime": _from_unixtime,
    "last_day": _field_of_date("last_day", rising(calendar.last_of_month), 1, DATE),
    "make_date": _make_date,
    "next_day": _next_day,
    "timestamp_micros": _number("timestamp_micros", _LONG, integers(INSTANT), same),
    "timestamp_millis": _number("timestamp_millis", _LONG, integers(INSTANT), _times(1000)),
    "timestamp_seconds": _number("timestamp_seconds", _LONG, integers(INSTANT), _times(SECOND)),
    "trunc": _trunc,
    "unix_date": _number("unix_date", DATE, integers(_INT), same),
    "unix_micros": _number("unix_micros", INSTANT, integers(_LONG), same),
    "unix_millis": _number("unix_millis", INSTANT, integers(_LONG), _floor(1000)),
    "unix_seconds": _number("unix_seconds", INSTANT, integers(_LONG), _floor(SECOND)),
    "unix_timestamp": _unix_timestamp,
    "year": _field_of_date("year", rising(calendar.year), 1, _INT),
}

# ---- casts -----------------------------------------------------------------------------------------------------------


def cast(source: pa.DataType, target: pa.DataType, zone: dt.tzinfo) -> Function | None:
    """Return the cast from or to a date or timestamp, or None if Spark refuses it or it has no rule here."""
    matters = zone_if((source == INSTANT) != (target == INSTANT) and source not in INTEGERS, zone)
    make = partial(function_of, f"cast[{target}]", source=source)
    if target == DATE:
        return make(integers(DATE), step=days_of(source, zone), zone=matters)
    if target == INSTANT:
        return make(integers(INSTANT), step=instants_of(source, zone), zone=matters)
    if target == LOCAL:
        return make(integers(LOCAL), step=locals_of(source, zone), zone=matters)
    if target == TEXT:
        if source == DATE:
            return make(text(1, calendar.date_text), step=same)
        return make(text(DAY, calendar.micro_text), step=locals_of(source, zone), zone=matters)
    if source != INSTANT:
        return None
    if target in INTEGERS:
        return make(integers(target), step=TO_SECONDS)
    return make(fractional_seconds(target), step=same) if is_float(target) else None
