"""The values of a column in order, each with its block and row, as an index may keep them; and rows chosen by them.

Soundness
---------
The entries of a block in a set of ranges are exactly its values there, each with its row, if the block is known: no
value is missing, and none is cut. A comparison with literals is TRUE on exactly the rows whose value is in its ranges;
NULL has no entry. So AND and OR of such comparisons are TRUE on exactly the intersection and the union of their rows.
Nothing is concluded of NOT, of other conditions, and of comparisons that may fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

import numpy as np

from secateur.pruning.bounds.rangeset import RangeSet, everything
from secateur.pruning.bounds.rangeset import intersection as in_both
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.predicate.bound import Field, Missing, Within
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.row_ranges import ROW_BITS, RowRanges, in_ranges, intersection, rows_of_blocks, union
from secateur.pruning.statistics import Blocks, Catalog, OrderedSegment
from secateur.values.kinds import kind_of, ordered_kind

MOST_ENTRIES = 1 << 22  # looked at for the rows of one comparison


def known_blocks(segments: Sequence[OrderedSegment], n: int) -> np.ndarray:
    """Return which of n blocks have all their values in some segments: bool of shape (n,)."""
    known = np.zeros(n, bool)
    for segment in segments:
        known[segment.positions] = segment.is_known
    return known


@dataclass(frozen=True)
class ExactRows:
    """The rows of n blocks on which a predicate is TRUE: exactly, where that is known."""

    rows: RowRanges
    is_exact: np.ndarray  # bool of shape (n,)

    def within(self, other: ExactRows) -> ExactRows:
        """Return the rows that are among others too."""
        return ExactRows(intersection(self.rows, other.rows), self.is_exact & other.is_exact)

    def has(self, block: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return which rows of these blocks are among them: bool."""
        behind = np.repeat(np.arange(len(self.rows.offsets) - 1) << ROW_BITS, np.diff(self.rows.offsets))
        return in_ranges(self.rows.start + behind, self.rows.stop + behind, (block << ROW_BITS) + row)


def exact_rows(predicate: Predicate, catalog: Catalog, blocks: Blocks) -> ExactRows | None:
    """Return the rows of some blocks on which a predicate is TRUE; None where nothing is known. Raises IndexFault."""

    def steps(part: Predicate) -> Steps[ExactRows | None]:
        match part:
            case And(children) | Or(children):
                rows = yield from each_of(children)
                known = [child for child in rows if child is not None]
                if len(known) < len(rows):
                    return None
                combine = intersection if isinstance(part, And) else union
                is_exact = np.logical_and.reduce([child.is_exact for child in known])
                return ExactRows(reduce(combine, [child.rows for child in known]), is_exact)
            case _:
                asked = ranges_of(part)
                return None if asked is None else _rows_within(*asked, catalog, blocks)

    return unrolled(steps, predicate, {})


def ranges_of(leaf: Predicate) -> tuple[Field, RangeSet] | None:
    """Return the ranges of a column in which a condition is TRUE, for no other row; None of other conditions."""
    match leaf:
        case Within(Field() as column, ranges, fails=None):
            return column, ranges
        case Not(Missing(Field() as column)) if (kind := kind_of(column.type)) is not None:
            return column, everything(kind)
        case _:
            return None


def _rows_within(column: Field, ranges: RangeSet, catalog: Catalog, blocks: Blocks) -> ExactRows | None:
    segments = catalog.ordered(column, blocks)
    if not segments or sum(segment.most_within(ranges) for segment in segments) > MOST_ENTRIES:
        return None
    parts = catalog.concurrently(lambda segment: list(segment.entries(ranges)), segments)
    entries = [*chain.from_iterable(parts)]
    block, row = (np.concatenate([np.zeros(0, np.int64), *(part[i] for part in entries)]) for i in (1, 2))
    known = known_blocks(segments, len(blocks))
    return ExactRows(rows_of_blocks(block, row, blocks.row_count, ~known), known)


def split(predicate: Predicate | None, column: Field) -> tuple[RangeSet, Predicate | None]:
    """Return the ranges of a column in which a predicate may be TRUE, and what it says besides; None is TRUE."""
    parts = [] if predicate is None else conjuncts(predicate)
    ranges, rest = everything(ordered_kind(column.type)), []
    for part in parts:
        asked = ranges_of(part)
        if asked is not None and asked[0] == column:
            ranges = in_both(ranges, asked[1])
        else:
            rest.append(part)
    return ranges, None if not rest else rest[0] if len(rest) == 1 else And(tuple(rest))
