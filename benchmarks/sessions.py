"""The Spark session of workloads that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """The running Spark session, or one that ends with its use."""
    from pyspark.sql import SparkSession

    from secateur.session import local_session

    running = SparkSession.getActiveSession()
    session = running or local_session()
    try:
        yield session
    finally:
        if running is None:
            session.stop()
