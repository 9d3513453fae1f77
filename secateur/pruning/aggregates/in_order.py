"""Aggregates over blocks whose values an index keeps in order: counted and compared there, and not read.

Soundness
---------
Of the blocks answered for, the rows that are not deleted are known exactly, and so are those on which the predicate is
TRUE (:mod:`secateur.pruning.ordered_values`): the rows in both count. Known exactly too are the values that they have
in the aggregated column, NULL being the absence of an entry. So an aggregate over these entries is the one over the
rows.

The values of a whole segment in the ranges of a predicate are counted by the places where the ranges begin and end.
That is the count over the blocks in doubt if, of the other blocks of the segment, the pruned ones have no such value,
and the complete ones nothing else: if the predicate is that comparison and nothing more, all files of the segment are
live and without deletes, and no limit has dropped a block.

The sign of a zero is not kept, so a least or a greatest value that is a zero of a floating type is left to reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from secateur.errors import IndexFault
from secateur.integers import sorted_distinct
from secateur.pruning.aggregates.answers import (
    COUNT,
    DISTINCT,
    EXTREMES,
    MAX,
    Aggregate,
    Known,
    KnownCounts,
    Result,
    combined,
)
from secateur.pruning.aggregates.distinct import DistinctValues
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.ordered_values import ExactRows, exact_rows, known_blocks, ranges_of, split
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.statistics import Blocks, Catalog, OrderedSegment, ValueEntries
from secateur.values.combination import concatenate
from secateur.values.conversion import scalar_of
from secateur.values.key import Key, float_key
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float

MOST_WAVES = 7  # of doubling numbers of pages, looked at for the least or greatest value of a segment
FEW_ENTRIES = 1 << 15  # looked at however few rows are in doubt
WORTH = 4  # entries that may be looked at for a row in doubt: reading one takes longer
_ZERO = float_key(0.0)
_NONE: tuple[np.ndarray, list[Result]] = (np.zeros(0, np.int64), [])


@dataclass(frozen=True)
class Doubts:
    """The blocks of a plan, and what is known of the rows that match."""

    predicate: Predicate
    residuals: Residuals
    blocks: Blocks
    alive: ExactRows | None  # the rows that are not deleted; None: all
    complete: np.ndarray  # bool of shape (n,): it is live, and all of its rows match
    is_all: bool  # no live block that holds a match is missing, and no row of any file is deleted
    catalog: Catalog

    def answered(self, asked: Sequence[Aggregate], wanted: np.ndarray) -> tuple[np.ndarray, list[Result]]:
        """Return those of some blocks that need not be read, ascending, and the aggregates over them.

        `wanted` has the positions of the blocks, ascending. Raises IndexFault, if what was read is broken.
        """
        if not asked or any(aggregate.function not in (COUNT, DISTINCT, *EXTREMES) for aggregate in asked):
            return _NONE
        if self.alive is not None:
            wanted = wanted[self.alive.is_exact[wanted]]
        if self._is_whole:
            return self._of_group(asked, self.predicate, wanted)
        positions, results = [np.zeros(0, np.int64)], [aggregate.of_no_rows for aggregate in asked]
        for number, residual in enumerate(self.residuals.distinct):
            of_group = wanted[self.residuals.of_block[wanted] == number]
            done, others = self._of_group(asked, residual, of_group) if len(of_group) else _NONE
            if len(done):
                positions.append(done)
                results = [combined(*parts) for parts in zip(asked, results, others, strict=True)]
        return np.sort(np.concatenate(positions)), results

    @cached_property
    def _is_whole(self) -> bool:
        """Whether the predicate itself is one comparison of an ordered column, which then serves all blocks."""
        asked = ranges_of(self.predicate)
        return asked is not None and bool(self._segments(asked[0]))

    def _of_group(
        self, asked: Sequence[Aggregate], residual: Predicate | None, wanted: np.ndarray
    ) -> tuple[np.ndarray, list[Result]]:
        """Answer for blocks that have the same residual."""
        mask = np.zeros(len(self.blocks), bool)
        mask[wanted] = True
        parts: list[Known] = []
        for aggregate in asked:
            part = self._part(aggregate, residual, mask)
            if part is None:
                return _NONE
            mask = mask & part.is_known
            parts.append(part)
        if not mask.any():
            return _NONE
        try:
            return np.flatnonzero(mask), [part.over(mask) for part in parts]
        except _LeftToReading:
            return _NONE

    def _part(self, aggregate: Aggregate, residual: Predicate | None, wanted: np.ndarray) -> Known | None:
        """Return how an aggregate is answered over blocks among some; None where it is not."""
        column = aggregate.field or _compared(residual)
        if column is None:
            rows = self._alive_within(residual)
            if rows is None:
                return KnownCounts(self.blocks.row_count) if residual is None else None
            return KnownCounts(np.where(rows.is_exact, rows.rows.row_counts, -1))
        ranges, rest = split(residual, column)
        rows = self._alive_within(rest)
        segments = self._segments(column)
        if not segments or (rest is not None and rows is None):
            return None
        chosen = _Chosen(self.catalog, segments, ranges, rows, self.blocks.row_count, wanted)
        match aggregate.function:
            case "min" | "max":
                return _Extreme(aggregate, chosen)
            case "count":
                is_plain = self.is_all and residual is self.predicate and rest is None
                return _Count(chosen, self.complete if is_plain else None)
            case _:
                return _Distinct(aggregate, chosen)

    def _alive_within(self, predicate: Predicate | None) -> ExactRows | None:
        """Return the rows on which a predicate is TRUE, None being TRUE, without deleted ones.

        None where that is not known, and where all rows count.
        """
        rows = None if predicate is None else self._rows(predicate)
        if self.alive is None or (predicate is not None and rows is None):
            return rows
        return self.alive if rows is None else rows.within(self.alive)

    def _rows(self, predicate: Predicate) -> ExactRows | None:
        if predicate not in self._known_rows:
            self._known_rows[predicate] = exact_rows(predicate, self.catalog, self.blocks)
        return self._known_rows[predicate]

    @cached_property
    def _known_rows(self) -> dict[Predicate, ExactRows | None]:
        return {}

    def _segments(self, column: Field) -> Sequence[OrderedSegment]:
        if column not in self._known_segments:
            self._known_segments[column] = self.catalog.ordered(column, self.blocks)
        return self._known_segments[column]

    @cached_property
    def _known_segments(self) -> dict[Field, Sequence[OrderedSegment]]:
        return {}


def _compared(residual: Predicate | None) -> Field | None:
    """Return a column whose value must be in some ranges for a predicate to be TRUE."""
    asked = map(ranges_of, () if residual is None else conjuncts(residual))
    return next((column for column, _ in filter(None, asked)), None)


class _LeftToReading(Exception):
    """The answer is not known by entries, or would take looking at too many of them."""


@dataclass(frozen=True)
class _Chosen:
    """The entries of some segments that count: of values in some ranges, and of chosen rows."""

    catalog: Catalog
    segments: Sequence[OrderedSegment]
    ranges: RangeSet
    rows: ExactRows | None  # None: all rows
    row_count: np.ndarray
    wanted: np.ndarray  # bool of shape (n,): the blocks that may be answered for

    @cached_property
    def is_known(self) -> np.ndarray:
        """The blocks whose entries are known: bool of shape (n,)."""
        known = known_blocks(self.segments, len(self.row_count))
        return known if self.rows is None else known & self.rows.is_exact

    @cached_property
    def is_worth_it(self) -> np.ndarray:
        """The blocks for which looking at all entries costs less than reading the rows: bool of shape (n,)."""
        is_worth = np.zeros(len(self.row_count), bool)
        for segment in self.segments:
            of_segment = segment.positions
            in_doubt = int(self.row_count[of_segment][self.wanted[of_segment]].sum())
            is_worth[of_segment] = segment.most_within(self.ranges) <= max(FEW_ENTRIES, WORTH * in_doubt)
        return is_worth

    def of(self, segment: OrderedSegment, blocks: np.ndarray, *, descending: bool = False) -> Iterator[ValueEntries]:
        """Yield the entries of some blocks (bool of shape (n,)) in a segment."""
        for entries in segment.entries(self.ranges, descending=descending):
            counted = blocks[entries.block]
            if self.rows is not None:
                counted &= self.rows.has(entries.block, entries.row)
            yield entries.take(counted)

    def over(self, blocks: np.ndarray) -> list[OrderedSegment]:
        """Return the segments with some of the blocks."""
        return [segment for segment in self.segments if blocks[segment.positions].any()]


@dataclass(frozen=True)
class _Count:
    """How many entries count; `complete` is None where the values of whole segments do not tell it."""

    chosen: _Chosen
    complete: np.ndarray | None

    @cached_property
    def _by_ends(self) -> list[OrderedSegment]:
        """The segments of which all values in the ranges can be counted by their ends."""
        if self.complete is None:
            return []
        answered = self.chosen.wanted | self.complete
        return [
            segment
            for segment in self.chosen.segments
            if segment.is_complete and not segment.has_unknown and answered[segment.positions].all()
        ]

    @property
    def is_known(self) -> np.ndarray:
        known = self.chosen.is_worth_it.copy()
        for segment in self._by_ends:
            known[segment.positions] = True
        return known & self.chosen.is_known

    def over(self, blocks: np.ndarray) -> int:
        by_ends = {id(segment) for segment in self._by_ends}

        def count(segment: OrderedSegment) -> int:
            return (self._in_doubt if id(segment) in by_ends else self._looked_at)(segment, blocks)

        return sum(self.chosen.catalog.concurrently(count, self.chosen.over(blocks)))

    def _looked_at(self, segment: OrderedSegment, blocks: np.ndarray) -> int:
        return sum(len(entries.block) for entries in self.chosen.of(segment, blocks))

    def _in_doubt(self, segment: OrderedSegment, blocks: np.ndarray) -> int:
        """Count the values of a segment in the ranges, without those of complete blocks."""
        assert self.complete is not None, "segments are counted by their ends only with it"
        of_segment, row_count = segment.positions, self.chosen.row_count[segment.positions]
        in_doubt = blocks[of_segment]
        if not (in_doubt | self.complete[of_segment]).all():  # some are left to reading
            return self._looked_at(segment, blocks)
        count = segment.count(self.chosen.ranges) - int(row_count[~in_doubt].sum())
        if not 0 <= count <= int(row_count[in_doubt].sum()):
            raise IndexFault(f"ordered postings count {count} values in {int(row_count[in_doubt].sum())} rows")
        return count


@dataclass(frozen=True)
class _Distinct:
    """The different values of the entries that count."""

    aggregate: Aggregate
    chosen: _Chosen

    @property
    def is_known(self) -> np.ndarray:
        return self.chosen.is_known & self.chosen.is_worth_it

    def over(self, blocks: np.ndarray) -> DistinctValues:
        keys = self.chosen.catalog.concurrently(partial(self._keys, blocks=blocks), self.chosen.over(blocks))
        if not keys:
            return DistinctValues()
        together, type_ = concatenate(keys), self.aggregate.argument.type
        if len(keys) == 1:
            return DistinctValues.of_different_keys(together, type_)
        if together.kind is Kind.WORD:
            different = Keys(together.kind, (sorted_distinct(together.words[0]),))
            return DistinctValues.of_different_keys(different, type_)
        return DistinctValues.of_keys(together, type_)

    def _keys(self, segment: OrderedSegment, blocks: np.ndarray) -> Keys:
        """Return the different values in a segment."""
        parts = [entries.heads for entries in self.chosen.of(segment, blocks)]
        heads = np.concatenate([np.zeros(0, np.int64), *(part[_begins(part)] for part in parts)])
        return segment.keys_of(heads[_begins(heads)])


def _begins(heads: np.ndarray) -> np.ndarray:
    """Return which of ascending heads differ from the one before."""
    return np.append(True, heads[1:] != heads[:-1])[: len(heads)]


@dataclass(frozen=True)
class _Extreme:
    """The least or the greatest value of the entries that count."""

    aggregate: Aggregate
    chosen: _Chosen

    @property
    def is_known(self) -> np.ndarray:
        return self.chosen.is_known

    def over(self, blocks: np.ndarray) -> Result:
        descending, type_ = self.aggregate.function == MAX, self.aggregate.argument.type
        best: Key | None = None
        for bound, segment in self._best_first(blocks, descending):
            if best is not None and not _is_better(bound, best, descending):
                break
            value = self._first(segment, blocks, descending)
            if value is not None and (best is None or _is_better(value, best, descending)):
                best = value
        if best is not None and best == _ZERO and is_float(type_):
            raise _LeftToReading
        return None if best is None else scalar_of(best, type_)

    def _best_first(self, blocks: np.ndarray, descending: bool) -> list[tuple[Key, OrderedSegment]]:
        """Return the segments in the order of their better ends, each with it."""
        bounds = [(segment.ends, segment) for segment in self.chosen.over(blocks)]
        known = [(ends[descending], segment) for ends, segment in bounds if ends is not None]
        return sorted(known, key=lambda pair: pair[0], reverse=descending)

    def _first(self, segment: OrderedSegment, blocks: np.ndarray, descending: bool) -> Key | None:
        """Return the best value of a segment; None where it has none that counts."""
        for number, entries in enumerate(self.chosen.of(segment, blocks, descending=descending)):
            if len(entries.heads):
                return segment.keys_of(entries.heads[-1:] if descending else entries.heads[:1]).at(0)
            if number == MOST_WAVES:
                raise _LeftToReading
        return None


def _is_better(a: Key, b: Key, descending: bool) -> bool:
    return a > b if descending else a < b  # type: ignore[operator]
