"""Heads order as the values do, and cuts of ranges among them leave no value outside, whatever prefix is shared."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.filters.heads import MOST_PREFIX, Heads, heads_of, joined, shared, spans_of
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.key import INT64_MAX, INT64_MIN, Key
from secateur.values.kinds import Kind
from tests.support.profiles import examples

WIDE = pa.decimal128(38, 0)
endings = st.text("\0ab\x7f", max_size=10).map(str.encode) | st.binary(max_size=10)
texts = st.builds(
    lambda start, end: start + end, st.sampled_from([b"", b"", b"user-", b"user-0000\0", b"\xff"]), endings
)
near_bounds = [INT64_MIN - 1, INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX, INT64_MAX + 1]
wide = st.sampled_from(near_bounds) | st.integers(-(10**37), 10**37)
VALUES: dict[Kind, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    Kind.WORD: (pa.int64(), st.sampled_from([INT64_MIN, INT64_MAX]) | st.integers(-9, 9)),
    Kind.WIDE: (WIDE, wide),
    Kind.BYTES: (pa.binary(), texts),
}
kinds = pytest.mark.parametrize("kind", VALUES)


def array_of(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([Decimal(value) for value in values] if type_ == WIDE else values, type_)


def is_within(thresholds: list[Key], value: Key) -> bool:
    return bisect_right(thresholds, value) % 2 == 1  # type: ignore[type-var]


@kinds
@examples(300)
@given(data=st.data())
def test_c35_spans_of_ranges_leave_no_value_outside(kind: Kind, data: st.DataObject) -> None:
    """Of values that came in several parts, each under a prefix of its own; with exact heads they have no other."""
    type_, drawn = VALUES[kind]
    parts = data.draw(st.lists(st.lists(drawn, max_size=5), max_size=4))
    values = [value for part in parts for value in part]
    near = drawn if not values else drawn | st.sampled_from(values)
    thresholds = sorted(data.draw(st.sets(near, min_size=1, max_size=5)))
    whole = joined([heads_of(array_of(part, type_)) for part in parts])
    order = np.argsort(whole.heads, kind="stable")
    ascending, ordered = whole.heads[order], [values[i] for i in order.tolist()]
    assert [head for _, head in sorted(zip(values, whole.heads.tolist(), strict=True))] == ascending.tolist()
    if whole.is_exact:
        assert len(set(whole.heads.tolist())) == len(set(values))
    ranges = RangeSet(kind, np.array(thresholds, np.int64 if kind is Kind.WORD else object))
    starts, stops = spans_of(ranges, whole.prefix, is_exact=whole.is_exact)
    spans = zip(starts.among(ascending).tolist(), stops.among(ascending).tolist(), strict=True)
    inside = {i for begin, end in spans for i in range(begin, end)}
    matching = {i for i, value in enumerate(ordered) if is_within(thresholds, value)}
    assert matching <= inside
    assert matching == inside or not whole.is_exact


@examples(200)
@given(st.lists(texts, min_size=1, max_size=5), st.data())
def test_a_shorter_prefix_gives_the_heads_of_the_values(values: list[bytes], data: st.DataObject) -> None:
    """Up to what the heads no longer know: then they are not exact."""
    whole = heads_of(pa.array(values, pa.binary()))
    assert all(value.startswith(whole.prefix) for value in values)
    prefix = whole.prefix[: data.draw(st.integers(0, len(whole.prefix)))]
    moved = whole.under(prefix)
    expected = [int.from_bytes(value[len(prefix) :][:8].ljust(8, b"\0"), "big") - 2**63 for value in values]
    assert (moved.heads.tolist(), moved.prefix) == (expected, prefix)
    if moved.is_exact:
        rest = [value[len(prefix) :] for value in values]
        assert all(len(text) <= 8 and not text.endswith(b"\0") for text in rest)


def test_a_prefix_has_a_greatest_length() -> None:
    values = [b"a" * 5000 + end for end in (b"", b"b")]
    assert shared(values) == b"a" * MOST_PREFIX
    heads = heads_of(pa.array(values))
    assert (heads.prefix, heads.is_exact) == (b"a" * MOST_PREFIX, False)


@kinds
def test_no_values_have_no_heads(kind: Kind) -> None:
    nothing = heads_of(pa.array([], VALUES[kind][0]))
    assert (len(nothing), nothing.prefix, nothing.is_exact) == (0, b"", True)
    assert len(joined([])) == 0


def test_parts_without_a_value_do_not_shorten_a_prefix() -> None:
    some = heads_of(pa.array(["user-1", "user-2"]))
    assert joined([Heads(np.zeros(0, np.int64)), some]).prefix == b"user-"


def test_nan_is_the_greatest_and_zero_has_no_sign() -> None:
    heads = heads_of(pa.array([float("-inf"), -0.0, 0.0, 1.0, float("inf"), float("nan")])).heads
    assert heads[1] == heads[2]
    assert (np.diff(heads[[0, 1, 3, 4, 5]]) > 0).all()
