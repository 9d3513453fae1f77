"""The statistics of the synthetic table in the forms that peers prune by, and the queries in their languages.

pyarrow has them as Parquet row groups of two rows, the lower and the upper bounds; DuckDB as a table of bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.planning.synthetic import EPOCH, MINUTE, Blocks, Bounds

ROW_GROUPS = 10_000  # per file; Parquet numbers them in 16 bits
LIKELY = 5_000_000  # a user_id within the bounds of nearly every block


@dataclass(frozen=True)
class Question:
    """One predicate: in Spark SQL, for pyarrow, as a condition on DuckDB's table of bounds, and in plain numpy."""

    name: str
    sql: str
    arrow: pc.Expression
    duckdb: str
    numpy: Callable[[Blocks], np.ndarray]


def questions(n: int) -> list[Question]:
    """The predicates over the table of n blocks; times are in the middle of it."""
    middle = EPOCH + n // 2 * MINUTE
    few = (middle, middle + 10 * MINUTE)
    tenth = (middle, middle + max(1, n // 10) * MINUTE)
    ts, user, amount = pc.field("ts"), pc.field("user_id"), pc.field("amount")

    def during(span: tuple[int, int]) -> tuple[str, pc.Expression, str, Callable[[Blocks], np.ndarray]]:
        start, stop = span
        low, high = (pa.scalar(micros, pa.timestamp("us", "UTC")) for micros in span)
        sql = f"ts >= TIMESTAMP '{_clock(low)}' AND ts < TIMESTAMP '{_clock(high)}'"
        bounds = f"ts_upper >= {start} AND ts_lower < {stop}"
        return sql, (ts >= low) & (ts < high), bounds, lambda b: (b.ts[1] >= start) & (b.ts[0] < stop)

    few_sql, few_arrow, few_bounds, few_numpy = during(few)
    tenth_sql, tenth_arrow, tenth_bounds, tenth_numpy = during(tenth)
    return [
        Question("clustered range", few_sql, few_arrow, few_bounds, few_numpy),
        Question(
            "unclustered range",
            "amount > 999.9",
            amount > 999.9,
            "amount_upper > 999.9",
            lambda b: b.amount[1] > 999.9,
        ),
        Question(
            "both, over a tenth",
            f"{tenth_sql} AND amount > 999.9",
            tenth_arrow & (amount > 999.9),
            f"{tenth_bounds} AND amount_upper > 999.9",
            lambda b: tenth_numpy(b) & (b.amount[1] > 999.9),
        ),
        Question(
            "needle",
            f"user_id = {LIKELY}",
            user == LIKELY,
            f"user_id_lower <= {LIKELY} AND user_id_upper >= {LIKELY}",
            lambda b: (b.user_id[0] <= LIKELY) & (b.user_id[1] >= LIKELY),
        ),
        Question("everything", "amount > 5000 OR amount >= 0", amount >= 0, "TRUE", lambda b: b.amount[1] >= 0),
    ]


def _clock(moment: pa.Scalar) -> str:
    return moment.as_py().strftime("%Y-%m-%d %H:%M:%S")


def bounds_asked(blocks: Blocks) -> dict[str, Bounds]:
    """The bounds of the columns that :func:`questions` names."""
    return {"ts": blocks.ts, "user_id": blocks.user_id, "amount": blocks.amount}


def write_row_groups(directory: Path, bounds: Mapping[str, Bounds]) -> None:
    """Parquet files with a row group for every block, which holds its bounds."""
    columns = {name: pa.array(np.stack(sides, axis=1).ravel()) for name, sides in bounds.items()}
    if "ts" in columns:
        columns["ts"] = columns["ts"].cast(pa.timestamp("us", "UTC"))
    table = pa.table(columns)
    for start in range(0, len(table) // 2, ROW_GROUPS):
        part = table.slice(2 * start, 2 * ROW_GROUPS)
        path = directory / f"{start:09d}.parquet"
        pq.write_table(part, path, row_group_size=2, compression="none", use_dictionary=False)


def fragments(directory: Path) -> list[ds.ParquetFileFragment]:
    """The files of :func:`write_row_groups` with their metadata read."""
    files = list(ds.dataset(str(directory), format="parquet").get_fragments())
    for fragment in files:
        fragment.ensure_complete_metadata()
    return files


def arrow_keeps(files: list[ds.ParquetFileFragment], condition: pc.Expression) -> int:
    """How many row groups pyarrow keeps by their statistics."""
    return sum(len(file.subset(condition).row_groups) for file in files)


def write_duckdb(path: Path, bounds: Mapping[str, Bounds]) -> None:
    """A DuckDB file with a table of bounds, and the number of every block."""
    sides = {f"{name}_{side}": b[i] for name, b in bounds.items() for i, side in enumerate(("lower", "upper"))}
    table = pa.table({"block": np.arange(len(next(iter(sides.values())))), **sides})
    with duckdb.connect(str(path)) as connection:
        connection.register("bounds", table)
        connection.execute("CREATE TABLE zone_maps AS SELECT * FROM bounds")


def open_duckdb(path: Path) -> duckdb.DuckDBPyConnection:
    """The file of :func:`write_duckdb`."""
    return duckdb.connect(str(path), read_only=True)


def duckdb_keeps(connection: duckdb.DuckDBPyConnection, condition: str) -> int:
    """How many blocks DuckDB keeps; their numbers are fetched."""
    return len(connection.execute(f"SELECT block FROM zone_maps WHERE {condition}").fetchnumpy()["block"])
