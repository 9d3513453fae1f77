"""Instants: the times that name the commits of a Hudi table."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DIGITS = 17  # year to millisecond; older writers leave the milliseconds out
TEXT = re.compile(r"\d{14}(?:\d{3})?")


def number_of(instant: str | int) -> int:
    """Return an instant as a number; numbers order as instants do."""
    return int(str(instant).ljust(DIGITS, "0"))


def numbers_of(instants: pa.Array) -> np.ndarray:
    """Return instants as numbers."""
    padded = pc.utf8_rpad(instants, DIGITS, "0")
    numbers: np.ndarray = pc.fill_null(padded.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return numbers


def instant_at(moment: dt.datetime, *, is_utc: bool) -> int:
    """Return a time as an instant of a table whose instants are in UTC, or in this machine's time zone.

    A table does not record the zone of its writers: Hudi too takes it to be that of the reader.
    """
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    there = zoned.astimezone(dt.UTC) if is_utc else zoned.astimezone()
    return int(there.strftime("%Y%m%d%H%M%S") + f"{there.microsecond // 1000:03}")


def time_of(instant: int, *, is_utc: bool) -> dt.datetime:
    """Return an instant as a time, as :func:`instant_at` understands it; the year 1 for numbers that are no time."""
    text = str(instant).rjust(DIGITS, "0")
    try:
        there = dt.datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(microsecond=1000 * int(text[14:]))
    except ValueError:  # such as the instants of Hudi's own bootstraps
        return dt.datetime.min.replace(tzinfo=dt.UTC)
    return there.replace(tzinfo=dt.UTC) if is_utc else there.astimezone(dt.UTC)
