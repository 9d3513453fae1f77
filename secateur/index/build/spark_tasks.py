"""Run work in Spark tasks, few and large, whose results are bytes; and tell whether executors have this package."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur import errors
from secateur.errors import PackageMissing, SecateurError
from secateur.index.build.spark_calls import arrow_of, ended_with_caller
from secateur.index.build.tasks import TASKS_PER_CORE, RunTasks, Work, run_in_process, shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_ASKED = 64  # tasks
_MOST_NAMED = 5  # hosts
_have_it: set[str] = set()  # applications; one that lacks the package is asked again, as it may have been shipped since

HostReport = tuple[str, str]  # a host, and what is wrong there; empty if nothing is


def runner(spark: SparkSession | None) -> RunTasks:
    """Return what runs the tasks of a build: the session, or threads of this process if there is none."""
    return run_in_process if spark is None else partial(run_tasks, spark)


def run_tasks(spark: SparkSession, work: Work, n: int) -> Iterator[bytes]:
    """Run `work` over the numbers below n, split into ranges over Spark tasks; results come in any order.

    Raises PackageMissing, and what `work` raises.
    """
    if not n:
        return
    require_package(spark)
    tasks = task_count(spark, n)
    numbers = shares(n, tasks)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                yield from _results(work(numbers[share]))

    with ended_with_caller(spark):
        frame = spark.range(0, tasks, 1, tasks).mapInArrow(task, "result binary, error string, message string")
        results = arrow_of(frame)
    for error, message in zip(results["error"].to_pylist(), results["message"].to_pylist(), strict=True):
        if error:
            raise getattr(errors, error)(message)
    yield from results["result"].to_pylist()


def _results(results: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """Return results as batches; a SecateurError travels as a row, so that the driver raises it unchanged."""
    names = ["result", "error", "message"]
    types = (pa.binary(), pa.string(), pa.string())
    try:
        for result in results:
            yield pa.RecordBatch.from_arrays(
                [pa.array([v], t) for v, t in zip((result, None, None), types, strict=True)], names
            )
    except SecateurError as error:
        row = (None, type(error).__name__, str(error))
        yield pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in zip(row, types, strict=True)], names)


def task_count(spark: SparkSession, n: int) -> int:
    """Return the number of tasks for n pieces of work."""
    return min(n, _parallelism(spark) * TASKS_PER_CORE)


def _parallelism(spark: SparkSession) -> int:
    """Return the cores of the cluster, as Spark counts them; on Spark Connect the partitions of its shuffles."""
    from pyspark.errors import PySparkException

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no SparkContext
        return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def require_package(spark: SparkSession) -> None:
    """Raise PackageMissing if an executor lacks this package or has another version of it.

    Every core gets a task that imports it. In local mode the executors are this process's, and are not asked.
    """
    if re.fullmatch(r"local(\[.*\])?", spark.conf.get("spark.master", "") or ""):
        return
    application = str(spark.conf.get("spark.app.id", ""))
    if application not in _have_it:
        answers = _asked(spark, min(_parallelism(spark), _MOST_ASKED))
        if wrong := sorted({(host, what) for host, what in answers if what}):
            raise PackageMissing(_message(wrong))
        _have_it.add(application)


def _asked(spark: SparkSession, tasks: int) -> Sequence[HostReport]:
    """Return what the executors of some tasks lack."""
    from pyspark.sql.functions import udf

    # A function within a function is pickled as it is, and so needs no package to arrive. No Arrow: they may lack it.
    asked = udf(_check(sys.modules["secateur"].__version__), "host string, wrong string", useArrow=False)
    rows = spark.range(0, tasks, 1, tasks).select(asked("id").alias("answer")).collect()
    return [(row.answer.host, row.answer.wrong) for row in rows]


def _check(version: str) -> Callable[[int], HostReport]:
    """Return the function that a task runs."""

    def check(_: int) -> HostReport:
        host = socket.gethostname()
        try:
            import_module("secateur.index.build.column_sketch")  # and with it the package's public face
        except ImportError as error:
            return host, f"cannot import {error.name or error}"
        there = sys.modules["secateur"].__version__
        return host, "" if there == version else f"has secateur {there}, the driver {version}"

    return check


def _message(wrong: Sequence[HostReport]) -> str:
    named = "; ".join(f"{host} {what}" for host, what in wrong[:_MOST_NAMED])
    more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    return (
        f"this job needs secateur on the executors: {named}{more}. Make an archive with `secateur pack "
        "packages.tar.gz`, and start Spark with --archives packages.tar.gz#packages "
        "--conf spark.executorEnv.PYTHONPATH=packages, or install secateur on every node. build_index() and "
        "refresh_index() without spark= need no executors, and plans read with via='native' need no Python there"
    )
