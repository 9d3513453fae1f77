"""Narrow ranges of a double by which the table is in no order: with ordered postings, without, and by pyarrow's scan.

2,000 row groups, all of whose bounds cover the ranges. All is warm.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds

import secateur as sec
from benchmarks.reading.read_table import ReadTable, read_table
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.timing import race
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

COLUMN = "price"
COLUMNS = ["order_id", COLUMN]
ROWS = (10, 1_000, 100_000)  # that a range holds, about, of 5 million


def ordered_postings(setting: Setting) -> Result:
    """Every range planned and read; the answers are the same rows."""
    data = read_table(setting)
    table, plain = indexed(data, "ordered"), indexed(data, "none")
    scanned = ds.dataset(str(data.directory / "data"), format="parquet")
    prices = np.sort(scanned.to_table([COLUMN])[COLUMN].to_numpy())
    parts = [part for part in sec.describe_index(table).coverage if part.structure == "ordered postings"]
    taken = sum(part.bytes for part in parts)
    ratios = [Ratio("ordered postings of a price", taken / data.rows, "B/row", "the price itself", 8.0)]
    kept: list[Kept] = []
    for wanted in ROWS:
        low, high = middle(prices, setting.scaled(wanted, least=2))
        where = f"{COLUMN} BETWEEN CAST('{low!r}' AS DOUBLE) AND CAST('{high!r}' AS DOUBLE)"
        is_between = (pc.field(COLUMN) >= low) & (pc.field(COLUMN) <= high)

        def ask(asked: Table, where: str = where) -> list[int]:
            rows = sec.prune(asked, where, strict=True).to_arrow(columns=COLUMNS)
            return sorted(rows["order_id"].to_pylist())

        def scan(condition: pc.Expression = is_between) -> list[int]:
            return sorted(scanned.to_table(COLUMNS, filter=condition)["order_id"].to_pylist())

        contenders = [lambda ask=ask: ask(table), lambda ask=ask: ask(plain), scan]
        answers = [contender() for contender in contenders]
        if answers[0] != answers[1] or answers[0] != answers[2]:
            raise AssertionError(f"{where}: {[*map(len, answers)]} rows")
        ours, without, scanning = race(contenders, setting.repetitions)
        subject = f"a range of {len(answers[0]):,} rows"
        ratios += [timed(subject, ours, "without", without), timed(subject, ours, "pyarrow's scan", scanning)]
        left, by_bounds, every = (
            len(sec.prune(asked, question, strict=True).blocks)
            for asked, question in ((table, where), (plain, where), (table, "true"))
        )
        kept.append(Kept("orders", subject, "row groups", every, None, {"secateur": left, "bounds": by_bounds}))
    return Result({"rows": data.rows}, tuple(ratios), tuple(kept))


def middle(prices: np.ndarray, rows: int) -> tuple[float, float]:
    """The ends of about so many prices in the middle."""
    first = (len(prices) - rows) // 2
    return float(prices[first]), float(prices[first + rows - 1])


def indexed(data: ReadTable, kind: str) -> Table:
    """The table with an index with or without ordered postings, built where it is missing."""
    index = data.directory / f"index-{kind}-{index_code()}"
    table = sec.open_table(str(data.directory / "data"), index_location=str(index))
    if not index.exists():
        filters = filter_options(postings={COLUMN: kind}) if kind == "ordered" else ()
        index_here(table, BuildOptions(sort_key=("ts",), filters=filters))
    return table
