"""The one algebra: which outcomes a bound predicate can have over each of n units.

A predicate is folded from its leaves' outcomes by Kleene's tables on sets (:mod:`secateur.pruning.outcomes`).
Leaves are evaluated over all units in one call; nothing here holds state, so threads share it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.predicate.bound import Leaf, Matches, Missing, Unsupported, Within
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.statistics import Statistics, Zones

CHUNK = 1 << 16  # units: what a leaf reads of them several times stays in a core's cache


def evaluate(predicate: Predicate, statistics: Statistics) -> np.ndarray:
    """The possible outcomes of a predicate over every unit: uint8 of shape (n,).

    Soundness: on every row of unit i the predicate takes a value in the set i. A unit known to hold no row gets
    the empty set.
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
        case Within() | Missing() | Matches() | Unsupported() | Truth():
            return outcomes_of(predicate)
        case _:
            raise TypeError(f"{predicate!r} is not bound")


def leaf_outcomes(leaf: Leaf, statistics: Statistics) -> np.ndarray:
    """The possible outcomes of one leaf by zone maps: uint8 of shape (n,)."""
    n = len(statistics.row_count)
    if isinstance(leaf, Truth):
        return np.full(n, sets.of_truth(leaf.value), np.uint8)
    if isinstance(leaf, Unsupported):
        return np.full(n, EVERYTHING, np.uint8)
    zones = statistics.zones(leaf.field)
    if isinstance(leaf, Missing):
        return (
            np.full(n, TRUE | FALSE, np.uint8)
            if zones is None
            else sets.of_sides((zones.null != 0).view(np.uint8), (zones.value != 0).view(np.uint8))
        )
    if zones is None:
        return np.full(n, _without_statistics(leaf), np.uint8)
    outcomes = np.empty(n, np.uint8)
    for start in range(0, n, CHUNK):
        chunk = slice(start, start + CHUNK)
        outcomes[chunk] = _value_outcomes(leaf, zones.take(chunk))
    return outcomes


def _value_outcomes(leaf: Within | Matches, zones: Zones) -> np.ndarray:
    """The possible outcomes of a leaf that looks at values, where it has zone maps."""
    match leaf:
        case Within(ranges=ranges):
            inside, outside = ranges.overlap(zones.lower, zones.upper)
            return sets.of_sides(inside.view(np.uint8), outside.view(np.uint8)) & zones.value | zones.null
        case Matches(prefix=prefix):
            may_start, _ = prefix.overlap(zones.lower, zones.upper)
            return (may_start.view(np.uint8) | FALSE) & zones.value | zones.null


def _without_statistics(leaf: Within | Matches) -> int:
    """What a leaf can be whatever the value: a set of no key is never TRUE, one of all keys never FALSE."""
    ranges = leaf.ranges if isinstance(leaf, Within) else leaf.prefix
    if ranges.is_empty:
        return FALSE | NULL
    return TRUE | NULL if isinstance(leaf, Within) and ranges.is_everything else EVERYTHING
