"""Size classes: what they say, and that nothing else passes for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.filters.bloom import LEAST_FPR, bits_for, probes_for, section_bits, size_for
from secateur.index.filters.size_class import NONE, FilterShape, are_valid, native_class, own_class, shape_of
from tests.support.stores.filter_files import own_shape


@given(st.integers(0, 10**8), st.floats(LEAST_FPR, 0.5))
def test_filters_of_the_index(distinct: int, fpr: float) -> None:
    """The class of every filter that a build makes fits an int16, and says its probes and bits."""
    probes, size = probes_for(fpr), size_for(distinct, fpr)
    size_class = own_class(probes, size)
    assert size_class < 2**15
    assert shape_of(size_class) == FilterShape(probes, bits_for(distinct, fpr))
    assert are_valid(np.array([size_class]))
    if distinct < 10**5:
        assert own_shape(distinct, fpr) == (size_class, probes, probes * section_bits(size))


@given(st.integers(1, 32), st.integers(8, 27))
def test_filters_of_data_files(encoding: int, log2_bits: int) -> None:
    size_class = native_class(encoding, log2_bits)
    assert size_class < 2**15
    assert shape_of(size_class) == FilterShape(8, 1 << log2_bits, encoding)
    assert are_valid(np.array([size_class]))


@pytest.mark.parametrize(
    "size_class",
    [
        NONE,
        0,
        200,
        own_class(8, 0),
        own_class(31, 8),
        own_class(8, 337),  # more bits than a block may have
        own_class(1, 511),
        native_class(0, 8),
        native_class(1, 7),
        native_class(1, 28),
        native_class(33, 8),
        2**40,
        2**62,
        -(2**62),
    ],
)
def test_others_are_not_valid(size_class: int) -> None:
    assert not are_valid(np.array([own_class(8, 8), size_class]))


def test_repeating() -> None:
    """Into whole multiples, of filters that hash alike."""
    small = shape_of(own_class(8, 12))  # sections of 12 bits
    assert small.divides(small)
    assert small.divides(shape_of(own_class(8, 24)))
    assert not small.divides(shape_of(own_class(8, 32)))
    assert small.divides(shape_of(own_class(8, 50)))  # 72
    assert not small.divides(shape_of(own_class(7, 24)))
    assert not shape_of(native_class(1, 8)).divides(shape_of(native_class(2, 8)))
