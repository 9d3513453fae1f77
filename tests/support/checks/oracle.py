"""Spark as the oracle: truth values of many predicates in one query, and rows in a comparable form."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

Truth = dict[int, bool | None]  # by row id


@dataclass(frozen=True)
class Answers:
    """What Spark reads of a table, and what it answers."""

    rows: dict[int, str]  # every row in the form that :func:`rows` counts, by row id
    truth: dict[str, Truth]  # by predicate; one that Spark refuses or fails on has none

    def matching(self, predicate: str) -> Counter[str]:
        """The rows for which the predicate is TRUE."""
        return Counter(self.rows[rid] for rid, value in self.truth[predicate].items() if value)


def ask(frame: DataFrame, predicates: Sequence[str]) -> Answers:
    """All rows of a frame, and the truth values of all predicates on them, in one query if none of them fails."""
    try:
        named = [expr(predicate).alias(f"p{i}") for i, predicate in enumerate(predicates)]
        answer = frame.select(*[f"`{quote(name)}`" for name in frame.columns], *named).toArrow()
    except (PySparkException, Py4JJavaError):
        if len(predicates) <= 1:
            return Answers(ask(frame, []).rows if predicates else {}, {})
        middle = len(predicates) // 2
        first, second = ask(frame, predicates[:middle]), ask(frame, predicates[middle:])
        return Answers(first.rows, first.truth | second.truth)
    rid = answer["rid"].to_pylist()
    truth = {p: dict(zip(rid, answer[f"p{i}"].to_pylist(), strict=True)) for i, p in enumerate(predicates)}
    return Answers(by_row_id(answer.select(frame.columns)), truth)


def by_row_id(table: pa.Table) -> dict[int, str]:
    """The rows of a table by their `rid`."""
    return dict(zip(table["rid"].to_pylist(), in_order(table), strict=True))


def quote(name: str) -> str:
    return name.replace("`", "``")


def row_id_of_blocks(root: Path, plan: Any) -> list[list[int]]:
    """The row ids that every block of a plan holds."""
    opened: dict[str, pq.ParquetFile] = {}
    blocks = []
    for file, row_group in zip(plan.blocks["file"].to_pylist(), plan.blocks["row_group"].to_pylist(), strict=True):
        if file not in opened:
            opened[file] = pq.ParquetFile(root / file)
        blocks.append(opened[file].read_row_group(row_group, ["rid"])["rid"].to_pylist())
    return blocks


def rows(table: pa.Table) -> Counter[str]:
    """The rows of a table as a multiset: NaN equals NaN, -0.0 is not 0.0, times are counted from the epoch."""
    return Counter(in_order(table))


def in_order(table: pa.Table) -> list[str]:
    """The rows of a table in its order, in the form that :func:`rows` counts."""
    columns = [plain(table[name]) for name in sorted(table.column_names)]
    return [repr(row) for row in zip(*columns, strict=True)] if columns else ["()"] * table.num_rows


def plain(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values as Python has them, days and microseconds as integers: Python's dates end at 9999."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_struct(array.type):
        children = [plain(child) for child in array.flatten()]
        values = list(zip(*children, strict=True)) if children else [()] * len(array)
        return [value if known else None for value, known in zip(values, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_large_string(array.type) or pa.types.is_string(array.type):
        return array.cast(pa.large_binary()).to_pylist()
    return array.to_pylist()
