"""Check that the ordered postings of a block have every value, in the row that holds it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.index.build.ordered_sketch import OrderedSketch
from secateur.index.filters.ordered import BlockEntries, all_entries
from secateur.index.model import Filter, name_of
from secateur.index.segments.stored_segment import StoredSegment
from secateur.index.verify.check_statistics import Contradiction


@dataclass(frozen=True)
class SegmentEntries:
    """The ordered postings of one filter of a segment, decoded."""

    filter: Filter
    blocks: Sequence[BlockEntries | None]


def segment_entries(segment: StoredSegment, f: int) -> SegmentEntries:
    """Read the ordered postings of a filter of a segment. Raises IndexFault."""
    return SegmentEntries(segment.snapshot.filters[f], all_entries(segment.ordered(f), segment.name))


@dataclass
class OrderedWitness:
    """Takes all values of one column in one block, in order, and finds a row whose entry is missing or wrong."""

    segment: SegmentEntries
    block: int  # in the segment
    _values: list[BlockEntries | None] = field(default_factory=list)
    _sketch: OrderedSketch = field(init=False)

    def __post_init__(self) -> None:
        self._sketch = OrderedSketch(self.segment.filter, self._values.append)

    def add(self, values: pa.Array) -> None:
        """Add the next values of the block."""
        self._sketch.add(values)

    def end(self) -> Contradiction | None:
        """Return the first row of the block whose entry differs; None where all agree."""
        self._sketch.end()
        recorded, (actual,) = self.segment.blocks[self.block], self._values
        row = None if recorded is None or actual is None else _different(recorded, actual)
        if row is None:
            return None
        return Contradiction(name_of(self.segment.filter.path), "the ordered postings", "another entry", f"row {row}")


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
