"""Stages "top-n segments" and "top-n": drop what holds none of the first n rows of ORDER BY.

Soundness
---------
Say the order is ascending by one column. All rows of complete blocks (fully matching, no deleted rows) match the query.
Let the *boundary* T be the least value such that at least n of those rows, counted by the blocks' upper bounds, stand
at or before T. A row after T then has n rows before it, so it is not among the first n, whichever of equal rows are
taken. So a block whose lower bound lies after T holds none of them; one whose lower bound equals T may.

A block whose better bound is a value has a row there. So the n-th best of such bounds is a boundary too, the tighter
one where blocks overlap: for the ten greatest values of an unclustered column, ten blocks are left.

- An unknown bound is the least or the greatest key, so such a block is kept, and does not lower T.
- NULLs stand before all values or after them. If they come first, a block that may hold one is kept, and its rows count
  at its upper bound; if at least n NULLs are known, T is NULL. If they come last, only rows that are known not to be
  NULL count.
- Truncated text still bounds: the blocks' lower bounds are no greater, their upper bounds no less than the values.
- NaN is the greatest key. Values without a known order (collations, arrays) decide nothing.
- With several columns all of this holds for the first, because a row after T in it comes after n others in the whole
  order. It also holds for the sort key's tuples if their order refines that of the query: the first n rows by tuples
  are first n rows of the query. The rows that the first column rules out are in no such n rows, so both may prune.
- Segments are units like blocks: a merged zone map bounds the values of all blocks below.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.order import (
    Boundary,
    Fronts,
    OrderColumn,
    boundary_at_fronts,
    boundary_of,
    earlier,
    fronts_of,
    known_nulls,
    zones_in,
)
from secateur.pruning.stages.survivors import Query, SurvivingSegments, Survivors


def is_ordered(query: Query) -> bool:
    """Return whether the first rows of an order are asked for."""
    return query.order is not None


def prune_segments_by_order(query: Query, left: SurvivingSegments) -> SurvivingSegments:
    """Keep the segments that may hold one of the first n rows, by their merged zone maps.

    Only fully matching segments lower the boundary, by their rows in live files without deletes. If NULLs come last,
    only those of these rows count that cannot be NULL.
    """
    whole, units = left.whole, left.all_segments
    if not len(whole) or not query.limit:
        return left
    catalog, files = query.catalog, left.files
    touched = catalog.files.touched
    if touched is not None:
        files = ~touched if files is None else files & ~touched
    rows, merged = catalog.row_counts(files, units), catalog.merged(units)
    whole_units = np.searchsorted(units, whole)
    survives = np.ones(len(units), bool)
    for column in _columns(query):
        zones = zones_in(column, merged)
        known_zones, live = zones.take(whole_units), rows[whole_units]
        nulls = known_nulls(column, known_zones, live)
        if not column.nulls_first and (nulls < 0).any():
            most = catalog.merged_nulls(column.field, whole)
            nulls = np.where((nulls < 0) & (most >= 0), np.minimum(most, live), nulls)
        boundary = boundary_of(column, known_zones, live, nulls, query.limit)
        if boundary is not None:
            survives &= _within(query, fronts_of(column, zones), boundary)
    if survives.all():
        return left
    segments, whole = (numbers[survives[np.searchsorted(units, numbers)]] for numbers in (left.segments, whole))
    return replace(left, segments=segments, whole=whole)


def prune_by_order(query: Query, survivors: Survivors) -> Survivors:
    """Keep the blocks that may hold one of the first n rows, and note where the rows of each may begin."""
    assert query.order is not None and query.limit is not None, "the stage runs only where is_ordered"
    if not query.limit:
        return survivors.take(np.zeros(0, np.int64))
    ordered, survives = survivors, np.ones(len(survivors.blocks), bool)
    for column in _columns(query):
        fronts, boundary = _bounded(query.limit, column, query, survivors)
        if column is query.order.first:
            ordered = replace(survivors, fronts=fronts, boundary=boundary)
        if boundary is not None:
            survives &= _within(query, fronts, boundary)
    return ordered if survives.all() else ordered.take(np.flatnonzero(survives))


def _columns(query: Query) -> list[OrderColumn]:
    """Return the columns that bound the order: the first, and the sort key's tuples if they refine it."""
    assert query.order is not None, "the stages run only where is_ordered"
    columns = [query.order.first, *([query.order.tuples] if query.order.tuples is not None else [])]
    return [column for column in columns if column.is_ordered_here]


def _bounded(n: int, column: OrderColumn, query: Query, survivors: Survivors) -> tuple[Fronts, Boundary | None]:
    """Return the fronts of the blocks, and the boundary of the first n rows."""
    blocks, touched = survivors.blocks, query.catalog.files.touched
    matching = survivors.fully_matching
    complete = np.flatnonzero(matching if touched is None else matching & ~touched[blocks.file])
    zones = zones_in(column, blocks)
    known_zones = zones if len(complete) == len(blocks) else zones.take(complete)
    if not len(complete):
        return fronts_of(column, zones), None
    rows, nulls = blocks.row_count[complete], _nulls(column, known_zones, survivors, complete)
    boundary = boundary_of(column, known_zones, rows, nulls, n)
    if column.nullable:  # not the tuples of a sort key, whose bounds are cut
        has_value = (nulls >= 0) & (nulls < rows)
        boundary = earlier(column, boundary, boundary_at_fronts(column, known_zones, has_value, n))
    return fronts_of(column, zones), boundary


def _nulls(column: OrderColumn, zones: Zones, survivors: Survivors, complete: np.ndarray) -> np.ndarray:
    """Return the NULL counts of complete blocks; -1 if unknown."""
    blocks = survivors.blocks
    if not column.nullable or not zones.null.any():
        return np.zeros(len(complete), np.int64)
    return null_counts(column.field, blocks if len(complete) == len(blocks) else blocks.take(complete))


def _within(query: Query, fronts: Fronts, boundary: Boundary) -> np.ndarray:
    """Return which units may hold a row up to the boundary, and note the boundary if it rules out others."""
    reached = fronts.reach(boundary, ties=True)
    if not reached.all():
        place = boundary.text(fronts.column) if fronts.column.nullable else "a tuple of the sort key"
        query.notes.append(f"{query.limit:,} rows are sure to stand at or before {place}")
    return reached
