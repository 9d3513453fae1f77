"""Verify plans against the data: Spark evaluates their predicates on rows that the plans leave out.

Blocks are read as on the read path ``blocks``, once for all predicates, without residuals. Every row carries the
numbers of the plans that leave it out, and only Spark decides whether it matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import array_contains, col, expr, lit, when
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from secateur.index.build.spark_calls import arrow_of
from secateur.index.build.spark_tasks import task_count
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.pruned_blocks import PrunedBlocks, from_keys, reading_of
from secateur.io.scan.read_path import asks_only_spark
from secateur.io.spark.file_reader import spark_schema
from secateur.io.spark.to_spark import one_partition_each
from secateur.pruning.predicate.bound_walks import columns
from secateur.pruning.row_ranges import in_ranges
from secateur.ragged import offsets_of

if TYPE_CHECKING:
    from secateur.io.scan.reading.block_reader import BlockReader

MOST_MATCHES = 100  # rows that are collected: a single one is a fault already
MOST_VALUES = 8  # columns that are shown of such a row


@dataclass(frozen=True)
class Asked:
    """A plan, and blocks with rows that it leaves out; all plans of one audit share a listing."""

    plan: PlannedScan
    excluded: PrunedBlocks

    @property
    def names(self) -> list[str]:
        """The top-level columns that Spark needs for the predicate."""
        return list(dict.fromkeys((*self.plan.named, *columns(self.plan.predicate))))


@dataclass(frozen=True)
class Match:
    """A matching row that a plan leaves out."""

    asked: int  # number of the plan
    path: str
    row_group: int
    position: int
    values: str


@dataclass(frozen=True)
class Proof:
    """Spark's findings; `undecided` has the reason for every plan, by number, that could not be decided."""

    matches: tuple[Match, ...]
    undecided: Mapping[int, str]


def matches_left_out(spark: SparkSession, asked: Sequence[Asked]) -> Proof:
    """Return the rows that match a predicate but are left out by its plan, at most :data:`MOST_MATCHES`.

    A predicate on which Spark raises an error is evaluated separately; if it still fails, it is undecided. Raises
    StalePlan, UnsupportedTable.
    """
    collated = {
        i: "it asks a collation or a VARIANT"
        for i, plan_to_check in enumerate(asked)
        if asks_only_spark(plan_to_check.plan)
    }
    numbers = [i for i, plan_to_check in enumerate(asked) if len(plan_to_check.excluded) and i not in collated]
    if not numbers:
        return Proof((), collated)
    try:
        return Proof(tuple(_matches(spark, asked, numbers)), collated)
    except PySparkException as error:
        if len(numbers) == 1:
            return Proof((), {**collated, numbers[0]: _first_line(error)})
    matches: list[Match] = []
    for number in numbers:
        try:
            matches += _matches(spark, asked, [number])
        except PySparkException as error:
            collated[number] = _first_line(error)
    return Proof(tuple(matches[:MOST_MATCHES]), collated)


def _first_line(error: PySparkException) -> str:
    return str(error).strip().splitlines()[0]


def _matches(spark: SparkSession, asked: Sequence[Asked], numbers: Sequence[int]) -> Iterator[Match]:
    opened = asked[numbers[0]].plan.opened
    file, row_group, patterns = _blocks_of(asked, numbers)
    names = list(dict.fromkeys(name for number in numbers for name in asked[number].names))
    reading = reading_of(opened, file, row_group, names)
    blocks = replace(reading.blocks, residual=np.arange(len(file), dtype=np.int32))
    cuts = np.linspace(0, len(file), task_count(spark, len(file)) + 1).astype(int).tolist()
    tasks = [blocks.between(start, stop).to_bytes() for start, stop in pairwise(cuts)]
    hidden_names = _own_names(names)
    reader = reading.reader

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column("task").to_pylist():
                yield from _rows(reader, BlockList.from_bytes(task), patterns, hidden_names)

    frame = one_partition_each(tasks, spark).mapInArrow(read, _schema(reader, hidden_names))
    hits = {number: array_contains(col(hidden_names[-1]), number) for number in numbers}
    conditions = {
        number: when(is_left_out, expr(asked[number].plan.sql)).otherwise(lit(False))
        for number, is_left_out in hits.items()
    }
    flags = [flag.alias(f"{hidden_names[-1]}{number}") for number, flag in conditions.items()]
    examples = [col(f"`{name.replace('`', '``')}`").cast("string") for name in names[:MOST_VALUES]]
    rows = frame.select(
        *hidden_names[:-1], *flags, *(value.alias(f"{hidden_names[0]}{i}") for i, value in enumerate(examples))
    )
    any_: Column = reduce(lambda a, b: a | b, (col(f"{hidden_names[-1]}{number}") for number in numbers))
    for row in arrow_of(rows.where(any_).limit(MOST_MATCHES)).to_pylist():
        values = ", ".join(f"{name} = {row[f'{hidden_names[0]}{i}']}" for i, name in enumerate(names[:MOST_VALUES]))
        for number in numbers:
            if row[f"{hidden_names[-1]}{number}"]:
                yield Match(number, row[hidden_names[0]], row[hidden_names[1]], row[hidden_names[2]], values)


Pattern = tuple[
    tuple[int, np.ndarray, np.ndarray], ...
]  # of one block: a plan's number, starts and stops of the rows that it keeps


def _blocks_of(asked: Sequence[Asked], numbers: Sequence[int]) -> tuple[np.ndarray, np.ndarray, list[Pattern]]:
    """Return the files and row groups of all plans' distinct blocks, in reading order, and the rows each plan keeps."""
    keys = np.unique(np.concatenate([asked[number].excluded.keys for number in numbers]))
    patterns: list[list[tuple[int, np.ndarray, np.ndarray]]] = [[] for _ in keys]
    for number in numbers:
        excluded = asked[number].excluded
        kept = zip(np.searchsorted(keys, excluded.keys).tolist(), pairwise(excluded.kept.offsets.tolist()), strict=True)
        for place, (begin, end) in kept:
            patterns[place].append((number, excluded.kept.start[begin:end], excluded.kept.stop[begin:end]))
    return *from_keys(keys), [tuple(pattern) for pattern in patterns]


def _own_names(names: Sequence[str]) -> tuple[str, str, str, str]:
    """Return names that no column has for the path, row group, position and plans of a row."""
    prefix = "secateur"
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    return f"{prefix}_path", f"{prefix}_group", f"{prefix}_position", f"{prefix}_plans"


def _schema(reader: BlockReader, hidden_names: Sequence[str]) -> StructType:
    types = (StringType(), IntegerType(), LongType(), ArrayType(IntegerType()))
    return StructType(
        [
            *(StructField(name, type_) for name, type_ in zip(hidden_names, types, strict=True)),
            *spark_schema(pa.schema(reader.fields)).fields,
        ]
    )


def _rows(
    reader: BlockReader, blocks: BlockList, patterns: Sequence[Pattern], hidden_names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of some blocks with their place, and the numbers of the plans that leave them out."""
    for file in blocks.by_file():
        of_group = dict(zip(file.row_groups, file.residual, strict=True))
        for row_group, positions, batch in reader.positioned(file):
            n = batch.num_rows
            plans = _plans(patterns[of_group[row_group]], positions)
            arrays = [
                pa.repeat(pa.scalar(file.path, pa.string()), n),
                pa.repeat(pa.scalar(row_group, pa.int32()), n),
                pa.array(positions, pa.int64()),
                plans,
            ]
            named = [*hidden_names, *batch.schema.names] if reader.fields else list(hidden_names)
            yield pa.RecordBatch.from_arrays([*arrays, *(batch.columns if reader.fields else ())], names=named)


def _plans(pattern: Pattern, positions: np.ndarray) -> pa.Array:
    """Return for every row the numbers of the plans that leave it out."""
    matrix = np.stack([~in_ranges(starts, stops, positions) for _, starts, stops in pattern], axis=1)
    numbers = np.broadcast_to(np.array([number for number, _, _ in pattern], np.int32), matrix.shape)[matrix]
    return pa.ListArray.from_arrays(pa.array(offsets_of(matrix.sum(axis=1)), pa.int32()), pa.array(numbers))
