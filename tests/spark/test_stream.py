"""Streams are read exactly once: a query that crashes goes on from its checkpoint, and its sink has every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import secateur as sec
from secateur.io.spark.version import IS_3
from tests.support.drawn.row_histories import APPEND, COMPACT, HISTORIES, RowHistory
from tests.support.profiles import slow
from tests.support.programs.streaming_work import copying

KNOWS_WHAT_IS_AVAILABLE = find_spec("pyspark.sql.streaming.datasource") is not None  # else it reads one batch
PATIENCE = 300  # seconds until a process has done what it is waited for


def a_history(kind: str, at: Path) -> RowHistory:
    history = HISTORIES[kind](at, random.Random(5))
    for _ in range(2):
        history.step([APPEND])
    return history


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, "the process has ended"
        assert time.monotonic() < until
        time.sleep(0.02)


@slow
@pytest.mark.skipif(IS_3, reason="Spark 3 has no Python data sources")
@pytest.mark.parametrize("files", [0, 1])
def test_a_killed_query_goes_on(spark: SparkSession, tmp_path: Path, files: int) -> None:
    """One query of a table of each format, killed with its JVM as soon as its second batch has begun.

    With a limit, that batch is within the first snapshot. The tables grow before the query is started again.
    """
    if files and not KNOWS_WHAT_IS_AVAILABLE:
        pytest.skip("this Spark does not say where a batch begins, so a batch has no limit")
    histories = []
    for kind in HISTORIES:
        (tmp_path / kind).mkdir()
        histories.append(a_history(kind, tmp_path / kind))
    sink, checkpoint = tmp_path / "sink", tmp_path / "checkpoint"
    tables = [history.writer.path for history in histories]
    command = [
        sys.executable,
        "-m",
        "tests.support.programs.streaming_work",
        str(sink),
        str(checkpoint),
        str(files),
        *tables,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as work:
        try:
            wait_for((checkpoint / "commits" / "0").exists, work)
            grow(histories)
            wait_for((checkpoint / "offsets" / "1").exists, work)
        finally:
            os.killpg(work.pid, signal.SIGKILL)
    grow(histories)
    drain(copying(spark, str(sink), str(checkpoint), tables, files, processingTime="0 seconds"))
    copied = [(row.n, row.rid) for row in spark.read.parquet(str(sink)).collect()]
    expected = [(n, rid) for n, history in enumerate(histories) for rid in history.rids if rid % 2 == 0]
    assert sorted(copied) == expected


def grow(histories: list[RowHistory]) -> None:
    for history in histories:
        history.step([APPEND])


def drain(query: StreamingQuery) -> None:
    """Run a query until it has read all that is available."""
    query.processAllAvailable()
    query.stop()


@pytest.mark.skipif(IS_3, reason="Spark 3 has no Python data sources")
def test_batches_are_read_again_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    """A sink that fails before or after it has written a batch; meanwhile the table grows, and is compacted."""
    history = a_history("iceberg", tmp_path)
    (tmp_path / "sink").mkdir()
    fails = ["before"]

    def write(batch: DataFrame, number: int) -> None:
        if fails == ["before"]:
            raise OSError("the sink is full")
        pq.write_table(batch.toArrow(), tmp_path / "sink" / f"{number}.parquet")
        if fails == ["after"]:
            raise OSError("the sink is gone")

    def start(**trigger: Any) -> StreamingQuery:
        rows = spark.readStream.format("secateur").load(history.writer.path)
        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return (writer.trigger(**trigger) if trigger else writer).start()

    for when in ("before", "after"):
        fails[:] = [when]
        with pytest.raises(StreamingQueryException, match="the sink is"):
            start().awaitTermination(PATIENCE)
        history.step([APPEND])
        history.step([COMPACT])
    fails.clear()
    if not KNOWS_WHAT_IS_AVAILABLE:
        drain(start())
    start(availableNow=True).awaitTermination(PATIENCE)
    written = pq.read_table(tmp_path / "sink")["rid"].to_pylist()
    assert sorted(written) == history.rids


@pytest.mark.skipif(not KNOWS_WHAT_IS_AVAILABLE, reason="this Spark does not say where a batch begins")
@pytest.mark.parametrize("kind", HISTORIES)
def test_limited_batches_reach_the_sink_once(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """A query that fails within a snapshot goes on there, up to what was there when it started again, and ends."""
    history = a_history(kind, tmp_path)
    (tmp_path / "sink").mkdir()
    fails_at = [1]

    def write(batch: DataFrame, number: int) -> None:
        pq.write_table(batch.toArrow(), tmp_path / "sink" / f"{number}.parquet")
        if number in fails_at:
            raise OSError("the sink is gone")

    def start() -> StreamingQuery:
        rows = spark.readStream.format("secateur").option("maxFilesPerTrigger", 1).load(history.writer.path)
        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match="the sink is gone"):
        start().awaitTermination(PATIENCE)
    history.step([APPEND])
    fails_at.clear()
    assert start().awaitTermination(PATIENCE)
    batches = [pq.read_table(file)["rid"].to_pylist() for file in (tmp_path / "sink").iterdir()]
    assert len(batches) == len(history.live) > 2
    assert sorted(rid for batch in batches for rid in batch) == history.rids


def test_rows_since_reach_spark(spark: SparkSession, tmp_path: Path) -> None:
    """By every read path, and by the format's own option."""
    history = a_history("directory", tmp_path)
    first = history.snapshots[0]
    expected = history.after(0)
    plan = sec.prune(history.writer.open(), "true", since=first)
    frames = [plan.to_spark(spark, via=via) for via in ("auto", "local", "blocks", "native")]
    if not IS_3:  # which has no Python data sources
        frames.append(spark.read.format("secateur").option("since", first).load(history.writer.path))
    for frame in frames:
        assert sorted(row.rid for row in frame.collect()) == expected
