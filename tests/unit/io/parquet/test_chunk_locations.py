"""The pages that hold chosen rows, and their bytes: those that a look at every page gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.parquet.chunk_locations import ChunkLocations, ColumnLocations, selected_pages, selected_size
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.row_selection import RowSelection, chosen_rows
from tests.support.profiles import examples

COUNTS = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def pages_of(counts: list[int]) -> PageLocations:
    rows = np.array(counts)
    size = rows * 10
    return PageLocations(np.cumsum(size) - size + 100, size, np.cumsum(rows) - rows, rows)


def chunk(pages: PageLocations | None, dictionary_pages: int) -> ColumnLocations:
    return ColumnLocations(93, 5000, 0, 0, 0, 7, dictionary_pages, pages)


@examples(200)
@given(COUNTS, st.data())
def test_pages_of_rows_are_those_that_hold_one(counts: list[int], data: st.DataObject) -> None:
    pages, total = pages_of(counts), sum(counts)
    wanted = sorted(data.draw(st.sets(st.integers(0, total - 1))))
    rows = chosen_rows(np.array(wanted, np.int64))
    page_of_row = np.repeat(np.arange(len(counts)), counts)
    expected = sorted({int(page_of_row[row]) for row in wanted})
    assert selected_pages(pages, rows).tolist() == expected
    dictionary_pages = data.draw(st.integers(0, len(counts)))
    locations = ChunkLocations(total, {0: chunk(pages, dictionary_pages), 3: chunk(None, 0)})
    of_pages = sum(10 * counts[page] for page in expected)
    of_dictionary = 7 if any(page < dictionary_pages for page in expected) else 0
    assert selected_size(locations, rows) == (of_pages + of_dictionary + 5000, len(expected))


def test_ranges_within_one_page_count_it_once() -> None:
    rows = RowSelection(np.array([1, 3, 5]), np.array([2, 4, 9]))
    assert selected_pages(pages_of([8, 4, 2]), rows).tolist() == [0, 1]
