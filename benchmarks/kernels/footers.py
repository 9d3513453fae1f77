"""Reading Parquet footers, against pyarrow's own metadata."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.io.parquet.footer import chunk_bounds, read_footer

ROW_GROUPS = 200
ROWS_PER_GROUP = 20
REPEATS = 4  # of five column types


def footers(setting: Setting) -> Result:
    """A footer with bounds of every column chunk, warm in memory."""
    groups = setting.scaled(ROW_GROUPS)
    directory = setting.prepared(f"footers-{groups}", lambda path: _write(path, groups))
    data = pa.py_buffer((directory / "data.parquet").read_bytes())
    ours, arrow, opened = race(
        [lambda: _secateur(data), lambda: _pyarrow(data), lambda: pq.ParquetFile(pa.BufferReader(data))],
        setting.repetitions,
    )
    chunks = groups * REPEATS * 5
    microseconds = ours.seconds / chunks * 1e6
    return Result(
        {"row_groups": groups, "column_chunks": chunks, "file_bytes": data.size},
        (
            timed("read_footer() and chunk_bounds() of all columns", ours, "pyarrow, all statistics", arrow),
            timed("read_footer() and chunk_bounds() of all columns", ours, "pyarrow, metadata only", opened),
        ),
        notes=(f"{microseconds:.1f} us per column chunk",),
    )


def _secateur(data: pa.Buffer) -> list[object]:
    footer = read_footer(pa.BufferReader(data))
    return [chunk_bounds(footer, leaf) for leaf in footer.leaves]


def _pyarrow(data: pa.Buffer) -> list[object]:
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    summaries: list[object] = []
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        for c in range(group.num_columns):
            statistics = group.column(c).statistics
            summaries.append((statistics.min, statistics.max, statistics.null_count))
    return summaries


def _write(path: Path, groups: int) -> None:
    n = groups * ROWS_PER_GROUP
    rng = np.random.default_rng(6)
    columns: dict[str, pa.Array] = {}
    for i in range(REPEATS):
        numbers = rng.integers(0, 10**9, n)
        columns[f"long_{i}"] = pa.array(numbers)
        columns[f"double_{i}"] = pa.array(rng.random(n))
        columns[f"text_{i}"] = pa.array([f"text {number}" for number in numbers.tolist()])
        columns[f"moment_{i}"] = pa.array(numbers, pa.timestamp("us", "UTC"))
        columns[f"money_{i}"] = pa.array(
            [Decimal(number).scaleb(-2) for number in numbers.tolist()], pa.decimal128(15, 2)
        )
    pq.write_table(pa.table(columns), path / "data.parquet", row_group_size=ROWS_PER_GROUP)
