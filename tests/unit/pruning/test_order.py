"""Places in an order, the fronts of blocks, and the boundary of the first n rows, beside the same by plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import InvalidOrder
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.order import (
    NULLS_AFTER,
    NULLS_BEFORE,
    VALUES,
    Boundary,
    Order,
    OrderColumn,
    OrderItem,
    boundary_of,
    fronts_of,
    up_to,
)
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.predicate.sql.order import parse_order
from secateur.pruning.rows.truth import matching_rows
from secateur.values.combination import concatenate
from secateur.values.conversion import keys_of
from secateur.values.key import Key, least_key
from secateur.values.keys import Keys, constant_keys, greatest_keys
from secateur.values.kinds import Kind
from tests.support.profiles import examples

TYPES = {Kind.WORD: pa.int64(), Kind.BYTES: pa.binary(), Kind.WIDE: pa.decimal128(30, 0)}


@dataclass(frozen=True)
class Unit:
    """A block: its values, its bounds (None: unknown), its NULL count (-1: unknown), and whether all its rows match."""

    values: list[Key | None]
    lower: Key | None
    upper: Key | None
    nulls: int
    whole: bool


@st.composite
def units(draw: st.DrawFn, kind: Kind) -> list[Unit]:
    pool: st.SearchStrategy[Key]
    if kind is Kind.BYTES:
        pool = st.sampled_from([b"", b"\0", b"a", b"a" * 9, b"a" * 9 + b"b", b"a" * 20, b"b", b"\xff" * 17])
    else:
        pool = st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1])
    drawn = []
    for _ in range(draw(st.integers(0, 8))):
        values = draw(st.lists(st.none() | pool, min_size=1, max_size=5))
        present = [value for value in values if value is not None]
        ends = [min(present, default=None), max(present, default=None)] if present else [None, None]
        loose = draw(pool)
        if present and draw(st.booleans()):
            ends = [min(ends[0], loose), max(ends[1], loose)]
        ends = [None if draw(st.integers(0, 5)) == 0 else end for end in ends]
        nulls = -1 if draw(st.integers(0, 3)) == 0 else len(values) - len(present)
        drawn.append(Unit(values, ends[0], ends[1], nulls, draw(st.booleans())))
    return drawn


def zones_of(kind: Kind, drawn: list[Unit]) -> Zones:
    def keys(ends: list[Key | None], unknown: Keys) -> Keys:
        parts = [unknown if end is None else constant_keys(end, kind, 1) for end in ends]
        return concatenate([constant_keys(least_key(kind), kind, 0), *parts])

    value = [0 if unit.nulls == len(unit.values) else TRUE | FALSE for unit in drawn]
    null = [0 if unit.nulls == 0 else NULL for unit in drawn]
    return Zones(
        keys([unit.lower for unit in drawn], constant_keys(least_key(kind), kind, 1)),
        keys([unit.upper for unit in drawn], greatest_keys(kind, 1)),
        np.array(value, np.uint8),
        np.array(null, np.uint8),
    )


def before(column: OrderColumn, a: Key | None, b: Key | None) -> bool:
    """Whether a row with one value comes before a row with another."""
    if a is None or b is None:
        return a is not b and (a is None) == column.nulls_first
    return (b < a) if column.descending else (a < b)  # type: ignore[operator]


@pytest.mark.parametrize("kind", list(Kind))
@examples(400)
@given(st.data(), st.booleans(), st.booleans(), st.integers(1, 12))
def test_a_unit_that_is_dropped_has_no_row_among_the_first(
    kind: Kind, data: st.DataObject, descending: bool, nulls_first: bool, n: int
) -> None:
    column = OrderColumn(Field(("a",), TYPES[kind]), descending, nulls_first)
    drawn = data.draw(units(kind))
    zones, whole = zones_of(kind, drawn), np.flatnonzero([unit.whole for unit in drawn])
    rows = np.array([len(unit.values) for unit in drawn], np.int64)
    nulls = np.array([unit.nulls for unit in drawn], np.int64)
    boundary = boundary_of(column, zones.take(whole), rows[whole], nulls[whole], n)
    counted = [value for unit in drawn if unit.whole for value in unit.values]
    if boundary is None:
        bounded = [unit for unit in drawn if unit.whole and unit.nulls >= 0 and None not in (unit.lower, unit.upper)]
        values = [value for unit in bounded for value in unit.values if nulls_first or value is not None]
        assert len(values) < n
        return
    fronts = fronts_of(column, zones)
    kept = fronts.reach(boundary, ties=True)
    for unit, stays in zip(drawn, kept, strict=True):
        assert stays or all(sum(before(column, other, value) for other in counted) >= n for value in unit.values)
    known = [i for i, unit in enumerate(drawn) if (unit.upper if descending else unit.lower) is not None]
    ends = [(int(fronts.rank[i]), fronts.keys.at(int(i))) for i in fronts.best_first(np.array(known, np.int64))]
    for (rank, a), (following, b) in pairwise(ends):
        assert rank < following or (rank == following and not before(column, b, a))


@pytest.mark.parametrize("kind", [Kind.WORD, Kind.BYTES])
@examples(200)
@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_the_condition_of_a_boundary_keeps_what_comes_before_it(
    kind: Kind, data: st.DataObject, descending: bool, nulls_first: bool, ties: bool
) -> None:
    column = OrderColumn(Field(("a",), TYPES[kind]), descending, nulls_first)
    values = [value for unit in data.draw(units(kind)) for value in unit.values] or [None]
    batch = pa.record_batch({"a": pa.array(values, TYPES[kind])})
    place = data.draw(st.sampled_from(values))
    at = Order((column,)).place_of(batch.slice(values.index(place), 1))
    assert at.rank == (VALUES if place is not None else NULLS_BEFORE if nulls_first else NULLS_AFTER)
    condition = up_to(column, at, ties=ties)
    passes = [True] * len(values) if condition is None else matching_rows(condition, batch).tolist()
    wanted = [before(column, value, place) or (ties and not before(column, place, value)) for value in values]
    assert passes == wanted


def test_bounds_that_were_cut_give_no_condition() -> None:
    """The key of an upper bound without end is none that a row could be compared with."""
    column = OrderColumn(Field(("a",), pa.binary()))
    assert up_to(column, Boundary(VALUES, greatest_keys(Kind.BYTES, 1)), ties=True) is None
    exact = Boundary(VALUES, keys_of(pa.array([b"ab"])))
    batch = pa.record_batch({"a": [b"ab", b"ab\0", None]})
    condition = up_to(column, exact, ties=True)
    assert condition is not None
    assert matching_rows(condition, batch).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("ts", [(("ts",), False, True)]),
        ("ts desc", [(("ts",), True, False)]),
        ("a.b ASC NULLS LAST, `c d` DESC NULLS FIRST", [(("a", "b"), False, False), (("c d",), True, True)]),
    ],
)
def test_texts_say_what_spark_takes_them_for(text: str, items: list[tuple[tuple[str, ...], bool, bool]]) -> None:
    assert parse_order([text]) == tuple(OrderItem(Column(path), *rest) for path, *rest in items)
    assert parse_order([str(item) for item in parse_order([text])]) == parse_order([text])


@pytest.mark.parametrize("text", ["", "a +", "a + 1", "1", "a DESC NULLS", "a LIMIT 3", "rand()", "a; b", "a b c"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidOrder, match="cannot order by"):
        parse_order([text])
