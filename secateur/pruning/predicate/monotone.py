"""Monotone functions of one column: a condition on their value is a condition on the column's keys.

For f monotone, ``f(x) >= t`` holds from some key on. So a set of keys of f(x), which is an array of thresholds, is
pulled back to a set of keys of x threshold by threshold, by bisection; statistics never see f. ``year(ts) = 2026`` is
one range of instants, exact for blocks, pages and rows alike.

Functions of an instant depend on the session's time zone and are not monotone where a clock goes back over the
boundary they look at. A threshold is only trusted if, for OFFSET_SPAN around it, local times lie on the side that they
should; a clock never differs by more from itself.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.temporal import DAY, EPOCH, instant_micros, is_agreed, local_micros
from secateur.pruning.rangeset import RangeSet
from secateur.values import kind_of, least_key

OFFSET_SPAN = 36  # hours; zones lie between -18 and +18 hours of UTC in java.time
HOUR = 3_600_000_000  # microseconds
_EPOCH_DAY = EPOCH.toordinal()
_FIRST_DAY, _LAST_DAY = 1 - _EPOCH_DAY + 3, dt.date.max.toordinal() - _EPOCH_DAY - 3  # years 1 to 9999, less a margin
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Step:
    """One function: the type of its value, and its value's key from its argument's."""

    result: pa.DataType
    forward: Callable[[int], int]


def step(function: str, parameter: str | None, argument: pa.DataType, zone: dt.tzinfo) -> Step | None:
    """The function of this name on an argument of this type, or None where it is not known to be monotone."""
    is_date, is_moment = pa.types.is_date32(argument), pa.types.is_timestamp(argument) and argument.unit == "us"
    match function:
        case "to_date" if is_date:
            return Step(argument, lambda day: day)
        case "to_date" if is_moment:
            return Step(pa.date32(), _day_of(argument, zone))
        case "year" if is_date:
            return Step(pa.int32(), lambda day: _date(day).year)
        case "trunc" if is_date and parameter in _STARTS:
            start = _STARTS[parameter]
            return Step(pa.date32(), lambda day: start(_date(day)).toordinal() - _EPOCH_DAY)
        case "date_trunc" if argument == _INSTANT and parameter in _STARTS:
            start, day_of = _STARTS[parameter], _day_of(argument, zone)
            return Step(_INSTANT, lambda micros: instant_micros(_midnight(start(_date(day_of(micros)))), zone))
        case _:
            return None


def _day_of(type_: pa.DataType, zone: dt.tzinfo) -> Callable[[int], int]:
    """Days since the epoch on the clock that a timestamp's date is read from."""
    if type_.tz is None:
        return lambda micros: micros // DAY
    return lambda micros: local_micros(_moment(micros).astimezone(zone)) // DAY


def _moment(micros: int) -> dt.datetime:
    return EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)


def _date(day: int) -> dt.date:
    return dt.date.fromordinal(day + _EPOCH_DAY)


def _midnight(date: dt.date) -> dt.datetime:
    return dt.datetime.combine(date, dt.time())


_STARTS: dict[str | None, Callable[[dt.date], dt.date]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), lambda date: date.replace(month=1, day=1)),
    "QUARTER": lambda date: date.replace(month=date.month - (date.month - 1) % 3, day=1),
    **dict.fromkeys(("MONTH", "MM", "MON"), lambda date: date.replace(day=1)),
    "WEEK": lambda date: date - dt.timedelta(days=date.weekday()),
    **dict.fromkeys(("DAY", "DD"), lambda date: date),
}


def pull_back(ranges: RangeSet, steps: Sequence[Step], field: Field, zone: dt.tzinfo) -> RangeSet | None:
    """The keys of the field for which the functions, applied in order, lie in `ranges`; None where unsure."""
    kind = kind_of(field.type)
    assert kind is not None

    def value(key: int) -> int:
        for each in steps:
            key = each.forward(key)
        return key

    pulled: list[int] = []
    for threshold in ranges.thresholds.tolist():
        if threshold == least_key(ranges.kind):
            pulled.append(int(least_key(kind)))
            continue
        first = _first_key(field.type, lambda key, threshold=threshold: value(key) >= threshold)  # type: ignore[misc]
        if first is None or not _steady(first, field.type, zone):
            return None
        pulled.append(first)
    starts, counts = np.unique(np.array(pulled, np.int64), return_counts=True)
    return RangeSet(kind, starts[counts % 2 == 1])  # two thresholds at one key enclose nothing


def _first_key(type_: pa.DataType, holds: Callable[[int], bool]) -> int | None:
    """The first key for which a monotone condition holds; None where it may lie beyond the years 1 to 9999."""
    unit = 1 if pa.types.is_date32(type_) else DAY
    low, high = _FIRST_DAY * unit, _LAST_DAY * unit
    if holds(low) or not holds(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _steady(key: int, type_: pa.DataType, zone: dt.tzinfo) -> bool:
    """Whether all instants before `key` have an earlier local time, and none after it has; trivial without a zone.

    Beyond OFFSET_SPAN no change of the clock can undo the distance. Within, a clock that changes during an hour shows
    one offset or the other, so its local times lie between those that both give.
    """
    if not (pa.types.is_timestamp(type_) and type_.tz is not None):
        return True
    if not is_agreed(_moment(key), zone):
        return False
    hours = np.arange(-OFFSET_SPAN, OFFSET_SPAN + 1) * HOUR + key
    offsets = np.array([_offset(hour, zone) for hour in hours.tolist()])
    local = key + _offset(key, zone)
    before, after = hours[1:] <= key, hours[:-1] >= key
    latest = hours[1:] + np.maximum(offsets[1:], offsets[:-1])
    earliest = hours[:-1] + np.minimum(offsets[1:], offsets[:-1])
    return bool((latest[before] <= local).all() and (earliest[after] >= local).all())


def _offset(micros: int, zone: dt.tzinfo) -> int:
    offset = _moment(micros).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // dt.timedelta(microseconds=1)
