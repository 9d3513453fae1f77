"""What holds where the caller does not say: the active Spark session's settings, and the environment's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pyarrow as pa

from secateur.io.scan.planned_scan import Settings

DISABLE = "SECATEUR_DISABLE"  # environment variable: 1 turns the index off


def session_settings(session_time_zone: str | None, ansi: bool | None) -> Settings:
    """Return how predicates are bound: as these say, else as in the active Spark session, else as Spark does."""
    return Settings(
        session_time_zone=session_time_zone or _active_time_zone(),
        ansi=_is_active_ansi() if ansi is None else ansi,
        value_of=_value_of(),
    )


def is_index_enabled() -> bool:
    """Return whether the environment lets queries use an index."""
    return os.environ.get(DISABLE) != "1"


def _value_of() -> Callable[[str, bool, str], pa.Scalar | None] | None:
    """Return a function that evaluates constants in the active Spark session; None if this process has no session."""
    if "pyspark.sql" not in sys.modules:
        return None
    from secateur.io.spark.constants import value_of

    return value_of


def _active_time_zone() -> str:
    """Return the time zone of the active Spark session; UTC if this process has no session."""
    if "pyspark.sql" not in sys.modules:
        return "UTC"
    from secateur.io.spark.to_spark import session_time_zone

    return session_time_zone()


def _is_active_ansi() -> bool:
    """Return whether the active Spark session is in ANSI mode; the default if this process has no session."""
    if "pyspark.sql" not in sys.modules:
        return True
    from secateur.io.spark.to_spark import is_active_ansi

    return is_active_ansi()
