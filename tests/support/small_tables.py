"""Small tables with every kind of column, their rows, and predicates that Python can evaluate."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import secateur as sec
from secateur.index.model import ORDERED, BuildOptions, FilterOption
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

LONG = "x" * 63
TYPES: dict[str, pa.DataType] = {
    "i": pa.int64(),
    "small": pa.int8(),
    "s": pa.string(),
    "raw": pa.binary(),
    "f": pa.float64(),
    "g": pa.float32(),
    "ts": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "b": pa.bool_(),
    "d": pa.decimal128(12, 2),
    "wide": pa.decimal128(30, 3),
}
LISTED = tuple(FilterOption(ORDERED, name) for name in TYPES)  # whose values an index may list in order
SUMMED = ("i", "small", "d", "wide")
TEXTS = [
    "",
    "a",
    "b",
    LONG,
    LONG + "a",
    LONG + "aa",
    LONG + "ab",
    LONG + "b" * 9,
    LONG + "\U0010ffff" * 3,
    "\u00e4",
    "z",
]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]
POOLS: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1]),
    "small": st.integers(-128, 127),
    "s": st.sampled_from(TEXTS),
    "raw": st.sampled_from([text.encode() for text in TEXTS] + [b"\xff" * 64, b"\xff" * 65, b"\xff" * 66]),
    "f": st.sampled_from(FLOATS),
    "g": st.sampled_from(FLOATS),
    "ts": st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2050, 1, 1), timezones=st.just(dt.UTC)),
    "day": st.dates(dt.date(1950, 1, 1), dt.date(2050, 1, 1)),
    "b": st.booleans(),
    "d": st.decimals(-99, 99, places=2),
    "wide": st.sampled_from([Decimal(f"{sign}{10**18 * n}.125") for sign in ("", "-") for n in range(3)]),
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Where:
    """A predicate, and what it is TRUE for."""

    sql: str | None
    holds: Callable[[Row], bool]


WHERES = [
    Where(None, lambda row: True),
    Where("i > 0", lambda row: row["i"] is not None and row["i"] > 0),
    Where("i <= 3 AND s IS NOT NULL", lambda row: row["i"] is not None and row["i"] <= 3 and row["s"] is not None),
    Where("f IS NULL OR b", lambda row: row["f"] is None or row["b"] is True),
    Where("p = 'one'", lambda row: row["p"] == "one"),
    Where("p = 'one' OR i = 2", lambda row: row["p"] == "one" or row["i"] == 2),
    Where("i > 9 AND i < 10", lambda row: False),
]
WHERE = st.sampled_from(WHERES)


@st.composite
def columns(draw: st.DrawFn, n: int) -> dict[str, pa.Array]:
    """Columns that may hold NULLs, NULLs alone, or one value alone."""
    data = {}
    for name, type_ in TYPES.items():
        pool = POOLS[name]
        kind = draw(st.sampled_from(["any", "some", "one", "null"]))
        if kind == "one":
            pool = st.just(draw(pool))
        values = st.none() if kind == "null" else st.none() | pool if kind == "any" else pool
        data[name] = pa.array(draw(st.lists(values, min_size=n, max_size=n)), type_)
    return data


@st.composite
def files(draw: st.DrawFn) -> list[tuple[str, pa.Table, int]]:
    """The files of a table: where each is, what it holds, and rows of a row group; some lack a column."""
    written = []
    for number in range(draw(st.integers(1, 3))):
        table = pa.table(draw(columns(draw(st.integers(1, 12)))))
        if number and draw(st.booleans()):
            table = table.drop_columns([draw(st.sampled_from(sorted(TYPES)))])
        folder = draw(st.sampled_from(["p=one", "p=two", "p=__HIVE_DEFAULT_PARTITION__", f"p={LONG}abc"]))
        written.append((f"{folder}/{number}.parquet", table, draw(st.integers(1, 6))))
    return written


@contextmanager
def written(chosen: list[tuple[str, pa.Table, int]], indexed: int) -> Iterator[ParquetDirectory]:
    """The table of some files, with an index over the first so many of them; the first file has every column.

    It lists the values of every other column in order.
    """
    with tempfile.TemporaryDirectory() as root:
        for i, (path, table, size) in enumerate(chosen):
            if i == indexed and indexed:
                options = BuildOptions(gaps=("i",), segment_blocks=2, sums=SUMMED, filters=LISTED[::2])
                index_here(sec.open_table(root), options)
            write_file(Path(root) / path, table, row_group_size=size)
        if indexed == len(chosen):
            index_here(sec.open_table(root), BuildOptions(sums=SUMMED, filters=LISTED[1::2]))
        yield sec.open_table(root)


def rows_of(chosen: list[tuple[str, pa.Table, int]]) -> list[Row]:
    rows = []
    for path, table, _ in chosen:
        value = path.partition("/")[0].removeprefix("p=")
        partition = dict.fromkeys(TYPES) | {"p": None if value.startswith("__HIVE") else value}
        rows += [partition | row for row in table.to_pylist()]
    return rows
