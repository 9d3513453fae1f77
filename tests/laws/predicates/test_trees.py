"""Predicates as deep and as long as people and programs write them: right, and in time that is linear in their text.

Work is counted, not timed: calls of functions, Python's and C's, from the text to the rows. A count is stopped where it
is too great, so that a fault of exponential time fails at once. Long texts are timed by ``benchmarks long_literals``.
"""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.api import prune
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.drawn.long_literals import LONG_LITERALS
from tests.support.drawn.trees import (
    CONDITIONALS,
    CONNECTIVES,
    TEXT_VALUES,
    Condition,
    Holds,
    Row,
    chained,
    comparison,
    nested,
)
from tests.support.profiles import examples
from tests.support.tables import write_file

ROWS: list[Row] = [{"id": i, "s": TEXT_VALUES[i % len(TEXT_VALUES)]} for i in range(40)]
LEVELS, TWICE = 8, 16
GROWTH = 4  # times the work of half the levels, of which linear work takes 2
A_LOT = 2_000_000  # calls

seeds = st.integers(0, 2**40)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> ParquetDirectory:
    """Forty rows in ten row groups."""
    root = tmp_path_factory.mktemp("trees") / "lake"
    write_file(Path(root / "rows.parquet"), pa.Table.from_pylist(ROWS), row_group_size=4)
    table = sec.open_table(str(root))
    assert isinstance(table, ParquetDirectory)
    assert prune(table, "id >= 0").to_arrow().num_rows == len(ROWS)  # what is imported once is there
    return table


class TooMuchWork(Exception):
    """More calls than are allowed."""


@contextmanager
def counted(most: int) -> Iterator[list[int]]:
    """Counts the calls made within, in a list of one number; from `most` on TooMuchWork is raised."""
    calls = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            calls[0] += 1
            if calls[0] > most:
                raise TooMuchWork(f"more than {most} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def check(lake: ParquetDirectory, predicate: Any, holds: Holds, most: int = A_LOT) -> int:
    """The rows are right; gives the number of calls that it took."""
    with counted(most) as calls:
        plan = prune(lake, predicate)
        rows = plan.to_arrow(columns=["id"])
    assert sorted(rows["id"].to_pylist()) == [row["id"] for row in ROWS if holds(row)], str(predicate)[:2000]
    return calls[0]


def check_growth(lake: ParquetDirectory, shapes: Sequence[Condition]) -> None:
    """Twice the levels take about twice the work, and the rows are right."""
    half, whole = shapes[LEVELS], shapes[TWICE]
    few = check(lake, half.sql, half.holds)
    check(lake, whole.sql, whole.holds, GROWTH * few)


@examples(60, shrink=False)
@given(seeds)
def test_work_is_linear_in_the_levels_of_conditions_as_values(lake: ParquetDirectory, seed: int) -> None:
    check_growth(lake, nested(TWICE, random.Random(seed), CONDITIONALS + CONNECTIVES))


@pytest.mark.parametrize("step", CONDITIONALS + CONNECTIVES, ids=lambda step: step[0])
def test_work_is_linear_in_the_levels_of_one_shape(lake: ParquetDirectory, step: Any) -> None:
    check_growth(lake, nested(TWICE, random.Random(5), [step]))


@examples(30, shrink=False)
@given(seeds, st.sampled_from([[step] for step in CONNECTIVES] + [CONNECTIVES]))
def test_a_hundred_levels_are_ordinary(lake: ParquetDirectory, seed: int, steps: Any) -> None:
    deep = nested(100, random.Random(seed), steps)[-1]
    check(lake, deep.sql, deep.holds)


@examples(30, shrink=False)
@given(seeds, st.integers(250, 350))
def test_hundreds_of_conditions_are_joined_by_operators(lake: ParquetDirectory, seed: int, count: int) -> None:
    chance = random.Random(seed)
    predicate, holds = chained([comparison(chance) for _ in range(count)], chance)
    check(lake, predicate, holds)
    check(lake, str(predicate), holds)


@pytest.mark.parametrize("count", [10, 300])
def test_hundreds_of_values_are_added(lake: ParquetDirectory, count: int) -> None:
    ids = [sec.col("id") + number for number in range(count)]
    least = sum(range(count)) + 20 * count
    check(lake, reduce(operator.add, ids) >= least, lambda row: row["id"] >= 20)


@pytest.mark.parametrize("shape", LONG_LITERALS)
def test_planning_is_linear_in_the_length_of_a_literal(lake: ParquetDirectory, shape: str) -> None:
    half, whole = (LONG_LITERALS[shape]("ab" * count) for count in (10_000, 20_000))
    with counted(A_LOT) as calls:
        prune(lake, half)
    with counted(GROWTH * calls[0]):
        prune(lake, whole)
