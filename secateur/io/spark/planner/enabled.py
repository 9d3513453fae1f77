"""Tell Spark's optimizer which tables have an index, and which row groups of the listed files a query can match.

``EnableRule.java`` calls this module while a query is planned. An error here is a reply too: the query then runs
unpruned.
"""

from __future__ import annotations

import itertools
import logging
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from secateur.errors import AuditFailed, SecateurError, UnsupportedTable
from secateur.index.read.memory_cache import ByteCache
from secateur.index.read.open_index import Caches, current_snapshot, open_catalog
from secateur.index.segments.snapshot import Snapshot
from secateur.io.scan.opened_table import FooterBlocks, OpenedTable
from secateur.io.scan.planned_scan import PlannedScan, Settings
from secateur.io.scan.planning import plan_scan, plan_unreported
from secateur.io.spark.delta.logged_files import LOG, LoggedFiles, logged_files, open_version
from secateur.io.spark.delta.logged_files import chosen_files as chosen_by_delta
from secateur.io.spark.delta.logged_files import listed as logged_only
from secateur.io.spark.delta.logged_files import opened as opened_version
from secateur.io.spark.delta.logged_files import reply as delta_reply
from secateur.io.spark.hadoop_locations import as_opened_here
from secateur.io.spark.planner.background_audit import BackgroundAudit, PlanCheck, share_of
from secateur.io.spark.planner.catalyst import scan_question
from secateur.io.spark.planner.column_statistics import encoded_statistics
from secateur.io.spark.planner.directory_reply import directory_reply
from secateur.io.spark.planner.file_list import FileList, KnownFiles, file_list
from secateur.io.spark.planner.known_aggregates import Reading, Rest, rest_of
from secateur.io.spark.planner.matches import MatchedList, common_schema, match
from secateur.io.spark.planner.protocol import (
    FAILED,
    UNKNOWN,
    UNREGISTERED,
    ScanRequest,
    no_answer,
    question_of,
    text_of,
)
from secateur.io.spark.planner.remembered import Remembered
from secateur.io.spark.planner.usable import usable, without_limit
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.redaction import explained
from secateur.io.tables.delta.open import open_delta
from secateur.io.tables.delta.table import DeltaTable
from secateur.io.tables.directory.table import ParquetDirectory, open_directory
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.report import Faults
from secateur.values.kinds import kind_of

_log = logging.getLogger("secateur")
METADATA_FILE = ".metadata.json"
MOST_LISTS, MOST_MATCHES, MOST_TABLES, MOST_PLANS = 64, 16, 256, 100
Encoder = Callable[[Rest, int], bytes]  # of what is left to read, and the number of the reply


class IndexedTable(Protocol):
    """What is needed of a table to look its index up."""

    @property
    def store(self) -> FileStore: ...

    @property
    def cache(self) -> ByteCache: ...


@dataclass(frozen=True)
class Answered:
    """What a reply was made from, kept so that the values of a join can narrow it over the same files and index."""

    scan: PlannedScan
    predicate: Predicate
    settings: Settings
    columns: pa.Schema  # that values of a join may name
    encoded: Encoder  # of what is left to read, and the number of the reply


class RequestKind(IntEnum):
    """What Java asks; the same numbers are in ``Asker.java``."""

    LOOK = 0
    FILES = 1
    QUESTION = 2
    DATA_FILES = 3
    LOGGED_FILES = 4
    ESTIMATE = 5


@dataclass(eq=False)
class Enabled:
    """Answers the optimizer rule of one driver, for all its sessions. Each call comes in its own thread."""

    uses_index: Callable[[], bool]
    named: dict[str, ParquetDirectory | DeltaTable] = field(
        default_factory=dict
    )  # tables whose index lies elsewhere, by location
    _tables: Remembered = field(default_factory=lambda: Remembered(MOST_TABLES))
    _lists: Remembered = field(default_factory=lambda: Remembered(MOST_LISTS))
    _matches: Remembered = field(default_factory=lambda: Remembered(MOST_MATCHES))
    audits: BackgroundAudit = field(default_factory=BackgroundAudit)
    _asked: Remembered = field(default_factory=lambda: Remembered(MOST_PLANS))
    _narrowest: Remembered = field(default_factory=lambda: Remembered(MOST_PLANS))
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    class Java:
        implements = ("java.util.function.Function",)

    def apply(self, data: bytes) -> bytes:
        """Answer a request of Java's ``Asker``."""
        data = bytes(data)
        kind, size = struct.unpack_from(">bi", data)
        head, body = data[5 : 5 + size], data[5 + size :]
        if kind == RequestKind.LOOK:
            return self._look(head.decode())
        try:
            match kind:
                case RequestKind.QUESTION | RequestKind.ESTIMATE:
                    return self._answered(kind, head, question_of(body))
                case _:
                    self._lists.keep(head, _decoded(kind, body))
                    return b""
        except Exception as error:
            return no_answer(f"{type(error).__name__}: {explained(error)}", FAILED)

    def plan(self, number: int) -> PlannedScan | None:
        """Return the plan behind a reply, or None if it is no longer kept."""
        asked = self._asked.get(number)
        return asked.scan if isinstance(asked, Answered) else None

    def narrowed(self, number: int) -> PlannedScan | None:
        """Return what the values of a join left last of the plan behind a reply; None if none came."""
        scan = self._narrowest.get(number)
        return scan if isinstance(scan, PlannedScan) else None

    def _look(self, location: str) -> bytes:
        """Encode the names of a table's indexed columns; their number is -1 if there is no index."""
        snapshot: Snapshot | None = None
        if self.uses_index():
            with suppress(SecateurError, OSError, ValueError):
                table = self._any_table(location)
                snapshot = current_snapshot(table.store, table.cache)
        if snapshot is None:
            return struct.pack(">i", -1)
        names = [field.name for field in snapshot.schema if kind_of(field.type) is not None]
        return struct.pack(">i", len(names)) + b"".join(map(text_of, names))

    def _any_table(self, location: str) -> IndexedTable:
        """Return the table of a directory, of a metadata file, or of a log."""
        if location.endswith(METADATA_FILE):
            opened: IndexedTable = self._iceberg_table(location, None).snapshot()
            return opened
        if location.endswith(LOG):
            return self._delta_table(location.removesuffix(LOG), None)
        return self._table(location)

    def _table(self, location: str) -> ParquetDirectory:
        """Raises TableNotFound, UnsupportedTable."""
        location = as_opened_here(location)
        table = self.named.get(location) or self._tables.get(location)
        if table is None:
            table = open_directory(location)
            self._tables.keep(location, table)
        if not isinstance(table, ParquetDirectory):
            raise UnsupportedTable(f"{location} was named as a Delta table")
        return table

    def _delta_table(self, location: str, version: int | None) -> DeltaTable:
        """Return the handle of a Delta table, or of one of its versions. Raises TableNotFound, UnsupportedTable."""
        location = as_opened_here(location)
        key = (LOG, location, version)
        table = self._tables.get(key)
        if version is None:
            table = self.named.get(location) or table
        if isinstance(table, DeltaTable):
            return table
        snapshot = open_delta(location) if version is None else open_version(self._delta_table(location, None), version)
        self._tables.keep(key, snapshot)
        return snapshot

    def _answered(self, kind: int, digest: bytes, question: ScanRequest) -> bytes:
        if question.earlier:
            return self._narrowed(question)
        files = self._lists.get(digest)
        if files is None:
            return no_answer("", UNREGISTERED)
        self._lists.keep(digest, files)
        if not self.uses_index():
            return no_answer("no index is to be used", FAILED)
        if kind == RequestKind.ESTIMATE:
            return self._estimated(files, question)
        if isinstance(files, LoggedFiles):
            return self._of_delta(files, question)
        if not isinstance(files, FileList):
            return self._of_iceberg(files, question)
        opened, known = self._opened(digest, files)
        return self._planned(
            opened,
            opened.schema,
            question,
            partial(directory_reply, known, files.size),
            reading=lambda scan: Reading(scan, is_all=not len(known.others)),
        )

    def _of_delta(self, files: LoggedFiles, question: ScanRequest) -> bytes:
        newest = self._delta_table(files.location, None)
        is_newest = newest.snapshot().id == files.version
        table = newest if is_newest else self._delta_table(files.location, files.version)
        opened = opened_version(table, files, question.zone)
        columns = common_schema(files.columns, opened.schema)
        return self._planned(
            opened,
            columns,
            question,
            lambda rest, number: delta_reply(files, rest, number),
            reading=partial(logged_only, files),
            files=chosen_by_delta(files, opened.listing.paths),
        )

    def _of_iceberg(self, files: Any, question: ScanRequest) -> bytes:
        room = _iceberg()
        opened, columns = self._opened_iceberg(files, question.zone)
        if files.paths is not None:
            return self._planned(
                opened,
                columns,
                question,
                partial(room.reply, files),
                reading=partial(room.listed, files),
                files=room.chosen_files(files, opened),
            )
        return self._planned(
            opened, columns, question, room.tasks_reply, later=room.ranges_reply, reading=room.in_ranges
        )

    def _estimated(self, files: Any, question: ScanRequest) -> bytes:
        """Encode how many rows of an Iceberg scan are in row groups that can match, and what is known of columns."""
        opened, columns = self._opened_iceberg(files, question.zone)
        settings = Settings(session_time_zone=question.zone, case_sensitive=True)
        asked = scan_question(question.asked)
        answerable = usable(asked, columns, settings)
        scan = plan_unreported(opened.table, answerable.predicate, answerable.predicate, settings, opened)
        known = encoded_statistics(scan, _among(asked.columns, columns))
        return text_of("") + struct.pack(">qq", 0, int(scan.survivors.blocks.row_count.sum())) + known

    def _planned(
        self,
        opened: OpenedTable,
        columns: pa.Schema,
        question: ScanRequest,
        encoded: Encoder,
        later: Encoder | None = None,
        reading: Callable[[PlannedScan], Reading] = Reading,
        files: np.ndarray | None = None,
    ) -> bytes:
        """Plan a scan by the filters on some columns, and encode the reply; `later` encodes it when it is narrowed.

        `reading` says what the scan reads of a plan, if there are aggregates to answer. `files` marks the files that it
        reads, where those are chosen: the rows of a limit are counted in no others.
        """
        settings = Settings(session_time_zone=question.zone, case_sensitive=True)
        asked = scan_question(question.asked)
        answerable = usable(asked, columns, settings)
        predicate, settings = answerable.predicate, answerable.settings
        counted_in = None if settings.limit is None else files
        scan = plan_scan(opened.table, predicate, predicate, settings, opened, counted_in)
        number = next(self._numbers)
        answered = Answered(scan, predicate, settings, columns, later or encoded)
        self._asked.keep(number, answered)

        def keep(audited: PlannedScan) -> None:
            self._asked.keep(number, replace(answered, scan=_with_audit(scan, audited)))

        self._audit(question, scan, predicate, settings, keep)
        rest = Rest(scan)
        if answerable.aggregates or answerable.groups:
            read = reading(scan)
            rest = rest_of(read.scan, answerable.aggregates, answerable.groups, read.left_out, is_all=read.is_all)
        names = _among(asked.columns, columns)
        if names:
            of_files = scan if files is None else scan.part(np.flatnonzero(files[scan.survivors.blocks.file]))
            rest = replace(rest, columns=encoded_statistics(of_files, names))
        return encoded(rest, number)

    def _opened_iceberg(self, files: Any, zone_name: str) -> tuple[OpenedTable, pa.Schema]:
        """Open the snapshot of an Iceberg scan; return it with the columns that mean the same in both."""
        room = _iceberg()
        opened = room.opened(self._iceberg_table(files.metadata, files.snapshot_id), zone_name)
        return opened, room.common_columns(files, opened)

    def _iceberg_table(self, metadata: str, snapshot_id: int | None) -> Any:
        table = self._tables.get((metadata, snapshot_id))
        if table is None:
            table = _iceberg().open_metadata(metadata, snapshot_id)
            self._tables.keep((metadata, snapshot_id), table)
        return table

    def _opened(self, digest: bytes, files: FileList) -> tuple[OpenedTable, KnownFiles]:
        """Open the index over the files that it covers. Raises SecateurError if there is no index to use."""
        table = self._table(files.location)
        snapshot = current_snapshot(table.store, table.cache)
        if snapshot is None:
            raise SecateurError("the index is gone")
        matched = self._matches.get(digest)
        if not isinstance(matched, MatchedList) or matched.snapshot is not snapshot or matched.table is not table:
            matched = match(files, table, snapshot)
        self._matches.keep(digest, matched)
        known = matched.current()
        caches = Caches(table.store, table.cache, table.disk)
        footers = FooterBlocks(table, known.listing)
        catalog = open_catalog(known.listing, caches, snapshot, footers.open, Faults(), table.naming)
        return OpenedTable(table, known.listing, matched.schema, catalog, table.metadata_tables.manifests_read), known

    def _narrowed(self, question: ScanRequest) -> bytes:
        """Narrow an earlier reply; UNKNOWN if that reply is no longer kept."""
        asked = self._asked.get(question.earlier)
        if not isinstance(asked, Answered):
            return no_answer("", UNKNOWN)
        opened = asked.scan.opened
        settings = without_limit(asked.settings)
        values = usable(scan_question(question.asked), asked.columns, settings)
        predicate = And((asked.predicate, values.predicate))
        scan = plan_scan(opened.table, predicate, predicate, settings, opened)
        self._audit(question, scan, predicate, settings, lambda audited: None)
        self._narrowest.keep(question.earlier, scan)
        return asked.encoded(Rest(scan), question.earlier)

    def _audit(
        self,
        question: ScanRequest,
        scan: PlannedScan,
        predicate: Predicate,
        settings: Settings,
        done: Callable[[PlannedScan], None],
    ) -> None:
        """Audit the share of pruned blocks that the session asks for. Raises AuditFailed if one has failed."""
        failure = self.audits.failed.get(scan.opened.table.location)
        if failure is not None:
            raise AuditFailed(failure)
        share = share_of(question.audit)
        if share:
            self.audits.submit(PlanCheck(_of_all_rows(scan, predicate, settings), predicate, settings, share, done))


def _decoded(kind: int, data: bytes) -> object:
    """Decode the files of a scan."""
    if kind == RequestKind.FILES:
        return file_list(data)
    return logged_files(data) if kind == RequestKind.LOGGED_FILES else _iceberg().data_files(data)


def _iceberg() -> Any:
    """Import the module for Iceberg scans, which needs PyIceberg."""
    return import_module("secateur.io.spark.iceberg.listed_files")


def _of_all_rows(scan: PlannedScan, predicate: Predicate, settings: Settings) -> PlannedScan:
    """Return the plan without its limit: what a limit leaves out may well match."""
    if scan.limit is None:
        return scan
    return plan_scan(scan.opened.table, predicate, predicate, without_limit(settings), scan.opened)


def _with_audit(scan: PlannedScan, audited: PlannedScan) -> PlannedScan:
    """Return a plan with the report of its audit."""
    return replace(scan, report=replace(scan.report, audit=audited.report.audit))


def _among(names: Sequence[str], columns: pa.Schema) -> list[str]:
    return [name for name in names if name in columns.names]
