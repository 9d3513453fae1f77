"""Ordered postings find the places that plain Python finds, read the pages of a range only, and refuse what lies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container.index_file import encode_chunk
from secateur.index.filters import ordered
from secateur.index.filters.heads import heads_of
from secateur.index.filters.ordered import (
    PAGE,
    BlockEntries,
    Ordered,
    all_entries,
    ordered_arrays,
    ordered_of,
    ordered_table_of,
    places_within,
)
from secateur.index.filters.page_bytes import BAND, laid
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.kinds import Kind
from tests.support.profiles import examples

Rows = dict[int, int]  # the value of every row that has one


def entries(rows: Rows) -> BlockEntries:
    return BlockEntries(heads_of(pa.array(rows.values(), pa.int64())), np.array([*rows], np.uint32))


def read_again(kept: Ordered) -> Ordered:
    """After its table went through its arrays."""
    return replace(kept, table=ordered_table_of(ordered_arrays(kept.table), kept.table.blocks, "here"))


def places(kept: Ordered, thresholds: Sequence[int]) -> set[tuple[int, int]]:
    ranges = RangeSet(Kind.WORD, np.array(thresholds, np.int64))
    spans = kept.table.pages_within(ranges)
    blocks, rows = places_within(kept.table, spans, lambda bands: kept.bands[bands], "here")
    return set(zip(blocks.tolist(), rows.tolist(), strict=True))


numbers = st.integers(-5, 5) | st.sampled_from([INT64_MIN, INT64_MAX])
blocks_of_rows = st.lists(st.none() | st.dictionaries(st.integers(0, 40) | st.just(2**32 - 1), numbers), max_size=5)


@examples(300)
@given(
    blocks_of_rows,
    st.lists(st.sets(numbers, min_size=1, max_size=5).map(sorted), min_size=1, max_size=4),
    st.sampled_from([1, 2, 7, PAGE]),
)
def test_c35_places_are_those_of_plain_python(blocks: list[Rows | None], asked: list[list[int]], page: int) -> None:
    """With pages of any size: equal values may fill several, and a range may begin and end in any of them."""
    with patch.object(ordered, "PAGE", page):
        kept = read_again(ordered_of([None if rows is None else entries(rows) for rows in blocks]))
        again = read_again(ordered_of(all_entries(kept, "here")))
    assert kept.table.unknown.tolist() == [block for block, rows in enumerate(blocks) if rows is None]
    for thresholds in asked:
        expected = {
            (block, row)
            for block, rows in enumerate(blocks)
            for row, value in (rows or {}).items()
            if bisect_right(thresholds, value) % 2
        }
        assert places(kept, thresholds) == places(again, thresholds) == expected


def test_a_narrow_range_reads_one_page() -> None:
    values = (np.random.default_rng(1).permutation(10 * PAGE) * 2).tolist()
    kept = ordered_of([entries(dict(enumerate(values)))])
    asked: list[int] = []

    def bands(chosen: np.ndarray) -> np.ndarray:
        asked.extend(chosen.tolist())
        return kept.bands[chosen]

    spans = kept.table.pages_within(RangeSet(Kind.WORD, np.array([6 * PAGE + 1, 6 * PAGE + 5])))
    _, rows = places_within(kept.table, spans, bands, "here")
    assert sorted(values[row] for row in rows.tolist()) == [6 * PAGE + 2, 6 * PAGE + 4]
    assert len(spans.pages) == 1
    assert len(asked) * BAND <= kept.bands.nbytes / 10 + 2 * BAND


@pytest.mark.parametrize("blocks", [[], [None, None], [{}, {}], [{}, None]])
def test_without_an_entry(blocks: list[Rows | None]) -> None:
    """Every block that is known is without a match."""
    kept = read_again(ordered_of([None if rows is None else entries(rows) for rows in blocks]))
    assert (kept.table.entries, kept.table.pages, kept.bands.shape) == (0, 0, (0, BAND))
    assert places(kept, [INT64_MIN]) == set()
    assert len(all_entries(kept, "here")) == len(blocks)


# ---- what lies -------------------------------------------------------------------------------------------------------

Arrays = list[np.ndarray]
GOOD = [
    np.array([3, 5, 9]),
    np.array([1, 2, 1], np.uint8),
    np.array([0, 0, 1, 1], np.uint8),
    np.array([4, 5, 0, 9], np.uint8),
]


def changed(position: int, *values: int, dtype: str | None = None) -> Callable[[Arrays], Arrays]:
    def change(arrays: Arrays) -> Arrays:
        lie = np.array(values, dtype or arrays[position].dtype)
        return [*arrays[:position], lie, *arrays[position + 1 :]]

    return change


LIES: dict[str, Callable[[Arrays], Arrays]] = {
    "no arrays": lambda arrays: [],
    "too few arrays": lambda arrays: arrays[:3],
    "too many arrays": lambda arrays: [*arrays, arrays[0]],
    "no entries": lambda arrays: [array[:0] for array in arrays],
    "heads of another type": changed(0, 3, 5, 9, dtype="u8"),
    "counts with a sign": changed(1, 1, 2, 1, dtype="i1"),
    "blocks with a sign": changed(2, 0, 0, 1, 1, dtype="i8"),
    "rows with a sign": changed(3, 4, 5, 0, 9, dtype="i8"),
    "heads that descend": changed(0, 3, 9, 5),
    "heads that repeat": changed(0, 3, 3, 9),
    "another first head": changed(0, 2, 5, 9),
    "a head beyond the last": changed(0, 3, 5, 10),
    "fewer heads than counts": changed(0, 3, 9),
    "an entry too few": changed(1, 1, 1, 1),
    "an entry too many": changed(1, 1, 2, 2),
    "a head without an entry": changed(1, 1, 3, 0),
    "counts that overflow": changed(1, 2, 2**64 - 1, 3, dtype="u8"),
    "a block too few": changed(2, 0, 0, 1),
    "a row too many": changed(3, 4, 5, 0, 9, 9),
    "a block out of range": changed(2, 0, 0, 2, 1),
    "a huge block": changed(2, 0, 0, 2**64 - 1, 1, dtype="u8"),
    "a row out of range": changed(3, 4, 5, 2**32, 9, dtype="u8"),
    "a huge row": changed(3, 4, 5, 2**64 - 1, 9, dtype="u8"),
}


def with_page(page: bytes) -> Ordered:
    """Ordered postings whose only page is another, at its right place."""
    kept = ordered_of([entries({4: 3, 5: 5}), entries({0: 5, 9: 9})])
    begin, bands = laid([page])
    return Ordered(replace(kept.table, begin=begin), bands)


def test_the_page_that_is_lied_about() -> None:
    assert places(with_page(encode_chunk(GOOD)), [5, 6]) == {(0, 5), (1, 0)}


@pytest.mark.parametrize("lie", LIES)
def test_c38_a_page_may_lie(lie: str) -> None:
    kept = with_page(encode_chunk(LIES[lie](GOOD)))
    with pytest.raises(IndexFault, match="here"):
        places(kept, [5, 6])
    with pytest.raises(IndexFault, match="here"):
        all_entries(kept, "here")


@pytest.mark.parametrize("size", [8, 16, 40])
def test_a_page_may_be_cut(size: int) -> None:
    page = encode_chunk(GOOD)
    with pytest.raises(IndexFault, match="here"):
        places(with_page(page[:size]), [5, 6])
    with pytest.raises(IndexFault, match="here"):
        places(with_page(page[:-size]), [5, 6])


def test_pages_may_be_exchanged() -> None:
    """Their heads are not those that the table says."""
    with patch.object(ordered, "PAGE", 2):
        kept = ordered_of([entries({0: 1, 1: 2, 2: 3, 3: 4})])
    begin = kept.table.begin.tolist()
    whole = kept.bands.tobytes()
    pages = [whole[low:high] for low, high in pairwise(begin)]
    _, bands = laid(pages[::-1])
    with pytest.raises(IndexFault, match="out of order"):
        places(Ordered(kept.table, bands), [1, 2])
