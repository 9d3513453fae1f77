"""Verdicts of tasks: what they notice reaches the driver when they end, by an accumulator.

Spark drops what a failed task has added, and may add what a task that ran twice has noticed twice: both are fine,
because a verdict is about a file as it was listed, and says the same however often it comes.
"""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from secateur.io.scan.kept.verdicts import VerdictNotes, WithoutTrue, without_true
from secateur.io.tables.file_rows import FileBlocks

MOST_PLANS = 32  # plans whose tasks are listened to, those that were handed to Spark last

Noticed = list[tuple[int, WithoutTrue]]  # each with the number of its plan

_log = logging.getLogger("secateur")
_numbers = itertools.count()
_plans: OrderedDict[int, VerdictNotes] = OrderedDict()
_accumulators: dict[str, Accumulator[Noticed]] = {}  # of the Spark application of this process


class _ForPlans(AccumulatorParam[Noticed]):
    """Collects in a task what the driver passes on to the plans."""

    is_driver = True

    def zero(self, value: Noticed) -> Noticed:
        return []

    def addInPlace(self, value1: Noticed, value2: Noticed) -> Noticed:  # noqa: N802
        if not self.is_driver:
            value1.extend(value2)
            return value1
        for number, noticed in value2:
            notes = _plans.get(number)
            if notes is not None:
                try:
                    notes.note(noticed)
                except Exception:  # in the thread that serves accumulators, which must go on
                    _log.exception("what a task has found is not remembered")
        return value1

    def __getstate__(self) -> dict[str, object]:
        return {"is_driver": False}


@dataclass(frozen=True)
class TaskNotes:
    """Sends what a reader in a task notices to the driver.

    See :data:`secateur.io.scan.reading.block_reader.WithoutMatch`.
    """

    number: int  # of the plan
    accumulator: Accumulator[Noticed]

    def __call__(self, file: FileBlocks, residual: int, row_groups: Sequence[int]) -> None:
        self.accumulator.add([(self.number, without_true(file, residual, row_groups))])


def sent_to_driver(notes: VerdictNotes | None, spark: SparkSession) -> TaskNotes | None:
    """Return what tasks note verdicts with; None where there is nothing to note, or on Spark Connect."""
    if notes is None:
        return None
    try:
        context = spark.sparkContext
    except PySparkException:  # Spark Connect has none
        return None
    number = next(_numbers)
    _plans[number] = notes
    while len(_plans) > MOST_PLANS:
        _plans.popitem(last=False)
    return TaskNotes(number, _accumulator(context))


def _accumulator(context: SparkContext) -> Accumulator[Noticed]:
    application = str(context.applicationId)
    if application not in _accumulators:
        _accumulators.clear()
        _accumulators[application] = context.accumulator([], _ForPlans())
    return _accumulators[application]
