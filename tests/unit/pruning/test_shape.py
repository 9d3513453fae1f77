"""Shapes: equal for predicates that differ in literals only, and silent about these."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.shape import MOST_CHARACTERS, shape_of
from tests.support.drawn.strategies import connected
from tests.support.profiles import examples

TEXTS = st.text("qxzj", min_size=6, max_size=9)  # that no name and no keyword holds
NUMBERS = st.integers(10**6, 10**8)
TEMPLATES = [
    "id = {n}",
    "name = '{t}'",
    "id IN ({n}, {n}, {n})",
    "id BETWEEN {n} AND {n}",
    "name LIKE '{t}%'",
    "name ILIKE '%{t}%'",
    "name RLIKE '{t}'",
    "id + {n} > {n}",
    "CAST(id AS STRING) = '{t}'",
    "ts >= TIMESTAMP '2026-01-01 00:00:00' - INTERVAL '{n}' SECOND",
    "CASE WHEN id > {n} THEN '{t}' ELSE name END = '{t}'",
    "substring(name, {n}) <=> '{t}'",
    "some_function(name, '{t}') = {n}",
    "id IN (SELECT x FROM y WHERE z = {n})",
    "price > {n}.{n}",
    "timestampadd(HOUR, {n}, ts) > ts",
    "name IS NULL",
    "NOT (flag = TRUE)",
]


@st.composite
def filled_twice(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A predicate with two sets of literals, and those."""
    template = draw(connected(st.sampled_from(TEMPLATES), max_leaves=4))
    used: list[str] = []

    def fill() -> str:
        text = template
        for mark, values in (("{n}", NUMBERS.map(str)), ("{t}", TEXTS)):
            while mark in text:
                used.append(draw(values))
                text = text.replace(mark, used[-1], 1)
        return text

    return fill(), fill(), used


@examples(300)
@given(filled_twice())
def test_literals_do_not_show(case: tuple[str, str, list[str]]) -> None:
    first, second, used = case
    shapes = [shape_of(parse(text)) for text in (first, second)]
    assert shapes[0].text == shapes[1].text
    for shape in shapes:
        assert not any(literal in shape.text for literal in used)
        assert not any(literal in hashed for literal in used for hashed in shape.hashed())
        assert len(shape.hashed()) == len(shape.literals)


@pytest.mark.parametrize(
    ("sql", "shape", "literals"),
    [
        ("user_id = 42", "`user_id` = ?", ["42"]),
        ("a IN (1, 2)", "`a` IN (?)", ["1, 2"]),
        ("s LIKE '%ab_c%' OR s IS NULL", "(`s` LIKE '%?_?%' OR `s` IS NULL)", ["%ab_c%"]),
        ("flag = TRUE AND x <=> NULL", "(`flag` = TRUE AND `x` <=> NULL)", []),
        ("a >= 1 AND a <= 2", "(`a` >= ? AND `a` <= ?)", ["1", "2"]),
    ],
)
def test_what_a_shape_looks_like(sql: str, shape: str, literals: list[str]) -> None:
    query_shape = shape_of(parse(sql))
    assert (query_shape.text, list(query_shape.literals)) == (shape, literals)


def test_lists_of_any_length_have_one_shape() -> None:
    shapes: set[Any] = {shape_of(sec.col("a").isin(range(n))).text for n in (1, 3, 70, 100_000)}
    assert shapes == {"`a` IN (?)"}
    assert shape_of(sec.col("a").isin(range(100_000))).literals == ("100000 values",)


def test_a_long_predicate_is_cut() -> None:
    long = shape_of(parse(" OR ".join(f"column_{i} = {i}" for i in range(1000))))
    assert len(long.text) <= MOST_CHARACTERS + 4
    assert len(long.hashed()) <= 64


def test_different_predicates_have_different_hashes() -> None:
    one, same, other = (shape_of(parse(f"a = {n}")).hashed() for n in (1, 1, 2))
    assert one == same != other


def test_literals_come_from_left_to_right_at_any_depth() -> None:
    shape = shape_of(parse("a + 1 > 2 AND (b - 3) * 4 IN (5, 6) OR substring(c, 7) LIKE '8%'"))
    assert shape.literals == ("1", "2", "3", "4", "5, 6", "7", "8%")
