"""Counts, ends, different values and first rows by a double in no order: ordered postings, none, and pyarrow's scan.

The table is that of the other read benchmarks, whose row groups all hold nearly every price. All is warm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import secateur as sec
from benchmarks.reading.ordered_postings import COLUMN, indexed, middle
from benchmarks.reading.read_table import read_table
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.io.tables.table import Table

COUNTED = (1_000, 2_000_000)  # rows of a range, of 5 million
FIRST = 10


def ordered_answers(setting: Setting) -> Result:
    """Every question answered alike by all three."""
    data = read_table(setting)
    table, plain = indexed(data, "ordered"), indexed(data, "none")
    scanned = ds.dataset(str(data.directory / "data"), format="parquet")
    prices = np.sort(scanned.to_table([COLUMN])[COLUMN].to_numpy())
    ratios: list[Ratio] = []
    for subject, ours, scan in _questions(prices, scanned, setting):
        contenders: list[Callable[[], object]] = [partial(ours, table), partial(ours, plain), scan]
        answers = [contender() for contender in contenders]
        if answers[0] != answers[1] or answers[0] != answers[2]:
            raise AssertionError(f"{subject}: {answers}")
        ordered, without, scanning = race(contenders, setting.repetitions)
        ratios += [timed(subject, ordered, "without", without), timed(subject, ordered, "pyarrow's scan", scanning)]
    return Result({"rows": data.rows}, tuple(ratios))


Question = tuple[str, Callable[[Table], object], Callable[[], object]]


def _questions(prices: np.ndarray, scanned: ds.Dataset, setting: Setting) -> list[Question]:
    asked: list[Question] = []
    for wanted in COUNTED:
        low, high = middle(prices, setting.scaled(wanted, least=2))
        where = f"{COLUMN} BETWEEN CAST('{low!r}' AS DOUBLE) AND CAST('{high!r}' AS DOUBLE)"
        is_between = (pc.field(COLUMN) >= low) & (pc.field(COLUMN) <= high)
        rows = int(np.count_nonzero((prices >= low) & (prices <= high)))
        count = partial(scanned.count_rows, filter=is_between)
        asked.append((f"count of {rows:,} rows", partial(_counted, where=where), count))
    low, _ = middle(prices, setting.scaled(COUNTED[0], least=2))
    above = f"{COLUMN} > CAST('{low!r}' AS DOUBLE)"
    least = partial(_aggregated, function=f"min({COLUMN})", where=above)
    different = partial(_aggregated, function=f"count(DISTINCT {COLUMN})", where="true")
    return [
        *asked,
        ("least value above the middle", least, lambda: pc.min(_column(scanned, pc.field(COLUMN) > low)).as_py()),
        ("different values", different, lambda: pc.count_distinct(_column(scanned, None)).as_py()),
        (f"{FIRST} rows of the greatest values", _first, partial(_first_scanned, scanned)),
    ]


def _counted(table: Table, where: str) -> int:
    return sec.prune(table, where, strict=True).count()


def _aggregated(table: Table, function: str, where: str) -> object:
    return sec.aggregate(table, f"{function} AS v", where, strict=True)["v"][0].as_py()


def _first(table: Table) -> object:
    plan = sec.prune(table, "true", order_by=f"{COLUMN} DESC", limit=FIRST, strict=True)
    return plan.to_arrow(columns=["order_id", COLUMN])[COLUMN].to_pylist()


def _first_scanned(scanned: ds.Dataset) -> object:
    rows = scanned.to_table(["order_id", COLUMN])
    return rows.take(pc.select_k_unstable(rows, FIRST, [(COLUMN, "descending")]))[COLUMN].to_pylist()


def _column(scanned: ds.Dataset, condition: pc.Expression | None) -> pa.ChunkedArray:
    return scanned.to_table([COLUMN], filter=condition)[COLUMN]
