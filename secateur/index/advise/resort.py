"""Simulate zone maps for a table sorted by another column, on the rows of sampled blocks.

The sampled rows are sorted and cut into as many blocks as they came from. Such a block spans more values of the column
than a block of the whole table would, because the sample is thinner. So it is cut further, into as many slices as the
number of blocks it stands for. A slice has its own bounds of the sort column, and the bounds of its block for all other
columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, truths
from secateur.index.zones import zonemap
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field, Leaf
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.rows.row_values import column
from secateur.pruning.stages.survivors import evaluate_refuted
from secateur.values.kinds import Kind, is_float, kind_of

MOST_SLICES = 1 << 14


@dataclass(eq=False)
class Sorted:
    """The rows of sampled blocks sorted by a column, cut into blocks and slices, with statistics over the slices."""

    rows: pa.RecordBatch  # sorted
    order: np.ndarray  # of the original rows
    by: Field | None  # None if they are sorted by more than one column
    block_edges: np.ndarray  # rows at which blocks begin, and the end
    slice_edges: np.ndarray
    _zones: dict[Field, Zones | None]

    def __len__(self) -> int:
        return len(self.slice_edges) - 1

    @property
    def row_count(self) -> np.ndarray:
        return np.diff(self.slice_edges)

    def zones(self, field: Field) -> Zones | None:
        """Return the zone maps of a column; None if it was not read."""
        if field not in self._zones:
            self._zones[field] = self._sorted_zones(field)
        return self._zones[field]

    def _sorted_zones(self, field: Field) -> Zones | None:
        if kind_of(field.type) is None or field.path[0] not in self.rows.schema.names:
            return None
        values = column(self.rows, field)
        if field == self.by:
            return _of_sorted(values, self.slice_edges)
        return _of_parts(values, self.block_edges).take(self._block_of_slice)

    @property
    def _block_of_slice(self) -> np.ndarray:
        return np.searchsorted(self.block_edges, self.slice_edges[:-1], "right") - 1

    def share_left(self, predicate: Predicate, true_of: Mapping[Leaf, np.ndarray]) -> float:
        """Return the share of the slices, and so of the table's blocks, that may hold a match.

        `true_of` marks, in the original row order, the rows on which leaves that filters serve are TRUE.
        """
        refuted = {}
        for leaf, rows in true_of.items():
            may_match = np.add.reduceat(rows[self.order].astype(np.int64), self.block_edges[:-1]) > 0
            refuted[leaf] = ~may_match[self._block_of_slice]
        return float(survives(evaluate_refuted(predicate, self, refuted)).mean())


def sorted_by(rows: pa.RecordBatch, by: Field, sampled: int, blocks: int) -> Sorted:
    """Sort the rows (at least one) of `sampled` blocks by a column, for a table of `blocks` blocks."""
    order = pc.sort_indices(column(rows, by)).to_numpy().astype(np.int64)
    n = len(order)
    count = min(sampled, n)
    slices = max(1, min(-(-blocks // count), n // count, MOST_SLICES // count))
    block_edges = np.arange(count + 1) * n // count
    slice_edges = np.unique(np.concatenate([_cut(a, b, slices) for a, b in pairwise(block_edges.tolist())]))
    return Sorted(rows.take(from_numpy(order)), order, by, block_edges, slice_edges, {})


def laid_out(rows: pa.RecordBatch, order: np.ndarray, edges: np.ndarray) -> Sorted:
    """Lay rows out in an order, int64 of shape (n,), cut into blocks at some edges."""
    return Sorted(rows.take(from_numpy(order)), order, None, edges, edges, {})


def _cut(start: int, stop: int, parts: int) -> np.ndarray:
    return start + np.arange(parts + 1) * (stop - start) // parts


def _of_sorted(values: pa.Array, edges: np.ndarray) -> Zones:
    """Return the zone maps of parts of ascending values, followed by NaN and then NULL."""
    type_, n = values.type, len(values)
    known = n - values.null_count
    numbers = known - (int(truths(pc.is_nan(values)).sum()) if is_float(type_) else 0)
    start, stop = edges[:-1], edges[1:]
    inside = start < numbers
    lower = values.take(pa.array(np.minimum(start, max(numbers - 1, 0)), mask=~inside))
    upper = values.take(pa.array(np.maximum(np.minimum(stop, numbers) - 1, 0), mask=~inside))
    null_count = stop - np.clip(known, start, stop)
    nan_count = stop - np.clip(numbers, start, stop) - null_count
    counts = stop - start
    return zonemap.from_bounds(type_, lower, upper, null_count, nan_count, counts).zones(counts)


def _of_parts(values: pa.Array, edges: np.ndarray) -> Zones:
    """Return the zone maps of parts of values."""
    counts = np.diff(edges)
    measured = [
        zonemap.of_values(values.slice(int(start), int(count)), values.type)
        for start, count in zip(edges[:-1], counts, strict=True)
    ]
    lower, upper, nulls, nans = zip(*measured, strict=True)
    type_ = pa.binary() if kind_of(values.type) is Kind.BYTES else values.type
    low, high = (pa.array(list(side), type_) for side in (lower, upper))
    zone_map = zonemap.from_bounds(values.type, low, high, np.array(nulls), np.array(nans), counts)
    return zone_map.zones(counts)
