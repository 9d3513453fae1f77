"""Values with their rows: as plain Python finds them, whatever batches they come in; a block of too many is unknown."""

from __future__ import annotations

from itertools import chain
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.build import row_sketch
from secateur.index.build.row_sketch import ordered_sketch, row_list_sketch
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.heads import heads_of
from secateur.index.filters.ordered import BlockEntries
from secateur.index.filters.row_lists import ValueRows
from secateur.index.model import ORDERED, POSTINGS, Filter
from secateur.values.kinds import Kind
from tests.support.profiles import examples

numbers = st.none() | st.integers(0, 5)
IN_ORDER = Filter(ORDERED, ("c",), pa.int64())
COLUMNS = {
    "a column": (pa.int64(), numbers),
    "arrays": (pa.list_(pa.int64()), st.none() | st.lists(numbers, max_size=4)),
    "maps": (
        pa.map_(pa.int64(), pa.string()),
        st.none() | st.dictionaries(st.integers(0, 5), st.just("x"), max_size=3),
    ),
}


def rows_by_hash(values: list[Any]) -> dict[int, list[int]]:
    """The rows of every value, by its hash."""
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        for element in set(value or ()) if isinstance(value, (list, dict)) else {value}:
            if element is not None:
                rows.setdefault(int(hash_keys([element], Kind.WORD)[0]), []).append(row)
    return rows


def listed(values: ValueRows | None) -> dict[int, list[int]]:
    assert values is not None
    ends = values.counts.cumsum().tolist()
    parts = [values.rows[end - count : end].tolist() for end, count in zip(ends, values.counts.tolist(), strict=True)]
    return dict(zip(values.hashes.tolist(), parts, strict=True))


@pytest.mark.parametrize("column", COLUMNS)
@examples(60)
@given(data=st.data())
def test_rows_of_values(column: str, data: st.DataObject) -> None:
    """Of blocks of several batches, which may be slices; after one that is unknown."""
    type_, values = COLUMNS[column]
    blocks = data.draw(st.lists(st.lists(st.lists(values, max_size=6), max_size=3), min_size=1, max_size=3))
    taken: list[ValueRows | None] = []
    sketch = row_list_sketch(Filter(POSTINGS, ("c",), pa.int64(), rows=True), taken.append)
    sketch.add(pa.array([None], type_))
    sketch.give_up()
    for batches in blocks:
        for batch in batches:
            written = [list(value.items()) if isinstance(value, dict) else value for value in batch]
            sketch.add(pa.array([*written[:1], *written], type_).slice(min(1, len(batch))))
        sketch.end()
    assert taken[0] is None
    assert [listed(of_block) for of_block in taken[1:]] == [rows_by_hash([*chain(*batches)]) for batches in blocks]


@examples(100)
@given(st.lists(st.lists(st.tuples(numbers, numbers), max_size=6), min_size=1, max_size=4))
def test_a_row_with_two_values_is_listed_under_both(batches: list[list[tuple[int | None, int | None]]]) -> None:
    """Whatever the batch; once where they are equal."""
    taken: list[ValueRows | None] = []
    sketch = row_list_sketch(Filter(POSTINGS, ("c",), pa.int64(), rows=True), taken.append)
    for batch in batches:
        others = [(other, row) for row, (_, other) in enumerate(batch) if other is not None]
        sketch.add(pa.array([value for value, _ in batch], pa.int64()))
        sketch.add_others(
            pa.array([other for other, _ in others], pa.int64()), np.array([row for _, row in others], int)
        )
    sketch.end()
    both = [[value for value in pair if value is not None] for batch in batches for pair in batch]
    assert listed(taken[0]) == rows_by_hash(both)


def test_row_lists_of_too_many_values_are_unknown() -> None:
    """As are too many distinct ones; the next block is known again."""
    taken: list[ValueRows | None] = []
    sketch = row_list_sketch(Filter(POSTINGS, ("c",), pa.int64(), rows=True), taken.append)
    with patch.object(row_sketch, "MOST_VALUES", 6), patch.object(row_sketch, "MOST", 3):
        for values in ([1] * 7, [1, 2, 3, 4], [1] * 6):
            for value in values:
                sketch.add(pa.array([value]))
            sketch.end()
    assert [of_block is None for of_block in taken] == [True, True, False]


batches_of_blocks = st.lists(
    st.lists(st.lists(st.none() | st.integers(-3, 3), max_size=6), max_size=3), min_size=1, max_size=3
)


@examples(100)
@given(batches_of_blocks, st.sampled_from([pa.int64(), pa.int32()]))
def test_ordered_values_with_their_rows(blocks: list[list[list[int | None]]], type_: pa.DataType) -> None:
    """Of blocks of several batches, which may be slices, and of a narrower type; after one that is unknown."""
    taken: list[BlockEntries | None] = []
    sketch = ordered_sketch(IN_ORDER, taken.append)
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
def test_ordered_postings_of_too_many_values_or_rows_are_unknown(limit: dict[str, int]) -> None:
    """The next block is known again; NULLs are no values, but rows."""
    taken: list[BlockEntries | None] = []
    sketch = ordered_sketch(IN_ORDER, taken.append)
    with patch.multiple(row_sketch, **limit):
        for batches in ([[1] * 3] * 3, [[1] * 6], [[None] * 5, [1] * 2], [[1], [None]]):
            for batch in batches:
                sketch.add(pa.array(batch, pa.int64()))
            sketch.end()
    assert [block is None for block in taken] == [True, False, "MOST_ROW" in limit, False]
