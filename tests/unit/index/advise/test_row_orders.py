"""Orders of rows are those of their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.advise.row_orders import Curve, interleaved, orders_by, positions, spread_ranks

WORDS = st.integers(0, 2**64 - 1)


def columns(rows: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [np.array(column, np.uint64) for column in zip(*rows, strict=True)]


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[WORDS] * n), min_size=1, max_size=20)))
def test_bits_are_taken_in_turn(rows: list[tuple[int, ...]]) -> None:
    words = interleaved(columns(rows), 64)
    for at, row in enumerate(rows):
        texts = [f"{value:064b}" for value in row]
        whole = "".join("".join(bits) for bits in zip(*texts, strict=True))
        assert "".join(f"{int(word[at]):064b}" for word in words) == whole


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30))
def test_rows_are_sorted_by_the_first_column_first(rows: list[tuple[int, int]]) -> None:
    assert [rows[i] for i in positions(Curve.SORT, columns(rows))] == sorted(rows)


@pytest.mark.parametrize(("axes", "bits"), [(1, 5), (2, 1), (2, 4), (3, 2), (3, 3), (4, 2)])
def test_neighbours_on_the_curve_are_neighbours_in_one_column(axes: int, bits: int) -> None:
    """That, and that it passes every cell once, makes it a curve of Hilbert's kind."""
    cells = np.array(list(product(range(1 << bits), repeat=axes)))
    order = positions(Curve.HILBERT, [cells[:, axis].astype(np.uint64) for axis in range(axes)], bits)
    assert sorted(order) == list(range(len(cells)))
    assert (np.abs(np.diff(cells[order], axis=0)).sum(axis=1) == 1).all()


def test_cells_of_a_power_of_two_stay_together() -> None:
    """A quarter of the curve is a quarter of the square, whichever curve."""
    cells = np.array(list(product(range(16), repeat=2)))
    for curve in (Curve.ZORDER, Curve.HILBERT):
        order = positions(curve, [cells[:, axis].astype(np.uint64) for axis in range(2)], 4)
        for quarter in np.split(order, 4):
            assert len(set(map(tuple, cells[quarter] // 8))) == 1


def test_ranks_are_spread_over_all_bits() -> None:
    spread = spread_ranks(np.array([0, 1, 2, 3]), 8)
    assert spread.tolist() == [0, 85, 170, 255]
    assert spread_ranks(np.zeros(3, np.int64), 8).tolist() == [0, 0, 0]


def test_every_column_comes_first_once() -> None:
    assert list(map(str, orders_by(["a"]))) == ["sort(a)"]
    assert list(map(str, orders_by(["a", "b", "c"]))) == [
        "sort(a, b, c)",
        "sort(b, a, c)",
        "sort(c, a, b)",
        "zorder(a, b, c)",
        "hilbert(a, b, c)",
    ]
