"""Shapes of predicates, with literals in their places again."""

from __future__ import annotations

import pytest
from hypothesis import given

from secateur.errors import InvalidPredicate
from secateur.pruning.explain.filled_shapes import Slot, filled, slots
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.shape import shape_of
from tests.support.drawn.made_tables import PREDICATES

WRITTEN = [
    "a = 1",
    "a <=> 1 AND b <> 'it''s ?'",
    "x.`odd ? name` IN (1, 2, 3) OR NOT (b IS NULL)",
    "b LIKE '10%_\\\\%' AND b LIKE '%'",
    "b RLIKE 'a\\\\d?' OR has_token(b, 'disk')",
    "ts BETWEEN TIMESTAMP '2026-01-01' AND ts + INTERVAL 1 DAY",
    "CAST(a AS STRING) = 'x' AND a = CAST('5' AS BIGINT) AND d = DATE '2026-01-01'",
    "lower(b) = 'x' AND a + 1 > 2 AND c",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_shape_with_its_own_literals_is_the_predicate(text: str) -> None:
    tree = parse(text)
    shape = shape_of(tree)
    assert str(parse(filled(shape.text, shape.literals))) == str(tree)


@given(text=PREDICATES)
def test_random_shapes_with_their_own_literals_are_the_predicates(text: str) -> None:
    tree = parse(text)
    shape = shape_of(tree)
    assert str(parse(filled(shape.text, shape.literals))) == str(tree)
    assert len(slots(shape.text)) == len(shape.literals)


def test_slots_say_what_a_literal_is_compared_with() -> None:
    shape = shape_of(parse("a.b = 1 AND 2 > `c d` AND s LIKE '%x%y' AND lower(s) = 'x' AND t IN (1, 2)"))
    assert slots(shape.text) == [
        Slot(("a", "b"), "="),
        Slot(("c d",), "<"),
        Slot(("s",), "LIKE", "%?%?"),
        None,
        Slot(("t",), "="),
    ]


@pytest.mark.parametrize("shape", ["(? of a, b)", "`a` = ? AND `b` ...", "`a"])
def test_what_is_no_sql_is_refused(shape: str) -> None:
    with pytest.raises(InvalidPredicate):
        slots(shape)


def test_a_join_has_one_key() -> None:
    assert slots("(`id`) IN (keys)") == [Slot(("id",), "=")]
    assert slots("(`a`, `b`) IN (keys)") == [None]
    assert slots("`keys` = ? OR `a` IN (`keys`)") == [Slot(("keys",), "=")]
    assert filled("(`id`) IN (keys)", ["7"]) == "(`id`) IN (7)"


def test_as_many_literals_as_places() -> None:
    with pytest.raises(InvalidPredicate, match="1 literals for the 2 places"):
        filled("`a` = ? OR `b` = ?", ["1"])
