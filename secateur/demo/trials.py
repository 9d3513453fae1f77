"""One question on one copy, with and without the index: answers, times, and the least that could be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its customary name)

import secateur as sec
from secateur.demo.lineitem import Copy
from secateur.demo.questions import DemoQuery
from secateur.io.tables.table import Table
from secateur.pruning.report import Report
from secateur.scan import Scan

T = TypeVar("T")

MOST_RUNS, ENOUGH_SECONDS = 2, 0.5


@dataclass(frozen=True)
class DemoAnswer:
    """A fingerprint of a set of rows, independent of their order: count, a sum, the sum of their hashes."""

    rows: int
    price: str  # the sum of l_extendedprice, a decimal
    checksum: int  # the sum of xxhash64 over all columns


@dataclass(frozen=True)
class Reference:
    """The answer to a question by an unfiltered scan, and the number of blocks that hold a match."""

    answer: DemoAnswer
    blocks: int


@dataclass(frozen=True)
class Trial:
    """The results of one question on one copy."""

    question: DemoQuery
    copy: str
    report: Report
    ideal_blocks: int
    plan_seconds: float
    seconds: float
    spark_seconds: float
    answer: DemoAnswer
    spark_answer: DemoAnswer
    reference: DemoAnswer

    @property
    def equal(self) -> bool:
        """Whether all three answers are equal."""
        return self.answer == self.spark_answer == self.reference

    @property
    def blocks_before(self) -> int:
        return self.report.stages[0].before.blocks or 0

    @property
    def blocks(self) -> int:
        return self.report.stages[-1].after.blocks or 0

    @property
    def bytes(self) -> int:
        return self.report.stages[-1].after.bytes or 0

    @property
    def speed_up(self) -> float:
        return self.spark_seconds / self.seconds


def ask(spark: SparkSession, copy: Copy, table: Table, question: DemoQuery, reference: Reference) -> Trial:
    """Ask a question with the index and without, each several times; the fastest run counts."""
    plan, plan_seconds = _fastest(lambda: _plan(table, question))
    answer, seconds = _fastest(lambda: answer_of(_plan(table, question).to_spark(spark)))
    spark_answer, spark_seconds = _fastest(lambda: answer_of(_spark_alone(spark, copy).where(question.sql)))
    return Trial(
        question,
        copy.name,
        plan.report,
        reference.blocks,
        plan_seconds,
        seconds,
        spark_seconds,
        answer,
        spark_answer,
        reference.answer,
    )


def _plan(table: Table, question: DemoQuery) -> Scan:
    return sec.prune(table, question.sql, session_time_zone="UTC")


def _spark_alone(spark: SparkSession, copy: Copy) -> DataFrame:
    return spark.read.parquet(str(copy.path))


def _fastest(run: Callable[[], T]) -> tuple[T, float]:
    """Return an action's result and the time of its fastest run; slow actions run once."""
    times: list[float] = []
    while not times or (len(times) < MOST_RUNS and sum(times) < ENOUGH_SECONDS):
        started = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - started)
    return result, min(times)


def answer_of(frame: DataFrame) -> DemoAnswer:
    """Return the fingerprint of a DataFrame's rows."""
    row = frame.agg(F.count("*"), F.sum("l_extendedprice"), *_hash_sums(F.xxhash64(*frame.columns))).first()
    assert row is not None, "an aggregate without groups has one row"
    return _answer(list(row))


def _hash_sums(hashed: Column) -> list[Column]:
    """Return sums of the two halves of a hash: a sum of 64-bit numbers overflows, and one of decimals is slow."""
    return [F.sum(F.shiftright(hashed, 32)), F.sum(hashed.bitwiseAND(F.lit(0xFFFF_FFFF)))]


def _answer(counts: Sequence[object]) -> DemoAnswer:
    rows, price, high, low = counts
    return DemoAnswer(int(str(rows)), str(price or 0), (int(str(high or 0)) << 32) + int(str(low or 0)))


def references(spark: SparkSession, copy: Copy, asked: Sequence[DemoQuery]) -> list[Reference]:
    """Compute the answers, and the matches per block, by one unfiltered scan of a copy, immune to push-down bugs.

    Rows are grouped by the set of questions they match, one bit each.
    """
    rows = _spark_alone(spark, copy)
    bits = [F.when(F.expr(question.sql), F.lit(1 << i)).otherwise(F.lit(0)) for i, question in enumerate(asked)]
    matches = reduce(lambda one, other: one.bitwiseOR(other), bits).alias("matches")
    kept = ("l_extendedprice", F.xxhash64(*rows.columns).alias("hash"), matches)
    at = rows.select(*kept, "_metadata.file_name", "_metadata.row_index").where("matches != 0")
    blocks = F.broadcast(_blocks(spark, copy))
    inside = (at.file_name == blocks.name) & (at.row_index >= blocks.start) & (at.row_index < blocks.stop)
    groups = at.join(blocks, inside).groupBy("name", "start", "matches")
    groups_found = groups.agg(F.count("*"), F.sum("l_extendedprice"), *_hash_sums(F.col("hash"))).collect()
    return [_reference([row for row in groups_found if row["matches"] >> i & 1]) for i in range(len(asked))]


def _reference(groups: Sequence[Row]) -> Reference:
    """Add up the groups of rows that match one question."""
    sums = [sum(column) for column in zip(*(row[3:] for row in groups), strict=True)]
    return Reference(_answer(sums or [0, 0, 0, 0]), len({(row["name"], row["start"]) for row in groups}))


def _blocks(spark: SparkSession, copy: Copy) -> DataFrame:
    """Return the range of rows within its file of every row group of a copy."""
    blocks: list[tuple[str, int, int]] = []
    for path in sorted(copy.path.glob("*.parquet")):
        metadata = pq.read_metadata(path)
        ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]).tolist()
        blocks += [(path.name, start, stop) for start, stop in zip([0, *ends], ends, strict=False)]
    return spark.createDataFrame(blocks, "name string, start bigint, stop bigint")
