"""What is measured of columns as their values pass by: in one chunk or in many, it is the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.build import column_sketch
from secateur.index.build.column_sketch import BoundsSketch, FilterSketch, Sketch
from secateur.index.filters import hashing
from secateur.index.model import BLOOM, POSTINGS, Filter, IndexedColumn
from secateur.index.zones.gaps import MOST_GAPS, gap_table, widest_gaps
from secateur.values.kinds import Kind, kind_of
from tests.support.drawn.strategies import KINDS, ColumnKind, array_of
from tests.support.profiles import examples

columns = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(kind.values | st.none(), max_size=20))
)
cuts = st.lists(st.integers(0, 20), max_size=4)


def feed(sketch: Sketch, values: pa.Array, at: list[int]) -> None:
    """The values of one block in chunks."""
    ends = sorted({0, len(values), *(min(cut, len(values)) for cut in at)})
    for begin, end in pairwise(ends):
        sketch.add(values.slice(begin, end - begin))
    sketch.end()


@examples(150)
@given(columns, cuts)
def test_bounds_and_gaps_in_chunks_are_those_of_the_whole(column: tuple[ColumnKind, list[Any]], at: list[int]) -> None:
    kind, values = column
    array = array_of(values, kind.type)
    indexed = IndexedColumn(("c",), kind.type)
    has_gaps = kind_of(kind.type) is Kind.WORD
    cut, whole = BoundsSketch(indexed, has_gaps), BoundsSketch(indexed, has_gaps)
    feed(cut, array, at)
    feed(whole, array, [])
    (a, b) = (sketch.zone_map(np.array([len(array)])) for sketch in (cut, whole))
    assert [word.tolist() for word in a.lower.words] == [word.tolist() for word in b.lower.words]
    assert [word.tolist() for word in a.upper.words] == [word.tolist() for word in b.upper.words]
    assert (a.null_count.tolist(), a.nan_count.tolist()) == (b.null_count.tolist(), b.nan_count.tolist())
    if has_gaps:
        expected = gap_table([widest_gaps(array, MOST_GAPS)] if len(array) else [None], MOST_GAPS)
        assert a.gaps is not None
        assert (a.gaps.low.tolist(), a.gaps.high.tolist()) == (expected.low.tolist(), expected.high.tolist())


def test_a_block_that_is_not_known_leaves_nothing_to_the_next() -> None:
    sketch = BoundsSketch(IndexedColumn(("c",), pa.int64()), has_gaps=True)
    sketch.add(pa.array([1, 1000]))
    sketch.give_up()
    feed(sketch, pa.array([5, 7]), [])
    zone_map = sketch.zone_map(np.array([2, 2]))
    assert zone_map.null_count.tolist() == [-1, 0]
    assert (zone_map.lower.at(1), zone_map.upper.at(1)) == (5, 7)
    assert zone_map.gaps is not None
    assert zone_map.gaps.low[0].tolist() == [2**63 - 1, 5]


def test_c04_too_many_values_have_no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left out might lie in a gap of the others."""
    monkeypatch.setattr(column_sketch, "MOST_SORTED", 3)
    sketch = BoundsSketch(IndexedColumn(("c",), pa.int64()), has_gaps=True)
    feed(sketch, pa.array([1, 9, 20, 30]), [1, 2, 3])
    feed(sketch, pa.array([1, 9, 20]), [1])
    assert [gaps is None for gaps in sketch.gaps] == [True, False]


def hashed(kind: str, blocks: list[list[str] | None], at: list[int]) -> list[list[int] | None]:
    """The hashes that are handed on, block by block; None for one that is not known."""
    taken: list[np.ndarray | None] = []
    sketch = FilterSketch(Filter(kind, ("c",), pa.string()), taken.append)
    for block in blocks:
        if block is None:
            sketch.add(pa.array(["lost"]))
            sketch.give_up()
        else:
            feed(sketch, pa.array(block, pa.string()), at)
    return [None if hashes is None else hashes.tolist() for hashes in taken]


texts = st.lists(st.text(max_size=3), max_size=20)


@examples(150)
@given(st.lists(st.none() | texts, max_size=4), cuts)
def test_hashes_in_chunks_are_those_of_the_whole(blocks: list[list[str] | None], at: list[int]) -> None:
    expected = [None if b is None else {mmh3.hash64(text.encode(), signed=False)[0] for text in b} for b in blocks]
    for kind in (BLOOM, POSTINGS):
        by_block = hashed(kind, blocks, at)
        assert [None if hashes is None else set(hashes) for hashes in by_block] == expected
        assert kind == BLOOM or all(hashes is None or len(set(hashes)) == len(hashes) for hashes in by_block)


def test_c04_a_block_of_too_many_values_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it leaves nothing to the next."""
    monkeypatch.setattr(hashing.DistinctHashes.__init__, "__defaults__", (10, 10))
    monkeypatch.setattr(column_sketch, "MOST", 10)
    many = [str(i) for i in range(40)]
    for kind in (BLOOM, POSTINGS):
        by_block = hashed(kind, [many, many[:5], many * 2], [8, 16])
        assert [None if hashes is None else len(hashes) for hashes in by_block] == [None, 5, None]


def test_elements_and_keys() -> None:
    """Of arrays and maps: none of what NULL hides, and none of what lies outside of a slice."""
    lists = pa.array([["x"], ["a", None], None, [], ["b"], ["y"]])
    assert column_sketch.elements(lists.slice(1, 4)).to_pylist() == ["a", None, "b"]
    maps = pa.array(
        [[("x", 1)], [("k", 1), ("l", None)], None, [("m", 2)], [("y", 3)]], pa.map_(pa.string(), pa.int64())
    )
    assert column_sketch.elements(maps.slice(1, 3)).to_pylist() == ["k", "l", "m"]
    assert column_sketch.elements(pa.array([1, None])).to_pylist() == [1, None]
