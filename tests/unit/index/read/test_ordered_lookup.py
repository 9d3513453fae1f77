"""Look-ups in ordered postings keep every block, and all its rows, of which nothing is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from secateur.index.container.index_file import SEGMENT
from secateur.index.filters.ordered import ordered_of
from secateur.index.read import ordered_lookup
from secateur.index.read.loader import IndexMemory
from secateur.index.read.ordered_lookup import blocks_within, rows_within
from secateur.index.segments.segment_file import SegmentData, encode_segment
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Ranges
from secateur.pruning.report import Faults
from secateur.values.kinds import Kind
from tests.support.stores.index_files import (
    FIELDS,
    NAME,
    ONLY,
    ROWS,
    entries_of_names,
    memory_of,
    segment_data,
    store_of,
)

B = RangeSet(Kind.BYTES, np.array([b"b", b"b\0"], object))
ALL_BLOCKS = np.arange(4)
EVERY_ROW = [list(range(rows)) for rows in ROWS.tolist()]


def tolerant(data: SegmentData, harmed: bool = False) -> IndexMemory:
    """The statistics of a segment of which faults are counted; with `harmed`, no page of it matches its checksum."""
    store = store_of(encode_segment(data))
    if harmed:
        matrix = store.contents(NAME, SEGMENT).matrices["ordered/2"]
        raw = bytearray(store.data[NAME])
        raw[matrix.at] ^= 1
        store.data[NAME] = bytes(raw)
    return replace(memory_of(store), faults=Faults())


def rows_of(memory: IndexMemory, question: Ranges, numbers: np.ndarray = ALL_BLOCKS) -> list[list[int]] | None:
    ranges = rows_within(memory, question, numbers, ROWS[numbers])
    if ranges is None:
        return None
    alone = (ranges.take(np.array([block])) for block in range(len(numbers)))
    return [[row for low, high in zip(r.start, r.stop, strict=True) for row in range(low, high)] for r in alone]


def blocks_of(memory: IndexMemory, question: Ranges) -> Any:
    numbers = blocks_within(memory, question, ONLY)
    return None if numbers is None else numbers.tolist()


QUESTION = Ranges(FIELDS[1], B)


def test_the_blocks_and_rows_of_a_range() -> None:
    """Of the block that is unknown too; it has no row."""
    memory = tolerant(segment_data())
    assert blocks_of(memory, QUESTION) == [0, 1, 2]
    assert rows_of(memory, QUESTION) == [[1], [], [0], []]
    assert rows_of(memory, QUESTION, np.array([2, 3])) == [[0], []]
    assert not memory.faults.reasons


def test_a_block_that_is_unknown_keeps_all_rows() -> None:
    names = entries_of_names()
    memory = tolerant(replace(segment_data(), ordered={2: ordered_of([names[0], names[3], None, names[3]])}))
    assert blocks_of(memory, QUESTION) == [0, 2]
    assert rows_of(memory, QUESTION) == [[1], [], EVERY_ROW[2], []]


def test_nothing_is_known_without_ordered_postings_of_the_column() -> None:
    """Of a column of another name or another type, or in a segment that has none."""
    memory = tolerant(segment_data())
    for question in (replace(QUESTION, column=FIELDS[0]), replace(QUESTION, column=Field(FIELDS[1].path, pa.binary()))):
        assert blocks_of(memory, question) is None
        assert rows_of(memory, question) is None
    without = tolerant(replace(segment_data(), ordered={}))
    assert blocks_of(without, QUESTION) is None
    assert rows_of(without, QUESTION) in (None, EVERY_ROW)


def test_a_page_that_does_not_match_its_checksum_keeps_everything() -> None:
    memory = tolerant(segment_data(), harmed=True)
    assert blocks_of(memory, QUESTION) == [0, 1, 2, 3]
    assert rows_of(memory, QUESTION) == EVERY_ROW
    assert memory.faults.reasons


@pytest.mark.parametrize("limits", [{"MOST_PAGES": 0}, {"LEAST_PAGES": -1, "MOST_SHARE": -1.0}])
def test_ranges_over_too_many_pages_keep_everything(limits: dict[str, float]) -> None:
    memory = tolerant(segment_data())
    with patch.multiple(ordered_lookup, **limits):
        assert blocks_of(memory, QUESTION) == [0, 1, 2, 3]
        assert rows_of(memory, QUESTION) == EVERY_ROW
    assert not memory.faults.reasons


def test_no_blocks_are_asked_for() -> None:
    memory = tolerant(segment_data())
    assert rows_within(memory, QUESTION, np.zeros(0, np.int64), np.zeros(0, np.int64)) is None
