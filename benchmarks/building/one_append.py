"""One file appended to a table of millions of blocks that is only a listing and an index."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.synthetic import EPOCH, KEY_SPACE, MINUTE, SCATTERED, Shape, open_synthetic, write_index
from benchmarks.planning.synthetic_table import FILE_BLOCKS, SyntheticTable
from benchmarks.results import Ratio, Result, against
from benchmarks.setting import Setting
from benchmarks.timing import Timing, once
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions

BLOCKS = 10_000_000
APPENDS = 5
ROWS = 1_000
SECONDS, BYTES = 1.0, 1_000_000


def one_append(setting: Setting) -> Result:
    """A file of a thousand rows appended, and the index refreshed, a few times over."""
    shape = Shape(setting.scaled(BLOCKS, least=400) // FILE_BLOCKS * FILE_BLOCKS, others=0, has_pages=False)
    directory = setting.prepared_index(f"one-append-{shape.blocks}", partial(write_index, shape=shape))
    copy = setting.directory / "one-append"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    table: SyntheticTable = open_synthetic(copy, shape)
    samples: list[float] = []
    written: list[int] = []
    for _ in range(APPENDS):
        table = appended(table, copy)
        before = _bytes_below(copy)
        timing, _ = once(partial(sec.refresh_index, table))
        samples += timing.samples
        written.append(_bytes_below(copy) - before)
    ratios = (
        against("refresh_index() after one append", Timing(tuple(samples)), SECONDS),
        Ratio("bytes written of the index", max(written), "B", "the bytes that are the goal", BYTES, goal=1.0),
    )
    shutil.rmtree(copy)
    return Result({"blocks": shape.blocks, "files": shape.blocks // FILE_BLOCKS}, ratios)


def _bytes_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.suffix != ".parquet" and path.is_file())


@dataclass(frozen=True)
class Appended(SyntheticTable):
    """The table with appended files, which do exist, below `root`."""

    root: str = ""

    def open_file(self, path: str) -> ParquetFile:
        """A file that was appended."""
        return open_parquet(pafs.LocalFileSystem(), f"{self.root}/{path}", path)

    open_for_index = open_file


def appended(table: SyntheticTable, directory: Path) -> Appended:
    """Write a file of two row groups that follows in time, and list it too."""
    number = len(table.files.size)
    path = f"part-{number:09}.parquet"
    rng = np.random.default_rng(number)
    begin = EPOCH + 4 * number * MINUTE
    columns = {
        "ts": pa.array(begin + np.arange(ROWS), pa.timestamp("us", "UTC")),
        "user_id": rng.integers(0, KEY_SPACE, ROWS),
        "amount": rng.random(ROWS),
        **{name: rng.integers(0, 1000, ROWS) for name in SCATTERED},
    }
    pq.write_table(pa.table(columns), directory / path, row_group_size=ROWS // 2)
    status = (directory / path).stat()
    files = table.files
    listing = Listing(
        pa.concat_arrays([files.paths, pa.array([path], files.paths.type)]),
        np.append(files.size, status.st_size),
        np.append(files.stamp, status.st_mtime_ns),
        np.append(files.witness, status.st_ctime_ns),
        Partitions((), ()),
    )
    _ = listing.id
    return Appended(table.location, table.store, listing, cache=table.cache, root=str(directory))
