"""Row groups as ranges of bytes: a reader that takes a row group where its middle lies reads each survivor once."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import secateur as sec
from secateur.io.parquet.footer import read_footer
from secateur.io.spark.planner import splits as module
from secateur.io.spark.planner.splits import byte_ranges, chosen, stored_ranges
from tests.support.tables import WriteTable


@st.composite
def page_locations(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    """Where row groups lie, in any order, overlapping and empty ones too, and which of them survive."""
    sizes = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8))
    begin = np.cumsum([4, *sizes[:-1]])
    if draw(st.booleans()):
        begin = np.array(draw(st.permutations(begin.tolist())))
    if draw(st.integers(0, 3)) == 0:
        begin = np.array(draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes))))
    survivors = draw(st.lists(st.sampled_from(range(len(sizes))), min_size=1, unique=True))
    return np.stack([begin, np.array(sizes)]), sorted(survivors)


@given(page_locations())
@example((np.array([[4, 4], [0, 6]]), [1]))
def test_ranges_hold_the_middles_of_survivors_once(locations: tuple[np.ndarray, list[int]]) -> None:
    placed, survivors = locations
    start, stop = chosen(placed, np.array(survivors), 100)
    assert (start < stop).all()
    assert (stop[:-1] < start[1:]).all(), "ranges that meet are one"
    middles = placed[0] + placed[1] // 2
    times = ((start[:, None] <= middles) & (middles < stop[:, None])).sum(axis=0)
    same = np.isin(middles, middles[survivors])  # row groups without bytes cannot be told from those they lie beside
    assert times.tolist() == same.astype(int).tolist()


@given(page_locations())
def test_ranges_by_what_the_index_keeps_hold_survivors_once(locations: tuple[np.ndarray, list[int]]) -> None:
    placed, survivors = locations
    ranges = stored_ranges(placed[:, survivors])
    if ranges is not None:
        start, stop = ranges
        assert (stop[:-1] < start[1:]).all(), "ranges that meet are one"
        middles = (placed[0] + placed[1] // 2)[survivors]
        assert ((start[:, None] <= middles) & (middles < stop[:, None])).sum(axis=0).tolist() == [1] * len(survivors)


def test_an_unknown_or_impossible_locations_is_the_whole_file() -> None:
    for placed in ([[], []], [[4], [5]], [[4, -9], [5, 5]]):
        assert chosen(np.array(placed, np.int64), np.array([1]), 77).tolist() == [[0], [77]]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none", "write_page_index": True}])
def test_row_groups_lie_where_pyarrow_says(options: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"s": ["a", "b"] * 50, "i": range(100)}), buffer, row_group_size=30, **options)
    file = pa.BufferReader(buffer.getvalue())
    begin, size = read_footer(file).placed
    metadata = pq.ParquetFile(file).metadata
    for i in range(metadata.num_row_groups):
        first = metadata.row_group(i).column(0)
        offsets = [first.data_page_offset, first.dictionary_page_offset]
        assert begin[i] == min(offset for offset in offsets if offset is not None)
        assert size[i] == sum(metadata.row_group(i).column(j).total_compressed_size for j in range(2))


def test_footers_are_read_for_files_that_survive_in_part(write_table: WriteTable) -> None:
    root = write_table({f"{i}.parquet": {"id": range(10 * i, 10 * i + 10)} for i in range(4)}, row_group_size=5)
    table = sec.open_table(str(root))
    plan = sec.prune(table, "id BETWEEN 5 AND 24")
    ranges = byte_ranges(plan)
    sizes = plan.opened.listing.size
    assert ranges.file.tolist() == [0, 1, 2]
    assert (ranges.start[1], ranges.stop[1]) == (0, sizes[1])
    assert 4 < ranges.start[0] < ranges.stop[0] < sizes[0]
    assert 4 == ranges.start[2] < ranges.stop[2] < sizes[2]
    listing = plan.opened.listing
    keys = [(path, *listing.identity(i)) for i, path in enumerate(listing.paths.to_pylist())]
    assert [table.cache.holds(("row group starts", *key)) for key in keys] == [True, False, True, False]


def test_beyond_so_many_footers_files_are_read_whole(write_table: WriteTable, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_table({f"{i}.parquet": {"id": range(10)} for i in range(4)}, row_group_size=5)
    monkeypatch.setattr(module, "MOST_FOOTERS", 3)
    plan = sec.prune(sec.open_table(str(root)), "id = 1")
    ranges = byte_ranges(plan)
    whole = (ranges.start == 0) & (ranges.stop == plan.opened.listing.size)
    assert whole.tolist() == [False, False, False, True]
