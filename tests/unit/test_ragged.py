"""Runs of elements laid one behind the other, against plain lists."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.ragged import elements_of, offsets_of, runs_of


@given(st.lists(st.integers(0, 5), max_size=20), st.data())
def test_elements_of_chosen_runs(counts: list[int], data: st.DataObject) -> None:
    """Any runs, in any order, more than once, empty ones too."""
    chosen = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=20)) if counts else []
    offsets = offsets_of(np.array(counts, np.int64))
    assert np.diff(offsets).tolist() == counts
    runs = [list(range(sum(counts[:i]), sum(counts[: i + 1]))) for i in range(len(counts))]
    elements = elements_of(offsets, np.array(chosen, np.int64))
    assert elements.dtype == np.int64
    assert elements.tolist() == [element for i in chosen for element in runs[i]]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_runs(values: list[int]) -> None:
    """Of equal values, here; of none, one and many elements."""
    array = np.array(values, np.int64)
    first, last = runs_of(array[1:] != array[:-1], len(array))
    runs = [list(run) for _, run in itertools.groupby(range(len(values)), values.__getitem__)]
    assert [*zip(first.tolist(), last.tolist(), strict=True)] == [(run[0], run[-1]) for run in runs]
