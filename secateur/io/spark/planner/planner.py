"""Return the row groups that a query can match, when Spark asks for them while planning.

Every problem keeps row groups: filters that Python cannot convert are not used for pruning, and if no plan can be made
the reply is every live file as a whole. The query fails only if the live files themselves cannot be listed.
"""

from __future__ import annotations

import itertools
import logging
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from secateur.errors import StalePlan
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import PlannedScan, Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.spark.planner.catalyst import ScanQuestion, scan_question
from secateur.io.spark.planner.column_statistics import encoded_statistics
from secateur.io.spark.planner.known_aggregates import Rest, rest_of
from secateur.io.spark.planner.protocol import (
    FAILED,
    UNKNOWN,
    ScanReply,
    ScanRequest,
    degraded_text,
    figures_of,
    no_answer,
    question_of,
    text_of,
)
from secateur.io.spark.planner.splits import byte_ranges, whole_files
from secateur.io.spark.planner.usable import usable, without_limit
from secateur.io.storage.redaction import explained
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.listing import METADATA, METADATA_FIELD
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.nodes import And, Predicate

_log = logging.getLogger("secateur")

MOST_KEPT = 64  # replies that the values of a join can still narrow


@dataclass(frozen=True)
class Earlier:
    """The inputs of a reply, so that narrowing it uses the same files even if the table has changed since."""

    opened: OpenedTable
    predicate: Predicate
    settings: Settings


@dataclass(eq=False)
class Planner:
    """Answers the scans of one DataFrame. Java calls it as a Function; each scan has its own thread."""

    table: ParquetDirectory
    schema: pa.Schema  # of the DataFrame
    partitions: tuple[pa.Field, ...]
    uses_index: Callable[[], bool]
    _earlier: OrderedDict[int, Earlier] = field(default_factory=OrderedDict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    class Java:
        implements = ("java.util.function.Function",)

    def apply(self, data: bytes) -> bytes:
        """Answer an encoded request; errors become replies too."""
        try:
            question = question_of(data)
            return self._first(question) if not question.earlier else self._narrowed(question)
        except Exception as error:
            return no_answer(f"{self.table.location} cannot be read: {explained(error)}", FAILED)

    def _first(self, question: ScanRequest) -> bytes:
        # Catalyst's casts are explicit, and with ansi=True a block where a row may overflow is kept. So this covers
        # the mode of every expression, which can differ from the session's.
        settings = Settings(
            use_index=self.uses_index(), session_time_zone=question.zone, case_sensitive=True, ansi=True
        )
        try:
            asked = scan_question(question.asked)
            try:
                reply = self._planned(asked, settings)
            except StalePlan:  # a file of a cached listing (`freshness`) is gone
                self.table.expire()
                reply = self._planned(asked, settings)
        except Exception as error:
            reason = f"{type(error).__name__}: {explained(error)}"
            _log.warning("%s: every row group is read: %s", self.table.location, reason)
            reply = self._everything(question.zone, reason)
        self._require_partitions(reply)
        return reply.to_bytes(self.table)

    def _planned(self, asked: ScanQuestion, settings: Settings) -> ScanReply:
        question = usable(asked, self._binding_schema(), settings)
        scan = plan_scan(self.table, question.predicate, question.predicate, question.settings)
        if not scan.opened.schema.equals(self.schema):
            raise StalePlan("the table's columns have changed since the DataFrame was made: make it again")
        if self.table.freshness:
            self.table.require_listed(scan.opened.listing, scan.file_ordinals)
        number = next(self._numbers)
        with self._lock:
            self._earlier[number] = Earlier(scan.opened, question.predicate, question.settings)
            while len(self._earlier) > MOST_KEPT:
                self._earlier.popitem(last=False)
        rest = rest_of(scan, question.aggregates, question.groups)
        return _answer(number, replace(rest, columns=encoded_statistics(scan, asked.columns)))

    def _binding_schema(self) -> pa.Schema:
        """Return the schema with Spark's hidden `_metadata`, unless the table has a column of that name."""
        return self.schema if METADATA in self.schema.names else self.schema.append(METADATA_FIELD)

    def _narrowed(self, question: ScanRequest) -> bytes:
        """Narrow an earlier reply; UNKNOWN if that is impossible, and then the earlier one stays in force."""
        earlier = self._earlier.get(question.earlier)
        if earlier is None:
            return no_answer("", UNKNOWN)
        try:
            settings = without_limit(earlier.settings)
            values = usable(scan_question(question.asked), self._binding_schema(), settings)
            predicate = And((earlier.predicate, values.predicate))
            scan = plan_scan(self.table, predicate, predicate, settings, earlier.opened)
            return _answer(question.earlier, Rest(scan)).to_bytes(self.table)
        except Exception as error:
            _log.warning("%s: the values of a join prune nothing: %s", self.table.location, explained(error))
            return no_answer("", UNKNOWN)

    def _everything(self, zone_name: str, reason: str) -> ScanReply:
        """Return a reply with every live file as a whole."""
        listing = self.table.fresh_listing(known_zone(zone_name))
        size = int(listing.size.sum())
        figures = struct.pack(">5q", -1, -1, size, size, -1) + text_of("")
        text = f"all row groups of {len(listing.size):,} files ({reason})"
        return ScanReply(text, next(self._numbers), size, -1, figures, whole_files(listing.size), listing)

    def _require_partitions(self, answer: ScanReply) -> None:
        """Raise StalePlan if the partition columns or their types differ from those of the DataFrame."""
        if len(answer.listing.size) and answer.listing.partitions.fields != self.partitions:
            raise StalePlan("its partition columns have changed since the DataFrame was made: make it again")


@dataclass(frozen=True)
class Planned:
    """Answers the scans of a DataFrame over one plan: always with all its row groups."""

    plan: PlannedScan

    class Java:
        implements = ("java.util.function.Function",)

    def apply(self, data: bytes) -> bytes:
        """Answer an encoded request. The query fails if a file of the plan is gone or replaced."""
        table = self.plan.opened.table
        assert isinstance(table, ParquetDirectory), "called for directories only"
        try:
            if question_of(data).earlier:
                return no_answer("", UNKNOWN)
            table.require_listed(self.plan.opened.listing, self.plan.file_ordinals)
            return _answer(1, Rest(self.plan)).to_bytes(table)
        except Exception as error:
            return no_answer(explained(error), FAILED)


def _answer(number: int, rest: Rest) -> ScanReply:
    scan = rest.scan
    blocks, report = scan.survivors.blocks, scan.report
    before = report.stages[0].before  # blocks is None if the row groups of some file are not counted
    of_all = f" row groups of {before.files:,} files" if before.blocks is None else f" of {before.blocks:,} row groups"
    degraded = degraded_text(report)
    text = f"{len(blocks):,}{of_all}{'' if report.index != 'none' else ', without an index'}{rest.note}{degraded}"
    size, rows = int(blocks.byte_count.sum()), int(blocks.row_count.sum())
    ranges = byte_ranges(scan)
    return ScanReply(text, number, size, rows, figures_of(scan), ranges, scan.opened.listing, rest.known, rest.columns)
