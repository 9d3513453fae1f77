"""Rows of surviving row groups, beside pyarrow's whole read of the same row groups and columns.

Swept: rows of a row group, how many row groups of a file survive, how many of their rows match, and the columns read;
on the local disk, and on S3 with 15 ms a request. Both sides know the footers, and read as many files at once. The plan
is made before. All return a table in memory. The whole read tests no row and copies none, so the same read with
pyarrow's filter stands beside it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.reading.whole_reads import WholeRead
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.timing import Timing, race
from secateur.demo.s3_process import BUCKET, remote_server
from secateur.index.model import BuildOptions
from tests.support.stores.local_build import index_here

ROWS, ROWS_ON_S3, FILES = 2_000_000, 100_000, 4
LATENCY = 0.015  # seconds added to every request to S3
ROW_GROUPS = (1_000, 5_000, 50_000, 500_000)  # rows
MATCHES = {"a row of each": None, "1 % of the rows": 0.01, "half of the rows": 0.5}
SURVIVORS = {"1 row group of a file": 0, "every 4th": 4, "all": 1}
FEW = ("number_0", "text_0")
MOST = 1.1  # the goal
LEAST_ROWS = FILES * ROW_GROUPS[-1] // 100
WHOLE, FILTERED = "pyarrow, whole", "pyarrow, filtered"


@dataclass(frozen=True)
class Case:
    """One cell of the sweep."""

    row_group: int
    survivors: str
    matches: str
    columns: tuple[str, ...] | None

    def __str__(self) -> str:
        columns = "all columns" if self.columns is None else f"{len(self.columns)} columns"
        return f"{self.row_group:,} rows a row group, {self.survivors}, {self.matches}, {columns}"


@dataclass(frozen=True)
class Cell:
    """The times of one case."""

    case: Case
    ours: Timing
    whole: Timing
    filtered: Timing

    @property
    def ratio(self) -> float:
        """Beside the whole read."""
        return self.ours.seconds / self.whole.seconds


@dataclass(frozen=True)
class Lake:
    """Where the files of one size of row groups lie, and by which clock they are read."""

    directory: Path  # as local files
    location: str
    index: Path
    filesystem: pafs.FileSystem
    prefix: str
    clock: Callable[[], float]


def read_sweep(setting: Setting) -> Result:
    """The ratios of every cell on the local disk, worst first: processor time, so threads that wait count nothing."""
    return _result(setting, setting.scaled(ROWS, least=LEAST_ROWS), local_cells(setting))


def read_sweep_s3(setting: Setting) -> Result:
    """The same on S3, by the clock."""
    return _result(setting, setting.scaled(ROWS_ON_S3, least=LEAST_ROWS), s3_cells(setting))


def _result(setting: Setting, rows: int, cells: Iterator[Cell]) -> Result:
    worst_first = sorted(cells, key=lambda cell: -cell.ratio)
    ratios: list[Ratio] = []
    for cell in worst_first:
        ratios += (
            timed(str(cell.case), cell.ours, WHOLE, cell.whole, MOST),
            timed(str(cell.case), cell.ours, FILTERED, cell.filtered),
        )
    over = sum(cell.ratio > MOST for cell in worst_first)
    return Result({"rows": rows, "files": FILES, "cells": len(worst_first), "cells over the goal": over}, tuple(ratios))


def local_cells(setting: Setting) -> Iterator[Cell]:
    """Yield the cells on the local disk."""
    rows = setting.scaled(ROWS, least=LEAST_ROWS)
    for row_group in ROW_GROUPS:
        directory = _prepared(setting, rows, row_group)
        data = directory / "data"
        index = directory / f"index-{index_code()}"
        lake = Lake(data, str(data), index, pafs.LocalFileSystem(), str(data), time.process_time)
        yield from _cells(setting, lake, rows, row_group)


def s3_cells(setting: Setting) -> Iterator[Cell]:
    """Yield the cells on S3 of this machine, whose requests take 15 ms more; row groups are at most whole files."""
    rows = setting.scaled(ROWS_ON_S3, least=LEAST_ROWS)
    with remote_server() as server, tempfile.TemporaryDirectory() as folder:
        for row_group in (*(size for size in ROW_GROUPS if size < rows // FILES), rows // FILES):
            data = _prepared(setting, rows, row_group) / "data"
            prefix = f"sweep-{row_group}"
            server.put_files(prefix, data)
            location = f"s3://{BUCKET}/{prefix}"
            filesystem, path = pafs.FileSystem.from_uri(location)
            lake = Lake(data, location, Path(folder) / prefix, filesystem, path, time.perf_counter)
            with server.traffic(LATENCY):
                yield from _cells(setting, lake, rows, row_group)


def _prepared(setting: Setting, rows: int, row_group: int) -> Path:
    return setting.prepared(f"read-sweep-{rows}-{row_group}", partial(_write, rows=rows, row_group=row_group))


def _cells(setting: Setting, lake: Lake, rows: int, row_group: int) -> Iterator[Cell]:
    table = sec.open_table(lake.location, index_location=str(lake.index))
    if not lake.index.exists():
        index_here(table, BuildOptions())
    in_file = -(-rows // FILES // row_group)
    for (survivors, step), (matches, share) in product(SURVIVORS.items(), MATCHES.items()):
        slots = [slot for slot in range(FILES * in_file) if slot % in_file == 0 or (step and slot % step == 0)]
        least = 1 / row_group if share is None else share
        plan = sec.prune(table, f"slot IN ({', '.join(map(str, slots))}) AND hit < {least:.9f}", strict=True)
        for columns in (None, FEW):
            names = None if columns is None else [*columns, "hit"]
            whole = WholeRead.of(plan, lake.directory, names, lake.filesystem, lake.prefix)
            filtered = partial(whole.rows, partial(_matching, least))
            ours = partial(plan.to_arrow, None if columns is None else list(columns))
            if ours().num_rows != filtered().num_rows:
                raise AssertionError(f"pyarrow finds other rows for {plan.predicate}")
            times = race([ours, whole.rows, filtered], setting.repetitions, clock=lake.clock)
            yield Cell(Case(row_group, survivors, matches, columns), *times)


def _matching(least: float, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.less(rows["hit"], least))


def _write(directory: Path, rows: int, row_group: int) -> None:
    (directory / "data").mkdir()
    rows_per_file = rows // FILES
    in_file = -(-rows_per_file // row_group)
    for i in range(FILES):
        rng = np.random.default_rng(i)
        columns: dict[str, pa.Array] = {"slot": pa.array(i * in_file + np.arange(rows_per_file) // row_group)}
        columns["hit"] = pa.array(_hits(rng, rows_per_file, row_group))
        for j in range(3):
            columns[f"number_{j}"] = pa.array(rng.integers(0, 1 << 40, rows_per_file))
            columns[f"measure_{j}"] = pa.array(rng.normal(size=rows_per_file), mask=rng.random(rows_per_file) < 0.05)
            texts = pa.array(rng.integers(0, 1 << 30, rows_per_file)).cast(pa.string())
            columns[f"text_{j}"] = pc.binary_join_element_wise("a text that says", texts, " ")
        path = directory / "data" / f"part-{i}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=row_group, compression="zstd", write_page_index=True)


def _hits(rng: np.random.Generator, rows: int, row_group: int) -> np.ndarray:
    """Return the ranks of the rows of every row group, as shares: one is less than 1 / row_group in each."""
    ranks = [rng.permutation(min(row_group, rows - start)) for start in range(0, rows, row_group)]
    return np.concatenate([of_group / row_group for of_group in ranks])
