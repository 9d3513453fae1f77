"""Check that the row lists of a block have every row that holds a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.index.build.row_sketch import RowSketch
from secateur.index.filters.postings import rows_by_block
from secateur.index.filters.row_lists import ValueRows
from secateur.index.model import Filter, name_of
from secateur.index.segments.stored_segment import StoredSegment
from secateur.index.verify.check_statistics import Contradiction

ROW_BITS = 32  # of a row's number in a file


@dataclass(frozen=True)
class SegmentRows:
    """The row lists of one filter of a segment, decoded."""

    filter: Filter
    shift: int
    blocks: Sequence[ValueRows | None]


def segment_rows(segment: StoredSegment, f: int) -> SegmentRows:
    """Read the row lists of a filter of a segment. Raises IndexFault."""
    postings = segment.postings(f)
    return SegmentRows(segment.snapshot.filters[f], postings.table.shift, rows_by_block(postings, segment.name))


@dataclass
class RowWitness:
    """Takes all values of one column in one block, in order, and finds a row that the block's lists lack."""

    segment: SegmentRows
    block: int  # in the segment
    _values: list[ValueRows | None] = field(default_factory=list)
    _sketch: RowSketch = field(init=False)

    def __post_init__(self) -> None:
        self._sketch = RowSketch(self.segment.filter, self._values.append)

    def add(self, values: pa.Array) -> None:
        """Add the next values of the block."""
        self._sketch.add(values)

    def end(self) -> Contradiction | None:
        """Return the first row of the block that no list of its value has; None where all rows are listed."""
        self._sketch.end()
        recorded, (actual,) = self.segment.blocks[self.block], self._values
        row = None if recorded is None or actual is None else _missing(recorded, actual, self.segment.shift)
        if row is None:
            return None
        return Contradiction(name_of(self.segment.filter.path), "the row list of a value", "without it", f"row {row}")


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
