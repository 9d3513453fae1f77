"""The maximum age of cached table state."""

from __future__ import annotations

import datetime as dt


def seconds_of(freshness: float | dt.timedelta | None) -> float:
    """Return the maximum age of a listing in seconds; 0, which no listing satisfies, for None. Raises ValueError below
    0.
    """
    seconds = freshness.total_seconds() if isinstance(freshness, dt.timedelta) else freshness or 0.0
    if not seconds >= 0:
        raise ValueError(f"freshness is {freshness}; it must be 0 or more seconds")
    return seconds
