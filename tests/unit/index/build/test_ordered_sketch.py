"""Values with their rows, whatever batches they come in; a block of too many is unknown."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.build import ordered_sketch
from secateur.index.build.ordered_sketch import OrderedSketch
from secateur.index.filters.heads import heads_of
from secateur.index.filters.ordered import BlockEntries
from secateur.index.model import ORDERED, Filter
from tests.support.profiles import examples

Batches = list[list[int | None]]
batches_of_blocks = st.lists(
    st.lists(st.lists(st.none() | st.integers(-3, 3), max_size=6), max_size=3), min_size=1, max_size=3
)


def sketch_into(taken: list[BlockEntries | None]) -> OrderedSketch:
    return OrderedSketch(Filter(ORDERED, ("c",), pa.int64()), taken.append)


@examples(100)
@given(batches_of_blocks, st.sampled_from([pa.int64(), pa.int32()]))
def test_values_with_their_rows(blocks: list[Batches], type_: pa.DataType) -> None:
    """Of blocks of several batches, which may be slices, and of a narrower type; after one that is unknown."""
    taken: list[BlockEntries | None] = []
    sketch = sketch_into(taken)
    sketch.add(pa.array([7, None], type_))
    sketch.give_up()
    for batches in blocks:
        for batch in batches:
            sketch.add(pa.array([5, *batch], type_).slice(1))
        sketch.end()
    assert taken[0] is None
    for batches, block in zip(blocks, taken[1:], strict=True):
        assert block is not None
        values = [value for batch in batches for value in batch]
        rows = {row: value for row, value in enumerate(values) if value is not None}
        assert block.rows.tolist() == [*rows]
        assert block.heads.heads.tolist() == heads_of(pa.array(rows.values(), pa.int64())).heads.tolist()


@pytest.mark.parametrize("limit", [{"MOST_VALUES": 6}, {"MOST_ROW": 5}])
def test_too_many_values_or_rows_are_unknown(limit: dict[str, int]) -> None:
    """The next block is known again; NULLs are no values, but rows."""
    taken: list[BlockEntries | None] = []
    sketch = sketch_into(taken)
    with patch.multiple(ordered_sketch, **limit):
        for batches in ([[1] * 3] * 3, [[1] * 6], [[None] * 5, [1] * 2], [[1], [None]]):
            for batch in batches:
                sketch.add(pa.array(batch, pa.int64()))
            sketch.end()
    assert [block is None for block in taken] == [True, False, "MOST_ROW" in limit, False]
