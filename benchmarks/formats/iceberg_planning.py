"""prune() over an Iceberg table of 100,000 files against pyiceberg and, with Spark's runtime, Iceberg's Java planner.

All plan from the same manifests. secateur has an index beside them, which holds the same bounds, block by block.
Without one it has the bounds of the manifests, as the others do; but then it opens files that survive for their
footers, and these files do not exist.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import secateur as sec
from benchmarks.formats.iceberg import METADATA, iceberg_keeps, open_iceberg, write_iceberg
from benchmarks.planning.scale_tables import (
    CALLS,
    Windows,
    by_numpy,
    changing,
    in_iceberg,
    in_sql,
    ranges,
    require_equal,
)
from benchmarks.planning.synthetic import EPOCH, MINUTE, ROWS, SCATTERED, Bounds, Shape, bounds_of, publish
from benchmarks.planning.synthetic_table import BLOCK_BYTES, FILE_BLOCKS
from benchmarks.results import Kept, Ratio, Result, timed, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import once, race
from secateur.index.build.survey import segment_size
from secateur.index.identity import FileIdentity
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn, indexed_columns
from secateur.index.segments.segment_file import SegmentData
from secateur.index.segments.segment_table import summarised
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.tables.field_ids import called_by_id
from secateur.io.tables.iceberg.table import IcebergTable
from secateur.maintain.entries import chosen_files
from secateur.maintain.publish import keep_manifests
from secateur.scan import Scan
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

FILES = 100_000
GOAL = 1 / 100  # of the time of plan_files()
JAR = "SECATEUR_ICEBERG_JAR"  # an environment variable: Iceberg's Spark runtime, for Iceberg's Java planner

Planner = Callable[[Windows], int]  # how many files are left


def plan_iceberg(setting: Setting) -> Result:
    """Plans of three unclustered ranges, and of one minute of a clustered column; warm, and the first of a process."""
    n = setting.scaled(FILES, least=400) // FILE_BLOCKS * FILE_BLOCKS
    bounds = bounds_of(Shape(n), ("ts", *SCATTERED))
    name = f"iceberg-table-{n}"
    written = partial(write_iceberg, bounds=bounds, location=setting.directory / name)
    metadata = setting.prepared(name, written) / METADATA
    index = setting.prepared_index(f"iceberg-index-{n}", partial(_write_index, metadata=metadata, bounds=bounds))
    contest = Contest(metadata, index, bounds, setting)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    notes: list[str] = []
    first, table = once(contest.opened)
    in_pyiceberg, _ = once(lambda: iceberg_keeps(open_iceberg(metadata.parent), in_iceberg(ranges(0))))
    ratios.append(unpaired("open_table() and the first prune()", first, "pyiceberg: open, plan_files()", in_pyiceberg))
    with java_planner(metadata) as java:
        if java is None:
            notes.append(f"Iceberg's Java planner is left out: set {JAR} to its runtime for this version of Spark")
        for question, windows in (("three ranges", ranges), ("one minute", one_minute)):
            measured, left = contest.beside(question, windows, table, java)
            ratios, kept = [*ratios, *measured], [*kept, left]
    return Result({"files": n, "manifests": len(table.snapshot().manifests)}, tuple(ratios), tuple(kept), tuple(notes))


def one_minute(call: int) -> Windows:
    """A moment within the bounds of two files of the clustered column."""
    begin = EPOCH + call % CALLS * MINUTE
    return {"ts": (begin, begin + 1)}


@dataclass(frozen=True)
class Contest:
    """One table, with an index for secateur."""

    metadata: Path
    index: Path
    bounds: Mapping[str, Bounds]
    setting: Setting

    def opened(self) -> IcebergTable:
        """The table, after a first plan of three ranges."""
        table = _open(self.metadata, self.index)
        _prune(table, ranges(0))
        return table

    def beside(
        self, name: str, windows: Callable[[int], Windows], table: IcebergTable, java: Planner | None
    ) -> tuple[list[Ratio], Kept]:
        """Time warm plans in turn, with changing literals."""
        peer = open_iceberg(self.metadata.parent)
        expected = by_numpy(self.bounds, windows(0))
        survivors = _prune(table, windows(0)).survivors.blocks
        assert survivors is not None
        require_equal(np.sort(survivors.file), expected, name)
        kept = {"secateur": len(survivors), "pyiceberg": iceberg_keeps(peer, in_iceberg(windows(0)))}
        contenders = [
            changing(lambda call: _prune(table, windows(call))),
            changing(lambda call: iceberg_keeps(peer, in_iceberg(windows(call)))),
        ]
        if java is not None:
            kept["iceberg (Java)"] = java(windows(0))
            contenders.append(changing(lambda call: java(windows(call))))
        ours, by_pyiceberg, *by_java = race(contenders, self.setting.repetitions)
        subject = f"prune(), {name}"
        ratios = [timed(subject, ours, "pyiceberg scan().plan_files(), table open", by_pyiceberg, GOAL)]
        ratios += [timed(subject, ours, "Iceberg's Java planFiles(), table open", timing, 1.0) for timing in by_java]
        return ratios, Kept("iceberg", name, "files", len(self.bounds["ts"][0]), len(expected), kept)


def _prune(table: IcebergTable, windows: Windows) -> Scan:
    return sec.prune(table, in_sql(windows), strict=True, session_time_zone="UTC")


def _open(metadata: Path, index: Path) -> IcebergTable:
    table = sec.open_table(str(metadata), index_location=str(index))
    assert isinstance(table, IcebergTable)
    return table


# ---- the table and its index -----------------------------------------------------------------------------------------


def _write_index(directory: Path, metadata: Path, bounds: Mapping[str, Bounds]) -> None:
    n = len(bounds["ts"][0])
    table = _open(metadata, directory)
    listing = table.snapshot().listing(dt.UTC)
    schema = called_by_id(listing.schema)
    columns = indexed_columns(schema)
    files = chosen_files(listing, np.ones(len(listing.size), bool))
    summaries = []
    size = segment_size(n)
    for number, start in enumerate(range(0, n, size)):
        blocks = slice(start, min(start + size, n))
        segment = _segment(bounds, columns, blocks, files[blocks])
        summaries.append(publish(table.store, f"segments/000000000000-{number:06d}.segment", segment, {}))
    segments = summarised(columns, [], summaries, {})
    made_of = keep_manifests(table.snapshot(), "0" * 12)
    table.store.create(snapshot_name(1), encode_snapshot(1, 0.0, segments, BuildOptions(), schema, made_of))


def _segment(
    bounds: Mapping[str, Bounds], columns: list[IndexedColumn], blocks: slice, files: list[FileIdentity]
) -> SegmentData:
    n = len(files)
    table = BlockTable(
        np.arange(n, dtype=np.int32),
        np.zeros(n, np.int32),
        np.full(n, ROWS, np.int64),
        np.full(n, BLOCK_BYTES, np.int64),
    )
    nothing = np.zeros(n, np.int64)
    zone_maps = [
        ZoneMap(Keys(Kind.WORD, (lower[blocks],)), Keys(Kind.WORD, (upper[blocks],)), nothing, nothing)
        for lower, upper in bounds.values()
    ]
    return SegmentData(files, table, columns, zone_maps, {}, {})


# ---- Java ------------------------------------------------------------------------------------------------------------


@contextmanager
def java_planner(metadata: Path) -> Iterator[Planner | None]:
    """Yield a count of the files that Iceberg's own planner leaves; None without its runtime."""
    jar = os.environ.get(JAR)
    if not jar:
        yield None
        return
    from secateur.session import local_session

    spark = local_session(**{"spark.jars": jar})
    jvm: Any = spark._jvm
    iceberg, io = jvm.org.apache.iceberg, jvm.org.apache.iceberg.hadoop.HadoopFileIO(spark._jsc.hadoopConfiguration())
    table = iceberg.BaseTable(iceberg.StaticTableOperations(str(metadata), io), "benchmark")
    expressions = iceberg.expressions.Expressions

    def count(windows: Windows) -> int:
        scan = table.newScan()
        for name, (low, high) in windows.items():
            scan = scan.filter(expressions.greaterThanOrEqual(name, low)).filter(
                expressions.lessThanOrEqual(name, high)
            )
        return int(iceberg.relocated.com.google.common.collect.Iterables.size(scan.planFiles()))

    try:
        yield count
    finally:
        spark.stop()
