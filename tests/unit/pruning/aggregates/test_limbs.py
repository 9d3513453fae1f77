"""Integers in limbs are added and multiplied as Python does it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.aggregates.limbs import Limbs
from secateur.values.key import INT64_MAX, INT64_MIN, INT128_MAX, INT128_MIN
from secateur.values.keys import keys_from
from secateur.values.kinds import Kind

WORDS = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([INT64_MIN, -1, 0, INT64_MAX])
WIDE = st.integers(INT128_MIN, INT128_MAX) | st.sampled_from([INT128_MIN, -1, 2**64, INT128_MAX])
KINDS = st.sampled_from([(Kind.WORD, WORDS), (Kind.WIDE, WIDE)])
MANY = st.integers(0, 2**31 - 1) | st.just(2**31 - 1)
DRAWN = KINDS.flatmap(
    lambda kind: st.tuples(st.just(kind[0]), st.lists(st.tuples(kind[1], MANY), min_size=1, max_size=8))
)


@given(DRAWN, st.data())
def test_limbs_are_integers(drawn: tuple[Kind, list[tuple[int, int]]], data: st.DataObject) -> None:
    kind, pairs = drawn
    values, counts = [value for value, _ in pairs], np.array([count for _, count in pairs], np.int64)
    limbs = Limbs.of(keys_from(kind, values, 0))
    products = limbs.times(counts)
    assert limbs.total() == sum(values)
    assert products.total() == sum(value * count for value, count in pairs)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool)
    either = limbs.where(chosen, products)
    expected = [v if yes else v * n for (v, n), yes in zip(pairs, chosen.tolist(), strict=True)]
    assert [either.take(np.array([i])).total() for i in range(len(values))] == expected
    starts = np.array(sorted(data.draw(st.sets(st.integers(1, max(len(values) - 1, 1)))) | {0}), np.int64)
    starts = starts[starts < len(values)]
    ends = [*starts[1:].tolist(), len(values)]
    assert either.totals(starts) == [sum(expected[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]
