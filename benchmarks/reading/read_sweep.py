"""Rows of surviving row groups, beside pyarrow's whole read of the same row groups and columns.

Swept: rows of a row group, how many row groups of a file survive, how many of their rows match, and the columns read.
Both know the footers, and read as many files at once. The plan is made before.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.timing import race
from secateur.index.model import BuildOptions
from secateur.io.storage.byte_ranges import LOCAL_FILES_AT_ONCE
from secateur.scan import Scan
from tests.support.stores.local_build import index_here

ROWS, FILES = 2_000_000, 4
ROW_GROUPS = (1_000, 5_000, 50_000, 500_000)  # rows
MATCHES = {"a row of each": None, "1 % of the rows": 0.01, "half of the rows": 0.5}
SURVIVORS = {"1 row group of a file": 0, "every 4th": 4, "all": 1}
FEW = ("number_0", "text_0")
MOST = 1.1  # the goal


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


def read_sweep(setting: Setting) -> Result:
    """The ratio of every cell, worst first."""
    rows = setting.scaled(ROWS, least=FILES * ROW_GROUPS[-1] // 100)
    ratios: list[Ratio] = []
    for row_group in ROW_GROUPS:
        ratios += _cells(setting, rows, row_group)
    ratios.sort(key=lambda ratio: -(ratio.ratio or 0))
    over = sum((ratio.ratio or 0) > MOST for ratio in ratios)
    return Result({"rows": rows, "files": FILES, "cells": len(ratios), "cells over the goal": over}, tuple(ratios))


def _cells(setting: Setting, rows: int, row_group: int) -> Iterator[Ratio]:
    directory = setting.prepared(f"read-sweep-{rows}-{row_group}", partial(_write, rows=rows, row_group=row_group))
    index = directory / f"index-{index_code()}"
    table = sec.open_table(str(directory / "data"), index_location=str(index))
    if not index.exists():
        index_here(table, BuildOptions())
    in_file = -(-rows // FILES // row_group)
    for survivors, step in SURVIVORS.items():
        slots = [slot for slot in range(FILES * in_file) if slot % in_file == 0 or (step and slot % step == 0)]
        for matches, share in MATCHES.items():
            least = 1 / row_group if share is None else share
            plan = sec.prune(table, f"slot IN ({', '.join(map(str, slots))}) AND hit < {least:.9f}", strict=True)
            for columns in (None, FEW):
                case = Case(row_group, survivors, matches, columns)
                whole = _whole(directory / "data", plan, columns)
                ours, floor = race([partial(_ours, plan, columns), whole], setting.repetitions)
                yield timed(str(case), ours, "pyarrow, whole", floor, MOST)


def _ours(plan: Scan, columns: tuple[str, ...] | None) -> pa.Table:
    return plan.to_arrow(None if columns is None else list(columns))


def _whole(directory: Path, plan: Scan, columns: tuple[str, ...] | None) -> partial[list[pa.Table]]:
    """Return the read of the plan's row groups, with the columns that the condition on rows needs."""
    of_file: dict[str, list[int]] = {}
    for block in plan.blocks.to_pylist():
        of_file.setdefault(block["file"], []).append(block["row_group"])
    files = [(directory / path, row_groups) for path, row_groups in of_file.items()]
    metadata = [pq.read_metadata(path) for path, _ in files]
    names = None if columns is None else [*columns, "hit"]

    def read(i: int) -> pa.Table:
        path, row_groups = files[i]
        return pq.ParquetFile(path, metadata=metadata[i]).read_row_groups(row_groups, names, use_threads=False)

    def every() -> list[pa.Table]:
        with ThreadPoolExecutor(LOCAL_FILES_AT_ONCE) as threads:
            return list(threads.map(read, range(len(files))))

    return partial(every)


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
