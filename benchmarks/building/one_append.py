"""One file appended to a table of millions of blocks that is only a listing and an index."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.synthetic import EPOCH, KEY_SPACE, MINUTE, SCATTERED, Shape, open_synthetic, write_index
from benchmarks.planning.synthetic_table import BLOCK_BYTES, FILE_BLOCKS, MODIFIED, SyntheticTable
from benchmarks.results import Ratio, Result, against
from benchmarks.setting import Setting
from benchmarks.timing import Timing, once
from secateur.index.segments.base_file import is_base_due, write_base
from secateur.index.segments.file_table import FileTable
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_name, snapshot_numbers
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions

BLOCKS = 10_000_000
APPENDS = 5
ROWS = 1_000
SECONDS, BYTES = 1.0, 1_000_000
YEARS = 10**17  # nanoseconds


def one_append(setting: Setting) -> Result:
    """A file of a thousand rows appended, and the index refreshed, a few times over.

    Then again over files whose names, sizes and times are arbitrary, in no order.
    """
    shape = Shape(setting.scaled(BLOCKS, least=400) // FILE_BLOCKS * FILE_BLOCKS, others=0, has_pages=False)
    directory = setting.prepared_index(f"one-append-{shape.blocks}", partial(write_index, shape=shape))
    copy = setting.directory / "one-append"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    ratios = _refreshed(open_synthetic(copy, shape), copy, "")
    arbitrary = with_arbitrary_files(open_synthetic(copy, shape))
    ratios += _refreshed(arbitrary, copy, ", arbitrary files")
    shutil.rmtree(copy)
    return Result({"blocks": shape.blocks, "files": shape.blocks // FILE_BLOCKS}, tuple(ratios))


def _refreshed(table: SyntheticTable, directory: Path, which: str) -> list[Ratio]:
    """Append and refresh a few times; the first refresh reads the index, and later ones have it in memory."""
    samples: list[float] = []
    spent: list[float] = []
    written: list[int] = []
    for _ in range(APPENDS):
        table = appended(table, directory)
        before, cpu = _bytes_below(directory), time.process_time()
        timing, _ = once(partial(sec.refresh_index, table))
        spent.append(time.process_time() - cpu)
        samples += timing.samples
        written.append(_bytes_below(directory) - before)
    return [
        against(f"refresh_index() after one append{which}", Timing(tuple(samples)), SECONDS),
        Ratio(f"CPU of the first refresh{which}", spent[0], "s", "the time that is the goal", SECONDS, goal=1.0),
        Ratio(f"bytes written of the index{which}", max(written), "B", "the bytes that are the goal", BYTES, goal=1.0),
    ]


def with_arbitrary_files(table: SyntheticTable) -> SyntheticTable:
    """The table with files of other names, sizes and times, and its index of these; both are as if new."""
    store, rng = table.store, np.random.default_rng(0)
    number = snapshot_numbers(store)[-1]
    snapshot = open_snapshot(store, number)
    segments = snapshot.as_segments()
    before = segments.files.table
    n = len(before.size)
    drawn = rng.bytes(16 * n).hex()
    names = pa.array(sorted(f"part-{drawn[at : at + 32]}.parquet" for at in range(0, 32 * n, 32)), pa.large_string())
    stamp = MODIFIED + rng.integers(0, YEARS, n)
    size, witness = FILE_BLOCKS * BLOCK_BYTES + rng.integers(0, BLOCK_BYTES, n), stamp + rng.integers(0, YEARS, n)
    order = rng.permutation(n)
    counts = before.block_count, before.row_count, before.byte_count
    files = FileTable(
        names.take(pa.array(order)), size[order], stamp[order], witness[order], before.end, *counts, before.segment
    )
    segments = replace(segments, files=SegmentFiles.of(files, len(segments)))
    if is_base_due(segments.files):
        segments = replace(segments, files=write_base(store, "a" * 12, segments.files))
    store.create(
        snapshot_name(number + 1), encode_snapshot(number + 1, 0.0, segments, snapshot.options, snapshot.schema)
    )
    listing = Listing(names, size, stamp, witness, Partitions((), ()))
    _ = listing.id
    return replace(table, files=listing, cache=memory_cache())


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
    paths = pa.concat_arrays([files.paths, pa.array([path], files.paths.type)])
    order = pc.sort_indices(paths)
    known = (
        (files.size, status.st_size),
        (files.stamp, status.st_mtime_ns),
        (files.witness, status.st_ctime_ns),
    )
    size, stamp, witness = (np.append(values, last)[order.to_numpy()] for values, last in known)
    listing = Listing(paths.take(order), size, stamp, witness, Partitions((), ()))
    _ = listing.id
    return Appended(table.location, table.store, listing, cache=table.cache, root=str(directory))
