"""Rows that pass, kept as masks, are those whose positions were copied."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from secateur.io.scan.reading.passed_rows import PassedRows


@given(
    npst.arrays(np.bool_, st.integers(0, 60)),
    st.floats(0, 1),
    st.lists(st.integers(0, 60)),
    st.lists(st.integers(0, 12), min_size=1, max_size=8),
    st.integers(1, 5),
)
def test_masks_are_positions(live: np.ndarray, share: float, cuts: list[int], counts: list[int], step: int) -> None:
    positions = np.flatnonzero(live)
    passing = np.random.default_rng(0).random(len(positions)) < share
    passed, ends = PassedRows(), sorted(cut for cut in cuts if cut < len(positions))
    for begin, end in zip([0, *ends], [*ends, len(positions)], strict=True):
        assert passed.add(positions[begin:end], passing[begin:end]) == passing[begin:end].any()
    matches = positions[passing]
    assert len(passed) == len(matches)
    assert np.array_equal(passed.positions, matches)
    assert np.isin(passed.sampled(step), matches).all()
    assert np.array_equal(passed.sampled(1), matches)
    of_row_group = np.array([0, *np.cumsum([*counts, 60])])
    expected = [((begin <= matches) & (matches < end)).any() for begin, end in pairwise(of_row_group)]
    assert passed.with_match(of_row_group).tolist() == expected
    begin, end = of_row_group[1:3].tolist()
    assert np.array_equal(passed.between(begin, end).positions, matches[(begin <= matches) & (matches < end)])
