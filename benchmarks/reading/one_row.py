"""One row by a key in no order, out of a row group of a million rows and 20 columns: on disk, and on a slow S3.

Postings say which row holds the key, and the index where the pages lie that hold the row. The least that can be read
is those pages: their size is the writer's choice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.scale_tables import changing
from benchmarks.reading.page_reads import PageTable, page_table
from benchmarks.reading.s3_lookup import DISK_BYTES, LATENCY, measured
from benchmarks.results import Ratio, Result, against, timed
from benchmarks.setting import Setting, index_code
from benchmarks.timing import race
from secateur.demo.s3_process import BUCKET, remote_server
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.parquet.chunk_locations import selected_bytes
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.storage.disk_cache import DiskCache
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

KEY = "number_0"
SECONDS, S3_SECONDS = 0.006, 0.080  # goals
MOST_ROUND_TRIPS, MOST_BYTES = 3, 60_000  # goals on S3
SMALL_PAGE, SMALL_BATCH = 2_000, 200  # bytes of a page; rows after which a writer looks at them
OPTIONS = BuildOptions(filters=filter_options(postings={KEY: "rows"}))


def one_row(setting: Setting) -> Result:
    """Another key in every call, and all columns of its row; in pages as pyarrow writes them, and in small ones."""
    data = page_table(setting)
    sizes: dict[str, int | float] = {"rows": data.rows}
    ratios: list[Ratio] = []
    for pages, table in {"pages of 1 MB": data, "pages of 2 kB": _in_small_pages(setting, data)}.items():
        of_pages = int(np.median([selected_bytes(table.locations, _one(table.row(call))) for call in range(9)]))
        keys = pq.read_table(table.path, columns=[KEY])[KEY].to_numpy()
        sizes[f"bytes of a row in {pages}"] = of_pages
        ratios += _on_disk(table, keys, pages, setting)
        ratios += _on_s3(table, keys, of_pages, pages, setting)
    return Result(sizes, tuple(ratios))


def _in_small_pages(setting: Setting, data: PageTable) -> PageTable:
    """The same rows without dictionaries, which are read whole for one value."""

    def write(path: Path) -> None:
        rows = pq.read_table(data.path)
        small = {"data_page_size": SMALL_PAGE, "write_batch_size": SMALL_BATCH, "use_dictionary": False}
        pq.write_table(rows, path / "data.parquet", row_group_size=data.rows, write_page_index=True, **small)

    return PageTable(setting.prepared(f"one-row-{data.rows}", write) / "data.parquet", data.rows)


def _on_disk(data: PageTable, keys: np.ndarray, pages: str, setting: Setting) -> list[Ratio]:
    index = data.path.parent.parent / f"{data.path.parent.name}-{index_code()}"
    table = sec.open_table(str(data.path.parent), index_location=str(index))
    if not index.exists():
        index_here(table, OPTIONS)
    find = _finder(table)
    for call in range(3):
        if find(int(keys[data.row(call)])) != 1:
            raise AssertionError("a key is in one row")
    ours, floor = race(
        [
            changing(lambda call: find(int(keys[data.row(call)]))),
            changing(lambda call: data.by_pages(_one(data.row(call)))),
        ],
        setting.repetitions,
    )
    name = f"one row of 20 columns by a key, {pages}"
    return [against(name, ours, SECONDS), timed(name, ours, "the pages of a known row alone", floor)]


def _on_s3(data: PageTable, keys: np.ndarray, of_pages: int, pages: str, setting: Setting) -> list[Ratio]:
    """The same from S3: the snapshot of the index in memory, and of the rest what earlier keys have left."""
    numbers = count()

    def others() -> Iterator[int]:
        return (int(keys[data.row(number)]) for number in numbers)

    with remote_server() as server, tempfile.TemporaryDirectory() as folder:
        server.put_files("one-row", data.path.parent)
        location = f"s3://{BUCKET}/one-row"
        index_here(sec.open_table(location), OPTIONS)
        table = sec.open_table(location, disk_cache=DiskCache(Path(folder), DISK_BYTES))
        measured(server, _finder(table), others(), 1)
        traffic, timing = measured(server, _finder(table), others(), 2 * setting.repetitions)
    return [
        against(f"the same on S3, {LATENCY * 1000:.0f} ms a request, {pages}", timing, S3_SECONDS),
        Ratio(
            f"round trips in sequence, {pages}", traffic.round_trips, "round trips", "goal", MOST_ROUND_TRIPS, goal=1.0
        ),
        Ratio(f"bytes on S3, {pages}", traffic.sent, "B", "goal", MOST_BYTES, goal=1.0),
        Ratio(f"bytes on S3, {pages}", traffic.sent, "B", "the pages that hold the row", of_pages),
    ]


def _finder(table: Table) -> Callable[[int], int]:
    def find(key: int) -> int:
        return sec.prune(table, f"{KEY} = {key}", strict=True).to_arrow().num_rows

    return find


def _one(row: int) -> RowSelection:
    return RowSelection(np.array([row]), np.array([row + 1]))
