"""Exact sums of integers and decimals: by the sums that an index keeps of blocks, and by values.

Values are added as keys, the unscaled integers, so a sum is an integer of any size. Floats are not summed by parts:
each addition rounds, so that their sum depends on the order, and Spark's is another with every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from secateur.errors import EvaluationError
from secateur.pruning.aggregates.limbs import Limbs
from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.bounds.valued_bounds import has_one_value
from secateur.pruning.bounds.zones import unknown_zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.index_paths import sum_path
from secateur.pruning.statistics import Blocks
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.kinds import ordered_kind

MOST_DIGITS = 38  # of a decimal
MORE_IN_SUM, MORE_IN_AVERAGE = 10, 4  # digits of Spark's result types
EXACT_IN_DOUBLE = 15  # digits up to which Spark averages decimals as doubles (its rule DecimalAggregates)
MOST_ROWS = 1 << 31  # of a block whose one value is multiplied
_FIRST_ROUNDED = Decimal(1).scaleb(-39)  # the place to which Spark's division of decimals rounds
_CONTEXT = Context(prec=200, rounding=ROUND_HALF_UP)


def is_summed(type_: pa.DataType) -> bool:
    """Whether columns of a type have exact sums."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_decimal128(type_))


def scale_of(type_: pa.DataType) -> int:
    """Return the digits behind the point of a type with exact sums."""
    return int(type_.scale) if pa.types.is_decimal128(type_) else 0


def sum_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of Spark's sum."""
    if not pa.types.is_decimal128(type_):
        return pa.int64()
    return pa.decimal128(min(type_.precision + MORE_IN_SUM, MOST_DIGITS), type_.scale)


def average_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of Spark's average."""
    if not pa.types.is_decimal128(type_):
        return pa.float64()
    digits = (type_.precision + MORE_IN_AVERAGE, type_.scale + MORE_IN_AVERAGE)
    return pa.decimal128(*(min(number, MOST_DIGITS) for number in digits))


def kept_sum(field: Field) -> Field:
    """Return the column of an index that keeps the sums of a column."""
    scale = scale_of(field.type)
    return Field(sum_path(field.path, scale), pa.decimal128(MOST_DIGITS, scale))


@dataclass(frozen=True)
class Total:
    """The sum of some values, unscaled, and how many they are."""

    sum: int = 0
    count: int = 0

    @classmethod
    def of(cls, values: pa.Array) -> Total:
        """Add up an array; NULLs are left out."""
        present = values.drop_null()
        return cls(Limbs.of(keys_of(present)).total(), len(present))

    def joined(self, other: Total) -> Total:
        """Return the total of both."""
        return Total(self.sum + other.sum, self.count + other.count)

    def sum_of(self, type_: pa.DataType) -> pa.Scalar | None:
        """Return Spark's sum of values of a type; None of no values. Raises EvaluationError if it overflows."""
        return self._decimal_or_integer(self.sum, sum_type(type_)) if self.count else None

    def average_of(self, type_: pa.DataType) -> pa.Scalar | None:
        """Return Spark's average of values of a type; None of no values. Raises EvaluationError if the sum overflows.

        Decimals are rounded half up. Those of few digits Spark divides as doubles, then rounds.
        """
        if not self.count:
            return None
        result, scale = average_type(type_), scale_of(type_)
        if not pa.types.is_decimal128(type_):
            return pa.scalar(float(self.sum) / self.count, result)
        self.sum_of(type_)
        if type_.precision + MORE_IN_AVERAGE <= EXACT_IN_DOUBLE:
            average = Decimal(repr(float(self.sum) / self.count / 10.0**scale))
        else:
            exact = _CONTEXT.divide(Decimal(self.sum).scaleb(-scale, _CONTEXT), Decimal(self.count))
            average = exact.quantize(_FIRST_ROUNDED, context=_CONTEXT)
        return pa.scalar(average.quantize(Decimal(1).scaleb(-result.scale), context=_CONTEXT), result)

    def _decimal_or_integer(self, value: int, type_: pa.DataType) -> pa.Scalar:
        is_decimal = pa.types.is_decimal128(type_)
        if not (abs(value) < 10**type_.precision if is_decimal else INT64_MIN <= value <= INT64_MAX):
            raise EvaluationError(f"a sum overflows {type_}, an error in Spark with ANSI mode: use Spark")
        return pa.scalar(Decimal(value).scaleb(-type_.scale, _CONTEXT) if is_decimal else value, type_)


@dataclass(frozen=True)
class KnownSums:
    """Where statistics tell the sum of a column over each of n blocks."""

    is_known: np.ndarray  # bool of shape (n,)
    counts: np.ndarray  # int64 of shape (n,): the values in known blocks
    sums: Limbs  # 0 where a block has no values

    def over(self, blocks: np.ndarray) -> Total:
        """Return the total of some known blocks: bool of shape (n,)."""
        return Total(self.sums.take(np.flatnonzero(blocks)).total(), int(self.counts[blocks].sum()))


def known_sums(field: Field, blocks: Blocks, complete: np.ndarray) -> KnownSums:
    """Return the sums of a column over blocks: those kept, and those of one value; all rows of `complete` blocks count.

    Soundness
    ---------
    A kept sum is one over all rows of its block, so it counts if these do. It is known where both bounds of the column
    that keeps it are equal: an unknown sum has the least key as its lower bound and the greatest as its upper one.
    """
    kept = kept_sum(field)
    counts, one = _of_values(field, blocks)
    of_kept, sums = _of_values(kept, blocks)
    is_kept = of_kept >= 0
    small = np.where((counts >= 0) & (blocks.row_count < MOST_ROWS), counts, 0)
    merged = np.where(is_kept, of_kept, np.where(blocks.row_count < MOST_ROWS, counts, -1))
    values = sums.where(is_kept & (of_kept > 0), one.times(np.where(is_kept, 0, small)))
    return KnownSums(complete & (merged >= 0), merged, values)


def _of_values(field: Field, blocks: Blocks) -> tuple[np.ndarray, Limbs]:
    """Return how many values of a column each block has, if all are one, else -1; and that value."""
    zones = blocks.zones(field) or unknown_zones(ordered_kind(field.type), len(blocks))
    nulls = null_counts(field, blocks)
    is_known = (nulls >= 0) & (has_one_value(zones) | (nulls == blocks.row_count))
    return np.where(is_known, blocks.row_count - nulls, -1), Limbs.of(zones.lower)
