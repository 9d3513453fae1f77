"""Evaluation: which outcomes a bound predicate can have over each of n units.

A predicate is folded from its leaves' outcomes by Kleene's tables on sets (:mod:`secateur.pruning.bounds.outcomes`).
Leaves are evaluated over all units in one call; nothing here holds state, so threads can share it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones, may_be_nan
from secateur.pruning.connectives import combined, fold
from secateur.pruning.node_outcomes import ColumnSubset, computed, field_fails, holds_nan, outcomes_over, rule_out
from secateur.pruning.predicate.bound import Field, Holds, Leaf, TextMatch, Unsupported, Within
from secateur.pruning.predicate.bound_walks import all_leaves, everything_in, fields, shared
from secateur.pruning.predicate.nodes import And, Not, Or, Predicate, Truth
from secateur.pruning.predicate.trees import Steps, unrolled
from secateur.pruning.statistics import Statistics

CHUNK = 1 << 16  # units: a chunk that a leaf reads several times stays in a core's cache
LEAST_CHUNK = 1 << 10
FEW_PARTS = 32  # operands and conditions of a leaf


def evaluate(predicate: Predicate, statistics: Statistics) -> np.ndarray:
    """Return the possible outcomes of a predicate over every unit: uint8 of shape (n,).

    Soundness: on every row of unit i the predicate takes a value in set i, or Spark raises an error and the set is
    everything. A unit known to hold no row gets the empty set.
    """
    return fold(predicate, statistics.row_count, lambda leaf: leaf_outcomes(leaf, statistics))


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
                    rule_out(possible, ranges, zones, units)
                return possible if zones.has_values else possible & (_at(zones.value, units) != 0)
    outcomes = combined(predicate, lambda leaf: leaf_outcomes(leaf, statistics, units))
    return (outcomes & truth) != 0


def _reached(ranges: RangeSet, zones: Zones, units: np.ndarray | None, *, inside: bool) -> np.ndarray | None:
    """Return where a value may be inside a set of keys (or outside), for sets that :meth:`RangeSet.reaches` covers."""
    possible = ranges.reaches(zones.lower, zones.numbers_upper, units, inside=inside)
    if possible is not None and zones.top is not None and holds_nan(ranges) == inside:
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
        compute = partial(computed, columns=columns.take(slice(start, start + step)))
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


def _without_statistics(leaf: Within | TextMatch) -> int:
    """Return a leaf's outcomes for any value: the empty set is never TRUE, the full set never FALSE."""
    if isinstance(leaf, Within) and leaf.fails is not None:
        return EVERYTHING
    ranges = leaf.ranges if isinstance(leaf, Within) else leaf.prefix
    if ranges.is_empty:
        return FALSE | NULL
    return TRUE | NULL if isinstance(leaf, Within) and ranges.is_everything else EVERYTHING


def may_fail(leaf: Leaf, statistics: Statistics) -> np.ndarray:
    """Return the units that may hold a row on which Spark raises an error, for a leaf on a column: bool."""
    match leaf:
        case Within(Field() as field, fails=RangeSet() as fails):
            return field_fails(field, fails, ColumnSubset(len(statistics), {field: statistics.zones(field)}))
        case _:
            return np.zeros(len(statistics), bool)
