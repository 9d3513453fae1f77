"""Every operation on many keys is that on each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.values.key import Key
from secateur.values.keys import keys_from, words_of
from secateur.values.kinds import Kind
from tests.support.drawn.keys import KEYS, any_keys, keys, values_of


@given(any_keys, st.data())
def test_at_least(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    """Exact for literals longer than the words, and for bytes that differ in trailing zeros only."""
    kind, values = pair
    key = data.draw(KEYS[kind] | st.sampled_from(values))
    if kind is Kind.BYTES:
        key = data.draw(st.sampled_from([key, key + b"\0", key + b"\0" * 9, key[:-1], key + b"x" * 20]))
    assert keys(kind, values).at_least(key).tolist() == [value >= key for value in values]


@given(any_keys, st.data())
def test_rank(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    """One by one for few thresholds, by binary search for many: the same number either way."""
    kind, values = pair
    drawn = data.draw(st.lists(KEYS[kind] | st.sampled_from(values), max_size=40, unique=True))
    array = keys(kind, values)
    ranks = array.rank(keys_from(kind, sorted(drawn), array.width))
    assert ranks.tolist() == [sum(value >= threshold for threshold in drawn) for value in values]


def test_rank_counts_beyond_a_byte() -> None:
    thresholds = keys_from(Kind.WORD, range(1000), 0)
    assert keys(Kind.WORD, [-1, 0, 499, 999, 5000]).rank(thresholds).tolist() == [0, 1, 500, 1000, 1000]


@given(any_keys, st.integers(1, 4))
def test_keys_from_lays_out_each_key_as_alone(pair: tuple[Kind, list[Key]], width: int) -> None:
    kind, values = pair
    words = zip(*keys_from(kind, values, width).words, strict=True)
    assert list(words) == [words_of(key, kind, width) for key in values]


def test_keys_from_none() -> None:
    for kind in Kind:
        assert len(keys_from(kind, [], 2)) == 0


def test_common_words_are_those_that_all_keys_share() -> None:
    assert values_of(keys(Kind.BYTES, [b"customer-1", b"customer-2"])) == [b"customer-1", b"customer-2"]
    shared = int.from_bytes(b"customer", "big")
    assert keys(Kind.BYTES, [b"customer-1", b"customer-2"]).common == [shared]
    assert keys(Kind.BYTES, [b"customer-1", b"Customer-2", b"customer-1"]).common == []
    assert keys(Kind.BYTES, [b"customer"] * 2).common == [shared]  # but never the length
    assert keys(Kind.WORD, [1, 1]).common == []
    assert keys_from(Kind.BYTES, [], 2).common == []


@given(any_keys, st.data())
def test_take(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, values = pair
    indices = data.draw(st.lists(st.integers(0, len(values) - 1)))
    assert values_of(keys(kind, values).take(np.array(indices, np.int64))) == [values[i] for i in indices]
