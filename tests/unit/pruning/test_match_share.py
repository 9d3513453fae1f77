"""The share of matches that bounds let one expect is that of evenly spread values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds.zones import Zones, unknown_zones
from secateur.pruning.match_share import match_shares
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.sql.parse import parse
from secateur.values.conversion import keys_of
from secateur.values.kinds import ordered_kind


@dataclass(frozen=True)
class Bounded:
    """Units with bounds of some columns; of others none are known."""

    lower: pa.Table
    upper: pa.Table

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def row_count(self) -> np.ndarray:
        return np.full(len(self), 100)

    def zones(self, column: Field) -> Zones | None:
        (name,) = column.path
        if self.lower[name].null_count:
            return unknown_zones(ordered_kind(column.type), len(self))
        flags = np.zeros(len(self), np.uint8)
        lower, upper = (keys_of(bound[name].combine_chunks()) for bound in (self.lower, self.upper))
        return Zones(lower, upper, flags, flags)


def shares(predicate: str, type_: pa.DataType, lower: list[Any], upper: list[Any]) -> list[float]:
    units = Bounded(*(pa.table({"a": pa.array(bound, type_), "b": pa.array(bound, type_)}) for bound in (lower, upper)))
    return match_shares(bind(parse(predicate), units.lower.schema), units).tolist()


@pytest.mark.parametrize("type_", [pa.int8(), pa.int64(), pa.float32(), pa.float64()])
def test_shares_of_ranges(type_: pa.DataType) -> None:
    width = 100 if pa.types.is_integer(type_) else 99
    assert shares("a < 50", type_, [0, 60, 20], [99, 99, 30]) == pytest.approx([50 / width, 0, 1])
    assert shares("a < 50 AND b < 50", type_, [0], [99]) == pytest.approx([(50 / width) ** 2])


@pytest.mark.parametrize("predicate", ["a + b > 7", "a = b", "a < 50 AND a + b > 7", "a IS NULL", "a < 50 OR b < 50"])
def test_nothing_is_expected_where_nothing_is_known(predicate: str) -> None:
    assert shares(predicate, pa.int64(), [0], [99]) == [0.0]


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()])
def test_unknown_and_infinite_bounds(type_: pa.DataType) -> None:
    assert shares("a < 50", type_, [None], [None]) == [0.0]
    if pa.types.is_floating(type_):
        infinite = [-np.inf, -np.inf, 0.0, 7.0, -1e308], [1.0, np.inf, np.nan, 7.0, 1e308]
        assert shares("a < 50", type_, *infinite) == [0.0] * 5
        assert shares("a IN (1D, 'inf')", type_, *infinite) == [0.0] * 5


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.integers(-9, 9), st.integers(0, 9))
def test_of_integers_it_is_exact_where_each_comes_once(points: list[int], lower: int, more: int) -> None:
    held = range(lower, lower + more + 1)
    predicate = f"a IN ({', '.join(map(str, points))})"
    assert shares(predicate, pa.int32(), [lower], [lower + more]) == pytest.approx(
        [len(set(points) & set(held)) / len(held)]
    )


def test_extreme_integers_are_no_overflow() -> None:
    most = 2**63 - 1
    assert shares("a > 0", pa.int64(), [-most], [most - 1]) == pytest.approx([0.5])
