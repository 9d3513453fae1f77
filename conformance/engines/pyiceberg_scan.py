"""PyIceberg's scan, which prunes by manifests and hands the filter to Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version

from pyiceberg.table import StaticTable

from conformance.engine import ICEBERG, ROW_ID, Answer, Place, Question, Refused, Rows, WithoutIndex

OTHERWISE = re.compile(r"\\|LIKE '[^']*_")  # text that its parser reads otherwise than SQL


class PyIcebergScan(WithoutIndex):
    """``table.scan(row_filter=...)``: filters that its text form cannot say are refused. It keeps no index."""

    name = "pyiceberg"
    version = f"PyIceberg {version('pyiceberg')}"
    formats = (ICEBERG,)

    def prepare(self, place: Place, questions: Sequence[Question]) -> Callable[[], Sequence[Answer]]:
        return lambda: [self._answer(place, question) for question in questions]

    def _answer(self, place: Place, question: Question) -> Answer:
        if not isinstance(question, Rows):
            return Refused("a scan has rows only")
        if OTHERWISE.search(question.where):
            return Refused("its text has no escapes, and its LIKE no _")
        table = StaticTable.from_metadata(f"file://{place.metadata}")
        try:
            scan = table.scan(question.where, (ROW_ID,), snapshot_id=place.snapshot_id, limit=question.limit)
            return list(scan.to_arrow()[ROW_ID].to_pylist())
        except Exception as error:  # of any library below it
            return Refused(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
