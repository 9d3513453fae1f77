"""The blocks that hold a match, by DuckDB, which looks at every row and has no part in pruning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from benchmarks.rates.copies import Copy
from benchmarks.rates.questions import Question


@dataclass(frozen=True)
class Ideal:
    """The blocks that a question cannot do without."""

    blocks: np.ndarray  # bool of shape (n_blocks,)
    rows: int  # of the answer


class Rows:
    """All rows of a table with the number of the block that each lies in."""

    def __init__(self, files: Mapping[str, int], rows: int, blocks: int) -> None:
        """Blocks of so many rows, but for the last of a file; `files` has the number of the first block of each."""
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.register("files", pa.table({"filename": list(files), "first": list(files.values())}))
        self._connection.execute(
            "CREATE TABLE t AS SELECT each.* EXCLUDE (filename, file_row_number),"
            f" first + file_row_number // {rows} AS block_"
            " FROM read_parquet($1, filename = true, file_row_number = true) AS each JOIN files USING (filename)",
            [list(files)],
        )
        self._n = blocks

    def holding(self, question: Question) -> Ideal:
        """The blocks that a question needs: of a limit without order, as few as can be."""
        rows = self._ask("block_", question)
        counts = np.bincount(rows["block_"].to_numpy(), minlength=self._n)
        if question.limit is None or question.order_by:
            return Ideal(counts > 0, len(rows))
        best = np.argsort(-counts, kind="stable")
        enough = int(np.searchsorted(np.cumsum(counts[best]), question.limit)) + 1
        chosen = np.zeros(self._n, bool)
        chosen[best[:enough]] = True
        return Ideal(chosen & (counts > 0), min(question.limit, len(rows)))

    def met_apart(self, question: Question, blocks: np.ndarray) -> int:
        """The number of blocks in which some row meets each condition; 0 for a single condition."""
        conditions = conjuncts(sqlglot.parse_one(question.sql, read="spark").unnest())
        parts = [Question("", condition.sql("spark")) for condition in conditions]
        if question.keys is not None:
            parts.append(Question("", "TRUE", keys=question.keys))
        if len(parts) < 2 or not blocks.any():
            return 0
        return int(np.logical_and.reduce([blocks, *(self.holding(part).blocks for part in parts)]).sum())

    def first_values(self, question: Question) -> list[object]:
        """The values of the first rows of an order, in that order."""
        column = question.order_by.split()[0]
        return list(self._ask(column, question)[column].to_pylist())

    def _ask(self, column: str, question: Question) -> pa.Table:
        """A column of the rows that match; the first of them, where there is an order."""
        sql = f"SELECT {column} FROM t WHERE ({question.sql})"
        if question.keys is not None:
            self._connection.register("keys", pa.table({"key": question.keys.values}))
            sql += f" AND {question.keys.column} IN (SELECT key FROM keys)"
        if question.order_by:
            sql += f" ORDER BY {question.order_by} LIMIT {question.limit}"
        (translated,) = sqlglot.transpile(sql, read="spark", write="duckdb")
        return self._connection.sql(translated).to_arrow_table()


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions that all have to be met, without those that Spark adds for a join: TRUE, and IS NOT NULL."""
    if isinstance(condition, exp.And):
        return [part for operand in condition.flatten() for part in conjuncts(operand.unnest())]
    is_plain = isinstance(condition, exp.Boolean) and condition.this
    added = isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is)
    return [] if is_plain or added else [condition]


def rows_of(copy: Copy) -> Rows:
    """The rows of a table's copy."""
    paths = copy.blocks["path"].to_pylist()
    first: dict[str, int] = {}
    for number, path in enumerate(paths):
        first.setdefault(path, number)
    return Rows(first, copy.workload.rows, len(paths))
