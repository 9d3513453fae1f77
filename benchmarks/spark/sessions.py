"""The Spark session of workloads that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.setting import Setting
from tests.support.formats.delta_runtime import CATALOG as DELTA_CATALOG
from tests.support.formats.delta_runtime import EXTENSIONS, delta_runtime
from tests.support.formats.iceberg_runtime import iceberg_runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CATALOG = "spark.sql.catalog.lake"
DELTA_LOG_TASKS = "spark.databricks.delta.snapshotPartitions"  # 50 of its own accord, which is for large logs


@contextmanager
def spark_session(setting: Setting | None = None) -> Iterator[SparkSession]:
    """The running Spark session, or a new one for the time of its use; with a `setting`, with Iceberg if available."""
    with _running_or_new(
        lambda: iceberg_runtime().settings(str(setting.directory / "iceberg")) if setting else {}
    ) as spark:
        yield spark


@contextmanager
def delta_session() -> Iterator[SparkSession]:
    """A session of the running Spark, or of a new one for the time of its use, with Delta's SQL if available."""
    with _running_or_new(lambda: delta_runtime().with_settings({})) as running:
        spark = running.newSession()
        if not delta_trouble(spark):
            spark.conf.set(*DELTA_CATALOG)
            spark.conf.set(DELTA_LOG_TASKS, "2")
        yield spark


@contextmanager
def _running_or_new(settings: Callable[[], dict[str, str]]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from secateur.session import local_session

    running = SparkSession.getActiveSession()
    session = running or local_session(**settings())
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


def delta_trouble(spark: SparkSession) -> str:
    """Why the session has no Delta tables; empty if it has."""
    if "io.delta" in (spark.conf.get(EXTENSIONS, "") or ""):
        return ""
    return f"Delta was not measured: {delta_runtime().reason or 'the session has no extension of its'}"
