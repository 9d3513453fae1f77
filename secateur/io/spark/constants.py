"""Evaluate constant expressions that only Spark can compute, in the active session, before a query is planned."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import SparkSession

from secateur.index.build.spark_calls import arrow_of

MOST_KEPT = 1024
_DECIDING = (  # settings that can affect the value of a constant expression
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.timestampType",
    "spark.sql.legacy.timeParserPolicy",
)


def value_of(session_time_zone: str, ansi: bool, sql: str) -> pa.Scalar | None:
    """Return the value of a deterministic constant expression, evaluated in the active session.

    None if there is no session, its time zone or ANSI mode differs, or Spark raises an error. An evaluation takes 50 to
    130 ms and is cached by text and settings.
    """
    with contextlib.suppress(Exception):  # the session is stopped, or its client is gone
        session = SparkSession.getActiveSession()
        if session is not None:
            settings = tuple(str(session.conf.get(name)) for name in _DECIDING)
            is_meant = settings[0] == session_time_zone and (settings[1].lower() == "true") == ansi
            return _asked(settings, sql) if is_meant else None
    return None


@lru_cache(MOST_KEPT)
def _asked(settings: tuple[str, ...], sql: str) -> pa.Scalar | None:
    """Evaluate in the active session, which has these settings."""
    session = SparkSession.getActiveSession()
    with contextlib.suppress(Exception):  # an overflow, a text that is not a number, a missing function
        if session is not None:
            return arrow_of(session.sql(f"SELECT {sql} AS value")).column(0)[0]
    return None
