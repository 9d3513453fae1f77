"""prune() in new processes: how soon the first answer is there, and how much memory a big table takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.planning.cold import start_bare, start_cold
from benchmarks.planning.scale_tables import (
    BLOCKS,
    MANY_BLOCKS,
    Windows,
    by_numpy,
    duckdb_of,
    in_duckdb,
    in_sql,
    ranges,
    scale_table,
)
from benchmarks.planning.synthetic import SCATTERED
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import Timing

OTHERS = 44  # columns that no predicate names, beside six
SMALL_BLOCKS = 1_000  # of the table that warms a process
TOUCHED = SCATTERED[:2]
STARTS = 5  # at most, per contender
COLD_SECONDS = 0.15  # beside the start of a bare interpreter
BYTES_GOAL, MEMORY_GOAL = 1.2, 1.5  # times the bounds of the columns touched, as arrays
BOUNDS = "bounds of the two columns as arrays"


def _asked() -> Windows:
    return {name: ranges(0)[name] for name in TOUCHED}


def _array_bytes(blocks: int) -> float:
    return float(blocks * len(TOUCHED) * 2 * 8)


def plan_cold(setting: Setting) -> Result:
    """Two ranges over unclustered columns of a table of 50, in a process that has imported nothing."""
    table, asked = scale_table(setting, BLOCKS, OTHERS), _asked()
    n, files = len(table), len(table.table.files.size)
    file, expected = duckdb_of(setting, table.bounds()), by_numpy(table.bounds(*TOUCHED), asked)
    bare, libraries, warm, dropped, duckdb = [], [], [], [], []
    for _ in range(min(STARTS, setting.repetitions)):
        bare.append(start_bare())
        libraries.append(start_cold("libraries"))
        warm.append(start_cold("secateur", table.directory, files, in_sql(asked)))
        drop_cached(table.directory)
        dropped.append(start_cold("secateur", table.directory, files, in_sql(asked)))
        duckdb.append(start_cold("duckdb", file, in_duckdb(asked)))
    for run in (*warm, *dropped, *duckdb):
        if run["kept"] != len(expected):
            raise AssertionError(f"{run['kept']:,} blocks are kept instead of {len(expected):,}")
    total, total_dropped, total_duckdb = _both(warm), _both(dropped), _both(duckdb)
    nothing = Timing(tuple(bare))
    whole = Timing(tuple(a + b for a, b in zip(nothing.samples, total.samples, strict=True)))
    subject, answer = "import and first answer", "first answer"
    uncached = "index not in the system's file cache"
    ratios = [
        against(f"{subject}, beside a bare interpreter", total, COLD_SECONDS),
        against(f"{subject}, {uncached}", total_dropped, COLD_SECONDS),
        timed("start, import and first answer", whole, "a bare interpreter: python -c pass", nothing),
        timed("import secateur", _times(warm, "importing"), "import numpy, pyarrow", _times(libraries, "importing")),
        timed(subject, total, "DuckDB: import, its file opened, first answer", total_duckdb),
        timed(answer, _times(warm, "answering"), "DuckDB, its file opened", _times(duckdb, "answering")),
        timed(f"{answer}, {uncached}", _times(dropped, "answering"), "in that cache", _times(warm, "answering")),
        _of_bounds("bytes read of segments", warm[0]["chunk_bytes"], n, BYTES_GOAL),
        _of_bounds("bytes read in all by the first answer, snapshot and modules too", warm[0]["all_bytes"], n),
    ]
    kept = Kept("scale", "two ranges, cold", "blocks", n, len(expected), {"secateur": int(warm[0]["kept"])})
    return Result({"blocks": n, "columns": len(table.shape.schema), "files": files}, tuple(ratios), (kept,))


def _of_bounds(subject: str, value: float, blocks: int, goal: float | None = None) -> Ratio:
    return Ratio(subject, value, "B", BOUNDS, _array_bytes(blocks), goal=goal)


def _times(runs: Sequence[dict[str, float]], name: str) -> Timing:
    return Timing(tuple(run[name] for run in runs))


def _both(runs: Sequence[dict[str, float]]) -> Timing:
    return Timing(tuple(run["importing"] + run["answering"] for run in runs))


def drop_cached(directory: Path) -> None:
    """Drop a directory's files from the system's cache, unless a process uses them."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)  # the cache keeps what is not on disk yet
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def plan_memory(setting: Setting) -> Result:
    """What the first query on a big table adds to the resident memory of a process that has answered one before."""
    table, small = scale_table(setting, MANY_BLOCKS), scale_table(setting, SMALL_BLOCKS)
    n, files = len(table), len(table.table.files.size)
    warming = (small.directory, len(small.table.files.size))
    report = start_cold("memory", table.directory, files, in_sql(_asked()), *warming)
    expected = len(by_numpy(table.bounds(*TOUCHED), _asked()))
    if report["kept"] != expected:
        raise AssertionError(f"{report['kept']:,} blocks are kept instead of {expected:,}")
    ratios = (
        _of_bounds("growth of resident memory", report["grown"], n, MEMORY_GOAL),
        _of_bounds("bytes in the table's cache, by its own count", report["cached"], n),
    )
    return Result({"blocks": n, "files": files}, ratios)
