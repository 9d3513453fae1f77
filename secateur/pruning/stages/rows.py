"""Stage "rows": look up which rows of the surviving blocks hold what is asked for, where postings say it.

Rows are combined as blocks are by the stage "filters": a leaf is TRUE on no row but those that its postings list, and
nothing is claimed about where it is FALSE. So two conditions, each met somewhere in a block, leave none of its rows if
no row meets both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Leaf, Within
from secateur.pruning.predicate.bound_walks import leaves
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.questions import Ranges, Values, questions
from secateur.pruning.row_ranges import RowRanges, coarsened, intersection, union, whole_blocks
from secateur.pruning.stages.survivors import Query, Survivors
from secateur.pruning.statistics import Blocks, Catalog

MOST_BLOCKS = 1 << 16  # with more, reading them takes so long that rows do not matter
MOST_RANGES = 256  # of a block, about; with more, a reader would spend its time on them


def lists_rows(query: Query) -> bool:
    """Whether the index says of some values in which rows they are."""
    return query.catalog.lists_rows


def prune_rows(query: Query, survivors: Survivors) -> Survivors:
    """Keep the rows that may hold what the predicate asks for, and the blocks that have any.

    Fully matching blocks keep all rows.
    """
    blocks = survivors.blocks
    unsure = np.flatnonzero(~survivors.fully_matching)
    if not 0 < len(unsure) <= MOST_BLOCKS:
        return survivors
    listed, is_listed = _listed(query.predicate, query.catalog, blocks.take(unsure))
    if listed is None:
        return survivors
    before = survivors.row_ranges or whole_blocks(blocks.row_count)
    ranges = intersection(before, _among(listed, unsure, blocks.row_count))
    kept = np.flatnonzero(np.diff(ranges.offsets))
    query.notes.append(f"{int(listed.row_counts.sum()):,} rows of {len(unsure):,} blocks may hold what is asked for")
    return replace(survivors.take(kept), row_ranges=ranges.take(kept), is_listed=is_listed)


def listed_rows(predicate: Predicate, catalog: Catalog, blocks: Blocks) -> RowRanges | None:
    """Return the rows of some blocks on which a predicate may be TRUE, by row lists alone; None: nothing is known."""
    return _listed(predicate, catalog, blocks)[0]


def _listed(predicate: Predicate, catalog: Catalog, blocks: Blocks) -> tuple[RowRanges | None, bool]:
    """Return the rows as :func:`listed_rows`, and whether there are row lists of every leaf."""
    asked = {leaf: _rows(leaf, catalog, blocks) for leaf in dict.fromkeys(leaves(predicate))}
    listed = {leaf: rows for leaf, rows in asked.items() if rows is not None}
    rows = unrolled(partial(_may_be, listed=listed), (predicate, TRUE), {}) if listed else None
    if rows is None:
        return None, False
    has_many = np.diff(rows.offsets) > MOST_RANGES
    return coarsened(rows, np.where(has_many, blocks.row_count // MOST_RANGES, 0)), len(listed) == len(asked)


def _rows(leaf: Leaf, catalog: Catalog, blocks: Blocks) -> RowRanges | None:
    """Return the rows on which a leaf may be TRUE; None if no postings say it."""
    asked = (catalog.rows(question, blocks) for question in questions(leaf) if isinstance(question, Values | Ranges))
    return _in_all([rows for rows in asked if rows is not None])


def _may_be(asked: tuple[Predicate, int], listed: Mapping[Leaf, RowRanges]) -> Steps[RowRanges | None]:
    """Return where a predicate may be TRUE, or FALSE, by row lists only (None: anywhere). Nothing refutes FALSE."""
    predicate, truth = asked
    match predicate:
        case And(children) | Or(children):
            parts = yield from each_of((child, truth) for child in children)
            known = [part for part in parts if part is not None]
            if isinstance(predicate, And) == (truth == TRUE):
                return _in_all(known)
            return reduce(union, known) if len(known) == len(parts) else None
        case Not(child):
            return (yield child, TRUE + FALSE - truth)
        case Within(fails=RangeSet()):  # nothing here knows about rows on which Spark raises an error
            return None
        case _ if truth == TRUE:
            return listed.get(predicate)  # type: ignore[call-overload]
        case _:
            return None


def _in_all(parts: list[RowRanges]) -> RowRanges | None:
    return reduce(intersection, parts) if parts else None


def _among(ranges: RowRanges, positions: np.ndarray, row_count: np.ndarray) -> RowRanges:
    """Return ranges of all blocks, given those of the blocks at some positions; all rows of the others."""
    whole = whole_blocks(row_count)
    counts = np.ones(len(row_count), np.int64)
    counts[positions] = np.diff(ranges.offsets)
    is_whole = np.ones(len(row_count), bool)
    is_whole[positions] = False
    from_whole = np.repeat(is_whole, counts)
    start, stop = np.empty(len(from_whole), np.int64), np.empty(len(from_whole), np.int64)
    start[from_whole], stop[from_whole] = whole.start[is_whole], whole.stop[is_whole]
    start[~from_whole], stop[~from_whole] = ranges.start, ranges.stop
    return RowRanges(np.concatenate([[0], np.cumsum(counts)]), start, stop)
