"""Outcomes of leaves and intervals of operands over n units, from the zone maps of their columns.

All units in one call; nothing here holds state, so threads can share it."""

from __future__ import annotations

from collections.abc import Mapping
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
from secateur.pruning.connectives import folded
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
)
from secateur.pruning.predicate.bound_walks import leaves, operands
from secateur.pruning.predicate.nodes import Predicate, Truth
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.values.key import NAN_KEY


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
    return unrolled(partial(computed, columns=columns), leaf, {})


def interval_of(operand: Operand, columns: ColumnSubset) -> Interval:
    """Return the interval of an operand over every unit."""
    return unrolled(partial(computed, columns=columns), operand, {})


def computed(node: Predicate | Operand, columns: ColumnSubset) -> Steps[Any]:
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
            return (yield from folded(condition, lambda leaf: np.full(columns.n, EVERYTHING, np.uint8)))


def _value_outcomes(leaf: Within | TextMatch, zones: Zones) -> np.ndarray:
    """Return the possible outcomes of a leaf on values, given its zone maps."""
    match leaf:
        case Within(ranges=ranges, fails=fails):
            result = _sides(ranges, zones)
            if zones.gaps is not None:
                may_be_true = (result & TRUE) != 0
                rule_out(may_be_true, ranges, zones, None)
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
        result |= np.where(may_be_nan(zones.upper), np.uint8(TRUE if holds_nan(ranges) else FALSE), np.uint8(0))
    return result


def holds_nan(ranges: RangeSet) -> bool:
    """Return whether NaN is in a set of keys of a floating type."""
    return bool(np.searchsorted(ranges.thresholds, NAN_KEY, side="right") % 2)


def rule_out(possible: np.ndarray, ranges: RangeSet, zones: Zones, units: np.ndarray | None) -> None:
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
                fails |= field_fails(field, ranges, columns)
            case _:
                for operand in operands(leaf):
                    if not isinstance(operand, Field):
                        fails |= (yield operand).fails
    return fails


def field_fails(field: Field, fails: RangeSet, columns: ColumnSubset) -> np.ndarray:
    interval = intervals.of_zones(columns.zones[field], field.type, columns.n)
    return (_sides(fails, interval) & interval.value & TRUE) != 0
