"""The tables of TPC-H and TPC-DS, as generated and by date, with their indexes and queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.rates.copies import indexed
from benchmarks.rates.scans import Amount
from benchmarks.rates.truth import Rows
from benchmarks.setting import Setting
from benchmarks.spark.tpc_sql import Bench, by_date, date_column, keys_of, tpc_ds, tpch, write_rows
from secateur.io.tables.table import Table

LAYOUTS: Mapping[str, Callable[[Bench], Bench]] = {"generated": lambda bench: bench, "clustered": by_date}


@dataclass(frozen=True)
class Source:
    """How a benchmark is generated at a scale."""

    make: Callable[..., Bench]
    factor: float  # at scale 1
    least_factor: float  # the generator's least
    every: int  # n-th query, at scale 1
    least_scale: float = 0.0  # it is left out below


SOURCES = {
    "TPC-H": Source(tpch, 0.05, 0.001, 1),
    "TPC-DS": Source(partial(tpc_ds, every=1), 0.01, 0.01, 6, least_scale=0.5),
}


@dataclass(frozen=True)
class SqlTable:
    """One table of a benchmark, which is one file."""

    name: str
    directory: Path
    group: int  # rows of a block
    table: Table
    bounds: Table  # the same with an index that has no filters
    served: tuple[str, ...]  # columns that have a filter, or by which the table lies

    @cached_property
    def rows(self) -> Rows:
        """All rows, with the block of each."""
        return Rows({str(self.directory / "a.parquet"): 0}, self.group, len(self.blocks))

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """The rows and bytes of every block."""
        metadata = pq.read_metadata(self.directory / "a.parquet")
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return [(g.num_rows, sum(g.column(i).total_compressed_size for i in range(g.num_columns))) for g in groups]

    def amount(self, chosen: np.ndarray, rows: int | None = None) -> Amount:
        """Some blocks, with so many of their rows; by default all."""
        held, size = np.array(self.blocks, np.int64).reshape(-1, 2)[chosen].sum(axis=0).tolist()
        return Amount(int(chosen.sum()), held if rows is None else rows, size)


@dataclass(frozen=True)
class SqlBench:
    """The tables of a benchmark in one layout, and its queries."""

    label: str
    rows: int  # of a block
    tables: Mapping[str, SqlTable]
    queries: Mapping[int, str]


def sql_benches(setting: Setting, sparse: int) -> list[SqlBench]:
    """Both benchmarks in both layouts; at a small scale, fewer queries of less data. Takes each n-th query."""
    benches = []
    for name, source in SOURCES.items():
        if setting.scale < source.least_scale:
            continue
        factor = max(source.least_factor, source.factor * setting.scale)
        home = setting.prepared(f"rates-{name}-{factor:g}", partial(_write, make=partial(source.make, factor=factor)))
        saved = json.loads((home / "queries.json").read_text())
        every = max(1, round(source.every / setting.scale)) * sparse
        queries = {int(number): query for number, query in list(saved["queries"].items())[::every]}
        for layout in LAYOUTS:
            tables = {path.name: _table(home, path, saved["rows"]) for path in sorted((home / layout).iterdir())}
            benches.append(SqlBench(f"{name}, {layout}, SQL", saved["rows"], tables, queries))
    return benches


def _write(directory: Path, make: Callable[[Path], Bench]) -> None:
    (directory / "made").mkdir()
    bench = make(directory / "made")
    for layout, arranged in LAYOUTS.items():
        write_rows(arranged(bench), directory / layout)
    (directory / "queries.json").write_text(json.dumps({"rows": bench.rows, "queries": dict(bench.queries)}))


def _table(home: Path, directory: Path, rows: int) -> SqlTable:
    schema = pq.read_schema(directory / "a.parquet")
    keys, date = keys_of(schema), date_column(directory.name, schema.names)
    layout = directory.parent.name
    order = (date,) if date and layout == "clustered" else ()
    name = f"{layout}-{directory.name}"
    table = indexed(home, f"index-{name}", str(directory), {"bloom": keys})
    bounds = indexed(home, f"bounds-{name}", str(directory), {})
    return SqlTable(directory.name, directory, rows, table, bounds, (*keys, *order))
