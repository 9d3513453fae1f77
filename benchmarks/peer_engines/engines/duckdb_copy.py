"""DuckDB with its own copy of the rows, in the order of the files, and ART indexes of user_id and name."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from benchmarks.peer_engines.engines.duckdb_files import DuckDB
from benchmarks.peer_engines.measured import Preparation


def open_engine(data: Path, work: Path) -> DuckDB:
    """Load the rows and make the indexes."""
    file = work / "orders.duckdb"
    file.unlink(missing_ok=True)
    started, cpu = time.perf_counter(), time.process_time()
    sizes = []
    for statement in (
        f"CREATE TABLE orders AS SELECT * FROM read_parquet('{data}/*.parquet')",
        "CREATE INDEX by_user ON orders (user_id); CREATE INDEX by_name ON orders (name)",
    ):
        with duckdb.connect(str(file)) as connection:
            connection.execute(statement)
            connection.execute("CHECKPOINT")
        sizes.append(file.stat().st_size)
    copy, both = sizes
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    preparation = Preparation("a copy; ART indexes of user_id and name", seconds, cpu, both - copy, copy)
    return DuckDB(duckdb.connect(str(file), read_only=True), "orders", preparation)
