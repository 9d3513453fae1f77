"""Parse date and timestamp literals as Spark does, in the session's time zone.

Sources: Spark's ``SparkDateTimeUtils.stringToDate`` and ``stringToTimestamp`` for the accepted text, and ``java.time``
for local times that a clock change skips (moved later by its length) or repeats (the earlier one). Python's ``fold=0``
does the same. Years outside 1..9999 are beyond ``datetime`` and are left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re

from secateur.pruning.functions.calendar import SECOND
from secateur.pruning.functions.clocks import FARTHEST, agreed
from secateur.pruning.functions.zone_names import zone_of

MOVING_WORDS = ("epoch", "now", "today", "tomorrow", "yesterday")  # special values of Spark's typed literals
EPOCH = dt.datetime(1970, 1, 1)

_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?\s*(\S*))?)?)?\s*",
    re.ASCII,
)


def parse_date(text: str) -> dt.date | None:
    """Return the date that Spark reads from a string, or None if its form is not known here."""
    match = _DATE.fullmatch(text)
    return _date(*match.groups()) if match else None


def parse_timestamp(text: str) -> tuple[dt.datetime, dt.tzinfo | None] | None:
    """Return the wall clock that Spark reads from a string, and the zone if the string names one; None if unknown."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone_name = match.groups()
    date = _date(year, month, day)
    zone = zone_of(zone_name) if zone_name else None
    if date is None or (zone_name and zone is None):
        return None
    try:
        micros = int((fraction or "").ljust(6, "0")[:6])
        time = dt.time(int(hour or 0), int(minute or 0), int(second or 0), micros)
    except ValueError:
        return None
    return dt.datetime.combine(date, time), zone


def _date(year: str, month: str | None, day: str | None) -> dt.date | None:
    try:
        return dt.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None


def date_of(days: int) -> dt.date:
    """Return the date `days` after 1970-01-01. Raises ValueError or OverflowError beyond the years 1 to 9999."""
    return (EPOCH + dt.timedelta(days=days)).date()


def moment_of(micros: int) -> dt.datetime:
    """Return the wall clock `micros` after 1970-01-01. Raises OverflowError beyond the years 1 to 9999."""
    return EPOCH + dt.timedelta(microseconds=micros)


def local_micros(moment: dt.datetime) -> int:
    """Return the microseconds of a wall clock since 1970-01-01 on the same clock."""
    return (moment.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)


def instant_micros(moment: dt.datetime, zone: dt.tzinfo) -> int:
    """Return the microseconds since the epoch of a wall clock in a zone."""
    aware = moment.replace(tzinfo=zone, fold=0)
    offset = aware.utcoffset()
    assert offset is not None, "the moment has a zone"
    return local_micros(moment) - offset // dt.timedelta(microseconds=1)


def is_agreed(moment: dt.datetime, zone: dt.tzinfo) -> bool:
    """Return whether Java and Python surely agree on a zone's offset at a moment.

    Releases of the time zone database merge zones that differ only before 1970, and Java undoes some of these merges.
    """
    return isinstance(zone, dt.timezone) or local_micros(moment) >= (agreed(zone) + FARTHEST) * SECOND
