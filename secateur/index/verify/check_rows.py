"""Check what postings say of rows: that row lists have every row of a value, and ordered postings each row's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from secateur.index.build.row_sketch import RowSketch, ordered_sketch, row_list_sketch
from secateur.index.filters.ordered import BlockEntries, all_entries
from secateur.index.filters.postings import rows_by_block
from secateur.index.filters.row_lists import ValueRows
from secateur.index.model import ORDERED, Filter, name_of
from secateur.index.segments.stored_segment import StoredSegment
from secateur.index.verify.check_statistics import Contradiction

ROW_BITS = 32  # of a row's number in a file

Block = TypeVar("Block", ValueRows, BlockEntries)


@dataclass(frozen=True)
class SegmentRows(Generic[Block]):
    """What one filter of a segment says of rows, decoded, and how it is compared with the values of a block."""

    filter: Filter
    statistic: str
    wrong: str  # what is recorded of a wrong row
    blocks: Sequence[Block | None]
    sketch: Callable[[Filter, Callable[[Block | None], None]], RowSketch[Any, Block]]
    wrong_row: Callable[[Block, Block], int | None]  # recorded and actual: the first row that contradicts


def segment_rows(segment: StoredSegment, f: int) -> SegmentRows[ValueRows] | SegmentRows[BlockEntries]:
    """Read what a filter of a segment says of rows. Raises IndexFault."""
    filter_ = segment.snapshot.filters[f]
    if filter_.kind == ORDERED:
        entries = all_entries(segment.ordered(f), segment.name)
        return SegmentRows(filter_, "the ordered postings", "another entry", entries, ordered_sketch, _different)
    postings = segment.postings(f)
    lists, missing = rows_by_block(postings, segment.name), partial(_missing, shift=postings.table.shift)
    return SegmentRows(filter_, "the row list of a value", "without it", lists, row_list_sketch, missing)


@dataclass
class RowWitness(Generic[Block]):
    """Takes all values of one column in one block, in order, and finds a row that contradicts what is recorded."""

    segment: SegmentRows[Block]
    block: int  # in the segment
    _blocks: list[Block | None] = field(default_factory=list)
    _sketch: RowSketch[Any, Block] = field(init=False)

    def __post_init__(self) -> None:
        self._sketch = self.segment.sketch(self.segment.filter, self._blocks.append)

    def add(self, values: pa.Array) -> None:
        """Add the next values of the block."""
        self._sketch.add(values)

    def add_others(self, values: pa.Array, rows: np.ndarray) -> None:
        """Add other values that some of the rows added last may have; `rows` are counted from the first of those."""
        self._sketch.add_others(values, rows)

    def end(self) -> list[Contradiction]:
        """Return the contradiction of the first wrong row, if there is one."""
        self._sketch.end()
        recorded, (actual,) = self.segment.blocks[self.block], self._blocks
        row = None if recorded is None or actual is None else self.segment.wrong_row(recorded, actual)
        if row is None:
            return []
        column = name_of(self.segment.filter.path)
        return [Contradiction(column, self.segment.statistic, self.segment.wrong, f"row {row}")]


def _missing(recorded: ValueRows, actual: ValueRows, shift: int) -> int | None:
    """Return a row that is not listed under the prefix of its value; None if there is none."""
    prefixes = recorded.hashes >> np.uint64(shift)
    asked = actual.hashes >> np.uint64(shift)
    at = np.searchsorted(prefixes, asked)
    listed = _keys(np.searchsorted(prefixes, prefixes), recorded)
    missing = ~np.isin(_keys(at, actual), listed)
    missing |= np.repeat(prefixes.take(at, mode="clip") != asked, actual.counts) if len(prefixes) else True
    return int(actual.rows[missing].min()) if missing.any() else None


def _keys(number: np.ndarray, values: ValueRows) -> np.ndarray:
    """Combine the number of every value with each of its rows."""
    return (np.repeat(number, values.counts) << ROW_BITS) | values.rows.astype(np.int64)


def _different(recorded: BlockEntries, actual: BlockEntries) -> int | None:
    """Return a row that only one of both has, or that has different heads; None if there is none."""
    if not actual.heads.prefix.startswith(recorded.heads.prefix) and len(actual.rows):
        return int(actual.rows.min())
    moved = actual.heads.under(recorded.heads.prefix).heads
    order, others = np.argsort(recorded.rows, kind="stable"), np.argsort(actual.rows, kind="stable")
    rows, other_rows = recorded.rows[order], actual.rows[others]
    if not np.array_equal(rows, other_rows):
        wrong = np.setxor1d(rows, other_rows)
        return int(wrong.min()) if len(wrong) else int(rows.max())
    wrong = rows[recorded.heads.heads[order] != moved[others]]
    return int(wrong.min()) if len(wrong) else None
