"""Spark, asked by SQL: what the engines on Spark share."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from benchmarks.peer_engines.measured import HERE, Left, Preparation, bytes_in, fingerprint_of
from benchmarks.peer_engines.questions import Question
from secateur.demo.spark_packages import fetch, jar_of
from secateur.java import require_java

FILES_READ = ("numFiles", "resultDataFiles")  # by Spark's own scans, and by Iceberg's
ADAPTIVE = "spark.sql.adaptive.enabled"
MOST_SECONDS = 300  # to fetch jars


class SparkSql:
    """A session, and the table that SQL names."""

    def __init__(self, session: SparkSession, table: str, preparation: Preparation, format: str = "") -> None:
        self.session, self.table, self.preparation = session, table, preparation
        self.version = f"Spark {pyspark.__version__}" + (f", {format}" if format else "")
        self.processes = (*HERE, _java(session))

    def frame(self, question: Question, condition: str) -> Any:
        return self.session.sql(question.sql(self.table, condition, "TIMESTAMP"))

    def read(self, question: Question, condition: str) -> Any:
        return _arrow(self.frame(question, condition))

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        self.frame(question, condition)._jdf.queryExecution().executedPlan()

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        self.session.conf.set(ADAPTIVE, "false")  # an adaptive plan hides its scans
        frame = self.frame(question, condition)
        frame._jdf.collectToPython()
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        self.session.conf.unset(ADAPTIVE)
        scans = [leaves.apply(i).metrics() for i in range(leaves.length())]
        files = [_value(scan, name) for scan in scans for name in FILES_READ if scan.contains(name)]
        rows = [_value(scan, "numOutputRows") for scan in scans if scan.contains("numOutputRows")]
        return Left(files=sum(files) if files else None, rows=sum(rows) if rows else None)

    def close(self) -> None:
        self.session.stop()


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """Start Spark on this machine."""
    require_java()
    shared = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[*]").appName("peer")
    for name, value in {**shared, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def jars(home: Path, packages: Sequence[str]) -> str:
    """Return the jars of packages as ``spark.jars`` takes them; fetch those that are missing. Raises RuntimeError."""
    paths = [jar_of(package, home) for package in packages]
    trouble = "" if all(path.exists() for path in paths) else fetch(packages[:1], home, MOST_SECONDS)
    if not all(path.exists() for path in paths):
        raise RuntimeError(f"the jars of {packages[0]} cannot be had: {trouble}")
    return ",".join(map(str, paths))


def prepared(what: str, work: Path, session: SparkSession, steps: Sequence[Callable[[], object]]) -> Preparation:
    """Make a copy of the rows in `work`, which is emptied first, by the first step, and more by the others."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    started, sizes = time.perf_counter(), []
    for step in steps:
        step()
        sizes.append(bytes_in(work))
    return Preparation(what, time.perf_counter() - started, None, max(0, sizes[-1] - sizes[0]), sizes[0])


def _java(session: SparkSession) -> int:
    jvm: Any = session._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _arrow(frame: Any) -> pa.Table:
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    batches = frame._collect_as_arrow()  # before Spark 4
    return pa.Table.from_batches(batches) if batches else pa.table({name: pa.nulls(0) for name in frame.columns})


def _value(metrics: Any, name: str) -> int:
    return int(metrics.apply(name).value())
