"""Which units survive a predicate: its conjuncts one after the other, each only over what the ones before left.

The order is by rank, cost divided by the share of units that a conjunct rules out (Hellerstein and Stonebraker,
"Predicate Migration", SIGMOD 1993); the share is measured on a sample. No order changes the survivors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import fold, leaf_outcomes
from secateur.pruning.predicate.bound import (
    Apply,
    Choice,
    Field,
    Leaf,
    Missing,
    Tested,
    Within,
    all_leaves,
    operands,
    parts,
)
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.statistics import Statistics
from secateur.values import Kind, kind_of

SAMPLE = 1 << 10  # units
LEAST_SAMPLED = 1 << 15  # units; fewer are not worth a sample
SPARSE = 0.75  # share of units alive, below which the dead are left out of the arrays


@dataclass(frozen=True)
class Alive:
    """The units that may hold a match, ascending, with their outcomes; `order` is that of the conjuncts."""

    units: np.ndarray
    outcomes: np.ndarray
    order: tuple[Predicate, ...]


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """What must all be TRUE for the predicate to be."""
    return predicate.children if isinstance(predicate, And) else (predicate,)


def alive(predicate: Predicate, statistics: Statistics) -> Alive:
    """The units in which the predicate may be TRUE.

    Sound: a unit is left out if some conjunct is TRUE on none of its rows. Outcomes of units that are left out are
    not computed further.
    """
    first, *others = order = ordered(conjuncts(predicate), statistics)
    outcomes = _outcomes(first, statistics, None)
    survives = np.flatnonzero(sets.survives(outcomes))
    units = None
    for conjunct in others:
        if len(survives) < SPARSE * len(outcomes):
            units = survives if units is None else units[survives]
            outcomes = outcomes[survives]
        outcomes = sets.conjunction(outcomes, _outcomes(conjunct, statistics, units))
        survives = np.flatnonzero(sets.survives(outcomes))
    return Alive(survives if units is None else units[survives], outcomes[survives], order)


def _outcomes(conjunct: Predicate, statistics: Statistics, units: np.ndarray | None) -> np.ndarray:
    row_count = statistics.row_count if units is None else statistics.row_count[units]
    return fold(conjunct, row_count, lambda leaf: leaf_outcomes(leaf, statistics, units))


# ---- order -----------------------------------------------------------------------------------------------------------


def ordered(chosen: Sequence[Predicate], statistics: Statistics) -> tuple[Predicate, ...]:
    """Conjuncts in the order in which they cost least: by cost alone where the units are too few for a sample."""
    n = len(statistics.row_count)
    if len(chosen) < 2:
        return tuple(chosen)
    costs = [cost(part) for part in chosen]
    if n >= LEAST_SAMPLED:
        sample = np.arange(0, n, n // SAMPLE)
        shares = [float(np.mean(sets.survives(_outcomes(part, statistics, sample)))) for part in chosen]
        costs = [c / max(1 - share, 1 / SAMPLE) for c, share in zip(costs, shares, strict=True)]
    return tuple(chosen[i] for i in np.argsort(costs, kind="stable"))


def cost(predicate: Predicate) -> float:
    """What evaluating a predicate costs per unit, in comparisons of two arrays of integers."""
    return sum(_leaf_cost(leaf) for leaf in all_leaves(predicate))


def _leaf_cost(leaf: Leaf) -> float:
    looked_at = sum(_operand_cost(part) for part in parts(leaf))
    match leaf:
        case Missing():
            return 0.5 + looked_at
        case Within(ranges=ranges):
            return (
                max(1.0, float(np.log2(len(ranges.thresholds) + 1))) * (1 if ranges.kind is Kind.WORD else 2)
                + looked_at
            )
        case _:
            return 1.0 + looked_at if operands(leaf) else 0.1


def _operand_cost(operand: object) -> float:
    """Functions take some dozen passes over their arguments; wide decimals are computed one by one."""
    match operand:
        case Field() | Tested():
            return 1.0
        case Apply() | Choice():
            return 200.0 if kind_of(operand.type) is Kind.WIDE else 20.0
        case _:
            return 0.0
