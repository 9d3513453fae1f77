"""Lance: a copy in its own format, with the indexes that answer the questions."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow.dataset as ds

from benchmarks.peer_engines.measured import HERE, Left, Preparation, bytes_in, fingerprint_of
from benchmarks.peer_engines.questions import Question

INDEXES = {
    "user_id": "BTREE",
    "name": "BTREE",
    "price": "BTREE",
    "ts": "ZONEMAP",
    "status": "BITMAP",
    "message": "NGRAM",
}


class Lance:
    """A dataset."""

    version = f"Lance {lance.__version__}"
    processes = HERE

    def __init__(self, dataset: lance.LanceDataset, preparation: Preparation) -> None:
        self.dataset, self.preparation = dataset, preparation

    def read(self, question: Question, condition: str) -> Any:
        condition = condition.replace("TIMESTAMPTZ", "TIMESTAMP")
        if question.counts:
            import pyarrow as pa

            return pa.table({"n": [self.dataset.count_rows(condition)]})
        if question.limit is not None:
            batches = self.dataset.sql(question.sql("dataset", condition)).build().to_batch_records()
            import pyarrow as pa

            return pa.Table.from_batches(batches)
        return self.dataset.to_table(columns=list(question.columns) or None, filter=condition)

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        raise NotImplementedError("Lance looks into its indexes while it reads")

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        return Left()  # Lance has no row groups


def open_engine(data: Path, work: Path) -> Lance:
    """Write the rows and make the indexes."""
    home = work / "orders.lance"
    shutil.rmtree(home, ignore_errors=True)
    started, cpu = time.perf_counter(), time.process_time()
    dataset = lance.write_dataset(ds.dataset(str(data)).to_batches(), str(home), schema=ds.dataset(str(data)).schema)
    copy = bytes_in(home)
    for column, kind in INDEXES.items():
        dataset.create_scalar_index(column, kind)
    what = "a copy; " + ", ".join(f"{kind} of {column}" for column, kind in INDEXES.items())
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Lance(lance.dataset(str(home)), Preparation(what, seconds, cpu, bytes_in(home) - copy, copy))
