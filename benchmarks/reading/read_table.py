"""The table of the read benchmarks: orders with messages in time order, in files of ten small row groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.logs.logs import UNIT, log_lines
from benchmarks.setting import Setting, index_code
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

ROWS, FILES, ROW_GROUP = 5_000_000, 200, 2_500
RARE = 20_000  # rows per row of a rare status
USERS = 2_000_000
FILTERED = ("user_id", "name")  # columns with bloom filters, in the files and in the index


@dataclass(frozen=True)
class ReadTable:
    """The table's directory, and values to look for."""

    directory: Path
    rows: int
    row_group: int

    @property
    def files(self) -> str:
        """The glob of the data files."""
        return str(self.directory / "data" / "*.parquet")

    def open(self) -> Table:
        """The table with its index, which is built where it is missing."""
        index = self.directory / f"index-{index_code()}"
        table = sec.open_table(str(self.directory / "data"), index_location=str(index))
        if not index.exists():
            filters = filter_options(bloom=FILTERED, postings=["status"])
            index_here(table, BuildOptions(sort_key=("ts",), filters=filters, gaps=("price",)))
        return table


def read_table(setting: Setting, row_group: int = ROW_GROUP, files: int = FILES, page: int | None = None) -> ReadTable:
    """The table with row groups of so many rows, written where it is missing.

    With `page`, pages have as many rows, and only the status a dictionary.
    """
    rows = setting.scaled(ROWS, least=10 * row_group)
    name = f"reads-{rows}-{row_group}-{files}" + (f"-{page}" if page else "")
    directory = setting.prepared(name, partial(_write, rows=rows, row_group=row_group, files=files, page=page))
    return ReadTable(directory, rows, row_group)


def _write(directory: Path, rows: int, row_group: int, files: int, page: int | None) -> None:
    (directory / "data").mkdir()
    pages = {"max_rows_per_page": page, "write_batch_size": page, "use_dictionary": ["status"]} if page else {}
    rows_per_file = -(-rows // files // UNIT) * UNIT
    for i, start in enumerate(range(0, rows, rows_per_file)):
        count = min(rows_per_file, rows - start)
        options = {name: {"ndv": row_group, "fpp": 0.01} for name in FILTERED}
        pq.write_table(
            _orders(start, count),
            directory / "data" / f"part-{i:04d}.parquet",
            row_group_size=row_group,
            compression="zstd",
            write_page_index=True,
            bloom_filter_options=options,
            **pages,
        )


def _orders(start: int, count: int) -> pa.Table:
    """Some rows of the table: the same for the same numbers."""
    rng = np.random.default_rng(start)
    number = np.arange(start, start + count)
    user = rng.integers(0, USERS, count)
    status = rng.choice(["new", "paid", "sent", "done"], count)
    status[number % RARE == RARE // 3] = "lost"
    return pa.table(
        {
            "order_id": number,
            "ts": pa.array(1_700_000_000_000_000 + number * 1_000_000, pa.timestamp("us", "UTC")),
            "user_id": user,
            "name": pc.binary_join_element_wise("user", pa.array(user).cast(pa.string()), "-"),
            "status": pa.array(status.tolist()),
            "price": rng.exponential(100, count).round(4),
            "quantity": rng.integers(1, 100, count).astype(np.int32),
            "discount": pa.array(rng.random(count), mask=rng.random(count) < 0.5),
            "message": log_lines(start, start + count)["message"].combine_chunks(),
        }
    )
