"""``sec.enable`` where files, the index or Python are not as they were: the answer is that of a session without it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import secateur as sec
from secateur.io.spark.planner import compiled, session_rule
from secateur.io.spark.planner.enabled import Enabled
from tests.support.enabled_session import answer, enabled, new_rule, plan_of, pruning, reasons, require_same
from tests.support.tables import WriteTable


def numbered(start: int, stop: int) -> pa.Table:
    return pa.table({"id": np.arange(start, stop), "x": np.arange(start, stop) / 2})


@pytest.fixture
def root(spark: SparkSession, write_table: WriteTable) -> Iterator[Path]:
    """An indexed table of two files of two row groups, in a session with pruning."""
    root = write_table({"a.parquet": numbered(0, 20), "b.parquet": numbered(20, 40)}, row_group_size=10)
    sec.build_index(sec.open_table(str(root)))
    with enabled(spark):
        yield root


def ids(spark: SparkSession, root: Path, condition: str) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(root)).where(condition).select("id").collect())


def told(spark: SparkSession, root: Path, condition: str) -> str:
    text = plan_of(spark.read.parquet(str(root)).where(condition))
    return text.partition("IndexPruning: ")[2].partition(" RuntimeFilters")[0]


def test_files_that_the_index_does_not_know_are_read_whole(spark: SparkSession, root: Path) -> None:
    pq.write_table(numbered(40, 50), root / "c.parquet")
    assert ids(spark, root, "id > 35") == list(range(36, 50))
    assert told(spark, root, "id > 35") == "1 of 4 row groups, and all of 1 files without an entry"
    pq.write_table(numbered(100, 140), root / "a.parquet", row_group_size=7)
    assert ids(spark, root, "id > 45") == [*range(46, 50), *range(100, 140)]
    assert told(spark, root, "id < 5") == "0 of 2 row groups, and all of 2 files without an entry"
    (root / "b.parquet").unlink()
    assert ids(spark, root, "id > 35") == [*range(40, 50), *range(100, 140)]


def write_twenty(path: Path, start: int) -> int:
    """Write numbers from `start` on, and return the bytes of the file, the same for any."""
    pq.write_table(numbered(start, start + 20), path, row_group_size=10, compression="none", use_dictionary=False)
    return path.stat().st_size


def test_another_file_of_the_same_length_is_read_whole(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    size = write_twenty(tmp_path / "a.parquet", 100)
    sec.build_index(sec.open_table(str(tmp_path)))
    sec.enable(spark)
    assert told(spark, tmp_path, "id > 115") == "1 of 2 row groups"
    time.sleep(0.01)
    assert write_twenty(tmp_path / "a.parquet", 120) == size
    assert ids(spark, tmp_path, "id > 115") == list(range(120, 140))


def test_a_file_is_overwritten_under_a_listing_that_spark_keeps(spark: SparkSession, tmp_path: Path) -> None:
    size = write_twenty(tmp_path / "a.parquet", 100)
    sec.build_index(sec.open_table(str(tmp_path)))
    with enabled(spark):
        spark.read.parquet(str(tmp_path)).createOrReplaceTempView("listed")
        query = "SELECT id FROM listed WHERE id > 115"
        for _ in range(2):
            assert pruning(spark.sql(query)) == ["1 of 2"]
        before = (tmp_path / "a.parquet").stat()
        assert write_twenty(tmp_path / "a.parquet", 120) == size
        os.utime(tmp_path / "a.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert len(answer(spark, query, pruned=False)) == 21
        require_same(spark, query)
        assert "0 of 0 row groups, and all of 1 files" in plan_of(spark.sql(query))


def test_a_frame_reads_the_files_that_it_listed(spark: SparkSession, root: Path) -> None:
    frame = spark.read.parquet(str(root))
    pq.write_table(numbered(40, 50), root / "c.parquet")
    assert sorted(row.id for row in frame.where("id > 35").collect()) == [36, 37, 38, 39]
    assert pruning(frame.where("id > 35")) == ["1 of 4"]


def test_index_that_is_dropped_or_broken(spark: SparkSession, root: Path) -> None:
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == ["1 of 4"]
    for file in (root / "_secateur").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-7])
    sec.enable(spark)
    assert ids(spark, root, "id = 5") == [5]
    sec.drop_index(sec.open_table(str(root)))
    assert ids(spark, root, "id = 5") == [5]


@pytest.mark.parametrize("method", ["_answered", "_look", "_opened"])
def test_errors_in_python(spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def fail(*arguments: object) -> bytes:
        raise RuntimeError("something else")

    monkeypatch.setattr(Enabled, method, fail)
    sec.enable(spark)
    assert ids(spark, root, "id = 5") == [5]
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == []
    assert method == "_look" or "RuntimeError: something else" in reasons(spark)[-1]


def test_an_answer_that_is_none(spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Enabled, "_answered", lambda *arguments: b"\0\0\0\1")
    assert ids(spark, root, "id = 5") == [5]
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == []


def test_values_of_a_join_that_python_fails_on(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> bytes:
        raise RuntimeError("something else")

    monkeypatch.setattr(Enabled, "_narrowed", fail)
    spark.createDataFrame([(7, "a"), (8, "b")], "key bigint, label string").createOrReplaceTempView("small")
    spark.read.parquet(str(root)).createOrReplaceTempView("big")
    joined = spark.sql("SELECT /*+ BROADCAST(small) */ id FROM big JOIN small ON id = key WHERE label < 'b'")
    assert "dynamicpruning" in plan_of(joined)
    assert [row.id for row in joined.collect()] == [7]


@contextmanager
def logged(spark: SparkSession) -> Iterator[Any]:
    """What secateur's logger in Spark's driver writes."""
    jvm: Any = spark._jvm
    log4j, writer = jvm.org.apache.logging.log4j, jvm.java.io.StringWriter()
    logger = log4j.LogManager.getContext(False).getLogger("secateur")
    level = logger.getLevel()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, writer, "kept", False, True)
    appender.start()
    logger.addAppender(appender)
    logger.setLevel(log4j.Level.WARN)
    try:
        yield writer
    finally:
        logger.removeAppender(appender)
        logger.setLevel(level)


def test_python_that_does_not_answer(spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_rule, "MOST_MILLISECONDS", 1000)
    with new_rule(spark), logged(spark) as log:
        answered, planned = Enabled._answered, threading.Event()
        monkeypatch.setattr(Enabled, "_answered", lambda *arguments: planned.wait(60) and answered(*arguments))
        frames = [spark.read.parquet(str(root)).where(f"id = {key}") for key in (5, 6, 7)]
        assert [pruning(frame) for frame in frames] == [[], [], []]
        planned.set()
        assert [row.id for frame in frames for row in frame.collect()] == [5, 6, 7]
        assert reasons(spark)[-1] == "Python did not answer within 1000 ms"
        (line,) = [line for line in log.toString().splitlines() if line]
        assert line.endswith(f"{root} is read unpruned: Python did not answer within 1000 ms")


def test_a_location_without_an_index_is_looked_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = [], Enabled._look
    monkeypatch.setattr(Enabled, "_look", lambda self, location: looks.append(location) or look(self, location))
    pq.write_table(numbered(0, 20), tmp_path / "a.parquet")
    with new_rule(spark):
        for key in range(5):
            assert ids(spark, tmp_path, f"id = {key}") == [key]
    assert len(looks) == 1


def test_python_that_is_gone(spark: SparkSession, root: Path) -> None:
    """The queries of a server's clients go on when its Python has ended: nobody answers where it listened."""
    server: Any = JavaObject("GATEWAY_SERVER", spark.sparkContext._gateway._gateway_client)
    client = server.getCallbackClient()
    address, port = client.getAddress(), client.getPort()
    with new_rule(spark):
        assert pruning(spark.read.parquet(str(root)).where("id = 5")) == ["1 of 4"]
        server.resetCallbackClient(address, 1)
        try:
            assert ids(spark, root, "id = 6") == [6]
            assert pruning(spark.read.parquet(str(root)).where("id = 7")) == []
            assert "Error while obtaining a new communication channel" in reasons(spark)[-1]
        finally:
            server.resetCallbackClient(address, port)
        assert pruning(spark.read.parquet(str(root)).where("id = 7")) == ["1 of 4"]


def test_an_index_that_is_built_later_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_rule, "LOOK_MILLISECONDS", 200)
    pq.write_table(numbered(0, 20), tmp_path / "a.parquet", row_group_size=10)
    with new_rule(spark):
        assert pruning(spark.read.parquet(str(tmp_path)).where("id = 5")) == []
        assert reasons(spark)[-1] == "no index"
        sec.build_index(sec.open_table(str(tmp_path)))
        time.sleep(0.3)
        assert pruning(spark.read.parquet(str(tmp_path)).where("id = 5")) == ["1 of 2"]


def test_other_internals_of_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "EnableRule.java").write_text("package secateur; public final class EnableRule extends Missing {}")
    monkeypatch.setattr(compiled, "SOURCES", tmp_path)
    with pytest.raises(ValueError, match="other internals"), new_rule(spark):
        raise AssertionError
