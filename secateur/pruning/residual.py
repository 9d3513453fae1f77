"""What is left to check on the rows of surviving blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import fully_matching
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.statistics import Statistics

MOST_CONJUNCTS = 62  # that are told apart: bits of an integer


@dataclass(frozen=True)
class Residuals:
    """What is left to check in every block: block i has to satisfy ``distinct[of_block[i]]``, None being nothing.

    Sound: a conjunct that is TRUE on every row of a block changes nothing under AND there.
    """

    distinct: tuple[Predicate | None, ...]
    of_block: np.ndarray  # int64 of shape (n_blocks,)
    whole: Predicate | None  # the conjuncts that some block does not satisfy with all its rows


def residuals_of(predicate: Predicate, blocks: Statistics, sure: np.ndarray) -> Residuals:
    """The residuals of blocks, of which those that are `sure` are known to match with all their rows."""
    if bool(sure.all()):
        return Residuals((None,), np.zeros(len(sure), np.int64), None)
    parts = conjuncts(predicate)
    parts = parts if len(parts) <= MOST_CONJUNCTS else (predicate,)
    asked = np.zeros(len(sure), np.int64)  # bit i: part i is left
    for i, part in enumerate(parts):
        asked |= (~sure & ~fully_matching(evaluate(part, blocks))).astype(np.int64) << i
    patterns, of_block = np.unique(asked, return_inverse=True)
    distinct = tuple(_chosen(parts, pattern) for pattern in patterns.tolist())
    return Residuals(distinct, of_block, _chosen(parts, int(np.bitwise_or.reduce(patterns))))


def _chosen(parts: Sequence[Predicate], pattern: int) -> Predicate | None:
    """The parts whose bits are set, under AND."""
    match tuple(part for i, part in enumerate(parts) if pattern >> i & 1):
        case ():
            return None
        case (only,):
            return only
        case several:
            return And(several)
