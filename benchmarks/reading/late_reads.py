"""Plans read late, the predicate's columns first: beside reading every column of the row group and filtering its rows.

Both evaluate the predicate by the same code, on batches of as many rows. There is no index: a million rows are a block.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.reading.page_reads import PageTable, page_table
from benchmarks.results import Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.io.parquet.row_group_reader import BATCH_ROWS
from secateur.pruning.rows.truth import matching_rows
from secateur.scan import Scan

MOST = 1.1  # the goal: of what the straight read takes
PREDICATES = {  # of 1M rows, evenly scattered but for the last
    "no row": "count = -1 OR number_0 = -1",
    "0.1 % of the rows": "count = 7",
    "9 %": "count < 100",
    "45 %": "flag",
    "90 %": "count >= 0",
    "10,000 rows in a row": "id BETWEEN 500000 AND 509999",
}
STRAIGHT = "all columns, then a filter"


def read_late(setting: Setting) -> Result:
    """Predicates that keep from nothing to nearly all."""
    table = page_table(setting)
    opened = sec.open_table(str(table.path.parent))
    ratios = []
    for name, predicate in PREDICATES.items():
        plan = sec.prune(opened, predicate)
        late, straight = partial(_late, plan), partial(_straight, table, plan)
        if late() != straight():
            raise AssertionError(f"{predicate} has {late()} rows when it is read late, and {straight()} straight")
        ours, whole = race([late, straight], setting.repetitions)
        ratios.append(timed(f"a match in {name}", ours, STRAIGHT, whole, MOST))
    return Result({"rows": table.rows, "columns": len(table.names)}, tuple(ratios))


def _late(plan: Scan) -> int:
    return sum(batch.num_rows for batch in plan.to_batches())


def _straight(table: PageTable, plan: Scan) -> int:
    batches = pq.ParquetFile(table.path).iter_batches(BATCH_ROWS, use_threads=False)
    kept = (batch.filter(pa.array(matching_rows(plan.predicate, batch))) for batch in batches)
    return sum(batch.num_rows for batch in kept)
