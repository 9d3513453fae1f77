"""This project: plans over its index, read as Arrow or through Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.functions import lit

import secateur as sec
from conformance.engine import (
    DELTA,
    FORMATS,
    HUDI,
    ROW_ID,
    Aggregate,
    Answer,
    FirstRows,
    Hints,
    Place,
    Query,
    Question,
    Refused,
    Rows,
)
from conformance.oracle import query_over, with_settings
from secateur.errors import OldCalendar, SecateurError, UnsupportedPredicate
from secateur.io.tables.table import Table
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT_BLOCKS = 2  # so that small tables have several segments
NUMBER = "number of the question"
Planned = Scan | Refused | None  # None: of a query, which Spark plans


def options_of(place: Place) -> dict[str, object]:
    """The options with which a table is planned at a place."""
    return {"strict": place.index_is_sound, "session_time_zone": place.time_zone, "ansi": place.ansi}


def _opened(place: Place) -> Table:
    if place.format in (DELTA, HUDI):
        return sec.open_table(place.directory, version=place.snapshot_id)
    return sec.open_table(place.directory, snapshot_id=place.snapshot_id)


class SecateurScan:
    """Strict wherever its index is sound, so that no fault hides behind blocks that are kept."""

    formats = FORMATS

    def __init__(self, spark: SparkSession, *, through_spark: bool = False) -> None:
        self.spark = spark
        self.through_spark = through_spark
        self._builder = spark if through_spark else None  # small tables are indexed faster in this process
        self.name = "secateur-spark" if through_spark else "secateur"
        self.version = f"secateur {sec.__version__}"
        self._opened: dict[tuple[Path, int | None], Table] = {}

    def index(self, place: Place, hints: Hints) -> None:
        bloom: dict[str, str | None] = {**dict.fromkeys(hints.look_up), **dict.fromkeys(hints.filtered, "native")}
        options = {"bloom": bloom, "sort_key": hints.clustered_by, "segment_blocks": SEGMENT_BLOCKS}
        sec.build_index(self.table(place), spark=self._builder, **options)  # type: ignore[arg-type]

    def refresh(self, place: Place) -> None:
        sec.refresh_index(self.table(place), spark=self._builder)

    def drop(self, place: Place) -> None:
        sec.drop_index(self.table(place))

    def index_files(self, place: Place) -> Sequence[Path]:
        return [path for path in (place.directory / "_secateur").rglob("*") if path.is_file()]

    def table(self, place: Place) -> Table:
        """One handle per table and snapshot, with its caches."""
        key = place.directory, place.snapshot_id
        if not place.index_is_sound:  # a handle with cached chunks would not notice
            return _opened(place)
        if key not in self._opened:
            self._opened[key] = _opened(place)
        return self._opened[key]

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        table = self.table(place)
        planned = [self._planned(place, table, question) for question in questions]
        return lambda: self._answers(place, table, questions, planned)

    def _planned(self, place: Place, table: Table, question: Question) -> Planned:
        if isinstance(question, Query):
            return None
        limit = question.limit if isinstance(question, Rows | FirstRows) else None
        order_by = question.order_by if isinstance(question, FirstRows) else ()
        options = {"limit": limit, "order_by": order_by, **options_of(place)}
        try:
            return sec.prune(table, question.where, **options)  # type: ignore[arg-type]
        except SecateurError as error:
            return Refused(str(error))

    def _answers(
        self, place: Place, table: Table, questions: Sequence[Question], planned: Sequence[Planned]
    ) -> Sequence[Answer]:
        """All answers; those with a residual that only Spark can evaluate are read in one query."""
        answers: list[Answer] = []
        left: dict[int, Scan] = {}
        for i, (question, plan) in enumerate(zip(questions, planned, strict=True)):
            try:
                answers.append(self._answer(place, table, question, plan))
            except (UnsupportedPredicate, OldCalendar):
                assert isinstance(plan, Scan)
                answers.append([])
                left[i] = plan
            except SecateurError as error:
                answers.append(Refused(str(error)))
        for i, row_ids in self.by_spark(place, left).items():
            answers[i] = row_ids
        return answers

    def _answer(self, place: Place, table: Table, question: Question, plan: Planned) -> Answer:
        match question, plan:
            case _, Refused():
                return plan
            case Aggregate(calls=calls, where=where), _:
                result = sec.aggregate(table, ", ".join(calls), where, **options_of(place))  # type: ignore[arg-type]
                return tuple(result.to_pylist()[0].values())
            case Rows() | FirstRows(), Scan() if self.through_spark:
                raise UnsupportedPredicate("all rows are to be read through Spark")
            case Rows() | FirstRows(), Scan():
                return self.row_ids(plan)
            case Query(), _:
                lake = self.spark.read.format("secateur").option("pushdown", "true").load(str(place.directory))
                return query_over(lake, question)
        raise AssertionError(question)

    def row_ids(self, plan: Scan) -> list[int]:
        """As Arrow. Raises UnsupportedPredicate, OldCalendar where only Spark can read them."""
        return list(plan.to_arrow([ROW_ID])[ROW_ID].to_pylist())

    def by_spark(self, place: Place, plans: Mapping[int, Scan]) -> dict[int, list[int]]:
        """The rows of some plans, all in one query."""
        row_ids: dict[int, list[int]] = {i: [] for i in plans}
        if plans:
            with with_settings(self.spark, place.session):
                frames = [
                    plan.to_spark(self.spark, [ROW_ID], via="blocks" if self.through_spark else "auto")
                    for plan in plans.values()
                ]
                named = [frame.withColumn(NUMBER, lit(i)) for i, frame in zip(plans, frames, strict=True)]
                rows = reduce(lambda a, b: a.unionAll(b), named).toArrow()
            for number, row_id in zip(rows[NUMBER].to_pylist(), rows[ROW_ID].to_pylist(), strict=True):
                row_ids[number].append(row_id)
        return row_ids
