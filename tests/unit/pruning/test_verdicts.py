"""A condition that is said to follow from another is TRUE on every row on which that one is."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import matching_rows
from secateur.pruning.verdicts import MOST_PARTS, can_be_remembered, implies
from tests.support.drawn.strategies import connected
from tests.support.profiles import examples

SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
_VALUES = itertools.product([None, -1, 0, 1, 2, 3], [None, float("nan"), -0.0, 1.0, 2.5], [None, "", "a", "ab", "b"])
ROWS = pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*_VALUES, strict=True)], schema=SCHEMA)
CONDITIONS = st.one_of(
    st.builds("i {} {}".format, st.sampled_from(["=", "<", ">=", "<=>"]), st.integers(-1, 3)),
    st.builds("i IN ({}, {})".format, st.integers(-1, 3), st.integers(-1, 3)),
    st.builds("f {} {}".format, st.sampled_from(["=", ">", "<="]), st.sampled_from(["0.0D", "1.0D", "2.5D"])),
    st.sampled_from(["s = 'a'", "s LIKE 'a%'", "s LIKE '%b'", "s IS NULL", "i < f", "i % 2 = 1", "s IN ('a', 'ab')"]),
)
PREDICATES = connected(CONDITIONS, ["TRUE", "UNKNOWN"], max_leaves=4)


def bound(sql: str) -> Predicate:
    return rewrite(bind(parse(sql), SCHEMA, session_time_zone="UTC", case_sensitive=False, ansi=True))


@examples(600)
@given(asked=PREDICATES, known=PREDICATES, joined=st.sampled_from(["{}", "{} AND {}", "{1} OR {0}", "{1}"]))
def test_what_follows_is_true_wherever_the_other_is(asked: str, known: str, joined: str) -> None:
    one, other = bound(joined.format(f"({asked})", f"({known})")), bound(known)
    follows = implies(one, other)
    event(f"follows: {follows}")
    if follows:
        assert not (matching_rows(one, ROWS) & ~matching_rows(other, ROWS)).any()


@pytest.mark.parametrize(
    ("asked", "known", "follows"),
    [
        ("i > 5", "i > 5", True),
        ("i > 50", "i > 5", True),
        ("i > 5", "i > 50", False),
        ("i IN (7, 9)", "i > 5", True),
        ("i IN (3, 9)", "i > 5", False),
        ("i > 5 AND s = 'a'", "i > 5", True),
        ("i > 5", "i > 5 AND s = 'a'", False),
        ("i = 7 AND s = 'a' AND f > 1", "s = 'a' AND i > 5", True),
        ("i = 7", "i > 5 OR s = 'a'", True),
        ("i = 7 OR s = 'a'", "i > 5 OR s = 'a' OR f > 1", True),
        ("i = 7 OR f > 1", "i > 5 OR s = 'a'", False),
        ("i = 1 AND i = 2", "i > 5", True),
        ("s = 'abc'", "s LIKE 'ab%'", True),
        ("f > 1", "i > 1", False),
        ("i % 4 = 7", "i % 4 > 5", True),
        ("i % 4 = 7", "i % 5 > 5", False),
    ],
)
def test_what_follows_from_what(asked: str, known: str, *, follows: bool) -> None:
    assert implies(bound(asked), bound(known)) == follows


@pytest.mark.parametrize("sql", ["i = rand()", "my_function(i) > 1", "i > unix_timestamp()", "s = current_date()"])
def test_what_may_change_is_not_kept(sql: str) -> None:
    assert not can_be_remembered(bound(sql))
    assert can_be_remembered(bound("i = 1"))


def test_what_is_long_is_not_kept() -> None:
    long = " AND ".join(f"i % {n} = 1" for n in range(2, MOST_PARTS))
    assert not can_be_remembered(bound(long))
    assert can_be_remembered(bound("i IN (" + ", ".join(map(str, range(0, 4000, 2))) + ")")), "a list is one part"
