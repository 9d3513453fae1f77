"""Answer aggregates from statistics where these are exact, and find the blocks that may improve on the best value.

A block's statistics answer for its rows if all of them match and none is deleted: then it is complete. Its row count is
exact, and so is its null count if known; :mod:`secateur.pruning.bounds.valued_bounds` says which bounds are values of
the block, and :mod:`.sums` which sums are known. If it is known how many rows are deleted, COUNT(*) is known all the
same.

So `live` says of n blocks how many rows each has that are not deleted, if all of these match: int64 of shape (n,), -1
for a block that has to be read.

For MIN and MAX any block can be skipped whose bound is no better than a known value: bounds hold for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import InvalidAggregate
from secateur.integers import sorted_distinct
from secateur.pruning.aggregates.distinct import DistinctValues
from secateur.pruning.aggregates.null_counts import null_counts
from secateur.pruning.aggregates.sums import Total, average_type, is_summed, known_sums, sum_type
from secateur.pruning.bounds.valued_bounds import has_one_value, is_value
from secateur.pruning.bounds.zones import unknown_zones
from secateur.pruning.order import NULLS_AFTER, VALUES, Boundary, Fronts, OrderColumn, fronts_of
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.rows.row_values import column
from secateur.pruning.statistics import Blocks
from secateur.values.combination import greatest_per_group, least_per_group
from secateur.values.conversion import keys_of, scalar_of
from secateur.values.key import Key
from secateur.values.keys import Keys, keys_from
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind

COUNT, MIN, MAX = "count", "min", "max"
SUM, AVG = "sum", "avg"
DISTINCT = "count distinct"
FUNCTIONS = (COUNT, MIN, MAX, SUM, AVG)
EXTREMES = (MIN, MAX)
TOTALS = (SUM, AVG)

# Of the blocks that statistics answer for (bool of shape (n,)), those that a reader of the others can leave out.
LeftOut: TypeAlias = Callable[[np.ndarray], np.ndarray]

# A count; the values of a count of different ones; the total of SUM or AVG; the value of MIN or MAX, None without one.
Result: TypeAlias = "int | DistinctValues | Total | pa.Scalar | None"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate as written: of a column, or of rows."""

    function: str
    column: Column | None
    name: str  # name of the result column


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over a field of the table, or over rows; only COUNT is one over rows."""

    function: str
    field: Field | None
    name: str

    @property
    def argument(self) -> Field:
        """The field whose values are aggregated: of any function but a COUNT of rows."""
        assert self.field is not None, "only COUNT is one over rows"
        return self.field

    @property
    def type(self) -> pa.DataType:
        """The result type."""
        if self.field is None:
            return pa.int64()
        match self.function:
            case "sum":
                return sum_type(self.field.type)
            case "avg":
                return average_type(self.field.type)
            case "min" | "max":
                return self.field.type
            case _:
                return pa.int64()

    @property
    def of_no_rows(self) -> Result:
        """The result over no rows."""
        match self.function:
            case "count":
                return 0
            case "count distinct":
                return DistinctValues()
            case "sum" | "avg":
                return Total()
            case _:
                return None

    def value(self, result: Result) -> int | pa.Scalar | None:
        """Return the value that Spark gives of a result. Raises EvaluationError for a sum that overflows."""
        match result:
            case DistinctValues():
                return result.count
            case Total():
                return (result.sum_of if self.function == SUM else result.average_of)(self.argument.type)
            case _:
                return result


def bind_aggregate(call: AggregateCall, binder: Binder) -> Aggregate:
    """Bind a call to the table's schema. Raises UnknownColumn, AmbiguousColumn, InvalidAggregate."""
    if call.column is None:
        return Aggregate(call.function, None, call.name)
    field = resolve(call.column, binder)
    if len(field.path) < len(call.column.path):
        raise InvalidAggregate(f"{call.column} is a part of the {field.type} {field}: only columns are aggregated")
    if call.function != COUNT and kind_of(field.type) is None:
        raise InvalidAggregate(f"{field} is {field.type}, whose {call.function} is not answered here: use Spark")
    if call.function in TOTALS and not is_summed(field.type):
        raise InvalidAggregate(
            f"{call.function} is answered for integers and decimals only, and {field} is {field.type}: use Spark"
        )
    return Aggregate(call.function, field, call.name)


# ---- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The lower or the upper bounds of a column over n blocks: no value of a block lies beyond its bound."""

    fronts: Fronts  # of the values in order for MIN, in reverse for MAX; NULLs come last
    exact: np.ndarray  # where the bound is a value of a row that counts

    def best(self) -> Key | None:
        """Return the best exact bound."""
        exact = np.flatnonzero(self.exact)
        if not len(exact):
            return None
        per_group = greatest_per_group if self.fronts.column.descending else least_per_group
        return per_group(self.fronts.keys.take(exact), np.zeros(1, np.int64)).at(0)

    def improving(self, best: Key | None, unread: np.ndarray) -> np.ndarray:
        """Return the unread blocks that may hold a value better than the best known, best bound first.

        Once the best exact bound is known, no block with an exact bound is among them.
        """
        keys = self.fronts.keys
        place = Boundary(NULLS_AFTER) if best is None else Boundary(VALUES, keys_from(keys.kind, [best], keys.width))
        return self.fronts.best_first(np.flatnonzero(unread & self.fronts.reach(place, ties=False)))


def side_of(aggregate: Aggregate, blocks: Blocks, complete: np.ndarray) -> Side:
    """Return the bounds for MIN or MAX; all rows of `complete` blocks count."""
    field, greatest = aggregate.argument, aggregate.function == MAX
    zones = blocks.zones(field) or unknown_zones(ordered_kind(field.type), len(blocks))
    nulls = null_counts(field, blocks)
    has_value = (nulls >= 0) & (nulls < blocks.row_count)
    exact = complete & has_value & is_value(zones, field.type, greatest)
    return Side(fronts_of(OrderColumn(field, descending=greatest, nulls_first=False), zones), exact)


def is_complete(live: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Return which blocks have no deleted row, and only rows that match: bool of shape (n,)."""
    return live == blocks.row_count


def known_counts(aggregate: Aggregate, blocks: Blocks, live: np.ndarray) -> np.ndarray:
    """Return what each block adds to a count; -1 if its rows must be read."""
    if aggregate.field is None:
        return live
    nulls = null_counts(aggregate.field, blocks)
    return np.where(is_complete(live, blocks) & (nulls >= 0), blocks.row_count - nulls, -1)


@dataclass(frozen=True)
class KnownCounts:
    """What each of n blocks adds to a count."""

    counts: np.ndarray  # int64 of shape (n,); -1 if its rows must be read

    @property
    def is_known(self) -> np.ndarray:
        """Where statistics tell the count: bool of shape (n,)."""
        return self.counts >= 0

    def over(self, blocks: np.ndarray) -> int:
        """Return the count over some known blocks: bool of shape (n,)."""
        return int(self.counts[blocks].sum())


@dataclass(frozen=True)
class KnownValues:
    """Where statistics tell the different values of a column, one for each block or none: of n blocks."""

    is_known: np.ndarray  # bool of shape (n,)
    has_value: np.ndarray  # bool of shape (n,)
    keys: Keys
    type: pa.DataType

    def over(self, blocks: np.ndarray) -> DistinctValues:
        """Return the values of some known blocks: bool of shape (n,)."""
        return DistinctValues.of_keys(self.keys.take(np.flatnonzero(blocks & self.has_value)), self.type)


def known_values(aggregate: Aggregate, blocks: Blocks, complete: np.ndarray) -> KnownValues:
    """Return the values of blocks that have one or none; all rows of `complete` blocks count."""
    field, type_ = aggregate.argument, aggregate.argument.type
    zones = blocks.zones(field) or unknown_zones(ordered_kind(type_), len(blocks))
    nulls = null_counts(field, blocks)
    has_value = complete & (nulls >= 0) & (nulls < blocks.row_count) & has_one_value(zones)
    return KnownValues(has_value | (complete & (nulls == blocks.row_count)), has_value, zones.lower, type_)


class Known(Protocol):
    """The blocks, among n, for which statistics give an aggregate other than MIN and MAX."""

    @property
    def is_known(self) -> np.ndarray:
        """The known blocks: bool of shape (n,)."""

    def over(self, blocks: np.ndarray) -> Result:
        """Return the aggregate over some known blocks: bool of shape (n,)."""


def known_parts(asked: Iterable[Aggregate], blocks: Blocks, live: np.ndarray) -> dict[Aggregate, Known]:
    """Return what statistics say about all aggregates but MIN and MAX."""
    return {aggregate: _known(aggregate, blocks, live) for aggregate in asked if aggregate.function not in EXTREMES}


def _known(aggregate: Aggregate, blocks: Blocks, live: np.ndarray) -> Known:
    match aggregate:
        case Aggregate("sum" | "avg", Field() as field):
            return known_sums(field, blocks, is_complete(live, blocks))
        case Aggregate("count distinct"):
            return known_values(aggregate, blocks, is_complete(live, blocks))
        case _:
            return KnownCounts(known_counts(aggregate, blocks, live))


def each_block(answered: np.ndarray) -> np.ndarray:
    """Leave any blocks out: for readers that take each block by itself."""
    return answered


def by_statistics(
    asked: Sequence[Aggregate], blocks: Blocks, live: np.ndarray, left_out: LeftOut = each_block
) -> tuple[np.ndarray, list[Result]]:
    """Return which blocks need not be read, bool of shape (n,), and the aggregates over these blocks.

    Soundness
    ---------
    Combined with those over the other blocks, they are the aggregates over all rows that count. A block left out is
    counted by its statistics, and holds no value better than the best exact bound, which a row that counts has. That a
    block with the best bound is read after all changes no MIN or MAX.
    """
    parts, complete = known_parts(asked, blocks, live), is_complete(live, blocks)
    sides = {aggregate: side_of(aggregate, blocks, complete) for aggregate in asked if aggregate.function in EXTREMES}
    best = {aggregate: side.best() for aggregate, side in sides.items()}
    every, answered = np.ones(len(blocks), bool), np.ones(len(blocks), bool)
    for known in parts.values():
        answered &= known.is_known
    for aggregate, side in sides.items():
        answered[side.improving(best[aggregate], every)] = False
    answered = left_out(answered)
    results: list[Result] = []
    for aggregate in asked:
        key = best.get(aggregate)
        if aggregate in parts:
            results.append(parts[aggregate].over(answered))
        else:
            results.append(None if key is None else scalar_of(key, aggregate.type))
    return answered, results


# ---- rows ------------------------------------------------------------------------------------------------------------


def over_rows(asked: Sequence[Aggregate], batches: Iterable[pa.RecordBatch]) -> list[Result]:
    """Compute the aggregates over all rows of some batches."""
    results: list[Result] = [aggregate.of_no_rows for aggregate in asked]
    for batch in batches:
        results = [
            combined(aggregate, known, _over(aggregate, batch)) for aggregate, known in zip(asked, results, strict=True)
        ]
    return results


def _over(aggregate: Aggregate, batch: pa.RecordBatch) -> Result:
    if aggregate.field is None:
        return int(batch.num_rows)
    values = column(batch, aggregate.field)
    if aggregate.function == COUNT:
        return len(values) - values.null_count
    if aggregate.function == DISTINCT:
        return DistinctValues.of(values)
    if aggregate.function in TOTALS:
        return Total.of(values)
    return _extreme(values, aggregate.function == MAX)


def combined(aggregate: Aggregate, a: Result, b: Result) -> Result:
    """Combine the results of an aggregate over two parts."""
    match a, b:
        case int(), int():
            return a + b
        case DistinctValues(), DistinctValues():
            return a.joined(b)
        case Total(), Total():
            return a.joined(b)
        case pa.Scalar(), pa.Scalar():
            return (max if aggregate.function == MAX else min)(a, b, key=key_of_scalar)
        case _:
            return b if a is None else a


def key_of_scalar(value: pa.Scalar) -> Key:
    """Return the key of a value."""
    return keys_of(pa.array([value], value.type)).at(0)


def _extreme(values: pa.Array, greatest: bool) -> pa.Scalar | None:
    """Return the least or greatest value, ignoring NULL; NaN is the greatest of all."""
    values = values.drop_null()
    if is_float(values.type):
        nan = pc.is_nan(values)
        if nan.true_count == len(values) or (greatest and nan.true_count):
            return values[pc.index(nan, True).as_py()] if len(values) else None
        values = values.filter(pc.invert(nan))
    if not len(values):
        return None
    plain = values.cast(pa.binary()) if kind_of(values.type) is Kind.BYTES else values
    extreme = pc.max(plain) if greatest else pc.min(plain)
    return pa.array([extreme], plain.type).view(values.type)[0] if plain is not values else extreme


# ---- both ------------------------------------------------------------------------------------------------------------


class Answers:
    """The state of aggregates over blocks: the results so far, and the blocks that must be read next.

    Counts and sums request all their undecided blocks at once. MIN and MAX request a few at a time, best bound first,
    until no remaining bound is better than the best known value.
    """

    def __init__(self, asked: Sequence[Aggregate], blocks: Blocks, live: np.ndarray) -> None:
        self.asked = tuple(dict.fromkeys(asked))
        self.unread = np.ones(len(blocks), bool)
        parts, complete = known_parts(self.asked, blocks, live), is_complete(live, blocks)
        self._sides = {
            aggregate: side_of(aggregate, blocks, complete)
            for aggregate in self.asked
            if aggregate.function in EXTREMES
        }
        is_known = np.logical_and.reduce([self.unread, *(known.is_known for known in parts.values())])
        self.in_doubt = np.flatnonzero(~is_known)
        self.results: dict[Aggregate, Result] = {aggregate: known.over(is_known) for aggregate, known in parts.items()}
        for aggregate, side in self._sides.items():
            best = side.best()
            self.results[aggregate] = None if best is None else scalar_of(best, aggregate.type)

    def next(self, most: int) -> tuple[tuple[Aggregate, ...], np.ndarray]:
        """Return the unfinished aggregates, and for each at most `most` blocks to read."""
        ahead = {
            aggregate: side.improving(self._best(aggregate), self.unread) for aggregate, side in self._sides.items()
        }
        wanted = [blocks[:most] for blocks in ahead.values()]
        return tuple(aggregate for aggregate, blocks in ahead.items() if len(blocks)), sorted_distinct(
            np.concatenate([_NONE, *wanted])
        )

    def _best(self, aggregate: Aggregate) -> Key | None:
        best = self.results[aggregate]
        return key_of_scalar(best) if isinstance(best, pa.Scalar) else None

    def add(self, asked: Sequence[Aggregate], results: Sequence[Result]) -> None:
        """Add the results of aggregates over rows that were read."""
        for aggregate, value in zip(asked, results, strict=True):
            self.results[aggregate] = combined(aggregate, self.results[aggregate], value)


_NONE = np.zeros(0, np.int64)
