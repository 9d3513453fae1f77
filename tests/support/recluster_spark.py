"""Run the statements of a plan of files to rewrite, in Spark, and compare what the table then holds and reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from pyspark.sql import SparkSession

import secateur as sec
from secateur.pruning.predicate.nodes import quoted_name as quoted

NO_STATEMENT = "-- none"
ROW_LIMIT = "parquet.block.row.count.limit"
N = 15_000
VALUES = list(range(7, N, 1331))
KEY, WORD, PART = "größe it's", "a word", "the day"
PARTS = ['it\'s "b"', "a\\b", "x/y=z% ü", "01", None]


def unordered(part: int, parts: int = len(PARTS)) -> str:
    """SQL of some rows in no order, of some partitions."""
    values = ", ".join("NULL" if value is None else text(value) for value in PARTS[:parts])
    of_part = f"element_at(array({values}), CAST(1 + id % {parts} AS INT))"
    return (
        f"SELECT id * 7919 % {N} AS {quoted(KEY)}, concat('w-', id * 31 % 977) AS {quoted(WORD)}, "
        f"{of_part} AS {quoted(PART)} FROM range({part * N // 4}, {(part + 1) * N // 4}, 1, 1)"
    )


def text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@contextmanager
def small_row_groups(spark: SparkSession) -> Iterator[None]:
    """Let Spark write row groups of few rows."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set(ROW_LIMIT, "50")
    try:
        yield
    finally:
        configuration.unset(ROW_LIMIT)


def run(spark: SparkSession, plan: sec.Reclustering) -> None:
    """Execute the statements as they are printed: SQL, or Python for a directory."""
    assert plan.groups
    for group in plan.groups:
        assert not group.statement.startswith(NO_STATEMENT), group
        if group.statement.startswith("spark."):
            exec(group.statement, {"spark": spark})
        else:
            spark.sql(group.statement)


def rows(spark: SparkSession, relation: str) -> Counter[Any]:
    """All rows of a table, as Spark has them."""
    return Counter(map(tuple, spark.sql(f"SELECT * FROM {relation}").collect()))


def share_of_look_ups(handle: Any, column: str, values: Sequence[object]) -> float:
    """The share of the table's bytes that look-ups read on average."""
    shares = []
    for value in values:
        stages = sec.prune(handle, sec.col(quoted(column)) == value, strict=True).report.stages
        shares.append((stages[-1].after.bytes or 0) / (stages[0].before.bytes or 1))
    return fmean(shares)


def require_look_ups(spark: SparkSession, handle: Any, relation: str, column: str, values: Sequence[object]) -> None:
    """Check that look-ups give the rows that Spark gives without pruning."""
    every = spark.sql(f"SELECT * FROM {relation}").collect()
    place = spark.sql(f"SELECT * FROM {relation}").columns.index(column)
    for value in values:
        plan = sec.prune(handle, sec.col(quoted(column)) == value, strict=True)
        expected = Counter(tuple(row) for row in every if row[place] == value)
        read = Counter(tuple(row.values()) for row in plan.to_arrow().to_pylist())
        assert read == expected, (column, value)
