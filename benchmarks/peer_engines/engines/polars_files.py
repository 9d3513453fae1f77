"""Polars over the Parquet files: the bounds of their row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.peer_engines.measured import HERE, Left, Preparation, fingerprint_of
from benchmarks.peer_engines.questions import Question


class Polars:
    """A lazy frame of all files, asked by expressions that Polars makes of SQL."""

    version = f"Polars {pl.__version__}"
    processes = HERE
    preparation = Preparation("nothing", 0, 0, 0)

    def __init__(self, data: Path) -> None:
        self.frame = pl.scan_parquet(f"{data}/*.parquet")

    def read(self, question: Question, condition: str) -> Any:
        matching = self.frame.filter(pl.sql_expr(condition))
        if question.counts:
            return matching.select(pl.len()).collect().to_arrow()
        if question.limit is not None:
            column, _, direction = question.order.partition(" ")
            matching = matching.sort(column, descending=direction == "DESC").head(question.limit)
        return matching.select(question.columns or pl.all()).collect().to_arrow()

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        raise NotImplementedError("row groups are chosen while Polars reads")

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        return Left()  # Polars does not say


def open_engine(data: Path, work: Path) -> Polars:
    """Open the files; nothing is made."""
    return Polars(data)
