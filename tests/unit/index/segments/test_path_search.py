"""Where paths are among others: every way finds the same."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.segments.path_search import among, is_ascending, places, places_nearby, positions_among, searched
from tests.support.profiles import examples

TEXTS = st.lists(st.text("abé/", max_size=4), max_size=12)


def texts(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


def in_order(values: list[str]) -> list[str]:
    """As their bytes compare."""
    return sorted(values, key=str.encode)


@examples(100)
@given(TEXTS, TEXTS)
def test_positions_by_binary_search(wanted: list[str], others: list[str]) -> None:
    ordered = in_order(others)
    keys, asked = [text.encode() for text in ordered], [text.encode() for text in wanted]
    assert is_ascending(texts(wanted)) == (in_order(wanted) == wanted and len({*wanted}) == len(wanted))
    before = positions_among(texts(wanted), texts(ordered), after=False).tolist()
    behind = positions_among(texts(wanted), texts(ordered), after=True).tolist()
    assert before == [bisect_left(keys, text) for text in asked]
    assert behind == [bisect_right(keys, text) for text in asked]


@examples(100)
@given(TEXTS, TEXTS.map(lambda values: in_order(list(dict.fromkeys(values)))), st.data())
def test_places_by_every_way(wanted: list[str], ordered: list[str], data: st.DataObject) -> None:
    """Wanted texts may come twice; those that they are looked for among do not."""
    wanted += data.draw(st.lists(st.sampled_from(ordered))) if ordered else []
    expected = [ordered.index(text) if text in ordered else -1 for text in wanted]
    assert places(texts(wanted), texts(ordered)).tolist() == expected
    assert searched(texts(wanted), texts(ordered)).tolist() == expected
    order = sorted(range(len(wanted)), key=lambda i: wanted[i].encode())
    sorted_ = texts([wanted[i] for i in order])
    assert places_nearby(sorted_, texts(ordered), pa.array(order, pa.int64()).to_numpy()).tolist() == expected
    assert places_nearby(sorted_, texts(ordered)).tolist() == [expected[i] for i in order]
    assert among(texts(wanted), texts(ordered)).tolist() == [at >= 0 for at in expected]
