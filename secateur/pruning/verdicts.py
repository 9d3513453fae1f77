"""Remembered verdicts: what earlier reads found, as evidence for later plans.

A read that evaluated a condition on all rows of a block, and found it TRUE on none, has proven something about that
block for as long as its file is the same. It is evidence like that of a filter: TRUE is taken out of the outcomes of
whatever implies the condition, and the predicate is folded again. So it serves every later predicate that asks for as
much or for more: ``price > 10`` that found nothing rules out ``price > 50 AND country = 'DE'``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from secateur.pruning.bounds.rangeset import RangeSet, intersection
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.predicate.bound import Field, Holds, Joined, Leaf, Within
from secateur.pruning.predicate.bound_walks import all_leaves, everything_in, fields, is_supported, leaves
from secateur.pruning.predicate.nodes import Or, Predicate

MOST_PARTS = 256  # nodes of a condition that is kept; longer ones rarely come again, and cost time to compare
MOST_ALTERNATIVES = 16  # operands of an OR that are compared one by one
ROW_GROUP_BITS = 32


@dataclass(frozen=True)
class Verdict:
    """A query's predicate, or some leaves of it, are TRUE on no row of some blocks."""

    leaves: tuple[Leaf, ...] | None  # None: the predicate itself
    places: np.ndarray  # int64, ascending: the blocks, see :func:`places_of`


def places_of(file: np.ndarray, row_group: np.ndarray) -> np.ndarray:
    """Return a number for each block that identifies its file, by number, and its row group: int64."""
    return (file.astype(np.int64, copy=False) << ROW_GROUP_BITS) | row_group


def can_be_remembered(condition: Predicate) -> bool:
    """Return whether a condition has the same truth value on a row whenever it is asked again, and is not too long.

    What only Spark can evaluate may be random. What depends on the time of the query is not evaluated here either.
    """
    few = sum(1 for _ in islice(everything_in(condition), MOST_PARTS + 1)) <= MOST_PARTS
    return few and is_supported(condition) and not any(isinstance(leaf, Joined) for leaf in all_leaves(condition))


def fields_read(condition: Predicate) -> tuple[Field, ...]:
    """Return the fields on whose values a condition depends, each once."""
    held = (leaf.column for leaf in all_leaves(condition) if isinstance(leaf, Holds))
    return tuple(dict.fromkeys([*fields(condition), *held]))


def leaves_implying(condition: Predicate, predicate: Predicate) -> tuple[Leaf, ...]:
    """Return the leaves of a predicate that are TRUE on no row on which a condition is not."""
    return tuple(leaf for leaf in dict.fromkeys(leaves(predicate)) if implies(leaf, condition))


def implies(asked: Predicate, known: Predicate) -> bool:
    """Return whether it is evident that `known` is TRUE on every row on which `asked` is.

    It is if every conjunct of `known` follows from one of `asked`. False says nothing.
    """
    parts = conjuncts(asked)
    return all(any(_follows(conjunct, part) for part in parts) for conjunct in conjuncts(known))


def _follows(known: Predicate, asked: Predicate) -> bool:
    """Return whether a conjunct is TRUE where another is: each alternative of that one implies one of its own."""
    if asked == known:
        return True
    ours, others = _alternatives(known), _alternatives(asked)
    if max(len(ours), len(others)) > MOST_ALTERNATIVES:
        return False
    return all(any(_is_within(other, our) for our in ours) for other in others)


def _alternatives(conjunct: Predicate) -> Sequence[Predicate]:
    return conjunct.children if isinstance(conjunct, Or) else (conjunct,)


def _is_within(asked: Predicate, known: Predicate) -> bool:
    """Return whether one condition is the other, or asks for some of the values of one operand that it asks for."""
    match asked, known:
        case Within(), Within() if asked.operand == known.operand and asked.fails == known.fails:
            return _is_part(asked.ranges, known.ranges)
        case _:
            return asked == known


def _is_part(part: RangeSet, whole: RangeSet) -> bool:
    """Return whether a set is a subset; the least key already shows it for most that are not."""
    if part == whole or part.is_empty:
        return True
    holds_least = part.kind is whole.kind and bisect_right(whole.thresholds, part.thresholds[0]) % 2 == 1
    return holds_least and intersection(part, whole) == part
