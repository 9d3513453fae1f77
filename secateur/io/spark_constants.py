"""Values of constants that only Spark computes, asked of the active session before a query is planned."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Hashable

import pyarrow as pa
from pyspark.sql import SparkSession

MOST_KEPT = 1024
_DECIDING = (  # settings on which the value of an expression over constants can depend
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.timestampType",
    "spark.sql.legacy.timeParserPolicy",
)

_values: OrderedDict[Hashable, pa.Scalar | None] = OrderedDict()
_lock = threading.Lock()


def value_of(session_time_zone: str, sql: str) -> pa.Scalar | None:
    """The value of a deterministic expression over constants, as the active session computes it.

    None without a session, in one with another time zone, and where Spark raises an error. Asked once per text and
    settings, which takes some 50 to 130 ms.
    """
    with contextlib.suppress(Exception):  # a session that was stopped, or whose client went away
        session = SparkSession.getActiveSession()
        if session is None:
            return None
        settings = tuple(str(session.conf.get(name)) for name in _DECIDING)
        if settings[0] != session_time_zone:
            return None
        key = (*settings, sql)
        with _lock:
            if key in _values:
                _values.move_to_end(key)
                return _values[key]
        value = _asked(session, sql)
        with _lock:
            _values[key] = value
            while len(_values) > MOST_KEPT:
                _values.popitem(last=False)
        return value
    return None


def _asked(session: SparkSession, sql: str) -> pa.Scalar | None:
    with contextlib.suppress(Exception):  # an overflow, a text that is no number, a function that it does not have
        return session.sql(f"SELECT {sql} AS value").toArrow().column(0)[0]
    return None
