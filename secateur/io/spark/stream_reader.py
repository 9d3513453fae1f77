"""``spark.readStream.format("secateur")``: the rows that are appended to a table, each once.

An offset is a snapshot of the table, for a directory one of its index, and what tells that snapshot from another one of
its number. Spark keeps offsets in the query's checkpoint before a batch is read. What a batch reads follows from its
two offsets and from nothing else, so a batch that is read again after a crash has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.2 is the first that asks a Python source

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for the class that this Spark lacks."""

    class ReadAllAvailable:  # type: ignore[no-redef]
        """Stands for the class that this Spark lacks."""


from secateur.errors import IndexMissing, TableChanged
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.spark.source_tasks import Location, opened, rows_of, tasks_of
from secateur.io.spark.stream_offsets import FileSpan, Limits, Offset, begun, limited, spans
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.formats import history_of
from secateur.io.tables.history import History
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Faults

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

KNOWS_LIMITS = hasattr(DataSourceStreamReader, "getDefaultReadLimit")  # from Spark 4.2 on


@dataclass
class SecateurStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of a stream, optionally of only the rows for which a predicate is TRUE."""

    location: Location
    schema: pa.Schema
    predicate: Predicate
    settings: Settings  # whose `since` is where the stream begins
    skip_changes: bool
    limits: Limits = field(default_factory=Limits)
    last: Offset | None = None  # of a query that reads what is available when it starts

    def initialOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802, Spark's name
        """Return where a new stream begins: before all rows, or after those of a snapshot. Raises UnknownSnapshot."""
        return _offset(self._history(), self.settings.since)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the current snapshot: the query reads up to it, in as many batches as it needs. Spark 4.2 calls this."""
        self.last = self._newest()

    def latestOffset(  # type: ignore[override]  # noqa: N802
        self, start: Offset | None = None, limit: object = None
    ) -> Offset:
        """Return the current snapshot, or the one that was noted, or what the limits of a batch allow from the start.

        Spark 4.2 passes the start, and whether to read all that is available. Raises IndexMissing for a directory
        without an index; with limits as :meth:`partitions`.
        """
        newest = self._newest() if self.last is None else self.last
        start = self.initialOffset() if start is None else start
        if not self.limits or isinstance(limit, ReadAllAvailable) or start == newest:
            return newest
        span, end = begun(start, newest)
        history, zone = self._history(), known_zone(self.settings.session_time_zone)
        self._require_same(history, start)
        sizes = history.appended_sizes(span.after, span.upto, zone, skip_changes=self.skip_changes)
        return limited(span, end, sizes, self.limits)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch as Spark knows it. Spark 4.2 calls this."""
        from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxFiles

        if self.limits.files is not None:
            return ReadMaxFiles(self.limits.files)
        return ReadAllAvailable() if self.limits.bytes is None else ReadMaxBytes(self.limits.bytes)

    def _newest(self) -> Offset:
        history = self._history()
        newest = history.newest()
        if newest is None and isinstance(opened(self.location), ParquetDirectory):
            raise IndexMissing(
                f"{self.location.path} has no index: a stream of a directory goes by its index snapshots; call "
                "build_index(), and refresh_index() whenever files were added"
            )
        return _offset(history, newest)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # type: ignore[override]
        """Return the tasks that read what was appended between two offsets.

        Raises TableChanged if rows were changed or removed between them, or the table was made anew; UnknownSnapshot if
        what lies between is not known any more; UnsupportedPredicate.
        """
        if start == end:
            return []
        history = self._history()
        for offset in (start, end):
            self._require_same(history, offset)
        return [task for span in spans(start, end) for task in self._tasks(history, span)]

    def _tasks(self, history: History, span: FileSpan) -> Sequence[InputPartition]:
        zone, part = known_zone(self.settings.session_time_zone), slice(span.first, span.stop)
        appended = history.appended(span.after, span.upto, zone, skip_changes=self.skip_changes, part=part)
        if not len(appended.listing.size):
            return []
        table = open_snapshot_of(
            appended.table,
            zone,
            Faults(),
            use_index=self.settings.use_index,
            listing=appended.listing,
            other_schema=appended.other_schema,
        )
        return tasks_of(plan_scan(appended.table, self.predicate, self.predicate, self.settings, table), self.schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return rows_of(partition, self.schema)

    def _history(self) -> History:
        return history_of(opened(self.location).snapshot(fresh=True))

    def _require_same(self, history: History, offset: Offset) -> None:
        """Raise TableChanged if another table lies in the place of that which the checkpoint names."""
        if _offset(history, offset["snapshot"])["identity"] != offset["identity"]:
            raise TableChanged(
                f"{self.location.path}, or the index of this directory, was made anew after the stream began: snapshot "
                f"{offset['snapshot']} of its checkpoint is not that of now; begin anew with another checkpoint"
            )


def _offset(history: History, snapshot: int | None) -> Offset:
    return {"snapshot": snapshot, "identity": "" if snapshot is None else history.identity_at(snapshot)}
