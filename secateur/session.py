"""A local Spark session for the command line, the demo, the tests and the benchmarks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from secateur.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # Without it every Python task waits some 40 ms for TCP (Nagle's algorithm and delayed acknowledgement).
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}


def local_session(**settings: str) -> SparkSession:
    """Return the running session, or start one in local mode; in `settings`, underscores stand for dots.

    Raises JavaNotFound if there is no Java of version 17 or newer.
    """
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("secateur")
    for name, value in {**_SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
