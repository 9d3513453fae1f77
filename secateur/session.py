"""The Spark session of the command line, the demo, the tests and the benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secateur.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # Without this every Python task waits some 40 ms for TCP (Nagle's algorithm and delayed acknowledgement).
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}


def session_on(master: str | None, remote: str | None, settings: Mapping[str, str]) -> SparkSession:
    """Return the running session, or start one on a cluster, by default in local mode.

    Where ``spark-submit`` runs this process, or ``SPARK_REMOTE`` is set, these say which cluster. Raises JavaNotFound
    if there is no Java of version 17 or newer, which a remote cluster does not need here.
    """
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("secateur")
    if remote:
        return _started(builder.remote(remote), settings)
    if not master and "SPARK_REMOTE" in os.environ:
        return _started(builder, settings)
    if not master and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return _local(settings)
    require_java()
    with _killed_if_interrupted():
        return _started(builder.master(master) if master else builder, settings)


def local_session(**settings: str) -> SparkSession:
    """Return the running session, or start one in local mode; in `settings`, underscores stand for dots.

    Raises JavaNotFound if there is no Java of version 17 or newer.
    """
    return _local({name.replace("_", "."): value for name, value in settings.items()})


def _local(settings: Mapping[str, str]) -> SparkSession:
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("secateur")
    with _killed_if_interrupted():
        session = _started(builder, {**_SETTINGS, **settings})
    session.sparkContext.setLogLevel("ERROR")
    return session


def _started(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def _killed_if_interrupted() -> Iterator[None]:
    """Kill a JVM that is interrupted while it starts: PySpark forgets it, and it would stay for ever."""
    from pyspark import SparkContext, java_gateway

    launcher: Any = java_gateway
    processes: list[subprocess.Popen[bytes]] = []

    def recorded(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(subprocess.Popen(*arguments, **options))
        return processes[-1]

    launcher.Popen = recorded  # `launch_gateway` starts the JVM with it
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for process in processes:
                process.kill()
        raise
    finally:
        launcher.Popen = subprocess.Popen
