"""Ordered postings: ranges over columns of any kind leave the rows that plain Python finds, over time and harmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
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
from secateur.index.filters.heads import Heads, joined
from secateur.index.filters.ordered import BlockEntries
from tests.support.ordered_lake import IN_ORDER, VALUES, limits, ordered_lake, predicates, small
from tests.support.profiles import examples
from tests.support.row_lake import Asked, RowLake, lakes_below


@pytest.fixture
def lake(tmp_path: Path) -> Callable[[int, int], RowLake]:
    """Makes tables of some files."""
    return lakes_below(tmp_path, ordered_lake)


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
