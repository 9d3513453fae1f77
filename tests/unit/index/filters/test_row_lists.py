"""Row lists: every row that holds a value is listed under it and no other; cut into pages, and harmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.container.index_file import encode_chunk
from secateur.index.filters import row_lists
from secateur.index.filters.page_bytes import BAND
from secateur.index.filters.postings import Form, Postings, blocks_with, pairs_with, rows_by_block
from secateur.index.filters.postings_build import postings_of, postings_with_rows
from secateur.index.filters.row_lists import (
    PAGE_ROWS,
    ListTable,
    RowLists,
    ValueRows,
    list_arrays,
    list_table_of,
    row_lists_of,
    rows_in,
)
from tests.support.profiles import examples

GREATEST = 2**32 - 2  # row


def encoded(lists: Sequence[Sequence[int]]) -> RowLists:
    counts = np.array([*map(len, lists)], np.int64)
    return row_lists_of(counts, np.concatenate([np.zeros(0, np.int64), *map(np.array, lists)]).astype(np.uint32))


def read(lists: RowLists, chosen: Sequence[int]) -> list[list[int]]:
    """Some lists, after their table went through its arrays."""
    table = list_table_of(list_arrays(lists.table), int(lists.table.first[-1]), "here")
    counts, rows = rows_in(table, np.array(chosen, np.int64), lambda bands: lists.bands[bands], "here")
    return [part.tolist() for part in np.split(rows, np.cumsum(counts)[:-1])] if len(counts) else []


some_rows = st.sets(st.integers(0, 40) | st.integers(0, GREATEST), min_size=1, max_size=30).map(sorted)


@examples(200)
@given(st.lists(some_rows, max_size=40), st.data())
def test_lists_come_back(lists: list[list[int]], data: st.DataObject) -> None:
    """Any of them, whatever pages they share."""
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(lists)))))) if lists else []
    with patch.object(row_lists, "PAGE_ROWS", data.draw(st.sampled_from([1, 2, 7, 30, PAGE_ROWS]))):
        kept = encoded(lists)
    assert read(kept, chosen) == [lists[i] for i in chosen]
    assert read(kept, range(len(lists))) == lists


def test_a_look_up_reads_one_page() -> None:
    """Of many short lists; a long list is alone in its page, so that its neighbours are read without it."""
    lists = [[3 * i, 3 * i + 1] for i in range(10_000)]
    lists[5_000:5_000] = [list(range(0, 3 * PAGE_ROWS, 3))]
    kept = encoded(lists)
    assert len(kept.table.first) == 13
    assert np.diff(kept.table.before).max() == PAGE_ROWS
    asked: list[int] = []

    def bands(numbers: np.ndarray) -> np.ndarray:
        asked.extend(numbers.tolist())
        return kept.bands[numbers]

    for number in (0, 4_999, 5_001, 10_000):
        asked.clear()
        counts, rows = rows_in(kept.table, np.array([number]), bands, "here")
        assert (counts.tolist(), rows.tolist()) == ([2], lists[number])
        assert len(asked) * BAND <= 2 * BAND + 4 * PAGE_ROWS


@pytest.mark.parametrize(
    ("lists", "most"),
    [
        ([range(0, 100_000)], 0.01),  # all rows of a block
        ([range(i, 100_000, 10) for i in range(10)], 0.1),
        ([np.flatnonzero(np.random.default_rng(1).random(100_000) < 0.1).tolist()], 0.7),
        ([[row] for row in np.random.default_rng(2).permutation(100_000).tolist()], 3.0),
    ],
)
def test_sizes(lists: Sequence[Sequence[int]], most: float) -> None:
    """Bytes of a row: what repeats takes hardly any, what does not as many as its number has."""
    kept = encoded(lists)
    assert kept.bands.nbytes / int(kept.table.before[-1]) < most + BAND / int(kept.table.before[-1])


# ---- with postings ---------------------------------------------------------------------------------------------------

values_of_rows = st.lists(st.none() | st.sampled_from([0, 1, 2**63, 2**64 - 1, 5 << 40, (5 << 40) + 1]), max_size=12)


def grouped(values: Sequence[int | None]) -> ValueRows:
    """The rows of every value, by a dict."""
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None:
            rows.setdefault(value, []).append(row)
    hashes = list(rows)
    counts = np.array([len(rows[value]) for value in hashes], np.int64)
    return ValueRows(
        np.array(hashes, np.uint64), counts, np.array([row for value in hashes for row in rows[value]], np.uint32)
    )


def rows_with(postings: Postings, value: int) -> dict[int, list[int]]:
    """The rows of every block that a look-up finds."""
    assert postings.lists is not None
    numbers, blocks = pairs_with(postings.table, np.array([value], np.uint64), lambda rows: postings.rows[rows], "here")
    counts, rows = rows_in(postings.lists.table, numbers, lambda bands: postings.lists.bands[bands], "here")
    by_block: dict[int, set[int]] = {}
    for block, row in zip(np.repeat(blocks, counts).tolist(), rows.tolist(), strict=True):
        by_block.setdefault(block, set()).add(row)
    return {block: sorted(of_block) for block, of_block in by_block.items()}


@examples(200)
@given(st.lists(st.none() | values_of_rows, max_size=9), st.sampled_from([0, 0, 8, 45, 63]))
def test_c35_the_rows_of_a_value_are_found(blocks: list[list[int | None] | None], known_from: int) -> None:
    """Exactly those whose value has its prefix, also where values of a block share one; and again after a merge."""
    given_ = [None if values is None else grouped(values) for values in blocks]
    postings = postings_with_rows(given_, known_from)
    shift = postings.table.shift
    again = postings_with_rows(rows_by_block(postings, "here"), shift)
    unknown = {block for block, values in enumerate(blocks) if values is None}
    for value in (0, 1, 2**63, 2**64 - 1, 5 << 40, 7):
        wanted = value >> shift
        expected = {
            block: rows
            for block, values in enumerate(blocks)
            if (rows := [row for row, held in enumerate(values or ()) if held is not None and held >> shift == wanted])
        }
        assert rows_with(postings, value) == expected
        assert rows_with(again, value) == expected
        alone = np.array([value], np.uint64)
        may_hold = blocks_with(postings.table, alone, lambda rows: postings.rows[rows], "here")
        assert set(np.flatnonzero(may_hold).tolist()) == {*expected, *unknown}


def test_postings_with_rows_are_pairs() -> None:
    """Also of so few values that bitmaps are smaller: a list belongs to a pair."""
    few = [grouped([1, 2] * 9)] * 300
    assert postings_with_rows(few).table.form is Form.PAIRS
    assert postings_of([block.hashes for block in few]).table.form is Form.BITMAPS
    assert rows_by_block(postings_with_rows([]), "here") == []
    with pytest.raises(IndexFault, match="here: the row lists are missing"):
        rows_by_block(postings_of([few[0].hashes]), "here")


# ---- lies ------------------------------------------------------------------------------------------------------------


def put(which: int, at: int, value: int) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    def change(arrays: list[np.ndarray]) -> list[np.ndarray]:
        arrays = [array.copy() for array in arrays]
        arrays[which][at] = value
        return arrays

    return change


LIES: dict[str, Callable[[list[np.ndarray]], list[np.ndarray]]] = {
    "no arrays": lambda a: [],
    "two": lambda a: a[:2],
    "of nothing": lambda a: [array[:0] for array in a],
    "of other lengths": lambda a: [a[0], a[1][:-1], a[2]],
    "of other types": lambda a: [a[0], a[1].astype(np.int32), a[2]],
    "too few lists": put(0, -1, 4),
    "first list": put(0, 0, 1),
    "falling lists": put(0, 1, 99),
    "an empty page": put(1, 1, 0),
    "before the pages": put(1, 0, -8),
    "falling bytes": put(1, -1, -(2**63)),
    "fewer rows than lists": put(2, 1, 1),
    "more rows than a page has": put(2, -1, 2**40),
    "as many as one likes": lambda a: [np.broadcast_to(np.int64(0), 1 << 50)] * 3,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_table_that_lies_is_a_fault(lie: str) -> None:
    with patch.object(row_lists, "PAGE_ROWS", 4):
        kept = encoded([[1, 2], [3, 4, 5], [9], [8, 10], [11]])
    with pytest.raises(IndexFault, match="the lie"):
        list_table_of(LIES[lie](list_arrays(kept.table)), 5, "the lie")


U1 = np.uint8
PAGES = {
    "another number of arrays": [np.array([2, 1], U1)],
    "another number of lists": [np.array([3], U1), np.array([1, 1, 1], U1)],
    "another number of rows": [np.array([2, 1], U1), np.array([1, 1], U1)],
    "counts that do not add up": [np.array([2, 2], U1), np.array([1, 1, 1], U1)],
    "an empty list": [np.array([0, 3], U1), np.array([1, 1, 1], U1)],
    "a row twice": [np.array([2, 1], U1), np.array([1, 0, 1], U1)],
    "negative": [np.array([2, 1], np.int8), np.array([1, -1, 1], np.int8)],
    "beyond any row": [np.array([2, 1], U1), np.array([1, 1 << 33, 1], np.uint64)],
    "constant": [np.array([2, 1], U1), np.broadcast_to(U1(1), 4).copy()],
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_lies_is_a_fault(name: str) -> None:
    data = encode_chunk(PAGES[name])
    bands = np.zeros((-(-len(data) // BAND), BAND), np.uint8)
    bands.reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    table = ListTable(np.array([0, 2]), np.array([0, len(data)]), np.array([0, 3]))
    with pytest.raises(IndexFault, match="the lie"):
        rows_in(table, np.array([0]), lambda numbers: bands[numbers], "the lie")
    with pytest.raises(IndexFault, match="the lie"):
        rows_in(replace(table, begin=np.array([0, 9])), np.array([1]), lambda numbers: bands[numbers], "the lie")


def test_mean_rows_are_told_by_page() -> None:
    with patch.object(row_lists, "PAGE_ROWS", 4):
        table = encoded([[1, 2], [3, 4, 5], [9], [8, 10, 12, 13, 14, 15], [11]]).table
    assert [(a, b) for a, b in pairwise(table.first.tolist())] == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert table.expected_rows(np.arange(5)).tolist() == [2.5, 2.5, 1, 6, 1]
