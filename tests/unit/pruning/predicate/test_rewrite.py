"""Rewriting keeps the truth value on every row, and decides what needs no statistic."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Within
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.nodes import Predicate, Truth
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.drawn.strategies import connected

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.bool_()), ("s", pa.string())])
VALUES = {"a": [None, 0, 1, 2, 3, 7], "b": [None, False, True], "s": [None, "", "a", "ab", "b"]}
ROWS = pa.RecordBatch.from_pylist(
    [{"a": a, "b": b, "s": s} for a in VALUES["a"] for b in VALUES["b"] for s in VALUES["s"]], SCHEMA
)

comparisons = st.one_of(
    st.builds("a {} {}".format, st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "<>"]), st.integers(-1, 8)),
    st.builds(
        "s {} '{}'".format, st.sampled_from(["=", "<", ">", "LIKE", "NOT LIKE"]), st.sampled_from(["a", "ab", "a%"])
    ),
    st.lists(st.sampled_from(["0", "1", "3", "NULL"]), min_size=1, max_size=3).map(lambda v: f"a IN ({', '.join(v)})"),
    st.sampled_from(["b", "NOT b", "a IS NULL", "s IS NOT NULL", "TRUE", "FALSE", "NULL", "s LIKE '%b'"]),
)
predicates = connected(comparisons, ["TRUE", "FALSE", "UNKNOWN", "NOT TRUE"], max_leaves=8)


def bound(text: str) -> Predicate:
    return bind(parse(text), SCHEMA)


@given(predicates)
def test_the_truth_value_stays_on_every_row(text: str) -> None:
    assert truth(rewrite(bound(text)), ROWS).tolist() == truth(bound(text), ROWS).tolist()


@given(predicates)
def test_one_leaf_per_column_and_connective(text: str) -> None:
    assert len(list(leaves(rewrite(bound(text))))) <= len(list(leaves(bound(text))))


@pytest.mark.parametrize(
    "text",
    ["a > 5 AND a < 3", "a = 1 AND a = 2", "a IN (1, 2) AND a IN (3)", "a = 1 AND NOT (a = 1)", "s = 'a' AND s > 'b'"],
)
def test_contradictions_ask_for_no_key(text: str) -> None:
    rewritten = rewrite(bound(text))
    assert isinstance(rewritten, Within)
    assert rewritten.ranges.is_empty


@pytest.mark.parametrize("text", ["a > 5 OR a <= 5", "a <> 1 OR a = 1", "s >= ''", "s LIKE '%'"])
def test_tautologies_ask_for_every_key(text: str) -> None:
    rewritten = rewrite(bound(text))
    assert isinstance(rewritten, Within)
    assert rewritten.ranges.is_everything


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 1 AND FALSE", False),
        ("a = 1 OR TRUE", True),
        ("NOT NULL", None),
        ("TRUE AND TRUE", True),
        ("a = NULL", None),
    ],
)
def test_constants_fold(text: str, value: bool | None) -> None:
    assert rewrite(bound(text)) == Truth(value)
