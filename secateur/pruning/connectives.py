"""Combine the outcomes of leaves into those of a predicate, by Kleene's tables on sets (:mod:`.bounds.outcomes`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from secateur.pruning.bounds import outcomes as sets
from secateur.pruning.predicate.bound import Compared, Holds, Joined, Leaf, Missing, TextMatch, Unsupported, Within
from secateur.pruning.predicate.bound_walks import shared
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.predicate.trees import Steps, unrolled


def fold(predicate: Predicate, row_count: np.ndarray, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    """Combine the outcomes of the leaves, however they were found, into those of the predicate."""
    outcomes = combined(predicate, outcomes_of)
    return outcomes if row_count.min(initial=1) > 0 else np.where(row_count == 0, np.uint8(0), outcomes)


def combined(predicate: Predicate, outcomes_of: Callable[[Leaf], np.ndarray]) -> np.ndarray:
    """Combine the outcomes of the leaves over units none of which is empty."""
    if isinstance(predicate, Leaf):
        return outcomes_of(predicate)
    return unrolled(partial(folded, outcomes_of=outcomes_of), predicate, {}, shared(predicate))


def folded(predicate: Predicate, outcomes_of: Callable[[Leaf], np.ndarray]) -> Steps[np.ndarray]:
    match predicate:
        case And(children) | Or(children):
            combine = sets.conjunction if isinstance(predicate, And) else sets.disjunction
            outcomes = yield children[0]
            for child in children[1:]:
                outcomes = combine(outcomes, (yield child))
            return outcomes
        case Not(child):
            return sets.negation((yield child))
        case Is(child, value):
            return sets.equality((yield child), value)
        case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
            return outcomes_of(predicate)
        case _:
            raise TypeError(f"{predicate!r} is not bound")
