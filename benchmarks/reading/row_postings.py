"""Postings that say rows beside those that say blocks: time, bytes of the files read, and bytes of the index.

One table in row groups of 2,500 rows, of a page per column; one in row groups of 250,000, of a hundred. All is warm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import secateur as sec
from benchmarks.reading.read_table import ReadTable, read_table
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.timing import race
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

SMALL, LARGE = (2_500, 200), (250_000, 4)  # rows of a row group, files
PAGES = 100  # of a large row group
COLUMNS = ("status", "quantity", "user_id")
QUESTIONS = {
    "a rare status": "status = 'lost'",
    "a rare status and a quantity": "status = 'lost' AND quantity = 7",
    "a rare status or a user": "status = 'lost' OR user_id = 123457",
    "ten users": f"user_id IN ({', '.join(str(i * 99_991) for i in range(1, 11))})",
    "a quantity, in every page": "quantity = 7",
}
KINDS = ("rows", "blocks")


def row_postings(setting: Setting) -> Result:
    """Every question by both, planned and read with all columns; the answers are the same rows."""
    sizes: dict[str, int | float] = {}
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    large = setting.scaled(LARGE[0], least=1_000)
    for row_group, files, page in ((*SMALL, None), (large, LARGE[1], large // PAGES)):
        data = read_table(setting, row_group, files, page)
        tables = {kind: _indexed(data, kind) for kind in KINDS}
        name = f"row groups of {row_group:,}"
        taken = {kind: _index_bytes(table) for kind, table in tables.items()}
        ratios.append(Ratio(f"{name}: postings", taken["rows"], "B", "of blocks", taken["blocks"]))
        for question, where in QUESTIONS.items():
            asked = [partial(_answer, table, where) for table in tables.values()]
            counts = [ask() for ask in asked]
            if len(set(counts)) > 1:
                raise AssertionError(f"{question}: {counts} rows")
            by_rows, by_blocks = race(asked, setting.repetitions)
            ratios.append(timed(f"{name}, {question}: {counts[0]:,} rows", by_rows, "by blocks", by_blocks))
            ours, theirs = (_bytes_read_by(ask) for ask in asked)
            ratios.append(Ratio(f"{name}, {question}: bytes read", ours, "B", "by blocks", theirs))
            left, by_block, every = (
                len(sec.prune(tables[kind], asked_for, strict=True).blocks)
                for kind, asked_for in (("rows", where), ("blocks", where), ("rows", "true"))
            )
            kept.append(
                Kept(name, question, "row groups", every, None, {"secateur": left, "postings of blocks": by_block})
            )
        sizes[f"rows in {name}"] = data.rows
    return Result(sizes, tuple(ratios), tuple(kept))


def _indexed(data: ReadTable, kind: str) -> Table:
    """The table with an index whose postings say blocks or rows, built where it is missing."""
    index = data.directory / f"index-{kind}-{index_code()}"
    table = sec.open_table(str(data.directory / "data"), index_location=str(index))
    if not index.exists():
        filters = filter_options(postings=dict.fromkeys(COLUMNS, kind))
        index_here(table, BuildOptions(sort_key=("ts",), filters=filters))
    return table


def _answer(table: Table, where: str) -> int:
    return sec.prune(table, where, strict=True).to_arrow().num_rows


def _index_bytes(table: Table) -> int:
    """The bytes of all postings."""
    return sum(part.bytes for part in sec.describe_index(table).coverage if part.structure == "postings")


def _bytes_read_by(ask: Callable[[], int]) -> int:
    """The bytes that this process reads of files to answer: of the data alone, as the index is in memory."""
    before = _bytes_read()
    ask()
    return _bytes_read() - before


def _bytes_read() -> int:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])
