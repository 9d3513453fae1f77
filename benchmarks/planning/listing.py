"""Listing a table's directory, against a single selector of pyarrow."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path

import pyarrow.fs as pafs

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.io.tables.directory.table import open_directory

FILES = 100_000
FOLDERS = (1, 300)


def listing(setting: Setting) -> Result:
    """Empty files, all in one directory or spread over partitions; the file system's metadata is in memory."""
    n = setting.scaled(FILES)
    ratios: list[Ratio] = []
    notes: list[str] = []
    for folders in FOLDERS:
        directory = setting.prepared(f"listing-{n}-{folders}", partial(_write, n=n, folders=folders))
        measured, rate = _measured(directory, folders, setting)
        ratios += measured
        notes.append(f"{rate:,.0f} files per second, {_where(folders)}")
    return Result({"files": n}, tuple(ratios), notes=tuple(notes))


def _measured(directory: Path, folders: int, setting: Setting) -> tuple[list[Ratio], float]:
    """The ratios for one directory, and the files listed per second."""
    table, kept = open_directory(str(directory)), open_directory(str(directory), freshness=float("inf"))
    selector = pafs.FileSelector(str(directory), recursive=True)
    ours, reused, one = race(
        [
            lambda: table.listing(dt.UTC).id,
            lambda: kept.listing(dt.UTC).id,
            lambda: table.filesystem.get_file_info(selector),
        ],
        setting.repetitions,
    )
    where = _where(folders)
    ratios = [
        timed(f"listing(), {where}", ours, "one selector, nothing read of it", one),
        timed(f"listing() within freshness, {where}", reused, "one selector, nothing read of it", one),
    ]
    return ratios, len(table.listing(dt.UTC).size) / ours.seconds


def _where(folders: int) -> str:
    return f"{folders} directories" if folders > 1 else "one directory"


def _write(path: Path, n: int, folders: int) -> None:
    for folder in range(folders):
        inside = path / f"part={folder:04d}"
        inside.mkdir()
        for i in range(folder, n, folders):
            (inside / f"part-{i:06d}-3f2c1a9e-7b7e-4e3b-9d0b.snappy.parquet").touch()
