"""The one algebra: which outcomes a bound predicate can have over each of n units.

A predicate is folded from its leaves' outcomes by Kleene's tables on sets (:mod:`secateur.pruning.outcomes`).
Leaves are evaluated over all units in one call; nothing here holds state, so threads share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from secateur.pruning import interval as intervals
from secateur.pruning import outcomes as sets
from secateur.pruning.gaps import reaches
from secateur.pruning.interval import Interval, at_least
from secateur.pruning.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.predicate.bound import (
    Apply,
    Choice,
    Compared,
    Constant,
    Field,
    Holds,
    Leaf,
    Matches,
    Missing,
    Operand,
    Tested,
    Unsupported,
    Varying,
    Within,
    fields,
    leaves,
    operands,
)
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.rangeset import RangeSet
from secateur.pruning.statistics import Statistics
from secateur.pruning.zones import Zones, may_be_nan
from secateur.values import NAN_KEY

CHUNK = 1 << 16  # units: what a leaf reads of them several times stays in a core's cache


def evaluate(predicate: Predicate, statistics: Statistics) -> np.ndarray:
    """The possible outcomes of a predicate over every unit: uint8 of shape (n,).

    Soundness: on every row of unit i the predicate takes a value in the set i, or Spark raises an error on it and the
    set is everything. A unit known to hold no row gets the empty set.
    """
    return fold(predicate, statistics.row_count, lambda leaf: leaf_outcomes(leaf, statistics))


def fold(predicate: Predicate, row_count: np.ndarray, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    """Combine the outcomes of the leaves, however they were found, into those of the predicate."""
    outcomes = _fold(predicate, outcomes_of)
    return outcomes if row_count.min(initial=1) > 0 else np.where(row_count == 0, np.uint8(0), outcomes)


def _fold(predicate: Predicate, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    match predicate:
        case And(children):
            return reduce(sets.conjunction, (_fold(child, outcomes_of) for child in children))
        case Or(children):
            return reduce(sets.disjunction, (_fold(child, outcomes_of) for child in children))
        case Not(child):
            return sets.negation(_fold(child, outcomes_of))
        case Is(child, value):
            return sets.equality(_fold(child, outcomes_of), value)
        case Within() | Missing() | Matches() | Compared() | Holds() | Unsupported() | Truth():
            return outcomes_of(predicate)
        case _:
            raise TypeError(f"{predicate!r} is not bound")


def may_match(predicate: Predicate, statistics: Statistics, units: np.ndarray | None = None) -> np.ndarray:
    """Where the predicate may be TRUE, over all units or the chosen: bool of shape (n,).

    What :func:`evaluate` says of TRUE, but that units without rows are not told apart; for plain ranges one comparison
    per side is enough.
    """
    return _may_be(TRUE, predicate, statistics, units)


def _may_be(truth: int, predicate: Predicate, statistics: Statistics, units: np.ndarray | None) -> np.ndarray:
    """Where the predicate may be TRUE, or FALSE: AND is FALSE where any part may be, OR is TRUE where any may be."""
    match predicate:
        case And(children) | Or(children):
            all_of = isinstance(predicate, And) == (truth == TRUE)
            parts = (_may_be(truth, child, statistics, units) for child in children)
            return reduce(np.logical_and if all_of else np.logical_or, parts)
        case Not(child):
            return _may_be(TRUE + FALSE - truth, child, statistics, units)
        case Within(operand=Field() as field, ranges=ranges, fails=None):
            zones = statistics.zones(field)
            possible = None if zones is None else _reached(ranges, zones, units, inside=truth == TRUE)
            if zones is not None and possible is not None:
                if zones.gaps is not None and truth == TRUE:
                    _rule_out(possible, ranges, zones, units)
                return possible if zones.has_values else possible & (_at(zones.value, units) != 0)
    outcomes = _fold(predicate, lambda leaf: leaf_outcomes(leaf, statistics, units))
    return (outcomes & truth) != 0


def _reached(ranges: RangeSet, zones: Zones, units: np.ndarray | None, *, inside: bool) -> np.ndarray | None:
    """Where a set of keys may hold a value (or not hold one), as :meth:`RangeSet.reaches` tells of plain ranges."""
    possible = ranges.reaches(zones.lower, zones.numbers_upper, units, inside=inside)
    if possible is not None and zones.top is not None and _holds_nan(ranges) == inside:
        possible |= may_be_nan(zones.upper if units is None else zones.upper.take(units))
    return possible


def leaf_outcomes(leaf: Leaf, statistics: Statistics, units: np.ndarray | None = None) -> np.ndarray:
    """The possible outcomes of one leaf by zone maps, over all units or the chosen: uint8 of shape (n,)."""
    n = len(statistics) if units is None else len(units)
    columns = Columns(n, {field: _chosen_zones(statistics.zones(field), units) for field in fields(leaf)})
    match leaf:
        case Within(Field() as field) | Matches(Field() as field) if columns.zones[field] is None:
            return np.full(n, _without_statistics(leaf), np.uint8)
        case Within(Field()) | Matches(Field()) | Truth() | Holds() | Unsupported():
            return outcomes_over(leaf, columns)
    outcomes = np.empty(n, np.uint8)
    for start in range(0, n, CHUNK):
        chunk = slice(start, start + CHUNK)
        outcomes[chunk] = outcomes_over(leaf, columns.take(chunk))
    return outcomes


def _at(array: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    return array if units is None else array[units]


def _chosen_zones(zones: Zones | None, units: np.ndarray | None) -> Zones | None:
    return zones if zones is None or units is None else zones.take(units)


# ---- leaves ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Zone maps of the columns that a leaf names over n units; `single` where every unit is one row."""

    n: int
    zones: Mapping[Field, Zones | None]
    single: bool = False

    def take(self, chunk: slice) -> Columns:
        """The given units."""
        n = len(range(*chunk.indices(self.n)))
        return Columns(n, {f: z if z is None else z.take(chunk) for f, z in self.zones.items()}, self.single)


def outcomes_over(leaf: Leaf, columns: Columns) -> np.ndarray:
    """The possible outcomes of one leaf over units with these zone maps."""
    match leaf:
        case Truth(value):
            return np.full(columns.n, sets.of_truth(value), np.uint8)
        case Holds() | Unsupported():
            return np.full(columns.n, EVERYTHING, np.uint8)
        case Within(Field() as field) | Matches(Field() as field) if (zones := columns.zones[field]) is not None:
            return _value_outcomes(leaf, zones)
        case Missing(Field() as field):
            return _null_outcomes(columns.zones[field], columns.n)
        case Missing(operand):
            found = interval_of(operand, columns)
            return _failing(sets.of_sides(_bit(found.null), _bit(found.value)), found.fails)
        case Within(operand) | Matches(operand):
            found = interval_of(operand, columns)
            zones = Zones(found.lower, found.upper, found.value, found.null, top=found.top)
            return _failing(_value_outcomes(leaf, zones), found.fails)
        case Compared(op, left, right):
            return _compared(op, interval_of(left, columns), interval_of(right, columns))


def _value_outcomes(leaf: Within | Matches, zones: Zones) -> np.ndarray:
    """The possible outcomes of a leaf that looks at values, where it has zone maps."""
    match leaf:
        case Within(ranges=ranges, fails=fails):
            found = _sides(ranges, zones)
            if zones.gaps is not None:
                may_be_true = (found & TRUE) != 0
                _rule_out(may_be_true, ranges, zones, None)
                found[~may_be_true] &= ~np.uint8(TRUE)
            found &= zones.value
            found |= zones.null
            if fails is None:
                return found
            failing = (_sides(fails, zones) & TRUE) != 0
            return _failing(found, failing & (zones.value != 0))
        case Matches(prefix=prefix):
            found = prefix.outcomes(zones.lower, zones.upper)
            found |= FALSE
            found &= zones.value
            found |= zones.null
            return found


def _sides(ranges: RangeSet, zones: Zones | Interval) -> np.ndarray:
    """TRUE where some value may lie in a set of keys, FALSE where one may lie outside: those of numbers, and of NaN."""
    found = ranges.outcomes(zones.lower, zones.numbers_upper)
    if zones.top is not None:
        found |= np.where(may_be_nan(zones.upper), np.uint8(TRUE if _holds_nan(ranges) else FALSE), np.uint8(0))
    return found


def _holds_nan(ranges: RangeSet) -> bool:
    """Whether NaN lies in a set of keys of a floating type."""
    return bool(np.searchsorted(ranges.thresholds, NAN_KEY, side="right") % 2)


def _rule_out(possible: np.ndarray, ranges: RangeSet, zones: Zones, units: np.ndarray | None) -> None:
    """Clear the flags of those of all or the chosen units that hold no key of a set because of their gaps."""
    assert zones.gaps is not None
    asked = np.flatnonzero(possible)
    at = asked if units is None else units[asked]
    low, high = zones.gaps
    lower, upper = zones.lower.words[0][at], zones.upper.words[0][at]
    possible[asked] = reaches(ranges, lower, upper, low[:, at], high[:, at])


def _null_outcomes(zones: Zones | None, n: int) -> np.ndarray:
    if zones is None:
        return np.full(n, TRUE | FALSE, np.uint8)
    return sets.of_sides(_bit(zones.null), _bit(zones.value))


def _without_statistics(leaf: Within | Matches) -> int:
    """What a leaf can be whatever the value: a set of no key is never TRUE, one of all keys never FALSE."""
    if isinstance(leaf, Within) and leaf.fails is not None:
        return EVERYTHING
    ranges = leaf.ranges if isinstance(leaf, Within) else leaf.prefix
    if ranges.is_empty:
        return FALSE | NULL
    return TRUE | NULL if isinstance(leaf, Within) and ranges.is_everything else EVERYTHING


def _compared(op: str, a: Interval, b: Interval) -> np.ndarray:
    """Two intervals: what is possible of their ends is possible, and nothing else."""
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
        found = sets.of_sides(may_be_true.view(np.uint8), may_be_false.view(np.uint8))
    else:
        found = sets.of_sides(may_be_true.view(np.uint8), may_be_false.view(np.uint8)) & value | null
    return _failing(found, a.fails | b.fails)


def _failing(outcomes: np.ndarray, fails: np.ndarray) -> np.ndarray:
    return np.where(fails, np.uint8(EVERYTHING), outcomes) if fails.any() else outcomes


def _bit(flags: np.ndarray) -> np.ndarray:
    return (flags != 0).view(np.uint8)


def may_fail(leaf: Leaf, statistics: Statistics) -> np.ndarray:
    """The units that may hold a row on which Spark raises an error, for a leaf that looks at a column: bool."""
    match leaf:
        case Within(Field() as field, fails=RangeSet()):
            return _leaf_fails(leaf, Columns(len(statistics), {field: statistics.zones(field)}))
        case _:
            return np.zeros(len(statistics), bool)


# ---- operands --------------------------------------------------------------------------------------------------------


def interval_of(operand: Operand, columns: Columns) -> Interval:
    """What an operand can be over every unit."""
    match operand:
        case Field(type=type_):
            return intervals.of_zones(columns.zones[operand], type_, columns.n)
        case Constant(type_, key):
            return intervals.constant(type_, key, columns.n)
        case Varying(type_, lower, upper):
            ends = intervals.constant(type_, lower, columns.n), intervals.constant(type_, upper, columns.n)
            return intervals.union(*ends)
        case Apply(function, arguments):
            return intervals.applied(function, [interval_of(argument, columns) for argument in arguments])
        case Tested(predicate):
            return _tested(predicate, columns)
        case Choice():
            return _chosen(operand, columns)


def _tested(predicate: Predicate, columns: Columns) -> Interval:
    outcomes = _fold(predicate, lambda leaf: outcomes_over(leaf, columns))
    found = intervals.truth(outcomes)
    fails = _may_fail(predicate, outcomes, columns)
    return Interval(found.type, found.lower, found.upper, found.value, found.null, fails)


def _chosen(choice: Choice, columns: Columns) -> Interval:
    """The hull of the branches that can be reached, which is where no condition before must be TRUE."""
    reached = np.ones(columns.n, bool)
    found = intervals.where(~reached, interval_of(choice.otherwise, columns))
    fails = np.zeros(columns.n, bool)
    for condition, value in choice.branches:
        outcomes = _fold(condition, lambda leaf: outcomes_over(leaf, columns))
        fails |= reached & _may_fail(condition, outcomes, columns)
        taken = reached & ((outcomes & TRUE) != 0)
        found = intervals.union(found, intervals.where(taken, interval_of(value, columns)))
        reached = reached & ((outcomes & (FALSE | NULL)) != 0)
    found = intervals.union(found, intervals.where(reached, interval_of(choice.otherwise, columns)))
    return replace(found, fails=found.fails | fails)


def _may_fail(condition: Predicate, outcomes: np.ndarray, columns: Columns) -> np.ndarray:
    """Where evaluating a condition may raise an error."""
    if columns.single:
        return sets.undecided(outcomes)
    return reduce(np.logical_or, (_leaf_fails(leaf, columns) for leaf in leaves(condition)), np.zeros(columns.n, bool))


def _leaf_fails(leaf: Leaf, columns: Columns) -> np.ndarray:
    match leaf:
        case Within(Field() as field, fails=RangeSet() as fails):
            found = intervals.of_zones(columns.zones[field], field.type, columns.n)
            return (_sides(fails, found) & found.value & TRUE) != 0
        case _:
            computed = (interval_of(each, columns).fails for each in operands(leaf) if not isinstance(each, Field))
            return reduce(np.logical_or, computed, np.zeros(columns.n, bool))
