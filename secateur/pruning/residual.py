"""What is left to check on the rows of the surviving blocks."""

from __future__ import annotations

import numpy as np

from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import fully_matching
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.statistics import Statistics


def residual_of(predicate: Predicate, blocks: Statistics) -> Predicate | None:
    """The conjuncts that some block does not satisfy with all its rows, or None where there is none.

    Sound: a conjunct that is TRUE on every row of every block changes nothing under AND.
    """
    conjuncts = predicate.children if isinstance(predicate, And) else (predicate,)
    left = tuple(each for each in conjuncts if not _holds_everywhere(each, blocks))
    match left:
        case ():
            return None
        case (only,):
            return only
        case _:
            return And(left)


def _holds_everywhere(conjunct: Predicate, blocks: Statistics) -> bool:
    return bool(np.all(fully_matching(evaluate(conjunct, blocks))))
