"""Stage "first rows": keep the rows that may be among the first n of ORDER BY, where an index keeps values in order.

Soundness
---------
A row is *certain* if it is live, matches, and has an entry among the ordered values of the first column
(:mod:`secateur.pruning.ordered_values`). Let T be the n-th best value of certain rows. A row after T has n rows before
it, so it is not among the first n. So of a block all of whose values are known, the entries up to T are left; its other
rows come after T, or are NULL. NULLs that come last are after T. Where they come first, a block that may hold one stays
as it is, unless the predicate is TRUE on no NULL.

If the order has one column only, rows with equal values may stand in for each other. So the n best certain rows are
enough, with the rows before T that are not certain. Where the search for certain rows was given up, those that it has
not come to may stand before T as well, and count as not certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from secateur.pruning.bounds.rangeset import RangeSet, between
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.order import VALUES, Boundary, OrderColumn, earlier, zones_in
from secateur.pruning.ordered_values import MOST_ENTRIES, ExactRows, exact_rows, known_blocks, ranges_of, split
from secateur.pruning.residual import residuals_of
from secateur.pruning.row_ranges import RowRanges, intersection, rows_of_blocks, whole_blocks
from secateur.pruning.stages.survivors import Query, Survivors
from secateur.pruning.statistics import OrderedSegment, ValueEntries
from secateur.values.combination import concatenate
from secateur.values.key import Key, least_key, successor
from secateur.values.keys import Keys
from secateur.values.kinds import ordered_kind

FEW_ROWS = 1 << 15  # of all blocks: reading them takes no longer than looking at values
MOST_ROWS = 1 << 16  # of a limit; for more, blocks are read anyway
MOST_GROUPS = 16  # of blocks with different residuals
MOST_WAVES = 8  # of doubling numbers of pages, looked at in a segment for certain rows


def has_first_values(query: Query) -> bool:
    """Return whether first rows are asked for, and the values of some column are kept in order."""
    return query.order is not None and bool(query.limit) and query.catalog.keeps_order


def prune_first_rows(query: Query, survivors: Survivors) -> Survivors:
    """Keep the rows that may be among the first n, and the blocks that have any."""
    assert query.order is not None and query.limit is not None, "the stage runs only where has_first_values"
    column, blocks = query.order.first, survivors.blocks
    is_worth_it = int(blocks.row_count.sum()) > FEW_ROWS and query.limit <= MOST_ROWS
    if not is_worth_it or not column.is_ordered_here:
        return survivors
    segments = query.catalog.ordered(column.field, blocks)
    groups = _groups(query, column, survivors) if segments else []
    certain = query.catalog.concurrently(partial(_certain, groups=groups, column=column, n=query.limit), segments)
    first = _first(certain, column, query.limit)
    if first is None:
        return survivors
    restricted = known_blocks(segments, len(blocks)) & ~_may_hold_first_nulls(query, column, survivors)
    rows = _rows(query, survivors, first, restricted, certain)
    boundary = earlier(column, survivors.boundary, Boundary(VALUES, first.last))
    if rows is None:
        return replace(survivors, boundary=boundary)
    ranges = intersection(survivors.row_ranges or whole_blocks(blocks.row_count), rows)
    kept = np.flatnonzero(np.diff(ranges.offsets))
    place = Boundary(VALUES, first.last).text(column)
    query.notes.append(f"by ordered postings {query.limit:,} rows stand at or before {place}")
    return replace(replace(survivors, boundary=boundary).take(kept), row_ranges=ranges.take(kept))


@dataclass(frozen=True)
class _Group:
    """Blocks in which the same rows match: those with a value in some ranges and, with `rows`, among these."""

    blocks: np.ndarray  # bool of shape (n,): the live ones of which this is known
    ranges: RangeSet
    rows: ExactRows | None

    def entries(self, segment: OrderedSegment, *, descending: bool) -> Iterator[ValueEntries]:
        """Yield the certain rows of a segment."""
        for entries in segment.entries(self.ranges, descending=descending):
            counted = self.blocks[entries.block]
            if self.rows is not None:
                counted &= self.rows.has(entries.block, entries.row)
            yield entries.take(counted)


def _groups(query: Query, column: OrderColumn, survivors: Survivors) -> list[_Group]:
    """Return the live blocks whose matching rows are known."""
    blocks, touched = survivors.blocks, query.catalog.files.touched
    live = np.ones(len(blocks), bool) if touched is None else ~touched[blocks.file]
    whole = ranges_of(query.predicate)
    if whole is not None and whole[0] == column.field:
        return [_Group(live, whole[1], None)]
    residuals, groups = residuals_of(query.predicate, blocks, survivors.fully_matching), []
    for number, residual in enumerate(residuals.distinct[:MOST_GROUPS]):
        ranges, rest = split(residual, column.field)
        rows = None if rest is None else exact_rows(rest, query.catalog, blocks)
        of_group = live & (residuals.of_block == number)
        if rest is None:
            groups.append(_Group(of_group, ranges, None))
        elif rows is not None:
            groups.append(_Group(of_group & rows.is_exact, ranges, rows))
    return groups


@dataclass(frozen=True)
class _Certain:
    """Certain rows of a segment, the best ones of each group."""

    segment: OrderedSegment
    entries: ValueEntries
    has_best: np.ndarray  # bool: of which of its blocks the n best rows, or all that match, are among them


def _certain(segment: OrderedSegment, groups: Sequence[_Group], column: OrderColumn, n: int) -> _Certain:
    """Return the n best certain rows of a segment in each group, or as many as a few pages have."""
    parts, has_best = [ValueEntries(*(np.zeros((3, 0), np.int64)))], np.zeros(len(segment.is_known), bool)
    for group in groups:
        of_group = group.blocks[segment.positions]
        if of_group.any():
            missing, is_given_up = n, False
            for number, entries in enumerate(group.entries(segment, descending=column.descending)):
                best = entries.take(slice(-missing, None) if column.descending else slice(missing))
                parts.append(best)
                missing -= len(best.heads)
                is_given_up = bool(missing) and number == MOST_WAVES
                if not missing or is_given_up:
                    break
            if not is_given_up:
                has_best |= of_group
    return _Certain(segment, ValueEntries(*map(np.concatenate, zip(*parts, strict=True))), has_best & segment.is_known)


@dataclass(frozen=True)
class _First:
    """The n best certain rows, and the value of the last of them."""

    block: np.ndarray
    row: np.ndarray
    last: Keys  # one


def _first(certain: Sequence[_Certain], column: OrderColumn, n: int) -> _First | None:
    """Return the n best certain rows of all segments; None where there are fewer."""
    if sum(len(part.entries.heads) for part in certain) < n:
        return None
    keys = concatenate([part.segment.keys_of(part.entries.heads) for part in certain])
    order = np.lexsort(tuple(reversed(keys.words)))
    chosen = (order[::-1] if column.descending else order)[:n]
    block, row = (np.concatenate([part.entries[i] for part in certain])[chosen] for i in (1, 2))
    return _First(block, row, keys.take(chosen[-1:]))


def _may_hold_first_nulls(query: Query, column: OrderColumn, survivors: Survivors) -> np.ndarray:
    """Return which blocks may hold a NULL that matches and stands before all values: bool of shape (n,)."""
    asked = [ranges_of(part) for part in conjuncts(query.predicate)]
    is_compared = any(part is not None and part[0] == column.field for part in asked)
    if is_compared or not column.nulls_first:
        return np.zeros(len(survivors.blocks), bool)
    return zones_in(column, survivors.blocks).null != 0


def _rows(
    query: Query,
    survivors: Survivors,
    first: _First,
    restricted: np.ndarray,
    certain: Sequence[_Certain],
) -> RowRanges | None:
    """Return the rows of every block that may be needed, all of those not restricted; None where they are too many."""
    assert query.order is not None, "the stage runs only where has_first_values"
    blocks, column = survivors.blocks, query.order.first
    is_certain = np.zeros(len(blocks), bool)
    if len(query.order.columns) == 1:
        for part in certain:
            is_certain[part.segment.positions] = part.has_best
    block, row = [first.block], [first.row]
    looked_at = restricted & ~is_certain
    if looked_at.any():
        before = _up_to(first.last.at(0), column, ties=len(query.order.columns) > 1)
        some = [part.segment for part in certain if looked_at[part.segment.positions].any()]
        if sum(segment.most_within(before) for segment in some) > MOST_ENTRIES:
            return None
        parts = query.catalog.concurrently(lambda segment: list(segment.entries(before)), some)
        for entries in chain.from_iterable(parts):
            among = entries.take(looked_at[entries.block])
            block.append(among.block)
            row.append(among.row)
    return rows_of_blocks(np.concatenate(block), np.concatenate(row), blocks.row_count, ~restricted)


def _up_to(key: Key, column: OrderColumn, *, ties: bool) -> RangeSet:
    """Return the values before one in the order, or with `ties` at it."""
    kind = ordered_kind(column.field.type)
    if column.descending:
        return between(kind, key if ties else successor(key, kind), None)
    return between(kind, least_key(kind), successor(key, kind) if ties else key)
