"""Answers by ordered postings are those of plain Python: counts, least and greatest values, and first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.build import row_sketch
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.pruning.aggregates import in_order
from secateur.pruning.stages import first_rows
from secateur.scan import Scan
from tests.support.drawn.low_limits import LOWERED, low_limits
from tests.support.ordered_lake import IN_ORDER, VALUES, leaves, limits, ordered_lake, predicates, rank, small
from tests.support.profiles import examples, takes_seconds
from tests.support.row_lake import Asked, Row, RowLake, lakes_below

everything = Asked("true", lambda row: True)
conditions = st.just(everything) | leaves() | leaves() | predicates


@pytest.fixture(autouse=True)
def _of_few_rows_too() -> Iterator[None]:
    """Look at values for the first of however few rows."""
    with patch.object(first_rows, "FEW_ROWS", -1):
        yield


@pytest.fixture
def lake(tmp_path: Path) -> Callable[[int, int], RowLake]:
    """Makes tables of some files."""
    return lakes_below(tmp_path, ordered_lake)


def rows_of(lake: RowLake, asked: Asked) -> list[Row]:
    return [row for rows in lake.rows.values() for row in rows if asked.on(row)]


def expected(rows: Sequence[Row], column: str) -> list[Any]:
    """The number of values, of different ones, and the ranks of the least and of the greatest."""
    ranks = [rank(row[column]) for row in rows if row[column] is not None]
    return [len(ranks), len(set(ranks)), min(ranks, default=None), max(ranks, default=None)]


def check_aggregates(lake: RowLake, asked: Asked, columns: Sequence[str], *, strict: bool = True) -> None:
    """Together, and of each column alone."""
    rows = rows_of(lake, asked)
    assert sec.prune(lake.table, asked.sql, strict=strict).count() == len(rows)
    for chosen in [columns, *([column] for column in columns)]:
        functions = [f"{f}{c})" for c in chosen for f in ("count(", "count(DISTINCT ", "min(", "max(")]
        (answer,) = sec.aggregate(lake.table, ", ".join(["count(*)", *functions]), asked.sql, strict=strict).to_pylist()
        assert answer.pop("count(*)") == len(rows)
        values = list(answer.values())
        for i, column in enumerate(chosen):
            count, distinct, *ends = values[4 * i : 4 * i + 4]
            assert [count, distinct, *(None if end is None else rank(end) for end in ends)] == expected(rows, column)
    for function, at in (("min", 2), ("max", 3)):
        for column in columns:
            (answer,) = sec.aggregate(lake.table, f"{function}({column}) AS v", asked.sql, strict=strict).to_pylist()
            assert (None if answer["v"] is None else rank(answer["v"])) == expected(rows, column)[at]


@dataclass(frozen=True)
class Built:
    """How an index is built, and when its values are looked at."""

    limit: tuple[int, int, int]
    postings: dict[str, str]
    segment_blocks: int
    most_values: int  # of a block; the values of one with more are unknown
    few_entries: int
    most_waves: int  # of pages that are looked at for a row
    lowered: tuple[int, float]  # other limits

    @contextmanager
    def index_of(self, lake: RowLake) -> Iterator[None]:
        with (
            low_limits(*self.lowered),
            small(*self.limit),
            patch.object(row_sketch, "MOST_VALUES", self.most_values),
            patch.object(in_order, "FEW_ENTRIES", self.few_entries),
            patch.object(in_order, "MOST_WAVES", self.most_waves),
            patch.object(first_rows, "MOST_WAVES", self.most_waves),
        ):
            sec.build_index(lake.table, postings=self.postings, segment_blocks=self.segment_blocks)
            yield


builds = st.builds(
    Built,
    limit=limits,
    postings=st.sampled_from([IN_ORDER, IN_ORDER, {"i": "ordered", "s": "ordered"}, {"x": "ordered", "i": "rows"}]),
    segment_blocks=st.sampled_from([3, 1000]),
    most_values=st.sampled_from([19, row_sketch.MOST_VALUES]),
    few_entries=st.sampled_from([0, in_order.FEW_ENTRIES]),
    most_waves=st.sampled_from([0, 2, first_rows.MOST_WAVES]),
    lowered=LOWERED,
)


@takes_seconds
@examples(100, shrink=False)
@given(st.integers(0, 10**6), st.integers(1, 3), builds, st.lists(conditions, min_size=1, max_size=4))
def test_c35_aggregates_are_those_of_plain_python(
    lake: Callable[[int, int], RowLake], seed: int, files: int, built: Built, asked: list[Asked]
) -> None:
    """Of all kinds of keys, with NULL, NaN and -0.0, under AND, OR and NOT of comparisons."""
    made = lake(seed, files)
    with built.index_of(made):
        for condition in asked:
            check_aggregates(made, condition, list(VALUES))


@examples(100, shrink=False)
@given(st.integers(0, 10**6), st.integers(1, 3), builds, leaves(), st.randoms(use_true_random=False))
def test_a_part_of_a_plan_counts_its_rows_alone(
    lake: Callable[[int, int], RowLake], seed: int, files: int, built: Built, asked: Asked, chance: Random
) -> None:
    """Other blocks of a segment may hold matches too, as where Iceberg reads some of the files only."""
    made = lake(seed, files)
    with built.index_of(made):
        plan = sec.prune(made.table, asked.sql, strict=True)
        n = len(plan.survivors.blocks)
        part = plan.part(np.array(sorted(chance.sample(range(n), n // 2)), np.int64))
        assert part.count() == part.to_arrow().num_rows


def test_values_of_blocks_that_are_not_in_a_plan_are_not_counted(tmp_path: Path) -> None:
    for i in range(4):
        pq.write_table(pa.table({"k": [(7 * j + 3 * i) % 10 for j in range(10)]}), tmp_path / f"{i}.parquet")
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"k": "ordered"})
    plan = sec.prune(table, "k > 6", strict=True)
    assert plan.count() == 12
    assert plan.part(np.array([0, 1])).count() == 6


Item = tuple[str, bool, bool]  # column, descending, NULL first
items = st.tuples(st.sampled_from(list(VALUES)), st.booleans(), st.booleans())
orders = st.lists(items, min_size=1, max_size=2, unique_by=lambda item: item[0])


def sorted_rows(rows: Sequence[Row], order: Sequence[Item]) -> list[Row]:
    """Rows sorted by some columns."""
    for column, descending, nulls_first in reversed(order):
        values = [row for row in rows if row[column] is not None]
        values.sort(key=lambda row: rank(row[column]), reverse=descending)
        nulls = [row for row in rows if row[column] is None]
        rows = [*nulls, *values] if nulls_first else [*values, *nulls]
    return list(rows)


def check_first_rows(lake: RowLake, asked: Asked, order: Sequence[Item], limit: int, *, strict: bool = True) -> Scan:
    """The sort columns are those of the first rows, in order, and every row is one that matches."""
    texts = [
        f"{column} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for column, descending, nulls_first in order
    ]
    plan = sec.prune(lake.table, asked.sql, order_by=texts, limit=limit, strict=strict)
    rows, answer = rows_of(lake, asked), plan.to_arrow().to_pylist()

    def sorted_by(row: Row) -> list[Any]:
        return [None if row[column] is None else rank(row[column]) for column, _, _ in order]

    assert [*map(sorted_by, answer)] == [*map(sorted_by, sorted_rows(rows, order)[:limit])]
    assert len({row["rid"] for row in answer}) == len(answer)
    assert {row["rid"] for row in answer} <= {row["rid"] for row in rows}
    assert plan.count() == len(answer)
    return plan


@examples(150, shrink=False)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    builds,
    st.lists(st.tuples(conditions, orders, st.integers(0, 40)), min_size=1, max_size=5),
)
def test_first_rows_are_those_of_plain_python(
    lake: Callable[[int, int], RowLake],
    seed: int,
    files: int,
    built: Built,
    asked: list[tuple[Asked, list[Item], int]],
) -> None:
    """In any order of one or two columns, of which some are kept in order, with NULL first or last."""
    made = lake(seed, files)
    with built.index_of(made):
        for condition, order, limit in asked:
            check_first_rows(made, condition, order, limit)


@takes_seconds
@examples(40, shrink=False)
@given(st.integers(0, 10**6), builds, st.lists(conditions, min_size=3, max_size=6))
def test_c05_aggregates_stay_true_over_time(
    lake: Callable[[int, int], RowLake], seed: int, built: Built, asked: list[Asked]
) -> None:
    """New, changed and removed files: their entries are those of other rows, or of none."""
    made, random = lake(seed, 3), np.random.default_rng(seed)
    with built.index_of(made):
        made.change(random)
        for condition in asked:
            check_aggregates(made, condition, ["i", "s"])
            check_first_rows(made, condition, [("s", False, False)], 5)
        sec.refresh_index(made.table)
        sec.optimize_index(made.table)
        for condition in asked:
            check_aggregates(made, condition, ["i", "s"])


@examples(40, shrink=False)
@given(st.integers(0, 10**6), st.integers(0, 2**30), st.integers(0, 7), conditions)
def test_c04_harmed_ordered_postings_change_no_answer(
    lake: Callable[[int, int], RowLake], seed: int, position: int, bit: int, asked: Asked
) -> None:
    """What cannot be believed is read."""
    made = lake(seed, 2)
    with small(3, 100, 1 << 11):
        sec.build_index(made.table, postings=IN_ORDER)
        made.flip(position, bit)
        check_aggregates(made, asked, ["x", "d"], strict=False)
        check_first_rows(made, asked, [("i", True, False)], 5, strict=False)


# ---- nothing is read -------------------------------------------------------------------------------------------------


@pytest.fixture
def prices(tmp_path: Path) -> tuple[Path, pa.Table]:
    """A table that is ordered by none of its columns, in files of many row groups."""
    n, random = 30_000, np.random.default_rng(3)
    table = pa.table(
        {
            "rid": np.arange(n),
            "price": pa.array(random.permutation(n) / 100, mask=random.random(n) < 0.1),
            "name": [f"user-{i:06}" for i in random.integers(0, 5_000, n).tolist()],
            "status": random.choice(["ok", "late", "gone"], n, p=[0.9, 0.09, 0.01]),
        }
    )
    for i in range(3):
        pq.write_table(
            table.slice(i * 10_000, 10_000), tmp_path / f"{i}.parquet", row_group_size=500, write_page_index=True
        )
    sec.build_index(
        sec.open_table(str(tmp_path)), postings=dict.fromkeys(("price", "name", "status"), "ordered"), segment_blocks=20
    )
    return tmp_path, table


CONDITIONS = [
    "price BETWEEN 50 AND 180",
    "price > 250",
    "price IS NOT NULL AND price < 120.5",
    "price < 100 AND status = 'late'",
    "status IN ('gone', 'late') OR price > 290",
    "name LIKE 'user-0012%'",
    "NOT (price < 250) AND name >= 'user-004'",
]
FUNCTIONS = (
    "count(*) AS a, count(name) AS b, count(DISTINCT name) AS c, min(name) AS d, max(name) AS e, min(price) AS f"
)


@pytest.mark.parametrize("where", CONDITIONS)
def test_no_block_is_read(prices: tuple[Path, pa.Table], where: str) -> None:
    table = sec.open_table(str(prices[0]))
    right = sec.aggregate(table, FUNCTIONS, where, use_index=False)
    with patch.object(BlockReader, "_opened", side_effect=AssertionError("a block is read")):
        answer = sec.aggregate(table, FUNCTIONS, where, strict=True)
        count = sec.prune(table, where, strict=True).count()
    assert answer.to_pylist() == right.to_pylist()
    assert count == right["a"][0].as_py() > 0
    assert answer.schema.metadata[b"blocks_read"] == b"0"
    assert right.schema.metadata[b"blocks_read"] != b"0"


@pytest.mark.parametrize(
    ("order", "limit", "where"),
    [
        ("price DESC", 10, "true"),
        ("price NULLS LAST", 25, "true"),
        ("price", 10, "price > 100"),
        ("name DESC", 7, "status = 'late'"),
        ("status DESC", 40, "price < 200 AND status <> 'ok'"),
        ("status, price DESC", 5, "price > 295"),
    ],
)
def test_first_rows_alone_are_read(prices: tuple[Path, pa.Table], order: str, limit: int, where: str) -> None:
    """Of an order by one column as many as are asked for, of several no more than are equal in the first."""
    root, rows = prices
    table = sec.open_table(str(root))
    column = order.split()[0].rstrip(",")
    plan = sec.prune(table, where, order_by=[part.strip() for part in order.split(",")], limit=limit, strict=True)
    right = sec.prune(table, where, order_by=[part.strip() for part in order.split(",")], limit=limit, use_index=False)
    assert plan.to_arrow()[column].to_pylist() == right.to_arrow()[column].to_pylist()
    ranges = [span for spans in plan.blocks["row_ranges"].to_pylist() for span in spans]
    selected = sum(span["stop"] - span["start"] for span in ranges)
    assert selected == limit or "," in order
    assert len(plan.blocks) <= selected < len(rows) / 10


def test_blocks_of_other_segments_are_read(prices: tuple[Path, pa.Table]) -> None:
    """Of a file that came after the build."""
    root, rows = prices
    pq.write_table(rows.slice(0, 700), root / "new.parquet", row_group_size=500)
    table = sec.open_table(str(root))
    answer = sec.aggregate(table, FUNCTIONS, CONDITIONS[0], strict=True)
    assert answer.schema.metadata[b"blocks_read"] == b"2"
    assert answer.to_pylist() == sec.aggregate(table, FUNCTIONS, CONDITIONS[0], use_index=False).to_pylist()


def write(root: Path, name: str, **columns: list[Any]) -> None:
    pq.write_table(pa.table(columns), root / f"{name}.parquet", row_group_size=2)


def test_entries_of_removed_files_count_for_nothing(tmp_path: Path) -> None:
    """Though their segment still has them."""
    write(tmp_path, "a", x=[1, 9, 2, 8])
    write(tmp_path, "b", x=[3, 9, 4, 8])
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"x": "ordered"})
    (tmp_path / "b.parquet").unlink()
    answer = sec.aggregate(table, "count(*) AS n, min(x) AS least", "x < 9", strict=True)
    assert answer.to_pylist() == [{"n": 3, "least": 1}]
    assert answer.schema.metadata[b"blocks_read"] == b"0"


def test_the_least_value_may_be_in_a_segment_that_begins_later(tmp_path: Path) -> None:
    write(tmp_path, "a", x=[1, 9, 1, 8], y=[0, 1, 0, 1])
    write(tmp_path, "b", x=[2, 5, 2, 6], y=[0, 1, 0, 1])
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"x": "ordered", "y": "ordered"}, segment_blocks=2)
    assert sec.describe_index(table).segments == 2
    answer = sec.aggregate(table, "min(x) AS least, max(x) AS greatest", "y = 1", strict=True)
    assert answer.to_pylist() == [{"least": 5, "greatest": 9}]
    assert answer.schema.metadata[b"blocks_read"] == b"0"


def test_rows_that_may_match_stay_before_those_that_do(tmp_path: Path) -> None:
    """Of the second file it is not known which rows match."""
    write(tmp_path, "a", x=[10, 20, 30, 40], y=[1, 1, 1, 1])
    write(tmp_path, "b", x=[1, 2, 3, 50], y=[1, 0, 1, 1])
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"x": "ordered"})
    plan = sec.prune(table, "y = 1", order_by="x", limit=2, strict=True)
    assert plan.to_arrow()["x"].to_pylist() == [1, 3]
    spans = [span for block in plan.blocks["row_ranges"].to_pylist() for span in block]
    assert sum(span["stop"] - span["start"] for span in spans) == 4  # 3 and 10 match; 1 and 2 may


@pytest.mark.parametrize(("order", "sign"), [("x", 1), ("x DESC", -1)])
def test_rows_before_which_a_search_was_given_up_stay(tmp_path: Path, order: str, sign: int) -> None:
    """The first values of a segment match on no row, and its only match lies behind the pages that are looked at."""
    write(tmp_path, "a", x=[sign * i for i in range(10)], y=[0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
    write(tmp_path, "b", x=[sign * i for i in range(100, 110)], y=[1, 0] * 5)
    table = sec.open_table(str(tmp_path))
    with small(1, 16, 1 << 11), patch.object(first_rows, "MOST_WAVES", 0):
        sec.build_index(table, postings={"x": "ordered", "y": "ordered"}, segment_blocks=5)
        assert sec.describe_index(table).segments == 2
        plan = sec.prune(table, "y = 1", order_by=order, limit=1, strict=True)
    assert plan.to_arrow()["x"].to_pylist() == [sign * 5]


def test_a_zero_is_read_for_its_sign(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, -0.0, None, 2.0]}), tmp_path / "a.parquet")
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, postings={"x": "ordered"})
    assert str(sec.aggregate(table, "min(x) AS v", "x < 1.5", strict=True)["v"][0].as_py()) == "-0.0"
