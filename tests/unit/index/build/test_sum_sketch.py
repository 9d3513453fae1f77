"""Sums of blocks are those of Python, in one chunk or in many; a sum that is not known is known not to be."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.build.sum_sketch import SumSketch
from secateur.values.key import INT64_MAX, INT64_MIN
from tests.support.profiles import examples

BLOCKS = st.lists(st.none() | st.lists(st.none() | st.integers(INT64_MIN, INT64_MAX), max_size=9), max_size=4)


@examples(100)
@given(BLOCKS, st.lists(st.integers(0, 9), max_size=3))
def test_sums_in_chunks_are_those_of_the_whole(blocks: list[list[int | None] | None], at: list[int]) -> None:
    """C48: a block whose values are not known has no sum, and leaves nothing to the next."""
    sketch = SumSketch()
    for values in blocks:
        array = pa.array([1] if values is None else values, pa.int64())
        for begin, end in pairwise(sorted({0, len(array), *(min(cut, len(array)) for cut in at)})):
            sketch.add(array.slice(begin, end - begin))
        sketch.give_up() if values is None else sketch.end()
    zones = sketch.zone_map()
    for i, values in enumerate(blocks):
        low, high = zones.lower.at(i), zones.upper.at(i)
        assert (low == high) == (values is not None)
        assert zones.null_count[i] == (-1 if values is None else values.count(None))
        assert values is None or low == sum(value for value in values if value is not None)


def test_a_sum_beyond_128_bits_is_unknown() -> None:
    sketch = SumSketch()
    greatest = pa.array([10**37 * 9] * 2, pa.decimal128(38, 0))
    sketch.add(greatest)
    sketch.end()
    sketch.add(greatest.slice(1))
    sketch.end()
    zones = sketch.zone_map()
    assert zones.lower.at(0) < zones.upper.at(0)
    assert zones.null_count.tolist() == [-1, 0]
    assert zones.lower.at(1) == zones.upper.at(1) == 10**37 * 9
