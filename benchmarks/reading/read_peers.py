"""Questions of a table of small row groups, planned and read: beside DuckDB, DataFusion and Polars over the same files.

The files have a page index and bloom filters, which the engines use as they can. All are warm, and run on all cores.
Where rows are read, pyarrow's whole read of the row groups that the plan keeps stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs

import secateur as sec
from benchmarks.reading.read_table import USERS, ReadTable, read_table
from benchmarks.reading.whole_reads import WholeRead
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import Contender, race
from secateur.io.tables.table import Table
from secateur.scan import Scan

WARMING = 0.2  # seconds


@dataclass(frozen=True)
class Question:
    """A condition, in SQL that all engines read, and the columns asked for; None: only the number of rows."""

    name: str
    where: str
    columns: str | None = "*"

    @property
    def wanted(self) -> list[str] | None:
        """The columns as a list; None for all, or for none."""
        return None if self.columns in (None, "*") else self.columns.split(", ")


def questions(rows: int) -> list[Question]:
    """The questions over a table of so many rows."""
    users = ", ".join(str(i * 99_991 % USERS) for i in range(1, 11))
    first, last = (f"CAST('2023-12-01 {clock}+00:00' AS TIMESTAMPTZ)" for clock in ("00:00:00", "00:30:00"))
    return [
        Question("one key, unclustered", "user_id = 123457"),
        Question("ten keys", f"user_id IN ({users})"),
        Question("an absent key", "user_id = 3000000"),
        Question("a rare status", "status = 'lost'"),
        Question("a narrow range of doubles, unclustered", "price BETWEEN 700 AND 705"),
        Question("a prefix of a name", "name LIKE 'user-12345%'"),
        Question("a number that every row group holds", "quantity = 7"),
        Question("half an hour", f"ts BETWEEN {first} AND {last}"),
        Question("how many of the first 40 %", f"order_id < {rows * 2 // 5}", None),
        Question("all rows, two columns", "order_id >= 0", "price, quantity"),
    ]


def read_peers(setting: Setting) -> Result:
    """Every question by every engine; the answers are as many rows."""
    data = read_table(setting)
    table = data.open()
    every = len(sec.prune(table, "true", strict=True).blocks)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    with duckdb.connect() as connection:
        engines = _engines(data, connection)
        for question in questions(data.rows):
            counts = {_ours(table, question), *(ask(question) for ask in engines.values())}
            if len(counts) > 1:
                raise AssertionError(f"{question.name}: {counts} rows")
            plan = sec.prune(table, _spark(question), strict=True)
            peers: dict[str, Contender] = {name: partial(ask, question) for name, ask in engines.items()}
            if question.columns is not None and len(plan.blocks):
                peers["pyarrow, whole"] = _whole(data, plan, question).rows
            ours, *theirs = race([partial(_ours, table, question), *peers.values()], setting.repetitions, WARMING)
            for name, timing in zip(peers, theirs, strict=True):
                ratios.append(timed(f"{question.name}: {min(counts):,} rows", ours, name, timing))
            kept.append(Kept("orders", question.name, "row groups", every, None, {"secateur": len(plan.blocks)}))
    return Result({"rows": data.rows, "row groups": every}, tuple(ratios), tuple(kept))


def _spark(question: Question) -> str:
    return question.where.replace("TIMESTAMPTZ", "TIMESTAMP")


def _ours(table: Table, question: Question) -> int:
    plan = sec.prune(table, _spark(question), strict=True)
    return plan.count() if question.columns is None else plan.to_arrow(question.wanted).num_rows


def _whole(data: ReadTable, plan: Scan, question: Question) -> WholeRead:
    directory = data.directory / "data"
    return WholeRead.of(plan, directory, question.wanted, pafs.LocalFileSystem(), str(directory))


def _engines(data: ReadTable, connection: duckdb.DuckDBPyConnection) -> dict[str, Callable[[Question], int]]:
    """Return each engine as a function from a question to its number of rows."""
    settings = datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
    context = datafusion.SessionContext(settings)
    context.register_parquet("orders", str(data.directory / "data"))
    connection.execute("SET TimeZone = 'UTC'")

    def by_duckdb(question: Question) -> int:
        return _rows(question, connection.sql(_sql(question, f"read_parquet('{data.files}')")).to_arrow_table())

    def by_datafusion(question: Question) -> int:
        sql = _sql(question, "orders").replace("TIMESTAMPTZ", "TIMESTAMP")
        return _rows(question, context.sql(sql).to_arrow_table())

    def by_polars(question: Question) -> int:
        frame = pl.scan_parquet(data.files)
        asked = frame.filter(pl.sql_expr(question.where))
        if question.columns is None:
            return int(asked.select(pl.len()).collect().item())
        return asked.select(question.wanted or pl.all()).collect().height

    return {"DuckDB": by_duckdb, "DataFusion": by_datafusion, "Polars": by_polars}


def _sql(question: Question, table: str) -> str:
    return f"SELECT {question.columns or 'count(*)'} FROM {table} WHERE {question.where}"


def _rows(question: Question, answer: pa.Table) -> int:
    return int(answer.column(0)[0].as_py()) if question.columns is None else answer.num_rows
