"""Questions: what a leaf of a predicate asks of filters.

A filter over a block (of values, of pieces of text, of tokens, of intervals of values) answers "cannot be here" or "may
be". A leaf that is TRUE on some row of a block has every one of its questions answered "may be" there. So one that is
answered "cannot be" removes TRUE from the leaf, and nothing but TRUE, which is sound under AND, OR and NOT alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.pruning.predicate.bound import Field, Holds, Leaf, TextMatch, Unsupported, Within
from secateur.pruning.predicate.patterns.pieces import Alternatives, alternatives_of
from secateur.pruning.rangeset import RangeSet

MOST_POINTS = 10_000  # values of one IN list; probing for more would cost longer than the blocks they save


@dataclass(frozen=True)
class Values:
    """Some value of the column in the block (an element of an array, a key of a map) has one of these keys."""

    column: Field
    type: pa.DataType  # of the values: of the elements, the keys, or the column itself
    points: np.ndarray  # distinct keys, ascending, as RangeSet.points has them


@dataclass(frozen=True)
class Texts:
    """Some text of the column in the block holds all pieces of one of the alternatives, and the `tokens` as whole ones.

    `folded`: this is so of the text after :func:`fold`. It is not known of a block in which any text holds a character
    of CASE_TRICKY, which such a question cannot refute.
    """

    column: Field
    alternatives: Alternatives
    folded: bool
    tokens: tuple[bytes, ...] = ()  # besides those that follow from pieces, by tokens_within
    points: np.ndarray | None = field(default=None, compare=False)  # the keys that the alternatives stand for, if any


Question: TypeAlias = Values | Texts


@dataclass(frozen=True)
class FilterHits:
    """The numbers of the blocks that may hold what is asked for, ascending, by one filter."""

    kind: str  # bloom, postings, ngram or token
    numbers: np.ndarray


def questions(leaf: Leaf) -> tuple[Question, ...]:
    """Necessary conditions for the leaf to be TRUE on some row of a block; each refutes by itself.

    They say nothing of rows on which Spark raises an error: a block that may hold some is to be read all the same.
    """
    match leaf:
        case Within(Field() as column, ranges):
            return (*_values(column, column.type, ranges), *_of_ranges(column, ranges))
        case TextMatch(Field() as column, prefix=prefix, alternatives=alternatives, folded=folded, tokens=tokens):
            held = (Texts(column, alternatives, folded, tokens),) if alternatives else ()
            return held if held and not folded else (*held, *_of_ranges(column, prefix))
        case Holds(column, ranges):
            return _values(column, leaf.type, ranges)
        case Unsupported(needs=needs):
            return tuple(question for each in needs for question in questions(each))
        case _:
            return ()


def _values(column: Field, type_: pa.DataType, ranges: RangeSet) -> tuple[Values, ...]:
    points = ranges.points
    return (Values(column, type_, points),) if points is not None and 0 < len(points) <= MOST_POINTS else ()


def _of_ranges(column: Field, ranges: RangeSet) -> tuple[Texts, ...]:
    """The texts of a set of strings."""
    alternatives = alternatives_of(ranges) if column.type == pa.string() else ()
    return (Texts(column, alternatives, folded=False, points=ranges.points),) if alternatives else ()
