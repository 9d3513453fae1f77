"""Look-ups of order keys and parts of comments in TPC-H's tables, where bounds rule out nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.building.indexing import filter_bytes
from benchmarks.results import Kept, Ratio, Result
from benchmarks.setting import Setting, index_code
from benchmarks.tpch.tpch import SCALE_FACTOR, write_orders, write_tables
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from tests.support.stores.local_build import index_here

KEYS = 20  # order keys looked for
PATTERNS = ("special%requests", "unusual accounts", "Customer%Complaints", "furiously ironic asymptotes", "zzyzx")


@dataclass(frozen=True)
class Indexed:
    """A table, one index of it, and the predicates, in Spark SQL and for pyarrow."""

    name: str
    directory: Path
    index: str
    options: BuildOptions
    questions: Sequence[tuple[str, pc.Expression]]

    def open(self) -> Table:
        """The table with its index, which is made where it is missing."""
        index = self.directory.parent / f"needles-{self.index}-{index_code()}"
        table = sec.open_table(str(self.directory), index_location=str(index))
        if not index.exists():
            index_here(table, self.options)
        return table


def tpch_needles(setting: Setting) -> Result:
    """Blocks kept by filters, by bounds alone, and by pyarrow; and those that hold a match."""
    factor = SCALE_FACTOR * setting.scale
    lines = setting.prepared(f"tpch-lineitem-{factor:g}", partial(write_tables, scale_factor=factor)) / "clustered"
    orders = setting.prepared(f"tpch-orders-{factor:g}", partial(write_orders, scale_factor=factor)) / "orders"
    kept: list[Kept] = []
    ratios: list[Ratio] = []
    for indexed in _asked(lines, orders):
        table = indexed.open()
        rows = _rows(indexed)
        kept += [_kept(indexed, table, rows, *question) for question in indexed.questions]
        data = sum(path.stat().st_size for path in indexed.directory.glob("*.parquet"))
        size = _index_bytes(table)
        ratios.append(Ratio(f"{indexed.name}: bytes of {indexed.index}", size, "B", "bytes of the table", data))
    return Result({"scale_factor": factor, "blocks": kept[0].total}, tuple(ratios), tuple(kept))


def _asked(lines: Path, orders: Path) -> list[Indexed]:
    line_keys = [(f"l_orderkey = {key}", pc.field("l_orderkey") == key) for key in _some(lines, "l_orderkey")]
    order_keys = [(f"o_orderkey = {key}", pc.field("o_orderkey") == key) for key in _some(orders, "o_orderkey")]
    comments = [
        (f"o_comment LIKE '%{pattern}%'", pc.match_like(pc.field("o_comment"), f"%{pattern}%")) for pattern in PATTERNS
    ]
    bloom, grams = filter_options(bloom=["l_orderkey"]), filter_options(ngram=["o_comment"])
    return [
        Indexed("lineitem by date", lines, "bloom", BuildOptions(filters=bloom), line_keys),
        Indexed("lineitem by date", lines, "postings", _postings("l_orderkey"), line_keys),
        Indexed("orders by date", orders, "postings", _postings("o_orderkey"), order_keys),
        Indexed("orders by date", orders, "5-grams", BuildOptions(filters=grams), comments),
        Indexed(
            "orders by date", orders, "tokens", BuildOptions(filters=filter_options(tokens=["o_comment"])), comments
        ),
    ]


def _postings(column: str) -> BuildOptions:
    return BuildOptions(filters=filter_options(postings=[column]))


def _some(directory: Path, column: str) -> list[int]:
    """Order keys of the table, and one that is absent."""
    keys = pc.unique(ds.dataset(str(directory)).to_table(columns=[column])[column]).to_numpy()
    chosen = np.random.default_rng(2).choice(keys, min(KEYS, len(keys)), replace=False)
    absent = np.setdiff1d(np.arange(keys.min(), keys.max()), keys)[:1]
    return [int(key) for key in (*chosen[:3], *absent)]


def _rows(indexed: Indexed) -> pa.Table:
    """The column of the predicates, with the block number of every row."""
    column = indexed.questions[0][0].partition(" ")[0]
    files = [pq.ParquetFile(path) for path in sorted(indexed.directory.glob("*.parquet"))]
    counts = [file.metadata.row_group(i).num_rows for file in files for i in range(file.num_row_groups)]
    data = pa.concat_tables([file.read(columns=[column]) for file in files])
    return data.append_column("block", pa.array(np.repeat(np.arange(len(counts)), counts)))


def _kept(indexed: Indexed, table: Table, rows: pa.Table, sql: str, expression: pc.Expression) -> Kept:
    plan = sec.prune(table, sql, strict=True)
    bounds = sec.prune(table, sql, strict=True, use_index=False)
    total = int(rows["block"][-1].as_py()) + 1
    ideal = len(pc.unique(rows.filter(expression)["block"]))
    blocks = plan.report.stages[-1].after.blocks or 0
    if blocks < ideal:
        raise AssertionError(f"{sql}: {blocks} blocks are kept where {ideal} hold a match")
    left = {"secateur": blocks, "bounds alone": bounds.report.stages[-1].after.blocks or 0}
    return Kept(f"{indexed.name}, {indexed.index}", sql, "blocks", total, ideal, left)


def _index_bytes(table: Table) -> int:
    """The bytes of filters: those side by side, and postings, which lie in segments."""
    postings = sum(file.size for file in table.store.files("segments")) if not filter_bytes(table) else 0
    return filter_bytes(table) + postings
