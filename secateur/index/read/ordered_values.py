"""Read the values that ordered postings keep of some blocks, in order, or only count them.

Only segments whose values are known by their heads are here; see :mod:`secateur.pruning.ordered_values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.filters.heads import keys_of_heads
from secateur.index.filters.ordered import EntrySpans, entries_at, entries_before
from secateur.index.read.loader import IndexMemory
from secateur.index.read.ordered_lookup import ordered_filter
from secateur.index.segments.segment_file import StoredOrdered
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Field
from secateur.pruning.statistics import ValueEntries
from secateur.ragged import runs_of
from secateur.values.key import Key
from secateur.values.keys import Keys
from secateur.values.kinds import ordered_kind

FIRST, MOST = 1, 256  # pages read at once, doubled each time


@dataclass(frozen=True)
class SegmentValues:
    """The values of a column in some blocks of a segment."""

    memory: IndexMemory
    name: str  # of the segment's file
    column: Field
    stored: StoredOrdered
    numbers: np.ndarray  # ascending: the places of the blocks in the segment
    first: int  # the position of the first block among all that were asked for; the others follow
    row_count: np.ndarray
    is_complete: bool

    @property
    def positions(self) -> slice:
        """The positions of the blocks among all that were asked for."""
        return slice(self.first, self.first + len(self.numbers))

    @cached_property
    def is_known(self) -> np.ndarray:
        """Which of the blocks have all their values here: bool of shape (len(numbers),)."""
        return ~np.isin(self.numbers, self.stored.table.unknown)

    @property
    def has_unknown(self) -> bool:
        """Whether values of some block of the segment are not here."""
        return len(self.stored.table.unknown) > 0

    @property
    def ends(self) -> tuple[Key, Key] | None:
        """The least and the greatest value of the segment; None where it has none."""
        heads = self.stored.table.heads
        return None if not len(heads) else (self.keys_of(heads[:1]).at(0), self.keys_of(heads[-1:]).at(0))

    def keys_of(self, heads: np.ndarray) -> Keys:
        """Return the keys of some heads."""
        return keys_of_heads(heads, self.stored.table.prefix, ordered_kind(self.column.type))

    def most_within(self, ranges: RangeSet) -> int:
        """Return how many entries have to be looked at for those in some ranges."""
        return len(self._spans(ranges).pages) * self.stored.table.page

    def count(self, ranges: RangeSet) -> int:
        """Count the values of the whole segment in some ranges, by the pages in which these begin and end."""
        spans = self._spans(ranges)
        starts, stops = (
            entries_before(self.stored.table, cuts, self._bands, self._where) for cuts in (spans.starts, spans.stops)
        )
        return int((stops - starts).sum())

    def entries(self, ranges: RangeSet, *, descending: bool = False) -> Iterator[ValueEntries]:
        """Yield the entries of the blocks in some ranges, from the least on, or from the greatest."""
        spans = self._spans(ranges)
        pages, size = spans.pages, FIRST
        place = np.full(self.stored.table.blocks, -1)
        place[self.numbers] = np.arange(len(self.numbers))
        while len(pages):
            chosen, pages = (pages[-size:], pages[:-size]) if descending else (pages[:size], pages[size:])
            yield self._entries(spans, chosen, place)
            size = min(2 * size, MOST)

    def _entries(self, spans: EntrySpans, pages: np.ndarray, place: np.ndarray) -> ValueEntries:
        heads, block, row = entries_at(self.stored.table, spans, pages, self._bands, self._where)
        at = place[block]
        inside = at >= 0
        heads, at, row = heads[inside], at[inside], row[inside]
        if (row >= self.row_count[at]).any():
            raise IndexFault(f"{self.name}: ordered postings have a row beyond the last of its block")
        return ValueEntries(heads, self.first + at, row)

    def _spans(self, ranges: RangeSet) -> EntrySpans:
        return self.stored.table.pages_within(ranges)

    @property
    def _where(self) -> str:
        return f"{self.name}: ordered postings"

    def _bands(self, rows: np.ndarray) -> np.ndarray:
        def read(ranges: Sequence[Range]) -> list[bytes]:
            return self.memory.chunks.read_ranges(self.name, ranges)

        return read_rows(self.stored.bands, rows, read, self._where)


def segment_values(
    memory: IndexMemory, column: Field, numbers: np.ndarray, row_count: np.ndarray, complete: np.ndarray
) -> list[SegmentValues]:
    """Return the values of a column, by the index's name, in some ascending blocks of segments.

    `complete` says which segments hold live files only. Segments without ordered postings, and those whose heads cut
    values, are not among them.
    """
    f = ordered_filter(memory, column)
    if f is None or not len(numbers):
        return []
    begin = memory.groups.block_begin
    segment = np.searchsorted(begin, numbers, "right") - 1
    first, last = runs_of(segment[1:] != segment[:-1], len(segment))
    values = []
    spans = zip(segment[first].tolist(), first.tolist(), (last + 1).tolist(), strict=True)
    for (number, low, high), stored in zip(spans, memory.ordered(f, segment[first]), strict=True):
        if stored is not None and stored.table.is_exact:
            within = numbers[low:high] - begin[number]
            name, whole = memory.groups.names[number], bool(complete[number])
            values.append(SegmentValues(memory, name, column, stored, within, low, row_count[low:high], whole))
    return values
