"""Consecutive integers; distinct ones, and where each is among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur import integers
from secateur.integers import consecutive, distinct_and_places


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**62), 2**62) | st.integers(0, 2))))
def test_distinct_values_and_where_each_is_among_them(pairs: list[tuple[int, int]]) -> None:
    matrix = np.array(pairs, np.int64).reshape(-1, 2)
    for values in (matrix[:, 0], matrix):
        distinct, places = distinct_and_places(values)
        assert np.array_equal(distinct, np.unique(values, axis=0))
        assert np.array_equal(distinct[places], values)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 30))
def test_consecutive_integers(begin: int, count: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integers, "KEPT", kept)
        assert np.array_equal(consecutive(begin, begin + count), np.arange(begin, begin + count))
