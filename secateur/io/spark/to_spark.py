"""Hand a plan to Spark; the read path depends on what survives, and can be forced with ``via``.

- ``local``: if only a few megabytes survive, the driver reads them and passes them on as a local relation: Spark
  filters it while planning, and no task runs. Works on Spark Connect.
- ``blocks``: tasks get (file, row groups, row ranges), read only the pages that can hold a match and stream the
  matching rows through ``mapInArrow``. Works on Spark Connect. Exact to the page. Each task is a row of a DataFrame, so
  it gets only its own blocks; in the closure of the function, all blocks would be sent to every task.
- ``native``: Spark's own vectorised reader over the surviving row groups of a directory
  (:mod:`secateur.io.spark.planner`), or if that is not available, as on Spark Connect, over the surviving files
  (:mod:`secateur.io.spark.file_reader`).
- ``iceberg``: Iceberg's own vectorised reader over the surviving row groups of an Iceberg table, with their deletes.
  Used whenever the session has Iceberg's Spark runtime.

Spark always applies the predicate itself, so the answer does not depend on the reader.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from secateur.errors import OldCalendar, StalePlan, UnsupportedPredicate, UnsupportedTable
from secateur.index.build import spark_calls
from secateur.index.build.spark_tasks import require_package
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.kept.verdicts import keeping_verdicts
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.read_path import (
    asks_hidden_metadata,
    asks_only_spark,
    asks_splits,
    choose_read_path,
    is_read_by_spark,
    needs_sparks_reader,
    only_spark_keeps,
)
from secateur.io.scan.reading.block_reader import BlockReader, block_reader
from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.scan.row_places import places_among
from secateur.io.scan.surviving_blocks import surviving_bytes
from secateur.io.spark.file_reader import by_files, has_filesystem, spark_schema, with_collations
from secateur.io.spark.join_keys import semi_joined
from secateur.io.spark.key_filter import with_key_filter
from secateur.io.spark.packing import pack
from secateur.io.spark.planner.relation import of_plan
from secateur.io.spark.task_verdicts import sent_to_driver
from secateur.io.spark.top_n import found_here, frame_of, limited
from secateur.io.spark.worker import freeze_gc
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.nodes import quoted_name
from secateur.pruning.rows.truth import possible_rows

LOCAL_MEMORY = 64 << 20  # of rows that the driver reads by default and passes on
__all__ = [
    "DataFrame",
    "SparkSession",
    "descriptors",
    "is_active_ansi",
    "is_ansi",
    "session_time_zone",
    "spark_schema",
    "to_spark",
]

READ_PATHS = ("auto", "local", "blocks", "native", "iceberg")


@dataclass(frozen=True)
class Descriptors:
    """The tasks of a scan, each an encoded :class:`BlockList`, and their reader."""

    reader: BlockReader
    tasks: tuple[bytes, ...]


def to_spark(scan: PlannedScan, spark: SparkSession, columns: Sequence[str] | None, via: str) -> DataFrame:
    """Return the rows of a plan as a DataFrame, and raise, as :meth:`secateur.scan.Scan.to_spark` says.

    The first rows of an order are searched for here if that needs few bytes; otherwise what the search has ruled out is
    left out, and Spark finds them in the rest.
    """
    if via not in READ_PATHS:
        raise ValueError(f"via is one of {', '.join(READ_PATHS)}, not {via!r}")
    _require_time_zone(scan, spark)
    _require_mode(scan, spark)
    fields = scan.fields(columns)
    wanted = [quoted_name(field.name) for field in fields]
    if scan.order_by is not None:
        fields += [scan.opened.schema.field(name) for name in scan.order_by.names if quoted_name(name) not in wanted]
    places = places_among(fields, scan.opened.readable_schema)
    read_path = choose_read_path(scan, fields).name if via == "auto" else via
    if places and via in ("native", "iceberg"):
        raise ValueError(f"via={via!r} does not read {', '.join(sorted(places))}: use 'local' or 'blocks'")
    if places and read_path == "native":
        read_path = "blocks"
    if needs_sparks_reader(scan, fields) and not (read_path == "native" and is_read_by_spark(scan)):
        _refuse_what_only_spark_keeps(scan, fields)
    if asks_hidden_metadata(scan) and not (read_path == "native" and is_read_by_spark(scan)):
        raise UnsupportedPredicate(
            f"{brief(scan.written)} asks for fields of _metadata that only Spark's own reader knows (via='native'), "
            "of a directory that it finds, without wildcards in names"
        )
    rows_or_scan = found_here(scan, spark, fields) if via == "auto" and scan.order_by is not None else scan
    if isinstance(rows_or_scan, PlannedScan):
        frame = (
            _by(read_path, rows_or_scan, spark, fields)
            if via != "auto"
            else _by_the_best(read_path, rows_or_scan, spark, fields, is_own=bool(places))
        )
    else:
        frame = rows_or_scan
    return limited(scan, semi_joined(scan, frame.where(scan.sql))).select(*wanted)


def _refuse_what_only_spark_keeps(scan: PlannedScan, fields: Sequence[pa.Field]) -> NoReturn:
    reads = "only Spark's own reader keeps it (via='native'), of a directory that it finds, without wildcards in names"
    if asks_only_spark(scan):
        raise UnsupportedPredicate(f"{brief(scan.written)} asks a collation or a VARIANT, and {reads}")
    names = ", ".join(field.name for field in fields if only_spark_keeps(field.type))
    raise UnsupportedTable(
        f"{names} has a collation or is VARIANT, and {reads}: leave it out of the columns, or use that read path"
    )


def _by(read_path: str, scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field]) -> DataFrame:
    """Read by one read path, for Spark to filter. Raises ValueError if ``native`` or ``iceberg`` is not available."""
    match read_path:
        case "local":
            return _local(scan, spark, fields, math.inf)
        case "native":
            return _native(scan, spark, fields)
        case "iceberg":
            staged = _read_by_iceberg(scan, spark)
            if staged is None:
                raise ValueError(
                    "via='iceberg' needs an Iceberg table, a row to read, and a session with the Iceberg Spark runtime "
                    "for its version of Spark that can load the table"
                )
            return staged
        case _:
            return _blocks(scan, spark, fields)


def _by_the_best(
    read_path: str, scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field], *, is_own: bool
) -> DataFrame:
    """Read by the chosen read path, or by another one if this session or the data turns out not to support it.

    If `is_own`, only readers of this package will do.
    """
    if read_path == "local":
        try:
            return _local(scan, spark, fields, LOCAL_MEMORY)
        except (TooMuch, OldCalendar):
            read_path = "native" if is_read_by_spark(scan) and not is_own else "blocks"
    staged = _read_by_iceberg(scan, spark) if read_path == "blocks" and not is_own else None
    if staged is not None:
        return staged
    needs_native = needs_sparks_reader(scan, fields) or asks_hidden_metadata(scan)
    if read_path == "native" and not (needs_native or has_filesystem(spark, scan.opened.table.location)):
        read_path = "blocks"
    return _by(read_path, scan, spark, fields)


class TooMuch(Exception):
    """Raised if more must be read than the driver may hold."""


def _local(scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field], most: float) -> DataFrame:
    """Read the rows here into a local relation, which Spark filters while planning. Raises TooMuch."""
    reader = _loose(block_reader(scan.opened, scan.delivery, fields, scan.residuals, scan.named, scan.expected_gains))
    schema, batches, size = spark_schema(pa.schema(reader.fields)), [], 0
    reader = replace(reader, without_match=scan.verdict_notes)
    files = reader.portions(scan.blocks_at(scan.order(), reader))
    with keeping_verdicts(scan.opened):
        for part in read_ahead(lambda portion: list(reader.read(*portion)), files, reader.at_once):
            batches += part
            size += sum(batch.nbytes for batch in part)
            if size > most:
                raise TooMuch
    return frame_of(batches, schema, spark)


def _loose(reader: BlockReader) -> BlockReader:
    """Return a reader of the rows on which the predicate may be TRUE, with all columns that Spark needs to apply it."""
    return replace(reader, fields=reader.needed, rows=possible_rows)


def _read_by_iceberg(scan: PlannedScan, spark: SparkSession) -> DataFrame | None:
    """Read the surviving row groups of an Iceberg table by Iceberg's own reader; None if that is not available."""
    if scan.opened.table.id is None:
        return None
    from secateur.io.spark.iceberg.reader import find_table, read_tasks
    from secateur.io.spark.iceberg.scan_tasks import texts_of  # PyIceberg may be missing
    from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

    table = scan.opened.table
    if not isinstance(table, IcebergSnapshot) or not len(scan.file_ordinals):
        return None
    name = find_table(spark, table.identifier, table.location, str(table.metadata.table_uuid))
    return None if name is None else read_tasks(spark, name, texts_of(scan, table), table.schema_of.schema_id)


def _require_time_zone(scan: PlannedScan, spark: SparkSession) -> None:
    """Raise StalePlan if the table has times, or if the predicate has another meaning in this session's time zone."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    if zone == scan.session_time_zone:
        return
    has_times = any(pa.types.is_timestamp(field.type) for field in scan.opened.schema)
    if has_times or not scan.means_the_same(ansi=scan.ansi, session_time_zone=zone):
        raise StalePlan(
            f"the plan was made for the session time zone {scan.session_time_zone}, this session has {zone}: "
            f"pass session_time_zone={zone!r} to prune()"
        )


def _require_mode(scan: PlannedScan, spark: SparkSession) -> None:
    """Raise StalePlan if the predicate has another meaning in this session, which will apply it again."""
    if scan.ansi != is_ansi(spark) and not scan.means_the_same(
        ansi=not scan.ansi, session_time_zone=scan.session_time_zone
    ):
        raise StalePlan(
            f"the plan was made for ansi={scan.ansi}, and {brief(scan.written)} means something else in this session: "
            f"pass ansi={not scan.ansi} to prune()"
        )


def is_ansi(spark: SparkSession) -> bool:
    """Return whether a session is in ANSI mode."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


def _native(scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field]) -> DataFrame:
    """Read the survivors by Spark's own reader: exactly the row groups on Spark Classic, elsewhere the files.

    Raises StalePlan if a file is gone or replaced, because Spark reads whatever is there; ValueError if Spark would
    read other files, or rows that an Iceberg table has deleted.
    """
    is_kept_by_spark = needs_sparks_reader(scan, fields)
    files = np.arange(len(scan.paths)) if asks_splits(scan) else scan.file_ordinals
    if not len(files) and not is_kept_by_spark:
        return spark.createDataFrame([], spark_schema(scan.opened.binding_schema))
    if isinstance(scan.opened.table, ParquetDirectory):
        scan.opened.table.require_listed(scan.opened.listing, files)
    exact = None if is_kept_by_spark else of_plan(scan, spark)
    if exact is not None:
        return exact
    if not is_read_by_spark(scan):
        raise ValueError(
            "via='native' needs a directory of Parquet files that Spark finds by its location, without wildcards in it"
        )
    return (with_collations if is_kept_by_spark else by_files)(scan.opened, files, spark)


def _blocks(scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field]) -> DataFrame:
    work = descriptors(scan, fields)
    reader = _loose(work.reader)
    schema = spark_schema(pa.schema(reader.fields))
    if not work.tasks:
        return spark.createDataFrame([], schema)
    require_package(spark)
    reader = replace(with_key_filter(reader, scan), without_match=sent_to_driver(scan.verdict_notes, spark))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_gc()
        for batch in batches:
            for task in batch.column("task").to_pylist():
                yield from reader.read_all(BlockList.from_bytes(task))

    return one_partition_each(work.tasks, spark).mapInArrow(read, schema)


def one_partition_each(tasks: Sequence[bytes], spark: SparkSession) -> DataFrame:
    """Return a DataFrame whose partition i holds the one row (i, tasks[i])."""
    n = len(tasks)
    rows = pa.table({"number": pa.array(np.arange(n), pa.int32()), "task": pa.array(tasks, pa.binary())})
    frame = spark_calls.frame_of(spark, rows, spark_schema(rows.schema))
    if n == 1:
        return frame
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(n, "number")
    numbers = spark.range(0, n, 1, n)  # Spark 4.0: partition i of a range holds i, and a broadcast join keeps it there
    return numbers.join(broadcast(frame), numbers.id == frame.number).select("number", "task")


def descriptors(scan: PlannedScan, fields: Sequence[pa.Field]) -> Descriptors:
    """Return the scan as tasks of about equal bytes; their batches have the fields and the columns named by
    `scan.sql`.
    """
    opened = scan.opened
    reader = block_reader(opened, scan.delivery, fields, scan.residuals, scan.named, scan.expected_gains)
    order = scan.order()
    blocks = scan.blocks_at(order, reader, is_sent=True)
    cuts = pack(blocks.first, surviving_bytes(scan)[order]).tolist()
    return Descriptors(reader, tuple(blocks.between(start, stop).to_bytes() for start, stop in pairwise(cuts)))


def session_time_zone() -> str:
    """Return the time zone of the active Spark session, or UTC if there is none."""
    with contextlib.suppress(Exception):  # no session, a stopped one, or one whose client is gone
        session = SparkSession.getActiveSession()
        if session is not None:
            return str(session.conf.get("spark.sql.session.timeZone"))
    return "UTC"


def is_active_ansi() -> bool:
    """Return whether the active Spark session is in ANSI mode; True, Spark 4's default, if there is none."""
    with contextlib.suppress(Exception):  # as above
        session = SparkSession.getActiveSession()
        if session is not None:
            return is_ansi(session)
    return True
