"""The Spark session of workloads that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.setting import Setting
from tests.support.iceberg_runtime import iceberg_runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CATALOG = "spark.sql.catalog.lake"


@contextmanager
def spark_session(setting: Setting | None = None) -> Iterator[SparkSession]:
    """The running Spark session, or a new one for the time of its use; with a `setting`, with Iceberg if available."""
    from pyspark.sql import SparkSession

    from secateur.session import local_session

    running = SparkSession.getActiveSession()
    iceberg = iceberg_runtime().settings(str(setting.directory / "iceberg")) if setting and not running else {}
    session = running or local_session(**iceberg)
    try:
        yield session
    finally:
        if running is None:
            session.stop()


def iceberg_trouble(spark: SparkSession) -> str:
    """Why the session has no Iceberg tables; empty if it has."""
    if spark.conf.get(CATALOG, None):
        return ""
    return f"Iceberg was not measured: {iceberg_runtime().reason or 'the session has no catalog of its'}"
