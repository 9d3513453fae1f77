"""DataFusion over the Parquet files: their bounds, page index and bloom filters, with filters pushed down."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datafusion

from benchmarks.peer_engines.measured import HERE, Left, Preparation, fingerprint_of
from benchmarks.peer_engines.questions import Question

ZONED = "TIMESTAMP"
MATCHED = re.compile(r"row_groups_pruned_bloom_filter=[\d.]+ ?K? total → ([\d.]+)( K)? matched")


class DataFusion:
    """A context with the table."""

    version = f"DataFusion {version('datafusion')}"
    processes = HERE
    preparation = Preparation("nothing", 0, 0, 0)

    def __init__(self, data: Path) -> None:
        settings = datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
        self.context = datafusion.SessionContext(settings)
        self.context.register_parquet("orders", str(data))

    def read(self, question: Question, condition: str) -> Any:
        return self.context.sql(question.sql("orders", condition, ZONED)).to_arrow_table()

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        raise NotImplementedError("row groups are chosen while DataFusion reads")

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        analyzed = self.context.sql(f"EXPLAIN ANALYZE {question.sql('orders', condition, ZONED)}").to_arrow_table()
        matched = MATCHED.search(analyzed["plan"][0].as_py())
        return Left(row_groups=round(float(matched[1]) * (1000 if matched[2] else 1)) if matched else None)


def open_engine(data: Path, work: Path) -> DataFusion:
    """Open the files; nothing is made."""
    return DataFusion(data)
