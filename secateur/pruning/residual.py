"""The residual: what must still be checked on the rows of surviving blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from secateur.integers import distinct_and_places
from secateur.pruning.bounds.outcomes import fully_matching
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.bound import Within
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.statistics import Statistics

MOST_SIDES = 62  # sides that are distinguished: bits of an integer


@dataclass(frozen=True)
class Residuals:
    """The residual of every block: block i must satisfy ``distinct[of_block[i]]``; None means nothing is left.

    Sound: a conjunct that is TRUE on every row of a block has no effect under AND there. A range has two separate ends.
    """

    distinct: tuple[Predicate | None, ...]
    of_block: np.ndarray  # int64 of shape (n_blocks,)
    whole: Predicate | None  # the conjuncts that some block does not satisfy with all its rows


def residuals_of(predicate: Predicate, blocks: Statistics, matching: np.ndarray) -> Residuals:
    """Return the residuals of blocks; those in `matching` are known to match with all their rows."""
    if bool(matching.all()):
        return Residuals((None,), np.zeros(len(matching), np.int64), None)
    parts = _parts(predicate)
    asked = np.zeros(len(matching), np.int64)  # bit i: side i, counted over all parts, is left
    for i, side in enumerate(side for part in parts for side in part.sides):
        asked |= (~matching & ~fully_matching(evaluate(side, blocks))).astype(np.int64) << i
    patterns, of_block = distinct_and_places(asked)
    distinct = tuple(_chosen(parts, pattern) for pattern in patterns.tolist())
    return Residuals(distinct, of_block, _chosen(parts, int(np.bitwise_or.reduce(patterns))))


class _Part(NamedTuple):
    """A conjunct, and the conditions it is split into: itself, or the two ends of a range."""

    whole: Predicate
    sides: tuple[Predicate, ...]


def _parts(predicate: Predicate) -> Sequence[_Part]:
    """Split into conjuncts; if they have too many sides to distinguish, the predicate is one part."""
    parts = [_Part(conjunct, _sides(conjunct)) for conjunct in conjuncts(predicate)]
    return parts if sum(len(part.sides) for part in parts) <= MOST_SIDES else [_Part(predicate, (predicate,))]


def _sides(conjunct: Predicate) -> tuple[Predicate, ...]:
    return conjunct.sides if isinstance(conjunct, Within) and conjunct.sides else (conjunct,)


def _chosen(parts: Sequence[_Part], pattern: int) -> Predicate | None:
    """Combine the sides whose bits are set by AND; a conjunct with all sides left is kept as it is."""
    chosen: list[Predicate] = []
    for part in parts:
        left = [side for i, side in enumerate(part.sides) if pattern >> i & 1]
        chosen += [part.whole] if len(left) == len(part.sides) else left
        pattern >>= len(part.sides)
    match chosen:
        case []:
            return None
        case [only]:
            return only
        case several:
            return And(tuple(several))
