"""Run work in Spark tasks, few and large, whose results are bytes; and whether executors have this package at all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur import errors
from secateur.errors import PackageMissing, SecateurError
from secateur.index.build.tasks import TASKS_PER_CORE, RunTasks, Work, run_in_process, shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_missing: dict[str, str] = {}  # by application: the module that its executors lack; empty if none


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

    tag = f"secateur-{uuid.uuid4().hex[:8]}"
    spark.addTag(tag)
    try:
        results = (
            spark.range(0, tasks, 1, tasks).mapInArrow(task, "result binary, error string, message string").toArrow()
        )
    except BaseException:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
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
    from pyspark.errors import PySparkException

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no SparkContext
        return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def require_package(spark: SparkSession) -> None:
    """Raise PackageMissing if an executor cannot import this package; one task per application tells.

    In local mode executors are this process's, and on Spark Connect the server decides: neither is asked.
    """
    from pyspark.errors import PySparkException

    try:
        context = spark.sparkContext
    except PySparkException:
        return
    if re.fullmatch(r"local(\[.*\])?", str(context.master)):
        return
    if context.applicationId not in _missing:
        _missing[context.applicationId] = _asked(spark)
    if module := _missing[context.applicationId]:
        raise PackageMissing(
            f"the executors of this Spark application cannot import {module}: pack the driver's environment with "
            "venv-pack and ship it with --archives environment.tar.gz#environment and "
            "PYSPARK_PYTHON=./environment/bin/python, or install secateur on every node. build_index() and "
            "refresh_index() without spark= need no executors, and plans read with via='native' need no Python there"
        )


def _asked(spark: SparkSession) -> str:
    """Return the module that a task could not import; empty if there is none."""
    from pyspark.errors import PySparkException

    try:
        # The function is pickled by its name, so the task imports this module.
        spark.range(1).mapInArrow(_import, "number bigint").toArrow()
    except PySparkException as error:
        match = _NO_MODULE.search(str(error))
        if match is None:
            raise
        return match[1]
    return ""


def _import(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
