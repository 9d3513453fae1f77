"""DuckDB over the Parquet files: their bounds and bloom filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.peer_engines.measured import HERE, Left, Preparation, fingerprint_of
from benchmarks.peer_engines.questions import Question


class DuckDB:
    """A connection, and the SQL that names its table."""

    version = f"DuckDB {duckdb.__version__}"
    processes = HERE

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, preparation: Preparation) -> None:
        self.connection, self.table, self.preparation = connection, table, preparation
        connection.execute("SET TimeZone = 'UTC'")

    def read(self, question: Question, condition: str) -> Any:
        return self.connection.sql(question.sql(self.table, condition)).to_arrow_table()

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        raise NotImplementedError("row groups are chosen while DuckDB reads")

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        analyzed = f"EXPLAIN (ANALYZE, FORMAT json) {question.sql(self.table, condition)}"
        ((_, profile),) = self.connection.execute(analyzed).fetchall()
        query = json.loads(profile)["query"]
        return Left(row_groups=query["total_row_groups_scanned"], rows=query["total_rows_scanned"])


def open_engine(data: Path, work: Path) -> DuckDB:
    """Open the files; nothing is made."""
    return DuckDB(duckdb.connect(), f"read_parquet('{data}/*.parquet')", Preparation("nothing", 0, 0, 0))
