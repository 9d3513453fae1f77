"""Row ranges are combined as the sets of their rows are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.row_ranges import RowRanges, coarsened, intersection, rows_of_blocks, union
from tests.support.profiles import examples

ROW_COUNT = np.array([12, 1, 0, 30, 2**40 - 1])
MOST = 30  # a row that is drawn
some_rows = st.sets(st.integers(0, MOST - 1), max_size=20)
rows_of_each = st.lists(some_rows, min_size=5, max_size=5).map(
    lambda blocks: [{*filter(count.__gt__, rows)} for rows, count in zip(blocks, ROW_COUNT.tolist(), strict=True)]
)


def ranges_of(blocks: list[set[int]]) -> RowRanges:
    pairs = [(block, row) for block, rows in enumerate(blocks) for row in rows]
    block, row = np.array(pairs, np.int64).reshape(-1, 2).T
    return rows_of_blocks(block, row, ROW_COUNT, np.zeros(5, bool))


def sets_of(ranges: RowRanges) -> list[set[int]]:
    """The rows of every block, of ranges that ascend, touch none and are not empty."""
    sets = []
    for first, end in zip(ranges.offsets[:-1].tolist(), ranges.offsets[1:].tolist(), strict=True):
        start, stop = ranges.start[first:end], ranges.stop[first:end]
        assert (start < stop).all()
        assert (start[1:] > stop[:-1]).all()
        sets.append({row for pair in zip(start.tolist(), stop.tolist(), strict=True) for row in range(*pair)})
    assert ranges.offsets[-1] == len(ranges.start) == len(ranges.stop)
    return sets


@examples(300)
@given(rows_of_each, rows_of_each)
def test_c35_ranges_are_sets_of_rows(a: list[set[int]], b: list[set[int]]) -> None:
    one, other = ranges_of(a), ranges_of(b)
    assert sets_of(one) == a
    assert sets_of(intersection(one, other)) == [x & y for x, y in zip(a, b, strict=True)]
    assert sets_of(union(one, other)) == [x | y for x, y in zip(a, b, strict=True)]


@examples(100)
@given(rows_of_each, st.lists(st.booleans(), min_size=5, max_size=5))
def test_unknown_blocks_have_all_rows(rows: list[set[int]], unknown: list[bool]) -> None:
    """Also where rows of theirs are given, and up to the greatest row that a block may have."""
    pairs = [(block, row) for block, of_block in enumerate(rows) for row in of_block]
    block, row = np.array(pairs, np.int64).reshape(-1, 2).T
    ranges = rows_of_blocks(block, row, ROW_COUNT, np.array(unknown))
    for number in range(5):
        first, end = ranges.offsets[number : number + 2].tolist()
        of_block = list(zip(ranges.start[first:end].tolist(), ranges.stop[first:end].tolist(), strict=True))
        if unknown[number]:
            assert of_block == ([(0, ROW_COUNT[number])] if ROW_COUNT[number] else [])
        else:
            assert {row for pair in of_block for row in range(*pair)} == rows[number]


@examples(100)
@given(rows_of_each, st.integers(0, 9))
def test_coarser_ranges_hold_the_same_rows_and_those_between_near_ones(rows: list[set[int]], least: int) -> None:
    coarse = coarsened(ranges_of(rows), np.full(5, least))
    for before, after in zip(rows, sets_of(coarse), strict=True):
        assert before <= after
        assert after == {row for row in range(MOST) if row in before or _between_near(row, sorted(before), least)}


def _between_near(row: int, rows: list[int], least: int) -> bool:
    below, above = [r for r in rows if r < row], [r for r in rows if r > row]
    return bool(below and above) and above[0] - below[-1] - 1 < least
