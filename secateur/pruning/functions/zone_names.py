"""Time zones by the names that Spark accepts."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


def zone_of(name: str) -> dt.tzinfo | None:
    """Return a time zone by a name that Spark accepts (``Europe/Paris``, ``UTC``, ``Z``, ``+02:00``), or None."""
    if name.upper() in ("Z", "UTC", "GMT", "UT"):
        return dt.UTC
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
        return dt.timezone(-offset if sign == "-" else offset) if offset <= dt.timedelta(hours=18) else None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def known_zone(name: str) -> dt.tzinfo:
    """Return a time zone by a name that Spark accepts. Raises ValueError for another name."""
    zone = zone_of(name)
    if zone is None:
        raise ValueError(f"unknown time zone {name!r}")
    return zone
