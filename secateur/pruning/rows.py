"""A bound predicate over rows of Arrow data, as Spark answers it.

A row is a unit whose lower and upper key are its value, so its set of outcomes holds one truth value, and the
connectives are those of the algebra. Only leaves differ: they look at values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import UnsupportedPredicate
from secateur.pruning.evaluate import fold
from secateur.pruning.outcomes import FALSE, NULL, TRUE, of_truth, survives
from secateur.pruning.predicate.bound import Field, Leaf, Matches, Missing, Unsupported, Within
from secateur.pruning.predicate.nodes import Predicate, Truth
from secateur.pruning.rangeset import RangeSet
from secateur.values import Kind, keys_of


def matching_rows(predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
    """Which rows the predicate is TRUE for: bool of shape (rows,).

    The batch has the predicate's top-level columns, of the table's types. Raises UnsupportedPredicate for a leaf
    that only Spark can evaluate.
    """
    return survives(truth(predicate, batch))


def truth(predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
    """The truth value of every row as a set of one outcome: uint8 of shape (rows,)."""
    return fold(predicate, np.ones(batch.num_rows, np.int64), lambda leaf: _leaf(leaf, batch))


def _leaf(leaf: Leaf, batch: pa.RecordBatch) -> np.ndarray:
    match leaf:
        case Truth(value):
            return np.full(batch.num_rows, of_truth(value), np.uint8)
        case Unsupported(sql, reason):
            raise UnsupportedPredicate(f"only Spark can evaluate {sql} ({reason}): use plan.to_spark(spark)")
        case Missing(field):
            return np.where(_is_null(column(batch, field)), np.uint8(TRUE), np.uint8(FALSE))
        case Within(field, ranges):
            values = column(batch, field)
            return _truth_of(_inside(values, ranges), _is_null(values))
        case Matches(field, regex):
            values = column(batch, field)
            return _truth_of(_flags(pc.match_substring_regex(values, regex)), _is_null(values))


def column(batch: pa.RecordBatch, field: Field) -> pa.Array:
    """The values of a field, null where any struct on the way is null."""
    values = batch.column(field.path[0])
    for name in field.path[1:]:
        values = pc.struct_field(values, name)
    return values


def _truth_of(inside: np.ndarray, null: np.ndarray) -> np.ndarray:
    return np.where(null, np.uint8(NULL), np.where(inside, np.uint8(TRUE), np.uint8(FALSE)))


def _inside(values: pa.Array, ranges: RangeSet) -> np.ndarray:
    if ranges.kind is not Kind.BYTES:
        return ranges.contains(keys_of(values))
    values = values.cast(pa.binary())
    points = ranges.points
    if points is not None and len(points) > 1:
        return _flags(pc.is_in(values, pa.array(points.tolist(), pa.binary())))
    above = np.zeros(len(values), np.int64)
    for threshold in ranges.thresholds:
        above += _flags(pc.greater_equal(values, pa.scalar(threshold, pa.binary())))
    return (above & 1).astype(bool)


def _is_null(values: pa.Array) -> np.ndarray:
    return _flags(pc.is_null(values))


def _flags(values: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), bool)
