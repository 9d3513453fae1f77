"""Spark's own reader of Parquet files, with its filter push-down on, as is its default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr, lit
from pyspark.sql.pandas.types import from_arrow_schema

from conformance.engine import (
    PARQUET,
    ROW_ID,
    Aggregate,
    Answer,
    FirstRows,
    Place,
    Query,
    Question,
    Refused,
    Rows,
    WithoutIndex,
)
from conformance.oracle import first_rows, query_over, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBER = "number of the question"


class SparkReader(WithoutIndex):
    """``spark.read.schema(...).parquet(directory).where(...)``, which keeps no index."""

    name = "spark"
    version = f"Spark {pyspark.__version__}"
    formats = (PARQUET,)  # Iceberg's runtime for Spark is another project

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        return lambda: self._answers(place, questions)

    def _answers(self, place: Place, questions: Sequence[Question]) -> Sequence[Answer]:
        settings = {"spark.sql.parquet.filterPushdown": "true", **place.session}
        with with_settings(self.spark, settings):
            answers: list[Answer] = [Refused("") for _ in questions]
            simple = [i for i, q in enumerate(questions) if isinstance(q, Rows) and q.limit is None]
            try:
                wheres = [
                    question.where for question in questions if isinstance(question, Rows) and question.limit is None
                ]
                for i, row_ids in zip(simple, self._together(place, wheres), strict=True):
                    answers[i] = row_ids
                rest = [i for i in range(len(questions)) if i not in simple]
            except (PySparkException, Py4JJavaError):
                rest = list(range(len(questions)))
            for i in rest:
                answers[i] = self._alone(place, questions[i])
        return answers

    def _frame(self, place: Place) -> DataFrame:
        """The table, listed anew."""
        return self.spark.read.schema(from_arrow_schema(place.schema)).parquet(str(place.directory))

    def _together(self, place: Place, wheres: Sequence[str]) -> list[list[int]]:
        """All in one query, each with a scan and filters of its own."""
        row_ids: list[list[int]] = [[] for _ in wheres]
        if not wheres:
            return row_ids
        kept = [self._frame(place).where(where) for where in wheres]
        frames = [frame.select(lit(i).alias(NUMBER), ROW_ID) for i, frame in enumerate(kept)]
        rows = reduce(lambda a, b: a.unionAll(b), frames).toArrow()
        for number, row_id in zip(rows[NUMBER].to_pylist(), rows[ROW_ID].to_pylist(), strict=True):
            row_ids[number].append(row_id)
        return row_ids

    def _alone(self, place: Place, question: Question) -> Answer:
        try:
            if isinstance(question, Query):
                return query_over(self._frame(place), question)
            if isinstance(question, FirstRows):
                return first_rows(self._frame(place), question)
            frame = self._frame(place).where(question.where)
            match question:
                case Aggregate(calls=calls):
                    named = [expr(call).alias(f"c{i}") for i, call in enumerate(calls)]
                    return tuple(frame.agg(*named).toArrow().to_pylist()[0].values())
                case Rows(limit=limit):
                    frame = frame.select(ROW_ID)
                    return list((frame if limit is None else frame.limit(limit)).toArrow()[ROW_ID].to_pylist())
        except (PySparkException, Py4JJavaError) as error:
            return Refused(str(error).splitlines()[0])
