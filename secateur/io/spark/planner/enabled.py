"""Tell Spark's optimizer which tables have an index, and which row groups of the listed files a query can match.

``EnableRule.java`` calls this module while a query is planned. An error here is a reply too: the query then runs
unpruned.
"""

from __future__ import annotations

import itertools
import logging
import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from secateur.errors import SecateurError
from secateur.forks import lock_for
from secateur.index.read.index_view import Caches, current_snapshot, open_catalog
from secateur.index.segments.snapshot import Snapshot
from secateur.io.scan.opened_table import FooterBlocks, OpenedTable
from secateur.io.scan.planned_scan import PlannedScan, Settings, plan_scan
from secateur.io.spark.planner.catalyst import filters_of
from secateur.io.spark.planner.file_list import ChangeTimes, FileList, KnownFiles, file_list
from secateur.io.spark.planner.planner import usable_filters
from secateur.io.spark.planner.protocol import (
    FAILED,
    UNKNOWN,
    UNREGISTERED,
    ScanRequest,
    no_answer,
    question_of,
    text_of,
)
from secateur.io.spark.planner.splits import byte_ranges
from secateur.io.storage.redaction import explained
from secateur.io.tables.directory.table import ParquetDirectory, open_directory
from secateur.io.tables.partitions import overlapping
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.report import Faults
from secateur.values import kind_of

_log = logging.getLogger("secateur")

LOOK, FILES, QUESTION, DATA_FILES = 0, 1, 2, 3  # kinds of requests; see Asker.java
METADATA_FILE = ".metadata.json"
MOST_LISTS, MOST_TABLES, MOST_PLANS = 64, 256, 100
_RANGE = np.dtype([("file", ">i4"), ("start", ">i8"), ("length", ">i8")])


@dataclass(frozen=True)
class Answered:
    """The inputs of a reply, kept so that the values of a join can narrow it over the same files and index."""

    scan: PlannedScan
    known: KnownFiles
    files: FileList
    predicate: Predicate
    settings: Settings


class Remembered(OrderedDict[object, object]):
    """The values used last, by key. Thread-safe."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._lock = most, lock_for(self, "_lock")

    def keep(self, key: object, value: object) -> None:
        with self._lock:
            self[key] = value
            self.move_to_end(key)
            while len(self) > self._most:
                self.popitem(last=False)


@dataclass(frozen=True)
class Enabled:
    """Answers the optimizer rule of one driver, for all its sessions. Each call comes in its own thread."""

    uses_index: Callable[[], bool]
    named: dict[str, ParquetDirectory] = field(default_factory=dict)  # tables whose index lies elsewhere, by location
    _tables: Remembered = field(default_factory=lambda: Remembered(MOST_TABLES))
    _lists: Remembered = field(default_factory=lambda: Remembered(MOST_LISTS))
    _asked: Remembered = field(default_factory=lambda: Remembered(MOST_PLANS))
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    class Java:
        implements = ("java.util.function.Function",)

    def apply(self, data: bytes) -> bytes:
        """Answer a request of Java's ``Asker``."""
        data = bytes(data)
        kind, size = struct.unpack_from(">bi", data)
        head, body = data[5 : 5 + size], data[5 + size :]
        if kind == LOOK:
            return self._look(head.decode())
        try:
            if kind in (FILES, DATA_FILES):
                self._lists.keep(head, file_list(body) if kind == FILES else _iceberg().data_files(body))
                return b""
            return self._answered(head, question_of(body))
        except Exception as error:
            return no_answer(f"{type(error).__name__}: {explained(error)}", FAILED)

    def plan(self, number: int) -> PlannedScan | None:
        """Return the plan behind a reply, or None if it is no longer kept."""
        asked = self._asked.get(number)
        return asked.scan if isinstance(asked, Answered) else asked if isinstance(asked, PlannedScan) else None

    def _look(self, location: str) -> bytes:
        """Encode the names of a table's indexed columns; their number is -1 if there is no index."""
        snapshot: Snapshot | None = None
        if self.uses_index():
            with suppress(SecateurError, OSError, ValueError):
                if location.endswith(METADATA_FILE):
                    table = self._iceberg_table(location, None).snapshot()
                    snapshot = current_snapshot(table.store, table.cache)
                else:
                    directory = self._table(location)
                    snapshot = current_snapshot(directory.store, directory.cache)
        if snapshot is None:
            return struct.pack(">i", -1)
        names = [each.name for each in snapshot.schema if kind_of(each.type) is not None]
        return struct.pack(">i", len(names)) + b"".join(map(text_of, names))

    def _table(self, location: str) -> ParquetDirectory:
        """Raises TableNotFound, UnsupportedTable."""
        location = as_opened_here(location)
        table = self.named.get(location) or self._tables.get(location)
        if table is None:
            table = open_directory(location)
            self._tables.keep(location, table)
        assert isinstance(table, ParquetDirectory)
        return table

    def _answered(self, digest: bytes, question: ScanRequest) -> bytes:
        if question.earlier:
            return self._narrowed(question)
        files = self._lists.get(digest)
        if files is None:
            return no_answer("", UNREGISTERED)
        self._lists.keep(digest, files)
        if not self.uses_index():
            return no_answer("no index is to be used", FAILED)
        if not isinstance(files, FileList):
            return self._of_iceberg(files, question)
        settings = Settings(session_time_zone=question.zone, case_sensitive=True)
        opened, known = self._opened(files)
        predicate, settings = usable_filters(filters_of(question.filters), opened.schema, settings)
        scan = plan_scan(opened.table, predicate, predicate, settings, opened)
        number = next(self._numbers)
        asked = Answered(scan, known, files, predicate, settings)
        self._asked.keep(number, asked)
        return _reply(asked, scan, number)

    def _of_iceberg(self, files: Any, question: ScanRequest) -> bytes:
        room = _iceberg()
        settings = Settings(session_time_zone=question.zone, case_sensitive=True)
        opened = room.opened(self._iceberg_table(files.metadata, files.snapshot_id), question.zone)
        columns = room.common_columns(files, opened)
        predicate, settings = usable_filters(filters_of(question.filters), columns, settings)
        scan = plan_scan(opened.table, predicate, predicate, settings, opened)
        number = next(self._numbers)
        self._asked.keep(number, scan)
        found: bytes = room.reply(files, scan, number)
        return found

    def _iceberg_table(self, metadata: str, snapshot_id: int | None) -> Any:
        table = self._tables.get((metadata, snapshot_id))
        if table is None:
            table = _iceberg().open_metadata(metadata, snapshot_id)
            self._tables.keep((metadata, snapshot_id), table)
        return table

    def _opened(self, files: FileList) -> tuple[OpenedTable, KnownFiles]:
        """Open the index over the files that it covers. Raises SecateurError if there is no index to use."""
        table = self._table(files.location)
        snapshot = current_snapshot(table.store, table.cache)
        if snapshot is None:
            raise SecateurError("the index is gone")
        known = files.known_to(snapshot, change_times(table))
        caches = Caches(table.store, table.cache, table.disk)
        footers = FooterBlocks(table, known.listing)
        catalog = open_catalog(known.listing, caches, snapshot, footers.open, Faults(), table.naming)
        schema = overlapping(common_schema(files.columns, snapshot.schema), known.listing.partitions.fields)
        return OpenedTable(table, known.listing, schema, catalog, table.metadata_tables.manifests_read), known

    def _narrowed(self, question: ScanRequest) -> bytes:
        """Narrow an earlier reply; UNKNOWN if that reply is no longer kept."""
        asked = self._asked.get(question.earlier)
        if not isinstance(asked, Answered):
            return no_answer("", UNKNOWN)
        opened = asked.scan.opened
        values, _ = usable_filters(filters_of(question.filters), opened.schema, asked.settings)
        predicate = And((asked.predicate, values))
        scan = plan_scan(opened.table, predicate, predicate, asked.settings, opened)
        return _reply(asked, scan, question.earlier)


def change_times(table: ParquetDirectory) -> ChangeTimes | None:
    """Return a function that reads the change times of a table's files; None unless they are on a local disk.

    Only on a local disk can a tool set a modification time back.
    """
    if not isinstance(table.filesystem, pafs.LocalFileSystem):
        return None

    def changed(paths: pa.Array) -> np.ndarray:
        return np.array([_changed(os.path.join(table.root, path)) for path in paths.to_pylist()], np.int64)

    return changed


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return -1


def as_opened_here(location: str) -> str:
    """Convert a location of Spark's to this process's form: Hadoop has its own schemes for S3."""
    scheme, separator, rest = location.rstrip("/").partition("://")
    return f"s3://{rest}" if separator and scheme in ("s3a", "s3n") else location.rstrip("/")


def _iceberg() -> Any:
    """Import the module for Iceberg scans, which needs PyIceberg."""
    return import_module("secateur.io.spark.iceberg.listed_files")


def common_schema(relation: StructType, indexed: pa.Schema) -> pa.Schema:
    """Return the columns that the relation and the index share: names in the same case, and equal types.

    A struct of the relation may have fewer fields. Columns whose names differ only in case are left out.
    """
    counts: dict[str, int] = {}
    for name in indexed.names:
        counts[name.lower()] = counts.get(name.lower(), 0) + 1
    types: Mapping[str, DataType] = {each.name: each.dataType for each in relation}
    return pa.schema(
        [
            each
            for each in indexed
            if each.name in types and counts[each.name.lower()] == 1 and _is_part(types[each.name], each.type)
        ]
    )


def _is_part(type_: DataType, indexed: pa.DataType) -> bool:
    """Return whether a Spark type equals the indexed type, or is a struct with some of its fields."""
    if isinstance(type_, StructType):
        known = {each.name: each.type for each in indexed} if pa.types.is_struct(indexed) else {}
        return all(each.name in known and _is_part(each.dataType, known[each.name]) for each in type_)
    try:
        found = from_arrow_type(indexed, prefer_timestamp_ntz=True)
    except Exception:  # an Arrow type that Spark does not have
        return False
    return _nullable(found) == _nullable(type_)


def _nullable(type_: DataType) -> DataType:
    """Return a type with every part nullable."""
    match type_:
        case ArrayType():
            return ArrayType(_nullable(type_.elementType))
        case MapType():
            return MapType(_nullable(type_.keyType), _nullable(type_.valueType))
        case StructType():
            found = StructType()
            for each in type_:
                found = found.add(each.name, _nullable(each.dataType))
            return found
        case _:
            return type_


def _reply(asked: Answered, scan: PlannedScan, number: int) -> bytes:
    """Encode row groups for Java's ``FileList.read``: files are ordinals in Spark's list."""
    blocks, report, known, size = scan.survivors.blocks, scan.report, asked.known, asked.files.size
    assert blocks is not None
    before = report.stages[0].before
    of_all = f"{before.files:,} files" if before.blocks is None else f"{before.blocks:,} row groups"
    others = f", and all of {len(known.others):,} files without an entry" if len(known.others) else ""
    degraded = "".join(f"; degraded: {reason}" for reason in report.degraded)
    ranges = byte_ranges(scan)
    file = np.concatenate([known.ordinals[ranges.file], known.others])
    start = np.concatenate([ranges.start, np.zeros(len(known.others), np.int64)])
    stop = np.concatenate([ranges.stop, size[known.others]])
    chosen, of_range = np.unique(file, return_inverse=True)
    told = np.zeros(len(file), _RANGE)
    told["file"], told["start"], told["length"] = of_range, start, stop - start
    byte_count = int(blocks.byte_count.sum()) + int(size[known.others].sum())
    row_count = -1 if len(known.others) else int(blocks.row_count.sum())
    return b"".join(
        [
            text_of(f"{len(blocks):,} of {of_all}{others}{degraded}"),
            struct.pack(">qqq", number, byte_count, row_count),
            struct.pack(">i", len(chosen)),
            chosen.astype(">i4").tobytes(),
            struct.pack(">i", len(told)),
            told.tobytes(),
        ]
    )
