"""What is chosen, concatenated or reduced are the keys themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.values.combination import choose, concatenate, greatest_per_group, least_per_group, same_width
from secateur.values.key import Key
from secateur.values.keys import greatest_keys
from secateur.values.kinds import Kind
from tests.support.drawn.keys import KEYS, any_keys, keys, values_of


@given(
    st.sampled_from(Kind).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.lists(KEYS[k], min_size=1), min_size=1, max_size=4))
    )
)
def test_concatenate(pair: tuple[Kind, list[list[Key]]]) -> None:
    """Strings of different widths are widened; every key stays itself, and comparing stays exact."""
    kind, parts = pair
    joined = concatenate([keys(kind, part) for part in parts])
    flat = [key for part in parts for key in part]
    assert values_of(joined) == flat
    assert joined.at_least(flat[0]).tolist() == [key >= flat[0] for key in flat]


@given(any_keys, st.data())
def test_choose(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, yes = pair
    no = data.draw(st.lists(KEYS[kind], min_size=len(yes), max_size=len(yes)))
    condition = data.draw(st.lists(st.booleans(), min_size=len(yes), max_size=len(yes)))
    chosen = choose(np.array(condition), keys(kind, yes), keys(kind, no))
    assert values_of(chosen) == [a if c else b for c, a, b in zip(condition, yes, no, strict=True)]


@given(any_keys, st.data())
def test_least_and_greatest_per_group(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, values = pair
    cuts = data.draw(st.sets(st.integers(1, len(values) - 1)) if len(values) > 1 else st.just(set()))
    starts = [0, *sorted(cuts)]
    groups = [values[a:b] for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]
    array = keys(kind, values)
    assert values_of(least_per_group(array, np.array(starts))) == [min(group) for group in groups]
    assert values_of(greatest_per_group(array, np.array(starts))) == [max(group) for group in groups]


@given(any_keys)
def test_the_greatest_key_stays_the_greatest(pair: tuple[Kind, list[Key]]) -> None:
    """An unknown upper bound is above every value, also when it is widened beside longer strings or merged."""
    kind, values = pair
    array = keys(kind, values)
    greatest = greatest_keys(kind, len(values))
    for key in values:
        assert greatest.at_least(key).all()
    widened, _ = same_width([greatest, array])
    for key in values:
        assert widened.at_least(key).all()
    if kind is Kind.BYTES:
        merged = greatest_per_group(concatenate([array, greatest]), np.array([0]))
        assert merged.at_least(b"\xff" * 200).all()
        assert not array.at_least(b"\xff" * 200).any()
