"""Evaluation: which outcomes a bound predicate can have over each of n units.

A predicate is folded from its leaves' outcomes by Kleene's tables on sets (:mod:`secateur.pruning.bounds.outcomes`).
Leaves are evaluated over all units in one call; nothing here holds state, so threads can share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from secateur.pruning import interval as intervals
from secateur.pruning.bounds import outcomes as sets
from secateur.pruning.bounds.gaps import reaches
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.set_outcomes import outcomes_of
from secateur.pruning.bounds.zones import Zones, may_be_nan
from secateur.pruning.interval import Interval, at_least
from secateur.pruning.predicate.bound import (
    Apply,
    Compared,
    Conditional,
    Constant,
    Field,
    Holds,
    Joined,
    Leaf,
    Missing,
    Operand,
    Tested,
    TextMatch,
    Unsupported,
    Varying,
    Within,
    all_leaves,
    everything_in,
    fields,
    leaves,
    operands,
    shared,
)
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.statistics import Statistics
from secateur.values import NAN_KEY

CHUNK = 1 << 16  # units: a chunk that a leaf reads several times stays in a core's cache
LEAST_CHUNK = 1 << 10
FEW_PARTS = 32  # operands and conditions of a leaf


def evaluate(predicate: Predicate, statistics: Statistics) -> np.ndarray:
    """Return the possible outcomes of a predicate over every unit: uint8 of shape (n,).

    Soundness: on every row of unit i the predicate takes a value in set i, or Spark raises an error and the set is
    everything. A unit known to hold no row gets the empty set.
    """
    return fold(predicate, statistics.row_count, lambda leaf: leaf_outcomes(leaf, statistics))


def fold(predicate: Predicate, row_count: np.ndarray, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    """Combine the outcomes of the leaves, however they were found, into those of the predicate."""
    outcomes = combined(predicate, outcomes_of)
    return outcomes if row_count.min(initial=1) > 0 else np.where(row_count == 0, np.uint8(0), outcomes)


def combined(predicate: Predicate, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    """Combine the outcomes of the leaves over units none of which is empty."""
    if isinstance(predicate, Leaf):
        return outcomes_of(predicate)
    return unrolled(partial(_folded, outcomes_of=outcomes_of), predicate, {}, shared(predicate))


def _folded(predicate: Predicate, outcomes_of: Callable[[Leaf], np.ndarray]) -> Steps[np.ndarray]:
    match predicate:
        case And(children) | Or(children):
            combine = sets.conjunction if isinstance(predicate, And) else sets.disjunction
            outcomes = yield children[0]
            for child in children[1:]:
                outcomes = combine(outcomes, (yield child))
            return outcomes
        case Not(child):
            return sets.negation((yield child))
        case Is(child, value):
            return sets.equality((yield child), value)
        case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
            return outcomes_of(predicate)
        case _:
            raise TypeError(f"{predicate!r} is not bound")


def may_match(predicate: Predicate, statistics: Statistics, units: np.ndarray | None = None) -> np.ndarray:
    """Return where the predicate may be TRUE, over all units or the chosen ones: bool of shape (n,).

    Equal to TRUE in :func:`evaluate`, except that units without rows are not recognised; plain ranges need only one
    comparison per side.
    """
    return unrolled(partial(_may_be, statistics=statistics, units=units), (predicate, TRUE), {}, shared(predicate))


def _may_be(asked: tuple[Predicate, int], statistics: Statistics, units: np.ndarray | None) -> Steps[np.ndarray]:
    """Return where the predicate may be TRUE, or FALSE: AND is FALSE if any part may be, OR is TRUE if any may be."""
    predicate, truth = asked
    match predicate:
        case And(children) | Or(children):
            combine = np.logical_and if isinstance(predicate, And) == (truth == TRUE) else np.logical_or
            possible = yield children[0], truth
            for child in children[1:]:
                possible = combine(possible, (yield child, truth))
            return possible
        case Not(child):
            return (yield child, TRUE + FALSE - truth)
        case Within(operand=Field() as field, ranges=ranges, fails=None):
            zones = statistics.zones(field)
            possible = None if zones is None else _reached(ranges, zones, units, inside=truth == TRUE)
            if zones is not None and possible is not None:
                if zones.gaps is not None and truth == TRUE:
                    _rule_out(possible, ranges, zones, units)
                return possible if zones.has_values else possible & (_at(zones.value, units) != 0)
    outcomes = combined(predicate, lambda leaf: leaf_outcomes(leaf, statistics, units))
    return (outcomes & truth) != 0


def _reached(ranges: RangeSet, zones: Zones, units: np.ndarray | None, *, inside: bool) -> np.ndarray | None:
    """Return where a value may be inside a set of keys (or outside), for sets that :meth:`RangeSet.reaches` covers."""
    possible = ranges.reaches(zones.lower, zones.numbers_upper, units, inside=inside)
    if possible is not None and zones.top is not None and _holds_nan(ranges) == inside:
        possible |= may_be_nan(zones.upper if units is None else zones.upper.take(units))
    return possible


def leaf_outcomes(leaf: Leaf, statistics: Statistics, units: np.ndarray | None = None) -> np.ndarray:
    """Return the possible outcomes of one leaf by zone maps, over all or the chosen units: uint8 of shape (n,)."""
    n = len(statistics) if units is None else len(units)
    columns = ColumnSubset(n, {field: _chosen_zones(statistics.zones(field), units) for field in fields(leaf)})
    match leaf:
        case Within(Field() as field) | TextMatch(Field() as field) if columns.zones[field] is None:
            return np.full(n, _without_statistics(leaf), np.uint8)
        case Within(Field()) | TextMatch(Field()) | Truth() | Holds() | Unsupported():
            return outcomes_over(leaf, columns)
    outcomes = np.empty(n, np.uint8)
    step = at_once(leaf, CHUNK)
    for start in range(0, n, step):
        chunk = slice(start, start + step)
        outcomes[chunk] = outcomes_over(leaf, columns.take(chunk))
    return outcomes


def all_leaf_outcomes(predicate: Predicate, statistics: Statistics) -> dict[Leaf, np.ndarray]:
    """Return the outcomes of every leaf, also of those inside others: each part is evaluated once.

    As :func:`leaf_outcomes` of each, except that all results are kept meanwhile.
    """
    listed = list(dict.fromkeys(all_leaves(predicate)))
    columns = ColumnSubset(len(statistics), {field: statistics.zones(field) for field in fields(predicate)})
    outcomes: dict[Leaf, list[np.ndarray]] = {leaf: [] for leaf in listed}
    step = at_once(predicate, CHUNK)
    for start in range(0, len(statistics), step):
        known: dict[tuple[Any, ...], tuple[object, Any]] = {}
        compute = partial(_computed, columns=columns.take(slice(start, start + step)))
        for leaf in listed:
            outcomes[leaf].append(unrolled(compute, leaf, known))
    return {leaf: np.concatenate(parts) for leaf, parts in outcomes.items()}


def at_once(leaf: Predicate, units: int) -> int:
    """Return how many units to evaluate a leaf over at once: fewer if it has many parts, as all intervals are kept.

    With this limit, a leaf of 10,000 parts takes some 200 MB.
    """
    parts = sum(1 for _ in everything_in(leaf))
    return max(LEAST_CHUNK, units * FEW_PARTS // max(parts, FEW_PARTS))


def _at(array: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    return array if units is None else array[units]


def _chosen_zones(zones: Zones | None, units: np.ndarray | None) -> Zones | None:
    return zones if zones is None or units is None else zones.take(units)


# ---- leaves ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnSubset:
    """Zone maps of a leaf's columns over n units; `single` if every unit is one row.

    If the values themselves are available, `tests` has outcomes of conditions that bounds cannot decide, and `known`
    operands that are computed from values.
    """

    n: int
    zones: Mapping[Field, Zones | None]
    single: bool = False
    tests: Mapping[Leaf, np.ndarray] = field(default_factory=dict)
    known: Mapping[Operand, Interval] = field(default_factory=dict)

    def take(self, chunk: slice) -> ColumnSubset:
        """Select the given units; not of single rows, which have operands that are computed from values."""
        n = len(range(*chunk.indices(self.n)))
        zones = {f: z if z is None else z.take(chunk) for f, z in self.zones.items()}
        return ColumnSubset(n, zones, self.single, {leaf: outcomes[chunk] for leaf, outcomes in self.tests.items()})


def outcomes_over(leaf: Leaf, columns: ColumnSubset) -> np.ndarray:
    """Return the possible outcomes of one leaf over units with these zone maps."""
    return unrolled(partial(_computed, columns=columns), leaf, {})


def interval_of(operand: Operand, columns: ColumnSubset) -> Interval:
    """Return the interval of an operand over every unit."""
    return unrolled(partial(_computed, columns=columns), operand, {})


def _computed(node: Predicate | Operand, columns: ColumnSubset) -> Steps[Any]:
    """Compute the outcomes of a condition, or the interval of an operand; yields the nodes below it."""
    match node:
        case Predicate():
            return (yield from _outcomes(node, columns))
        case Field(type=type_):
            return intervals.of_zones(columns.zones[node], type_, columns.n)
        case Constant(type_, key):
            return intervals.constant(type_, key, columns.n)
        case Varying(type_, lower, upper):
            ends = intervals.constant(type_, lower, columns.n), intervals.constant(type_, upper, columns.n)
            return intervals.union(*ends)
        case Apply() if node in columns.known:
            return columns.known[node]
        case Apply(function, arguments):
            return intervals.applied(function, (yield from each_of(arguments)))
        case Tested(predicate):
            return (yield from _tested(predicate, columns))
        case Conditional():
            return (yield from _chosen(node, columns))


def _outcomes(condition: Predicate, columns: ColumnSubset) -> Steps[np.ndarray]:
    match condition:
        case TextMatch() if condition in columns.tests:
            return columns.tests[condition]
        case Truth(value):
            return np.full(columns.n, sets.of_truth(value), np.uint8)
        case Holds() | Unsupported():
            return np.full(columns.n, EVERYTHING, np.uint8)
        case Within(Field() as field) | TextMatch(Field() as field) if (zones := columns.zones[field]) is not None:
            return _value_outcomes(condition, zones)
        case Missing(Field() as field):
            return _null_outcomes(columns.zones[field], columns.n)
        case Missing(operand):
            interval = yield operand
            return _failing(sets.of_sides(_bit(interval.null), _bit(interval.value)), interval.fails)
        case Within(operand) | TextMatch(operand):
            interval = yield operand
            zones = Zones(interval.lower, interval.upper, interval.value, interval.null, top=interval.top)
            return _failing(_value_outcomes(condition, zones), interval.fails)
        case Joined(joined_columns, tuples):
            return tuples.outcomes([columns.zones[field] for field in joined_columns], columns.n)
        case Compared(op, left, right):
            first = yield left
            return _compared(op, first, (yield right))
        case _:
            return (yield from _folded(condition, lambda leaf: np.full(columns.n, EVERYTHING, np.uint8)))


def _value_outcomes(leaf: Within | TextMatch, zones: Zones) -> np.ndarray:
    """Return the possible outcomes of a leaf on values, given its zone maps."""
    match leaf:
        case Within(ranges=ranges, fails=fails):
            result = _sides(ranges, zones)
            if zones.gaps is not None:
                may_be_true = (result & TRUE) != 0
                _rule_out(may_be_true, ranges, zones, None)
                result[~may_be_true] &= ~np.uint8(TRUE)
            result &= zones.value
            result |= zones.null
            if fails is None:
                return result
            failing = (_sides(fails, zones) & TRUE) != 0
            return _failing(result, failing & (zones.value != 0))
        case TextMatch(prefix=prefix):
            result = outcomes_of(prefix, zones.lower, zones.upper)
            result |= FALSE
            result &= zones.value
            result |= zones.null
            return result


def _sides(ranges: RangeSet, zones: Zones | Interval) -> np.ndarray:
    """Return TRUE where a value may be inside a set of keys, FALSE where outside; numbers and NaN are treated apart."""
    result = outcomes_of(ranges, zones.lower, zones.numbers_upper)
    if zones.top is not None:
        result |= np.where(may_be_nan(zones.upper), np.uint8(TRUE if _holds_nan(ranges) else FALSE), np.uint8(0))
    return result


def _holds_nan(ranges: RangeSet) -> bool:
    """Return whether NaN is in a set of keys of a floating type."""
    return bool(np.searchsorted(ranges.thresholds, NAN_KEY, side="right") % 2)


def _rule_out(possible: np.ndarray, ranges: RangeSet, zones: Zones, units: np.ndarray | None) -> None:
    """Clear the flags of units, all or chosen, whose gaps contain the whole set within their bounds."""
    assert zones.gaps is not None, "called for zones with gaps"
    asked = np.flatnonzero(possible)
    at = asked if units is None else units[asked]
    low, high = zones.gaps
    lower, upper = zones.lower.words[0][at], zones.upper.words[0][at]
    possible[asked] = reaches(ranges, lower, upper, low[:, at], high[:, at])


def _null_outcomes(zones: Zones | None, n: int) -> np.ndarray:
    if zones is None:
        return np.full(n, TRUE | FALSE, np.uint8)
    return sets.of_sides(_bit(zones.null), _bit(zones.value))


def _without_statistics(leaf: Within | TextMatch) -> int:
    """Return a leaf's outcomes for any value: the empty set is never TRUE, the full set never FALSE."""
    if isinstance(leaf, Within) and leaf.fails is not None:
        return EVERYTHING
    ranges = leaf.ranges if isinstance(leaf, Within) else leaf.prefix
    if ranges.is_empty:
        return FALSE | NULL
    return TRUE | NULL if isinstance(leaf, Within) and ranges.is_everything else EVERYTHING


def _compared(op: str, a: Interval, b: Interval) -> np.ndarray:
    """Compare two intervals: exactly what is possible for their ends is possible."""
    value, null = a.value & b.value, a.null | b.null
    match op:
        case "<":
            may_be_true, may_be_false = ~at_least(a.lower, b.upper), at_least(a.upper, b.lower)
        case "<=":
            may_be_true, may_be_false = at_least(b.upper, a.lower), ~at_least(b.lower, a.upper)
        case _:
            may_be_true = at_least(a.numbers_upper, b.lower) & at_least(b.numbers_upper, a.lower)
            if a.top is not None or b.top is not None:
                may_be_true |= may_be_nan(a.upper) & may_be_nan(b.upper)
            may_be_false = ~(a.is_point & b.is_point & may_be_true)
    if op == "<=>":
        present = value != 0
        may_be_true = (may_be_true & present) | ((a.null & b.null) != 0)
        may_be_false = (may_be_false & present) | ((a.null != 0) & (b.value != 0)) | ((a.value != 0) & (b.null != 0))
        result = sets.of_sides(may_be_true.view(np.uint8), may_be_false.view(np.uint8))
    else:
        result = sets.of_sides(may_be_true.view(np.uint8), may_be_false.view(np.uint8)) & value | null
    return _failing(result, a.fails | b.fails)


def _failing(outcomes: np.ndarray, fails: np.ndarray) -> np.ndarray:
    return np.where(fails, np.uint8(EVERYTHING), outcomes) if fails.any() else outcomes


def _bit(flags: np.ndarray) -> np.ndarray:
    return (flags != 0).view(np.uint8)


def may_fail(leaf: Leaf, statistics: Statistics) -> np.ndarray:
    """Return the units that may hold a row on which Spark raises an error, for a leaf on a column: bool."""
    match leaf:
        case Within(Field() as field, fails=RangeSet() as fails):
            return _field_fails(field, fails, ColumnSubset(len(statistics), {field: statistics.zones(field)}))
        case _:
            return np.zeros(len(statistics), bool)


# ---- operands --------------------------------------------------------------------------------------------------------


def _tested(predicate: Predicate, columns: ColumnSubset) -> Steps[Interval]:
    outcomes = yield predicate
    interval = intervals.truth(outcomes)
    fails = yield from _may_fail(predicate, outcomes, columns)
    return Interval(interval.type, interval.lower, interval.upper, interval.value, interval.null, fails)


def _chosen(choice: Conditional, columns: ColumnSubset) -> Steps[Interval]:
    """Return the hull of the reachable branches: those before which no condition must be TRUE."""
    reached = np.ones(columns.n, bool)
    otherwise = yield choice.otherwise
    result = intervals.where(~reached, otherwise)
    fails = np.zeros(columns.n, bool)
    for condition, value in choice.branches:
        outcomes = yield condition
        fails |= reached & (yield from _may_fail(condition, outcomes, columns))
        taken = reached & ((outcomes & TRUE) != 0)
        result = intervals.union(result, intervals.where(taken, (yield value)))
        reached = reached & ((outcomes & (FALSE | NULL)) != 0)
    result = intervals.union(result, intervals.where(reached, otherwise))
    return replace(result, fails=result.fails | fails)


def _may_fail(condition: Predicate, outcomes: np.ndarray, columns: ColumnSubset) -> Steps[np.ndarray]:
    """Return where evaluating a condition may raise an error."""
    if columns.single:
        return sets.undecided(outcomes)
    fails = np.zeros(columns.n, bool)
    for leaf in leaves(condition):
        match leaf:
            case Within(Field() as field, fails=RangeSet() as ranges):
                fails |= _field_fails(field, ranges, columns)
            case _:
                for operand in operands(leaf):
                    if not isinstance(operand, Field):
                        fails |= (yield operand).fails
    return fails


def _field_fails(field: Field, fails: RangeSet, columns: ColumnSubset) -> np.ndarray:
    interval = intervals.of_zones(columns.zones[field], field.type, columns.n)
    return (_sides(fails, interval) & interval.value & TRUE) != 0
