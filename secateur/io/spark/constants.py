"""Values of constants that only Spark computes, asked of the active session before a query is planned."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import SparkSession

MOST_KEPT = 1024
_DECIDING = (  # settings on which the value of an expression over constants can depend
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.timestampType",
    "spark.sql.legacy.timeParserPolicy",
)


def value_of(session_time_zone: str, ansi: bool, sql: str) -> pa.Scalar | None:
    """The value of a deterministic expression over constants, as the active session computes it.

    None without a session, in one with another time zone or mode, and where Spark raises an error. Asked once per text
    and settings, which takes some 50 to 130 ms.
    """
    with contextlib.suppress(Exception):  # a session that was stopped, or whose client went away
        session = SparkSession.getActiveSession()
        if session is not None:
            settings = tuple(str(session.conf.get(name)) for name in _DECIDING)
            is_meant = settings[0] == session_time_zone and (settings[1].lower() == "true") == ansi
            return _asked(settings, sql) if is_meant else None
    return None


@lru_cache(MOST_KEPT)
def _asked(settings: tuple[str, ...], sql: str) -> pa.Scalar | None:
    """What the active session, which has these settings, answers."""
    session = SparkSession.getActiveSession()
    with contextlib.suppress(Exception):  # an overflow, a text that is no number, a function that it does not have
        if session is not None:
            return session.sql(f"SELECT {sql} AS value").toArrow().column(0)[0]
    return None
