"""This project: plans over its index, read as Arrow or through Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.functions import lit

import secateur as sc
from conformance.engine import FORMATS, ROW_ID, Aggregate, Answer, Hints, Place, Question, Refused, Rows
from secateur.errors import OldCalendar, SecateurError, UnsupportedPredicate
from secateur.io.scan import Scan
from secateur.io.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT_BLOCKS = 2  # so that small tables have several segments
NUMBER = "number of the question"


class SecateurScan:
    """Strict wherever its index is sound, so that no fault hides behind blocks that are kept."""

    formats = FORMATS

    def __init__(self, spark: SparkSession, *, through_spark: bool = False) -> None:
        self.spark = spark
        self.through_spark = through_spark
        self.name = "secateur-spark" if through_spark else "secateur"
        self.version = f"secateur {sc.__version__}"
        self._opened: dict[tuple[Path, int | None], Table] = {}

    def index(self, place: Place, hints: Hints) -> None:
        options = {"bloom": hints.look_up, "sort_key": hints.clustered_by, "segment_blocks": SEGMENT_BLOCKS}
        sc.build_index(self.table(place), spark=self.spark, **options)  # type: ignore[arg-type]

    def refresh(self, place: Place) -> None:
        sc.refresh_index(self.table(place), spark=self.spark)

    def drop(self, place: Place) -> None:
        sc.drop_index(self.table(place))

    def index_files(self, place: Place) -> Sequence[Path]:
        return [path for path in (place.directory / "_secateur").rglob("*") if path.is_file()]

    def table(self, place: Place) -> Table:
        """One handle per table and snapshot, with whatever it remembers."""
        key = place.directory, place.snapshot_id
        if key not in self._opened:
            self._opened[key] = sc.open_table(place.directory, snapshot_id=place.snapshot_id)
        return self._opened[key]

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        table = self.table(place)
        planned = [self._planned(place, table, question) for question in questions]
        if self.through_spark:
            return lambda: self._by_spark(planned)
        pairs = list(zip(questions, planned, strict=True))
        return lambda: [self._answered(place, table, question, plan) for question, plan in pairs]

    def _planned(self, place: Place, table: Table, question: Question) -> Scan | Refused:
        limit = question.limit if isinstance(question, Rows) else None
        options = {"limit": limit, "strict": place.index_is_sound, "session_time_zone": place.time_zone}
        try:
            return sc.prune(table, question.where, **options)  # type: ignore[arg-type]
        except SecateurError as error:
            return Refused(str(error))

    def _answered(self, place: Place, table: Table, question: Question, plan: Scan | Refused) -> Answer:
        if isinstance(plan, Refused):
            return plan
        try:
            if isinstance(question, Aggregate):
                calls = ", ".join(question.calls)
                found = sc.aggregate(table, calls, question.where, session_time_zone=place.time_zone)
                return tuple(found.to_pylist()[0].values())
            return self.row_ids(plan)
        except SecateurError as error:
            return Refused(str(error))

    def row_ids(self, plan: Scan) -> list[int]:
        """As Arrow, or by Spark where only Spark can evaluate what is left."""
        try:
            return list(plan.to_arrow([ROW_ID])[ROW_ID].to_pylist())
        except (UnsupportedPredicate, OldCalendar):
            return [row[0] for row in plan.to_spark(self.spark, [ROW_ID]).collect()]

    def _by_spark(self, planned: Sequence[Scan | Refused]) -> Sequence[Answer]:
        """All plans in one query."""
        frames = [
            plan.to_spark(self.spark, [ROW_ID], via="blocks").withColumn(NUMBER, lit(i))
            for i, plan in enumerate(planned)
            if not isinstance(plan, Refused)
        ]
        found_of: list[list[int]] = [[] for _ in planned]
        if frames:
            found = reduce(lambda a, b: a.unionAll(b), frames).toArrow()
            for number, row_id in zip(found[NUMBER].to_pylist(), found[ROW_ID].to_pylist(), strict=True):
                found_of[number].append(row_id)
        return [plan if isinstance(plan, Refused) else found_of[i] for i, plan in enumerate(planned)]
