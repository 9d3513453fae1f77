"""Find the units that survive a predicate, one conjunct at a time, each over what the previous ones left.

The order is by rank: cost divided by the share of units that a conjunct rules out (Hellerstein and Stonebraker,
"Predicate Migration", SIGMOD 1993), measured on a sample. The order does not change the survivors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from secateur.pruning.evaluate import may_match
from secateur.pruning.predicate.bound import Apply, Conditional, Field, Leaf, Missing, Tested, Within
from secateur.pruning.predicate.bound_walks import all_leaves, operands, parts
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.statistics import Statistics
from secateur.values.kinds import Kind, kind_of

SAMPLE = 1 << 10  # units
LEAST_SAMPLED = 1 << 15  # units; for fewer, a sample does not pay
SPARSE = 1 / 16  # share of units alive below which gathering them is cheaper than comparing all
SPARSE_IF_DEAR = 0.75  # the same for conjuncts that cost more than comparisons
DEAR = 8.0  # comparisons


@dataclass(frozen=True)
class Alive:
    """The units that may hold a match, ascending; `order` is the order of the conjuncts."""

    units: np.ndarray
    order: tuple[Predicate, ...]


@dataclass(frozen=True)
class Candidates:
    """Some of n units: those of `units` (None: all n) whose `mask` is set (None: all of them)."""

    n: int
    units: np.ndarray | None = None
    mask: np.ndarray | None = None

    @property
    def positions(self) -> np.ndarray:
        """The positions of the candidates, ascending."""
        return self.numbers(0)

    def numbers(self, begin: int) -> np.ndarray:
        """Return the numbers of the candidates, ascending; the first of the n units has the number `begin`."""
        if self.units is not None:
            return (self.units if self.mask is None else self.units[self.mask]) + begin
        if self.mask is None or self.mask.all():
            return np.arange(begin, begin + self.n)
        return np.flatnonzero(self.mask) + begin

    def without_dead(self, conjunct: Predicate, statistics: Statistics) -> Candidates:
        """Drop the candidates in which one more conjunct cannot be TRUE."""
        candidates = self._condensed(SPARSE if cost(conjunct) < DEAR else SPARSE_IF_DEAR)
        possible = may_match(conjunct, statistics, candidates.units)
        if candidates.mask is not None:
            possible &= candidates.mask
        return replace(candidates, mask=possible)

    def _condensed(self, share: float) -> Candidates:
        """Apply the mask to `units` if few candidates are left."""
        if self.mask is None or np.count_nonzero(self.mask) >= share * len(self.mask):
            return self
        return Candidates(self.n, self.positions)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Split a predicate into its conjuncts, which must all be TRUE for it to be TRUE."""
    return predicate.children if isinstance(predicate, And) else (predicate,)


def alive(predicate: Predicate, statistics: Statistics) -> Alive:
    """Return the units in which the predicate may be TRUE.

    Sound: a unit is dropped only if it has no rows, or if some conjunct is TRUE on none of them.
    """
    order = ordered(conjuncts(predicate), statistics)
    row_count = statistics.row_count
    candidates = Candidates(len(statistics), mask=None if row_count.min(initial=1) else row_count != 0)
    for conjunct in order:
        candidates = candidates.without_dead(conjunct, statistics)
    return Alive(candidates.positions, order)


# ---- order -----------------------------------------------------------------------------------------------------------


def ordered(chosen: Sequence[Predicate], statistics: Statistics) -> tuple[Predicate, ...]:
    """Order conjuncts by least expected cost; by their own cost only if there are too few units for a sample."""
    n = len(statistics)
    if len(chosen) < 2:
        return tuple(chosen)
    costs = [cost(part) for part in chosen]
    if n >= LEAST_SAMPLED:
        sample = np.arange(0, n, n // SAMPLE)
        shares = [float(np.mean(may_match(part, statistics, sample))) for part in chosen]
        costs = [c / max(1 - share, 1 / SAMPLE) for c, share in zip(costs, shares, strict=True)]
    return tuple(chosen[i] for i in np.argsort(costs, kind="stable"))


def cost(predicate: Predicate) -> float:
    """Estimate the cost of a predicate per unit, in comparisons of two integer arrays."""
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
    """Estimate an operand: functions take about a dozen passes; wide decimals are computed one by one."""
    match operand:
        case Field() | Tested():
            return 1.0
        case Apply() | Conditional():
            return 200.0 if kind_of(operand.type) is Kind.WIDE else 20.0
        case _:
            return 0.0
