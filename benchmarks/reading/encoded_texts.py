"""Rows of a table half of whose columns are texts that dictionaries encode, beside pyarrow's whole read of its files.

Both know the footers, and use one thread. pyarrow's whole read tests no row, so its read that filters stands beside it.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race

ROWS, ROW_GROUP = 1_000_000, 250_000
STATES = ("open", "closed", "in progress", "shipped to the customer", "returned")
COUNTRIES, PAGES = 200, 5_000
QUESTIONS = {  # in SQL and for pyarrow
    "all rows": ("share < 1D", pc.field("share") < 1.0),
    "half of the rows": ("share < 0.5D", pc.field("share") < 0.5),
    "2 % of the rows": ("share < 0.02D", pc.field("share") < 0.02),
    "one of five states": ("state = 'returned'", pc.field("state") == "returned"),
    "a part of a text": ("page LIKE '%path 77%'", pc.match_like(pc.field("page"), "%path 77%")),
}
MOST = 1.1  # the goal


def read_encoded_texts(setting: Setting) -> Result:
    """CPU time of all rows, half of them, and a few in every page."""
    rows = setting.scaled(ROWS, least=ROW_GROUP // 5)
    directory = setting.prepared(f"encoded-texts-{rows}", partial(_write, rows=rows)) / "data"
    path = directory / "part-0.parquet"
    metadata = pq.read_metadata(path)
    table, ratios = sec.open_table(str(directory)), []
    for name, (predicate, expression) in QUESTIONS.items():
        plan = sec.prune(table, predicate, strict=True)
        whole = partial(_read, path, metadata)
        filtered = partial(_read, path, metadata, expression)
        if not plan.to_arrow().equals(filtered()):
            raise AssertionError(f"pyarrow finds other rows for {plan.predicate}")
        ours, of_whole, of_filtered = race(
            [plan.to_arrow, whole, filtered], setting.repetitions, clock=time.process_time
        )
        ratios += [
            timed(name, ours, "pyarrow, whole", of_whole, MOST),
            timed(name, ours, "pyarrow, filtered", of_filtered),
        ]
    return Result({"rows": rows, "columns": metadata.num_columns}, tuple(ratios))


def _read(path: Path, metadata: pq.FileMetaData, chosen: pc.Expression | None = None) -> pa.Table:
    with pq.ParquetFile(path, metadata=metadata) as file:
        table = file.read(use_threads=False)
    return table if chosen is None else table.filter(chosen)


def _write(directory: Path, rows: int) -> None:
    (directory / "data").mkdir()
    rng = np.random.default_rng(0)
    columns = {
        "share": pa.array(rng.random(rows)),
        "number": pa.array(rng.integers(0, 1 << 40, rows)),
        "state": pa.array(STATES).take(pa.array(rng.integers(0, len(STATES), rows))),
        "country": _numbered("country", rng.integers(0, COUNTRIES, rows)),
        "page": _numbered("https://example.org/a/longer/path", rng.integers(0, PAGES, rows)),
        "user": _numbered("user", rng.integers(0, 1 << 40, rows)),
    }
    table = pa.table(columns)
    pq.write_table(table, directory / "data" / "part-0.parquet", row_group_size=ROW_GROUP, compression="zstd")


def _numbered(name: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(name, pa.array(numbers).cast(pa.string()), " ")
