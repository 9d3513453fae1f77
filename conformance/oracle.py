"""The truth: Spark, over the rows as they were given to the table, without statistics to go wrong by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import expr

from conformance.engine import ROW_ID, Aggregate, Question, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Truth = list[int] | tuple[Any, ...]

# Without what loses rows in Spark itself: push-down prunes by bounds that leave NaN out, and the elimination of common
# subexpressions takes ``x = 0.0`` and ``x = -0.0`` in one projection for the same.
_SETTINGS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}


@contextmanager
def with_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The session with other settings for a while."""
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
        self._known: dict[tuple[int, str, Question], Truth] = {}
        self._rows: list[pa.Table] = []  # kept, so that no other table gets the number of one

    def truth(self, rows: pa.Table, questions: Sequence[Question], time_zone: str) -> list[Truth]:
        """For every question the row ids in order, or the values of its aggregates."""
        keys = [(id(rows), time_zone, question) for question in questions]
        missing = list(dict.fromkeys(key[2] for key in keys if key not in self._known))
        if missing:
            self._rows.append(rows)
            found = self._ask(rows, missing, time_zone)
            self._known |= {(id(rows), time_zone, q): each for q, each in zip(missing, found, strict=True)}
        return [self._known[key] for key in keys]

    def _ask(self, rows: pa.Table, questions: Sequence[Question], time_zone: str) -> list[Truth]:
        file = self._directory / f"{len(self._rows)}.parquet"
        pq.write_table(rows, file, write_statistics=False, use_dictionary=False)
        with with_settings(self.spark, {**_SETTINGS, "spark.sql.session.timeZone": time_zone}):
            frame = self.spark.read.parquet(str(file))
            wheres = [question.where for question in questions if isinstance(question, Rows)]
            named = [expr(where).alias(f"p{i}") for i, where in enumerate(wheres)]
            found = frame.select(ROW_ID, *named).toArrow() if named else None
            calls = [
                expr(f"{call} FILTER (WHERE {question.where})").alias(f"c{i}_{j}")
                for i, question in enumerate(questions)
                if isinstance(question, Aggregate)
                for j, call in enumerate(question.calls)
            ]
            values = frame.agg(*calls).toArrow().to_pylist()[0] if calls else {}
        file.unlink()
        answers: list[Truth] = []
        column = 0
        for i, question in enumerate(questions):
            match question:
                case Rows():
                    assert found is not None
                    answers.append(sorted(found.filter(found[f"p{column}"])[ROW_ID].to_pylist()))
                    column += 1
                case Aggregate(calls=names):
                    answers.append(tuple(values[f"c{i}_{j}"] for j in range(len(names))))
        return answers
