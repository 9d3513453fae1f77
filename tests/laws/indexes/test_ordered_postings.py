"""Ordered postings: ranges over columns of any kind leave the rows that plain Python finds, over time and harmed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import InvalidOption
from secateur.index.build import row_sketch
from secateur.index.filters import ordered
from secateur.index.filters.heads import Heads, joined
from secateur.index.filters.ordered import BlockEntries
from secateur.index.read import ordered_lookup
from tests.support.profiles import examples
from tests.support.row_lake import Asked, Row, RowLake, combined, lakes_below, of_column

NAN, BIG = float("nan"), 10**25
VALUES: dict[str, list[Any]] = {
    "i": [-(2**63), -7, 0, 1, 2, 3, 2**63 - 1],
    "x": [NAN, -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e300],
    "s": ["", "a", "a\0", "ab", "user-00000001", "user-00000001\0", "user-00000002", "user-1", "é", "user-0000000"],
    "d": [Decimal(n).scaleb(-2) for n in (-BIG, -(2**63) * 1, -1, 0, 1, 2**63 - 1, 2**63, BIG)],
}
SCHEMA = pa.schema(
    [("rid", pa.int64()), ("i", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("d", pa.decimal128(30, 2))]
)
IN_ORDER = dict.fromkeys(VALUES, "ordered")


def rank(value: Any) -> Any:
    """Values order as these do: NaN is the greatest number, and -0.0 is 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def literal(name: str, value: Any) -> str:
    match name:
        case "s":
            return "'" + value.replace("\0", "\\u0000") + "'"
        case "x":
            return f"CAST('{value}' AS DOUBLE)"
        case "d":
            return f"CAST('{value}' AS DECIMAL(30,2))"
        case _:
            return f"CAST('{value}' AS BIGINT)"


@st.composite
def leaves(draw: st.DrawFn) -> Asked:
    name = draw(st.sampled_from(list(VALUES)))
    a, b, *more = draw(st.lists(st.sampled_from(VALUES[name]), min_size=2, max_size=4))
    low, high = rank(a), rank(b)
    options = [
        of_column(name, f"{name} = {literal(name, a)}", lambda v: rank(v) == low),
        of_column(name, f"{name} < {literal(name, a)}", lambda v: rank(v) < low),
        of_column(name, f"{name} >= {literal(name, a)}", lambda v: rank(v) >= low),
        of_column(name, f"{name} <> {literal(name, a)}", lambda v: rank(v) != low),
        of_column(
            name,
            f"{name} BETWEEN {literal(name, a)} AND {literal(name, b)}",
            lambda v: low <= rank(v) <= high,
        ),
        of_column(
            name,
            f"{name} IN ({', '.join(literal(name, v) for v in (a, b, *more))})",
            lambda v: rank(v) in [rank(one) for one in (a, b, *more)],
        ),
    ]
    if name == "s":
        start = a.rstrip("\0")[: draw(st.integers(1, 12))]
        options.append(of_column("s", f"s LIKE '{start}%'", lambda v: v.startswith(start)))
        options.append(Asked("s IS NULL", lambda row: row["s"] is None))
    return draw(st.sampled_from(options))


predicates = combined(leaves(), 5)


def rows_of(random: np.random.Generator, first: int) -> list[Row]:
    """Rows of few distinct values, some of them NULL."""
    count = int(random.choice([0, 1, 30, 70]))
    some = {column: random.permutation(len(values))[:4].tolist() for column, values in VALUES.items()}
    return [
        {"rid": first + i}
        | {
            column: None if random.random() < 0.15 else values[int(random.choice(some[column]))]
            for column, values in VALUES.items()
        }
        for i in range(count)
    ]


@pytest.fixture
def lake(tmp_path: Path) -> Callable[[int, int], RowLake]:
    """Makes tables of some files."""
    return lakes_below(tmp_path, lambda root: RowLake(root, SCHEMA, rows_of, pages=(5,)))


@contextmanager
def small(page: int, least: int, most: int) -> Any:
    """Other limits, so that small tables meet them."""
    with (
        patch.object(ordered, "PAGE", page),
        patch.object(ordered_lookup, "LEAST_PAGES", least),
        patch.object(ordered_lookup, "MOST_PAGES", most),
    ):
        yield


limits = st.tuples(st.sampled_from([1, 3, 2048]), st.sampled_from([0, 2, 100]), st.sampled_from([0, 3, 1 << 11]))


@examples(120, shrink=False)
@given(st.integers(0, 10**6), st.integers(1, 3), limits, st.lists(predicates, min_size=3, max_size=8))
def test_c35_rows_are_those_of_plain_python(
    lake: Callable[[int, int], RowLake], seed: int, files: int, limit: tuple[int, int, int], asked: list[Asked]
) -> None:
    """Ranges of integers, doubles with NaN and -0.0, texts cut to their heads, and decimals beyond 64 bits."""
    made = lake(seed, files)
    with small(*limit):
        sec.build_index(made.table, postings=IN_ORDER)
        for predicate in asked:
            made.check(predicate)


@examples(40, shrink=False)
@given(st.integers(0, 10**6), limits, st.lists(predicates, min_size=2, max_size=5))
def test_c05_rows_stay_true_over_time(
    lake: Callable[[int, int], RowLake], seed: int, limit: tuple[int, int, int], asked: list[Asked]
) -> None:
    """New, changed and removed files, columns added by a refresh, segments merged under shorter prefixes."""
    made, random = lake(seed, 3), np.random.default_rng(seed)
    with small(*limit):
        sec.build_index(made.table, postings={"s": "ordered", "i": "rows"}, segment_blocks=3)
        made.change(random)
        for predicate in asked:
            made.check(predicate)
        sec.refresh_index(made.table, postings=IN_ORDER)
        for predicate in asked:
            made.check(predicate)
        sec.optimize_index(made.table)
        for predicate in asked:
            made.check(predicate)
    assert sec.verify_index(made.table).faults == ()
    assert made.audited() == []


@examples(40, shrink=False)
@given(st.integers(0, 10**6), st.integers(0, 2**30), st.integers(0, 7), st.lists(predicates, min_size=2, max_size=3))
def test_c04_harmed_ordered_postings_lose_no_row(
    lake: Callable[[int, int], RowLake], seed: int, position: int, bit: int, asked: list[Asked]
) -> None:
    """A bit of any segment file: what cannot be believed keeps its blocks whole."""
    made = lake(seed, 2)
    with small(3, 100, 1 << 11):
        sec.build_index(made.table, postings=IN_ORDER)
        made.flip(position, bit)
        for predicate in asked:
            made.check(predicate, strict=False)


@pytest.mark.parametrize("column", list(VALUES))
def test_a_wrong_entry_is_found_by_an_audit(lake: Callable[[int, int], RowLake], column: str) -> None:
    """A row that is missing from every block that has values."""
    made = lake(5, 3)
    asked = []

    def without_a_row(parts: Sequence[Heads], rows: np.ndarray) -> BlockEntries:
        heads = joined(parts)
        asked.append(len(rows) > 0)
        return BlockEntries(Heads(heads.heads[1:], heads.prefix, heads.is_exact), rows[1:])

    with patch.object(row_sketch, "_block_entries", without_a_row):
        sec.build_index(made.table, postings={column: "ordered"})
    faults = [fault for fault in made.audited() if fault.statistic == "the ordered postings"]
    assert {fault.column for fault in faults} == {column}
    assert len(faults) == sum(asked)


def test_a_narrow_range_leaves_the_rows_that_match(tmp_path: Path) -> None:
    """Of a column whose bounds cover the range in every row group."""
    n = 40_000
    price = np.random.default_rng(3).permutation(n) / 100
    table = pa.table({"rid": np.arange(n), "price": price})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=500, write_page_index=True)
    opened = sec.open_table(str(tmp_path))
    assert len(sec.prune(opened, "price BETWEEN 10.00 AND 10.02").blocks) == 80
    sec.build_index(opened, postings={"price": "ordered"})
    plan = sec.prune(opened, "price BETWEEN 10.00 AND 10.02", strict=True)
    matching = np.flatnonzero((price >= 10.0) & (price <= 10.02)).tolist()
    rows = [
        block["row_group"] * 500 + row
        for block in plan.blocks.to_pylist()
        for span in block["row_ranges"]
        for row in range(span["start"], span["stop"])
    ]
    assert rows == matching
    assert plan.to_arrow()["rid"].to_pylist() == matching


def test_ordered_postings_are_of_single_values(tmp_path: Path) -> None:
    pq.write_table(pa.table({"tags": [[1, 2]], "name": ["A"]}), tmp_path / "a.parquet")
    for column in ("tags", "lower(name)"):
        with pytest.raises(InvalidOption, match="single values"):
            sec.build_index(sec.open_table(str(tmp_path)), postings={column: "ordered"})
