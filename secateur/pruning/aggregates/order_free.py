"""Which sums Spark gives alike in whatever order it adds: then a part of them may be known, and the rest be added."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.pruning.aggregates.answers import AVG, TOTALS, Aggregate
from secateur.pruning.aggregates.sums import EXACT_IN_DOUBLE, MORE_IN_AVERAGE, sum_type
from secateur.pruning.predicate.bound import Field
from secateur.pruning.statistics import Blocks
from secateur.values.kinds import Kind

EXACT_DOUBLE = 2.0**53  # integers up to here, and sums of them, are exact as doubles
ROUNDED_UP = 1 + 1e-9  # of sums of doubles that bound what is added, all of them positive: far more than they may lack


def is_order_free(aggregate: Aggregate, blocks: Blocks) -> bool:
    """Whether no sum of some of the values of some blocks leaves the type in which Spark adds; others are always fine.

    Soundness
    ---------
    The rows of a block have values between its bounds, so what some of them add up to is at most their number times the
    greater of the bounds, which the type of the column bounds too. If these products for all blocks add up to less than
    the limit of the type, no sum on the way overflows, nor is one rounded.
    """
    if aggregate.function not in TOTALS:
        return True
    most = float((blocks.row_count * _greatest(aggregate.argument, blocks)).sum()) * ROUNDED_UP
    return most < _limit(aggregate)


def _limit(aggregate: Aggregate) -> float:
    """Return the absolute value from which a sum is rounded or overflows where Spark adds, unscaled."""
    type_ = aggregate.argument.type
    if not pa.types.is_decimal128(type_):
        return EXACT_DOUBLE if aggregate.function == AVG else 2.0**63
    in_double = aggregate.function == AVG and type_.precision + MORE_IN_AVERAGE <= EXACT_IN_DOUBLE
    return EXACT_DOUBLE if in_double else 10.0 ** sum_type(type_).precision


def _greatest(field: Field, blocks: Blocks) -> np.ndarray:
    """Return a number that no value of a column exceeds in each of n blocks, unscaled and without sign: float64."""
    type_ = field.type
    of_type = 10.0**type_.precision if pa.types.is_decimal128(type_) else 2.0 ** (type_.bit_width - 1)
    zones = blocks.zones(field)
    if zones is None:
        return np.full(len(blocks), of_type)
    ends = [np.abs(_doubles(keys.words, keys.kind)) for keys in (zones.lower, zones.upper)]
    return np.where(zones.value == 0, 0.0, np.minimum(np.maximum(*ends), of_type))


def _doubles(words: tuple[np.ndarray, ...], kind: Kind) -> np.ndarray:
    high = words[0].astype(np.float64)
    return high if kind is Kind.WORD else high * 2.0**64 + words[1].astype(np.float64)
