"""Which increments a refresh merges."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.compact import increments
from secateur.index.compact.increments import due_to_merge
from secateur.index.file_names import build_of
from secateur.index.model import IndexedColumn
from secateur.index.segments.segment_table import Segments, SegmentSummary, summarised
from secateur.index.zones import zonemap
from secateur.values.kinds import Kind

BLOCK = 100  # bytes of a segment per block
TARGET = 1 << 20


def segments_of(sizes: list[list[int]], *, block: int = BLOCK) -> Segments:
    """Segments of some increments, given by their blocks."""
    summaries = [
        SegmentSummary(
            f"segments/{i:012x}-{j:06d}.segment",
            block * blocks,
            blocks,
            blocks,
            [],
            np.zeros((0, 3), np.int64),
            [zonemap.unknown(Kind.WORD, 1)],
            {},
            {},
        )
        for i, increment in enumerate(sizes)
        for j, blocks in enumerate(increment)
    ]
    return summarised([IndexedColumn(("a",), pa.int64())], [], summaries, {})


def sizes_after(sizes: list[list[int]]) -> list[list[int]]:
    """The increments after a refresh has merged what is due."""
    segments = segments_of(sizes)
    due = {build_of(segments.name[s]) for s in due_to_merge(segments, TARGET).tolist()}
    left = [size for i, size in enumerate(sizes) if f"{i:012x}" not in due]
    merged = [sum(size) for i, size in enumerate(sizes) if f"{i:012x}" in due]
    return [*left, [sum(merged)]] if merged else left


@given(st.lists(st.integers(1, 50), max_size=60))
def test_increments_are_few_and_blocks_move_seldom(appends: list[int]) -> None:
    sizes: list[list[int]] = []
    moved = 0
    for append in appends:
        sizes = sizes_after([*sizes, [append]])
        moved += sum(sizes[-1]) if len(sizes[-1]) == 1 and sizes[-1] != [append] else 0
        blocks = sorted(sum(size) for size in sizes)
        assert all(2 * sum(blocks[:i]) < size for i, size in enumerate(blocks) if i)
    total = sum(appends)
    assert len(sizes) <= math.log(max(total, 1), 3) + 1
    assert moved <= total * math.log(max(total, 2), increments.GROWTH)


def test_filled_segments_stay() -> None:
    segments = segments_of([[64, 64, 20], [64, 10], [9]])
    assert due_to_merge(segments, 64).tolist() == [2, 4, 5]
    assert due_to_merge(segments_of([[64, 64], [64, 64]]), 64).tolist() == []


def test_nothing_is_due_of_one_increment() -> None:
    assert due_to_merge(segments_of([[1, 1, 1]]), TARGET).tolist() == []
    assert due_to_merge(segments_of([]), TARGET).tolist() == []


def test_increments_without_blocks_are_merged() -> None:
    assert due_to_merge(segments_of([[0], [0], [5]]), TARGET).tolist() == [0, 1]


def test_a_merge_is_bounded_in_bytes() -> None:
    """What is too large is left to an optimization; smaller increments are merged as ever."""
    half = increments.MOST_BYTES // 2
    segments = segments_of([[2], [2], [1], [1]], block=half)
    assert due_to_merge(segments, TARGET).tolist() == [2, 3]
