"""Keys order as Spark orders the values, whatever the type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.values.conversion import float_keys, key_of, keys_of, text_of
from secateur.values.key import Key, float_key
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.keys import any_keys, columns, keys, values_of
from tests.support.drawn.strategies import ColumnKind, array_of, floats


def spark_order(value: Any) -> Any:
    """A Python value such that comparing it is comparing in Spark: NaN is the greatest, -0.0 is 0.0."""
    match value:
        case float():
            return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
        case str():
            return value.encode()
        case _:
            return value


@given(columns)
def test_keys_order_as_the_values(column: tuple[ColumnKind, list[Any]]) -> None:
    """For every type: key(a) < key(b) iff a < b, and key(a) = key(b) iff a = b."""
    kind, values = column
    as_keys = values_of(keys_of(array_of(values, kind.type)))
    for a, key_a in zip(values, as_keys, strict=True):
        for b, key_b in zip(values, as_keys, strict=True):
            assert (key_a < key_b) == (spark_order(a) < spark_order(b)), (a, b)
            assert (key_a == key_b) == (spark_order(a) == spark_order(b)), (a, b)


@given(columns)
def test_one_key_is_that_of_the_array(column: tuple[ColumnKind, list[Any]]) -> None:
    kind, values = column
    array = array_of(values, kind.type)
    if kind.name.startswith(("far", "ts", "local", "day")):  # integers here; key_of takes what as_py gives
        return
    assert [key_of(value, kind.type) for value in values] == values_of(keys_of(array))


@given(columns, st.data())
def test_slices_and_nulls_leave_the_other_keys_alone(column: tuple[ColumnKind, list[Any]], data: st.DataObject) -> None:
    kind, values = column
    whole = values_of(keys_of(array_of(values, kind.type)))
    start = data.draw(st.integers(0, len(values)))
    assert values_of(keys_of(array_of(values, kind.type)[start:])) == whole[start:]
    with_nulls = [v for value in values for v in (None, value)]
    assert values_of(keys_of(array_of(with_nulls, kind.type)))[1::2] == whole


@given(st.lists(floats(64), max_size=20))
def test_float_keys_of_arrays(values: list[float]) -> None:
    assert float_keys(np.array(values, np.float64)).tolist() == [float_key(value) for value in values]


@given(st.lists(floats(32), min_size=1, max_size=20))
def test_c13_a_float_has_the_key_of_its_double(values: list[float]) -> None:
    narrow, wide = pa.array(values, pa.float32()), pa.array(values, pa.float64())
    assert values_of(keys_of(narrow)) == values_of(keys_of(wide))


def test_types_without_order_have_no_keys() -> None:
    for type_ in (
        pa.list_(pa.int32()),
        pa.struct([]),
        pa.null(),
        pa.timestamp("ns"),
        pa.decimal256(50, 2),
        pa.uint64(),
    ):
        assert kind_of(type_) is None
        with pytest.raises(IndexFault, match="no order"):
            keys_of(pa.nulls(1, type_))


@given(any_keys)
def test_arrays_give_their_keys_back(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    assert values_of(keys(kind, values)) == values


def test_times_that_python_does_not_know_have_a_text() -> None:
    instant = pa.timestamp("us", "UTC")
    assert text_of(pa.scalar(-(10**17), pa.int64()).cast(instant)) == "-1199-02-15 14:13:20.000000Z"
    assert text_of(pa.scalar(0, pa.int64()).cast(instant)) == "1970-01-01 00:00:00+00:00"
    assert "2147483647" in text_of(pa.scalar(2**31 - 1, pa.int32()).cast(pa.date32()))
