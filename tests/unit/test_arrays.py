"""Arrow arrays made and read by their buffers are what pyarrow makes and reads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur import arrays
from tests.support.profiles import examples

bounds = st.tuples(st.integers(0, 5), st.integers(0, 40))  # of a part of an array


def part(array: pa.Array, chosen: tuple[int, int]) -> pa.Array:
    return array[chosen[0] : chosen[1]]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5)))
@examples(100)
def test_strings(values: list[str]) -> None:
    assert arrays.strings(values).equals(pa.array(values, pa.string()))
    arrays.strings(values).validate(full=True)


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        arrays.strings(["a", "\udc80"])


@given(st.lists(st.binary(max_size=5)))
@examples(100)
def test_binaries(values: list[bytes]) -> None:
    assert arrays.binaries(values).equals(pa.array(values, pa.large_binary()))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.float64])
def test_numbers_there_and_back(dtype: type[np.generic]) -> None:
    values = np.arange(20).astype(dtype)[::2]
    made = arrays.from_numpy(values)
    assert made.equals(pa.array(values))
    assert np.array_equal(arrays.numbers(made[3:7], dtype), values[3:7])
    assert not len(arrays.numbers(pa.array([], made.type), dtype))


@given(st.lists(st.none() | st.booleans(), max_size=40), bounds)
@examples(100)
def test_flags_and_nulls(values: list[bool | None], chosen: tuple[int, int]) -> None:
    array = part(pa.array(values, pa.bool_()), chosen)
    assert arrays.present(array).tolist() == [value is not None for value in array.to_pylist()]
    assert arrays.truths(array).tolist() == [value is True for value in array.to_pylist()]
    set_ = np.array([value is True for value in values], bool)
    assert arrays.flags(set_).equals(pa.array(set_.tolist(), pa.bool_()))


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=40), bounds, st.booleans())
@examples(100)
def test_text_parts(values: list[str], chosen: tuple[int, int], large: bool) -> None:
    array = part(pa.array(values, pa.large_string() if large else pa.string()), chosen)
    offsets, data = arrays.text_parts(array)
    texts = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
    assert texts == array.to_pylist()


SHORT = st.lists(st.text("ab", max_size=2), max_size=8)


@given(SHORT, SHORT, SHORT, SHORT, st.integers(0, 3), st.booleans())
def test_common_ends(
    start: list[str], one: list[str], other: list[str], end: list[str], skipped: int, large: bool
) -> None:
    """Also of slices of longer arrays, and of empty texts."""
    type_ = pa.large_string() if large else pa.string()
    a, b = [*start, *one, *end], [*start, *other, *end]
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest = min(len(a), len(b)) - first
    pairs = list(zip(a[::-1][:rest], b[::-1][:rest], strict=True))
    last = next((i for i, (x, y) in enumerate(pairs) if x != y), rest)
    before = pa.array(["long before"] * skipped + a, type_)[skipped:]
    assert arrays.common_ends(before, pa.array(b, type_)) == (first, last)


def test_common_ends_of_many_bytes() -> None:
    """More than are compared at once, with a difference in each part."""
    texts = [f"{i:030}" for i in range(100_000)]
    for at in (0, 34_000, 99_999):
        changed = pa.array([*texts[:at], texts[at][:-1] + "x", *texts[at + 1 :]], pa.large_string())
        assert arrays.common_ends(pa.array(texts, pa.large_string()), changed) == (at, len(texts) - at - 1)
