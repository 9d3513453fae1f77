"""Parameters of SQL text: values take their places as literals, whatever they hold."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import InvalidPredicate
from secateur.parameters import filled
from secateur.pruning.predicate.sql.parse import parse
from tests.support.tables import WriteTable

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(),
    st.binary(),
    st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
    st.floats(),
)


@given(first=VALUES, second=VALUES)
def test_values_are_those_of_a_comparison_with_them(first: object, second: object) -> None:
    expected = (sec.col("a") == first) & (sec.col("b") != second)
    assert str(parse(filled("a = :x AND b != :y", {"x": first, "y": second}))) == str(parse(str(expected)))
    assert str(parse(filled("a = ? AND b != ?", [first, second]))) == str(parse(str(expected)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = ':x' AND t = \"?\"", "s = ':x' AND t = \"?\""),
        ("`a:x` = :x -- not :x, nor ?", "`a:x` = 7 -- not :x, nor ?"),
        ("payload:x = :x AND m['k']:x = 1 AND (p):x = 2", "payload:x = 7 AND m['k']:x = 1 AND (p):x = 2"),
        ("CASE WHEN :x THEN :x END = :x", "CASE WHEN 7 THEN 7 END = 7"),
        ("id IN (:l)", "id IN (1, 'a\\\\'b', NULL)"),
        ("id=:x", "id=7"),
    ],
)
def test_only_parameters_are_replaced(text: str, expected: str) -> None:
    assert filled(text, {"x": 7, "l": [1, "a'b", None]}) == expected.replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("id = :x", {}, ":x has no value: params has values for none"),
        ("id = :x", {"y": 1}, "params has values for y"),
        ("id = :x", [1], "params is a list of values"),
        ("id = ?", {"x": 1}, r"\? has no value"),
        ("id = ?", [], "has 0 values"),
        ("id = ?", [1, 2], "2 values for 1 parameters"),
        ("id = ?", [object()], "has no SQL value"),
        ("id = ?", [sec.col("a")], "is an expression"),
        ("id = 'x", {}, "cannot read the predicate"),
        ("id = ?", 7, "params=7: give a mapping"),
        ("id = ?", "7", "params='7': give a mapping"),
    ],
)
def test_what_has_no_value_is_refused(text: str, params: Any, message: str) -> None:
    with pytest.raises(InvalidPredicate, match=message):
        filled(text, params)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a > 3 -? AND b = 1", -1, "a > 3 - -1 AND b = 1"),
        ("a > -?", -2.5, "a > -CAST('-2.5' AS DOUBLE)"),
        ("a > 0-?", Decimal("-0.25"), "a > 0- -0.25BD"),
        ("a = 1 AND?OR b", True, "a = 1 AND TRUE OR b"),
        ("s =?", "--", "s ='--'"),
    ],
)
def test_values_stay_apart_from_what_stands_beside_them(text: str, value: object, expected: str) -> None:
    """Two minus signs would make a comment of the rest."""
    assert filled(text, [value]) == expected


def test_plans_take_them(write_table: WriteTable) -> None:
    moments = [dt.datetime(2026, 1, day) for day in range(1, 11)]
    table = sec.open_table(
        str(write_table({"a.parquet": pa.table({"id": range(10), "ts": moments})}, row_group_size=1))
    )
    plan = sec.prune(table, "ts >= :since AND id < :most", params={"since": moments[4], "most": Decimal("7.5")})
    assert plan.to_arrow(columns=["id"])["id"].to_pylist() == [4, 5, 6, 7]
    assert len(plan.blocks) == 4
    assert sec.prune(table, "id IN (:ids)", params={"ids": [3, 8, 99]}).count() == 2
    with pytest.raises(InvalidPredicate, match="parameters of SQL text"):
        sec.prune(table, sec.col("id") == 1, params={"x": 1})
