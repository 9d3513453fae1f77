"""The algebra as plain recursion: every occurrence of a node is evaluated, over all units at once."""

from __future__ import annotations

from functools import reduce

import numpy as np

from secateur.pruning import interval as intervals
from secateur.pruning.bounds import outcomes as sets
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import Interval
from secateur.pruning.node_outcomes import ColumnSubset, outcomes_over
from secateur.pruning.predicate.bound import Apply, Conditional, Leaf, Operand, Tested, Within
from secateur.pruning.predicate.bound_walks import fields, leaves, operands
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate
from secateur.pruning.statistics import Statistics


def naive_outcomes(predicate: Predicate, statistics: Statistics) -> np.ndarray:
    """The possible outcomes of a predicate over every unit, none of them without rows."""
    zones = {field: statistics.zones(field) for field in fields(predicate)}
    return _outcomes(predicate, ColumnSubset(len(statistics), zones))


def _outcomes(predicate: Predicate, columns: ColumnSubset) -> np.ndarray:
    match predicate:
        case And(children):
            return reduce(sets.conjunction, [_outcomes(child, columns) for child in children])
        case Or(children):
            return reduce(sets.disjunction, [_outcomes(child, columns) for child in children])
        case Not(child):
            return sets.negation(_outcomes(child, columns))
        case Is(child, value):
            return sets.equality(_outcomes(child, columns), value)
        case _:
            return _leaf(predicate, columns)  # type: ignore[arg-type]


def _leaf(leaf: Leaf, columns: ColumnSubset) -> np.ndarray:
    """One leaf, whose operands are computed here and put in place of columns."""
    from dataclasses import replace

    from secateur.pruning.bounds.zones import Zones
    from secateur.pruning.predicate.bound import Compared, Field, Missing, TextMatch

    computed = [operand for operand in operands(leaf) if isinstance(operand, Apply | Conditional | Tested)]
    if not computed:
        return outcomes_over(leaf, columns)
    places, fails, zones = {}, np.zeros(columns.n, bool), dict(columns.zones)
    for i, operand in enumerate(computed):
        interval = _interval(operand, columns)
        places[id(operand)] = Field(("computed", str(i)), operand.type)
        zones[places[id(operand)]] = Zones(interval.lower, interval.upper, interval.value, interval.null)
        fails |= interval.fails
    match leaf:
        case Within(operand) | Missing(operand) | TextMatch(operand):
            simple: Leaf = replace(leaf, operand=places[id(operand)])
        case Compared(left=left, right=right):
            simple = replace(leaf, left=places.get(id(left), left), right=places.get(id(right), right))
    return np.where(fails, np.uint8(EVERYTHING), outcomes_over(simple, ColumnSubset(columns.n, zones)))


def _interval(operand: Operand, columns: ColumnSubset) -> Interval:
    match operand:
        case Apply(function, arguments):
            return function.bounds([_interval(argument, columns) for argument in arguments])
        case Tested(predicate):
            interval = intervals.truth(_outcomes(predicate, columns))
            fails = _may_fail(predicate, columns)
            return Interval(interval.type, interval.lower, interval.upper, interval.value, interval.null, fails)
        case Conditional(branches, otherwise):
            return _chosen(branches, otherwise, columns)
        case _:
            from secateur.pruning.node_outcomes import interval_of

            return interval_of(operand, columns)


def _chosen(branches: tuple[tuple[Predicate, Operand], ...], otherwise: Operand, columns: ColumnSubset) -> Interval:
    reached, fails = np.ones(columns.n, bool), np.zeros(columns.n, bool)
    chosen = intervals.where(~reached, _interval(otherwise, columns))
    for condition, value in branches:
        outcomes = _outcomes(condition, columns)
        fails = fails | (reached & _may_fail(condition, columns))
        taken = reached & ((outcomes & TRUE) != 0)
        chosen = intervals.union(chosen, intervals.where(taken, _interval(value, columns)))
        reached = reached & ((outcomes & (FALSE | NULL)) != 0)
    chosen = intervals.union(chosen, intervals.where(reached, _interval(otherwise, columns)))
    return Interval(chosen.type, chosen.lower, chosen.upper, chosen.value, chosen.null, chosen.fails | fails)


def _may_fail(condition: Predicate, columns: ColumnSubset) -> np.ndarray:
    fails = np.zeros(columns.n, bool)
    for leaf in leaves(condition):
        for operand in operands(leaf):
            interval = _interval(operand, columns)
            fails = fails | interval.fails
            if isinstance(leaf, Within) and isinstance(leaf.fails, RangeSet):
                fails = fails | ((leaf.fails.outcomes(interval.lower, interval.upper) & interval.value & TRUE) != 0)
    return fails
