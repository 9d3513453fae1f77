"""Databend in this process: a copy in its own format, clustered by ts, with its bloom filters."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peer_engines.measured import HERE, Left, Preparation, bytes_in, fingerprint_of
from benchmarks.peer_engines.questions import Question

ROWS = 2_500  # of a block: as many as a row group of the files has
SCANNED = re.compile(r"partitions scanned: (\d+)")


class Databend:
    """A context, with its table below the working directory."""

    processes = HERE

    def __init__(self, context: Any, preparation: Preparation) -> None:
        self.context, self.preparation = context, preparation
        self.version = context.sql("SELECT version()").to_py_arrow()[0][0][0].as_py().partition("-")[0]

    def read(self, question: Question, condition: str) -> Any:
        frame = self.context.sql(question.sql("orders", condition, "TIMESTAMP"))
        batches = frame.to_py_arrow()
        return pa.Table.from_batches(batches) if batches else pa.table({"order_id": pa.array([], pa.int64())})

    def fingerprint(self, question: Question, condition: str, answer: Any) -> tuple[int, int]:
        return fingerprint_of(question, answer)

    def plan(self, question: Question, condition: str) -> None:
        self._explained(question, condition)

    def left(self, question: Question, condition: str, answer: Any) -> Left:
        scanned = SCANNED.search(self._explained(question, condition))
        return Left(row_groups=int(scanned[1]) if scanned else None)

    def _explained(self, question: Question, condition: str) -> str:
        frame = self.context.sql(f"EXPLAIN {question.sql('orders', condition, 'TIMESTAMP')}")
        return "\n".join(line for batch in frame.to_py_arrow() for line in batch.column(0).to_pylist())


def open_engine(data: Path, work: Path) -> Databend:
    """Write the rows; Databend keeps them below the working directory."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.chdir(work)
    from databend import SessionContext  # makes its directory when it is imported

    context = SessionContext()
    started, cpu = time.perf_counter(), time.process_time()
    context.sql("SET timezone = 'UTC'").collect()
    source = f"'fs://{data}/' (FILE_FORMAT => 'parquet', PATTERN => '.*[.]parquet')"
    options = f"CLUSTER BY (ts) ROW_PER_BLOCK = {ROWS} BLOOM_INDEX_COLUMNS = 'user_id,name,status'"
    context.sql(f"CREATE TABLE orders {options} AS SELECT * FROM {source}").collect()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    what = f"a copy, by ts, in blocks of {ROWS:,} rows; bloom filters of user_id, name, status"
    return Databend(context, Preparation(what, seconds, cpu, 0, bytes_in(work)))
