"""secateur over the Parquet files, with its index; planned and read in Python."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import secateur as sec
from benchmarks.peer_engines.measured import HERE, Left, Preparation, fingerprint_of
from benchmarks.peer_engines.questions import Question
from secateur.scan import Scan


class Secateur:
    """A table with its index."""

    version = f"secateur {sec.__version__}"
    processes = HERE

    def __init__(self, table: Any, preparation: Preparation) -> None:
        self.table, self.preparation = table, preparation

    def planned(self, question: Question, condition: str) -> Scan:
        condition = condition.replace("TIMESTAMPTZ", "TIMESTAMP")
        return sec.prune(
            self.table,
            condition,
            limit=question.limit,
            order_by=question.order or (),
            strict=True,
            session_time_zone="UTC",
        )

    def read(self, question: Question, condition: str) -> Any:
        plan = self.planned(question, condition)
        if question.counts:
            import pyarrow as pa

            return pa.table({"n": [plan.count()]})
        return plan.to_arrow(list(question.columns) or None)

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        self.planned(question, condition)

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        plan = self.planned(question, condition)
        return Left(len(plan.files), len(plan.blocks))


def index(data: Path, work: Path) -> tuple[Any, Preparation]:
    """Build the index of all questions."""
    home = work / "index"
    shutil.rmtree(home, ignore_errors=True)
    table = sec.open_table(str(data), index_location=str(home))
    options = {"bloom": ["user_id", "name"], "postings": ["status"], "ngram": ["message", "name"], "gaps": ["price"]}
    started, cpu = time.perf_counter(), time.process_time()
    built = sec.build_index(table, sort_key=["ts"], **options)  # type: ignore[arg-type]
    what = "an index: " + "; ".join(f"{name} of {', '.join(columns)}" for name, columns in options.items())
    return table, Preparation(what, time.perf_counter() - started, time.process_time() - cpu, built.index_bytes)


def open_engine(data: Path, work: Path) -> Secateur:
    """Build the index, by threads of this process."""
    return Secateur(*index(data, work))
