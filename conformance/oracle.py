"""The truth: Spark, over the rows as they were given to the table, without statistics to go wrong by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import expr

from conformance.engine import ROW_ID, Aggregate, FirstRows, Query, Question, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Truth = list[int] | tuple[Any, ...]

# Switches off what loses rows in Spark itself: push-down prunes by bounds that leave NaN out, and the elimination of
# common subexpressions takes ``x = 0.0`` and ``x = -0.0`` in one projection for the same.
_SETTINGS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}

Session = tuple[tuple[str, str], ...]  # the settings of a Spark session


@contextmanager
def with_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of the session, and restore them afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


class Oracle:
    """Answers of Spark, each computed once; all questions about the same rows in one query."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self._directory = directory
        self._known: dict[tuple[int, Session, Question], Truth] = {}
        self._rows: list[pa.Table] = []  # kept alive, so that no other table gets the same id()

    def truth(self, rows: pa.Table, questions: Sequence[Question], settings: Mapping[str, str]) -> list[Truth]:
        """For every question the row ids in order, the values of its aggregates, or the rows of its result."""
        session = tuple(settings.items())
        keys = [(id(rows), session, question) for question in questions]
        missing = list(dict.fromkeys(key[2] for key in keys if key not in self._known))
        if missing:
            self._rows.append(rows)
            answers = self._ask(rows, missing, settings)
            self._known |= {(id(rows), session, q): answer for q, answer in zip(missing, answers, strict=True)}
        return [self._known[key] for key in keys]

    def _ask(self, rows: pa.Table, questions: Sequence[Question], settings: Mapping[str, str]) -> list[Truth]:
        file = self._directory / f"{len(self._rows)}.parquet"
        pq.write_table(rows, file, write_statistics=False, use_dictionary=False)
        with with_settings(self.spark, {**_SETTINGS, **settings}):
            frame = self.spark.read.parquet(str(file))
            ids = _row_ids(frame, [question.where for question in questions if isinstance(question, Rows)])
            values = _values(frame, [question for question in questions if isinstance(question, Aggregate)])
            results = [query_over(frame, question) for question in questions if isinstance(question, Query)]
            firsts = [first_rows(frame, question) for question in questions if isinstance(question, FirstRows)]
        file.unlink()
        by_kind = {Rows: iter(ids), FirstRows: iter(firsts), Aggregate: iter(values), Query: iter(results)}
        return [next(by_kind[type(question)]) for question in questions]


def _row_ids(frame: DataFrame, wheres: Sequence[str]) -> list[Truth]:
    if not wheres:
        return []
    rows = frame.select(ROW_ID, *(expr(where).alias(f"p{i}") for i, where in enumerate(wheres))).toArrow()
    return [sorted(rows.filter(rows[f"p{i}"])[ROW_ID].to_pylist()) for i in range(len(wheres))]


def _values(frame: DataFrame, questions: Sequence[Aggregate]) -> list[Truth]:
    calls = [f"{call} FILTER (WHERE {question.where})" for question in questions for call in question.calls]
    if not calls:
        return []
    row = frame.agg(*(expr(call).alias(f"c{i}") for i, call in enumerate(calls))).toArrow().to_pylist()[0]
    values = iter(row.values())
    return [tuple(next(values) for _ in question.calls) for question in questions]


def first_rows(frame: DataFrame, question: FirstRows) -> list[int]:
    """The ids of the first rows of a frame."""
    sql = f"SELECT {ROW_ID} FROM {{lake}} WHERE {question.where} ORDER BY {question.order_by} LIMIT {question.limit}"
    return list(frame.sparkSession.sql(sql, lake=frame).toArrow()[ROW_ID].to_pylist())


def query_over(lake: DataFrame, question: Query) -> Truth:
    """The result of a query over a frame, as tuples."""
    lake.createOrReplaceTempView("lake")
    spark = lake.sparkSession
    spark.createDataFrame([(number,) for number in question.few], "b bigint").createOrReplaceTempView("few")
    return tuple(tuple(row) for row in spark.sql(question.sql).collect())
