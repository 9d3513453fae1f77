"""What tasks notice reaches the plan that they read for, as PySpark carries it: to another process and back."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.accumulators import Accumulator, _accumulatorRegistry

import secateur as sec
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.spark import task_verdicts
from secateur.io.spark.task_verdicts import TaskNotes, _ForPlans
from secateur.io.spark.to_spark import _loose, descriptors

pytestmark = pytest.mark.usefixtures("remembering")

NUMBER = 987_654_321  # of an accumulator that no Spark has
TASK = """
import pickle, sys
from pyspark.accumulators import _accumulatorRegistry
read, tasks = pickle.load(sys.stdin.buffer)
rows = sum(batch.num_rows for task in tasks for batch in read(task))
pickle.dump((rows, [(aid, accumulator._value) for aid, accumulator in _accumulatorRegistry.items()]), sys.stdout.buffer)
"""


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for file in range(3):
        ids = range(file * 100, file * 100 + 100)
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{file}.parquet", row_group_size=10)
    return str(tmp_path)


@pytest.fixture
def accumulator() -> Iterator[Accumulator[task_verdicts.Noticed]]:
    """One as the driver makes it."""
    with patch.dict(_accumulatorRegistry):
        yield Accumulator(NUMBER, [], _ForPlans())


def in_a_task(plan: PlannedScan, notes: TaskNotes) -> tuple[int, list[tuple[int, task_verdicts.Noticed]]]:
    """Read a plan as a task does: the number of rows, and what the accumulators send."""
    work = descriptors(plan, plan.fields(["id"]))
    reader = replace(_loose(work.reader), without_match=notes)

    def read(task: bytes) -> list[pa.RecordBatch]:
        return list(reader.read_all(BlockList.from_bytes(task)))

    data = cloudpickle.dumps((read, work.tasks))
    done = subprocess.run([sys.executable, "-c", TASK], input=data, capture_output=True, check=True)
    rows, sent = pickle.loads(done.stdout)
    return rows, sent


def test_what_a_task_notices_is_remembered(lake: str, accumulator: Accumulator[task_verdicts.Noticed]) -> None:
    plan = sec.prune(lake, "id * 37 % 50 = 9")
    assert plan.verdict_notes is not None
    with patch.dict(task_verdicts._plans, {5: plan.verdict_notes}):
        rows, sent = in_a_task(plan, TaskNotes(5, accumulator))
        assert rows == 6
        assert len(sec.prune(lake, "id * 37 % 50 = 9").blocks) == 30
        for number, value in [*sent, *sent]:  # a task that ran twice
            assert number == NUMBER
            accumulator += value
    assert accumulator._value == []
    again = sec.prune(lake, "id * 37 % 50 = 9 AND id > 5")
    assert {(block["file"], block["row_group"]) for block in again.blocks.to_pylist()} == {
        (f"{file}.parquet", row_group) for file in range(3) for row_group in (0, 5)
    }
    assert again.count() == 6


def test_what_is_noticed_for_no_plan_is_dropped(lake: str, accumulator: Accumulator[task_verdicts.Noticed]) -> None:
    plan = sec.prune(lake, "id * 37 % 50 = 9")
    _, sent = in_a_task(plan, TaskNotes(6, accumulator))
    accumulator += sent[0][1]
    assert len(sec.prune(lake, "id * 37 % 50 = 9").blocks) == 30


def test_trouble_in_the_driver_is_logged(
    accumulator: Accumulator[task_verdicts.Noticed], caplog: pytest.LogCaptureFixture
) -> None:
    """The thread that serves accumulators must go on."""

    class Broken:
        def note(self, noticed: object) -> None:
            raise OSError("no room")

    with patch.dict(task_verdicts._plans, {7: Broken()}):
        accumulator += [(7, None)]
    assert "is not remembered" in caplog.text
