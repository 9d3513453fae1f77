"""Interval literals: parse text and units to durations, and add them.

Source: Spark's ``AstBuilder.constructMultiUnitsIntervalLiteral`` and ``IntervalUtils.fromYearMonthString`` and
``fromDayTimeString``. Years and months become a number of months, everything else a number of microseconds, however it
was written. Spark refuses intervals with months and days.
"""

from __future__ import annotations

import re
from fractions import Fraction

from secateur.pruning.functions.calendar import DAY, SECOND
from secateur.pruning.predicate.nodes import Duration
from secateur.values.key import INT64_MAX

_MONTHS = {"MONTH": 1, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_MICROS = {"HOUR": 3600 * SECOND, "MINUTE": 60 * SECOND, "SECOND": SECOND, "MILLISECOND": 1000, "MICROSECOND": 1}
_MOST_MONTHS = 2**31 - 1
_WHOLE = re.compile(r"\s*([+-]?\d{1,18})\s*", re.ASCII)
_SECONDS = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{0,6})?)\s*", re.ASCII)  # Spark cuts digits beyond microseconds
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_MOST = {"HOUR": 23, "MINUTE": 59, "SECOND": 59}  # greatest values of fields that are not the first


def duration_of(count: str, unit: str) -> Duration | None:
    """Return the interval of `count` units, in upper case; None if Spark may refuse it."""
    unit = unit.removesuffix("S")
    if unit == "SECOND":
        match = _SECONDS.fullmatch(count)
        return of_micros(int(Fraction(match[1]) * SECOND)) if match else None
    match = _WHOLE.fullmatch(count)
    if match is None:
        return None
    number = int(match[1])
    if unit in _MONTHS:
        return of_months(number * _MONTHS[unit])
    if unit in _DAYS:
        return of_days(number * _DAYS[unit])
    return of_micros(number * _MICROS[unit]) if unit in _MICROS else None


def duration_between(text: str, first: str, last: str) -> Duration | None:
    """Return the interval of a text with several fields, such as ``'1 02:30' DAY TO MINUTE``."""
    if (first, last) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"\s*([+-]?)(\d{1,9})-(\d{1,2})\s*", text, re.ASCII)
        if match is None or int(match[3]) > 11:
            return None
        return of_months(int(match[1] + "1") * (int(match[2]) * 12 + int(match[3])))
    if first not in _FIELDS or last not in _FIELDS:
        return None
    names = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    return _of_fields(text, names) if len(names) > 1 else None


def _of_fields(text: str, names: tuple[str, ...]) -> Duration | None:
    patterns = [r"(\d{1,2})"] * len(names)
    patterns[0] = r"(\d{1,9})"
    if names[-1] == "SECOND":
        patterns[-1] = r"(\d{1,2}(?:\.\d{0,6})?)"
    separators = ["", " " if names[0] == "DAY" else ":", *[":"] * (len(names) - 2)]
    pattern = "".join(separator + part for separator, part in zip(separators, patterns, strict=True))
    match = re.fullmatch(rf"\s*([+-]?){pattern}\s*", text, re.ASCII)
    if match is None:
        return None
    values = [Fraction(value) for value in match.groups()[1:]]
    if any(value >= _MOST[name] + 1 for name, value in zip(names[1:], values[1:], strict=True)):
        return None
    total = sum(value * (_MICROS.get(name) or DAY) for name, value in zip(names, values, strict=True))
    return of_micros(int(match[1] + "1") * int(total))


def of_months(months: int) -> Duration | None:
    """Return an interval of months, if Spark's type holds it."""
    return Duration(months, "MONTH") if abs(months) <= _MOST_MONTHS else None


def of_days(days: int) -> Duration | None:
    """Return an interval of days, if Spark's type holds it."""
    return Duration(days, "DAY") if abs(days) <= INT64_MAX // DAY else None


def of_micros(micros: int) -> Duration | None:
    """Return an interval of microseconds, if Spark's type holds it."""
    return Duration(micros, "MICROSECOND") if abs(micros) <= INT64_MAX else None


def total(a: Duration, b: Duration) -> Duration | None:
    """Add two intervals; None for months and days, which Spark refuses, and on overflow."""
    match a.unit, b.unit:
        case "MONTH", "MONTH":
            return of_months(a.amount + b.amount)
        case "DAY", "DAY":
            return of_days(a.amount + b.amount)
        case ("MONTH", _) | (_, "MONTH"):
            return None
        case _:
            return of_micros(micros_of(a) + micros_of(b))


def negative(duration: Duration) -> Duration:
    """Negate an interval."""
    return Duration(-duration.amount, duration.unit)


def micros_of(duration: Duration) -> int:
    """Return the microseconds of a day-time interval."""
    return duration.amount * (DAY if duration.unit == "DAY" else 1)
