"""Fields and starts of dates in the proleptic Gregorian calendar, for arrays.

Source: Spark's ``DateTimeUtils``, which uses ``java.time.LocalDate``. Dates are days since 1970-01-01, a Thursday;
local times are seconds since then. All arrays are int64 of shape (n,).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SECOND = 1_000_000  # microseconds
DAY_SECONDS = 86_400
DAY = DAY_SECONDS * SECOND
FOUR_DIGITS = (-719_528, 2_932_897)  # days: the first of the year 0, the first of the year 10000

Map: TypeAlias = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Cyclic:
    """A field that grows within a period and restarts in the next; never outside [least, greatest]."""

    field: Map
    period: Map
    least: int
    greatest: int


def year(days: np.ndarray) -> np.ndarray:
    """Return the year; the year before 1 is 0."""
    return _since_1970(days, "Y") + 1970


def months(days: np.ndarray) -> np.ndarray:
    """Return months since January 1970."""
    return _since_1970(days, "M")


def first_of_year(days: np.ndarray) -> np.ndarray:
    """Return the first day of the year."""
    return _days(_since_1970(days, "Y"), "Y")


def first_of_quarter(days: np.ndarray) -> np.ndarray:
    """Return the first day of the quarter."""
    months = _since_1970(days, "M")
    return _days(months - months % 3, "M")


def first_of_month(days: np.ndarray) -> np.ndarray:
    """Return the first day of the month."""
    return _days(_since_1970(days, "M"), "M")


def monday(days: np.ndarray) -> np.ndarray:
    """Return the first day of the week."""
    return days - weekday(days)


def last_of_month(days: np.ndarray) -> np.ndarray:
    """Return the last day of the month."""
    return _days(_since_1970(days, "M") + 1, "M") - 1


def weekday(days: np.ndarray) -> np.ndarray:
    """Return days since Monday."""
    return (days + 3) % 7


def plus_months(days: np.ndarray, months: np.ndarray) -> np.ndarray:
    """Add months, keeping the day of the month or taking the month's last day. Grows with both arguments."""
    month = _since_1970(days, "M")
    first = _days(month + months, "M")
    length = _days(month + months + 1, "M") - first
    return first + np.minimum(days - _days(month, "M"), length - 1)


def date_of(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Return the given day of a month, or the last one if the month is shorter. Grows with each argument."""
    first = _days((year - 1970) * 12 + month - 1, "M")
    return first + np.minimum(day - 1, last_of_month(first) - first)


def _since_1970(days: np.ndarray, unit: str) -> np.ndarray:
    return days.astype("M8[D]").astype(f"M8[{unit}]").astype(np.int64)


def _days(count: np.ndarray, unit: str) -> np.ndarray:
    return count.astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64)


def _thursday(days: np.ndarray) -> np.ndarray:
    """Return the Thursday of the week, which lies in the week's year (ISO 8601)."""
    return monday(days) + 3


def _week(days: np.ndarray) -> np.ndarray:
    thursday = _thursday(days)
    return (thursday - first_of_year(thursday)) // 7 + 1


STARTS: dict[str, Map] = {  # units of trunc, as accepted by DateTimeUtils.parseTruncLevel
    **dict.fromkeys(("YEAR", "YYYY", "YY"), first_of_year),
    "QUARTER": first_of_quarter,
    **dict.fromkeys(("MONTH", "MON", "MM"), first_of_month),
    "WEEK": monday,
}
OF_DAYS = {
    "quarter": Cyclic(lambda d: _since_1970(d, "M") % 12 // 3 + 1, year, 1, 4),
    "month": Cyclic(lambda d: _since_1970(d, "M") % 12 + 1, year, 1, 12),
    "day": Cyclic(lambda d: d - first_of_month(d) + 1, first_of_month, 1, 31),
    "dayofweek": Cyclic(lambda d: (d + 4) % 7 + 1, lambda d: (d + 4) // 7, 1, 7),
    "weekday": Cyclic(weekday, monday, 0, 6),
    "dayofyear": Cyclic(lambda d: d - first_of_year(d) + 1, year, 1, 366),
    "weekofyear": Cyclic(_week, lambda d: year(_thursday(d)), 1, 53),
}
OF_SECONDS = {
    "hour": Cyclic(lambda s: s // 3600 % 24, lambda s: s // 86_400, 0, 23),
    "minute": Cyclic(lambda s: s // 60 % 60, lambda s: s // 3600, 0, 59),
    "second": Cyclic(lambda s: s % 60, lambda s: s // 60, 0, 59),
}


# ---- text ------------------------------------------------------------------------------------------------------------


def date_text(days: np.ndarray) -> pa.Array:
    """Format dates of the years 0 to 9999 as 'yyyy-MM-dd'."""
    return pa.array(days, pa.int64()).cast(pa.int32()).cast(pa.date32()).cast(pa.string())


def second_text(seconds: np.ndarray) -> pa.Array:
    """Format times of the years 0 to 9999 as 'yyyy-MM-dd HH:mm:ss'."""
    return pa.array(seconds, pa.int64()).cast(pa.timestamp("s")).cast(pa.string())


def micro_text(micros: np.ndarray) -> pa.Array:
    """Format times with a fraction without trailing zeros, if there is one."""
    text = pa.array(micros, pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(text, characters="0"), characters=".")
