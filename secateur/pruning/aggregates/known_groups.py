"""Groups of rows, and their aggregates, over blocks of one group each: known by statistics, and an array per column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.pruning.aggregates.answers import (
    COUNT,
    MAX,
    TOTALS,
    Aggregate,
    LeftOut,
    each_block,
    is_complete,
    known_counts,
    side_of,
)
from secateur.pruning.aggregates.groups import BlockGroups
from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.aggregates.sums import KnownSums, Total, known_sums, sum_type
from secateur.pruning.predicate.bound import Field
from secateur.pruning.rows.row_values import values_of
from secateur.pruning.statistics import Blocks
from secateur.values.combination import greatest_per_group, least_per_group
from secateur.values.keys import Keys


@dataclass(frozen=True)
class KnownGroups:
    """The groups of some blocks, and the aggregates of each over its blocks; none is without rows."""

    answered: np.ndarray  # bool of shape (n,): which blocks these are
    columns: tuple[pa.Array, ...]  # per group: the values by which rows are grouped, then the aggregates


def known_groups(
    asked: Sequence[Aggregate],
    blocks: Blocks,
    live: np.ndarray,
    fields: Sequence[Field],
    most: int,
    left_out: LeftOut = each_block,
) -> KnownGroups:
    """Return the aggregates over blocks of one group each that statistics tell; of none if there are more than `most`.

    `live` has the number of rows of every block, as in :mod:`.answers`.

    Soundness
    ---------
    All rows of a block that is answered count, and are of its group. A group may have rows in other blocks too.
    """
    by = BlockGroups.of(fields, blocks)
    totals = [_known_totals(aggregate, blocks, live) for aggregate in asked]
    answered = left_out(np.logical_and.reduce([(by.code >= 0) & (live > 0), *(total.is_known for total in totals)]))
    of_group = np.bincount(by.code[answered], minlength=len(by.first))
    numbers = np.flatnonzero(of_group)
    if len(numbers) > most:
        return KnownGroups(np.zeros(len(blocks), bool), ())
    order = np.argsort(by.code, kind="stable")
    order, sizes, first = order[answered[order]], of_group[numbers], by.first[numbers]
    groups = [
        values_of(keys.take(first), field.type, ~null[first])
        for (keys, null), field in zip(by.values, fields, strict=True)
    ]
    return KnownGroups(answered, (*groups, *(total.of_runs(order, sizes) for total in totals)))


@dataclass(frozen=True)
class _KnownTotals:
    """What statistics say about an aggregate over each of n blocks."""

    aggregate: Aggregate
    is_known: np.ndarray  # bool of shape (n,)
    counts: np.ndarray  # what a block adds to a count; for MIN and MAX, 1 where it has a value
    keys: Keys | None = None  # MIN or MAX of the block

    def of_runs(self, order: np.ndarray, sizes: np.ndarray) -> pa.Array:
        """Return the aggregate over runs of known blocks: `order` has their numbers, `sizes` how many are in each."""
        counts, starts = self.counts[order], np.cumsum(sizes) - sizes
        sums = np.add.reduceat(counts, starts) if len(starts) else np.zeros(0, np.int64)
        if self.keys is None:
            return from_numpy(sums)
        has_value, within = sums > 0, np.flatnonzero(counts)
        if not len(within):
            return pa.nulls(len(sizes), self.aggregate.type)
        _, begins = np.unique(np.repeat(np.arange(len(sizes)), sizes)[within], return_index=True)
        per_group = greatest_per_group if self.aggregate.function == MAX else least_per_group
        best = per_group(self.keys.take(order[within]), begins)
        return values_of(best.take(np.maximum(np.cumsum(has_value) - 1, 0)), self.aggregate.type, has_value)


@dataclass(frozen=True)
class _KnownSums:
    """What statistics say about SUM or AVG over each of n blocks; for an average, its sum."""

    aggregate: Aggregate
    sums: KnownSums

    @property
    def is_known(self) -> np.ndarray:
        return self.sums.is_known

    def of_runs(self, order: np.ndarray, sizes: np.ndarray) -> pa.Array:
        """Return the sum over runs of known blocks, as :class:`_KnownTotals` does. Raises EvaluationError."""
        starts, type_ = np.cumsum(sizes) - sizes, self.aggregate.argument.type
        sums = self.sums.sums.take(order).totals(starts)
        counts = np.add.reduceat(self.sums.counts[order], starts).tolist() if len(starts) else []
        values = [Total(*pair).sum_of(type_) for pair in zip(sums, counts, strict=True)]
        return pa.array(values, sum_type(type_))


def _known_totals(aggregate: Aggregate, blocks: Blocks, live: np.ndarray) -> _KnownTotals | _KnownSums:
    """Return what statistics say about an aggregate over each block."""
    complete = is_complete(live, blocks)
    if aggregate.function in TOTALS:
        return _KnownSums(aggregate, known_sums(aggregate.argument, blocks, complete))
    if aggregate.function == COUNT:
        counts = known_counts(aggregate, blocks, live).astype(np.int64)
        return _KnownTotals(aggregate, counts >= 0, counts)
    side = side_of(aggregate, blocks, complete)
    is_null = complete & (null_counts(aggregate.argument, blocks) == blocks.row_count)
    return _KnownTotals(aggregate, side.exact | is_null, side.exact.astype(np.int64), side.fronts.keys)
