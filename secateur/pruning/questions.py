"""Questions: what a leaf of a predicate asks filters.

A filter over a block (of values, substrings, tokens, value intervals) answers "cannot be here" or "may be". If a leaf
is TRUE on some row of a block, all its questions are answered "may be" there. So an answer "cannot be" removes TRUE,
and only TRUE, from the leaf's outcomes, which is sound under AND, OR and NOT alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import Function
from secateur.pruning.predicate.bound import Apply, Field, Holds, Leaf, TextMatch, Unsupported, Within
from secateur.pruning.predicate.patterns.substrings import Alternatives, alternatives_of, in_bytes

MOST_POINTS = 10_000  # values of one IN list; probing for more would take longer than reading the blocks they save


@dataclass(frozen=True)
class Values:
    """Some value of the column in the block (array element, map key) has one of these keys."""

    column: Field
    type: pa.DataType  # type of the values: of the elements, the keys, or the column itself
    points: np.ndarray  # distinct keys, ascending, as from RangeSet.points


@dataclass(frozen=True)
class Texts:
    """Some text of the column in the block contains all substrings of one alternative, and all `tokens` as a whole.

    `folded`: this holds for the text after :func:`fold`. It is unknown for blocks with a text that contains a character
    of CASE_TRICKY; such a question cannot refute those.
    """

    column: Field
    alternatives: Alternatives
    folded: bool
    tokens: tuple[bytes, ...] = ()  # beyond those that follow from substrings by tokens_within
    points: np.ndarray | None = field(default=None, compare=False)  # the keys that the alternatives came from, if any


@dataclass(frozen=True)
class Ranges:
    """Some value of the column in the block has its key in `ranges`."""

    column: Field
    ranges: RangeSet


Question: TypeAlias = Values | Texts | Ranges


@dataclass(frozen=True)
class FilterHits:
    """The numbers of the blocks that may hold what is asked for, ascending, by one filter."""

    kind: str  # bloom, postings, ordered, ngram or token
    numbers: np.ndarray


def questions(leaf: Leaf) -> tuple[Question, ...]:
    """Return necessary conditions for the leaf to be TRUE on some row of a block; each can refute it independently.

    They do not cover rows on which Spark raises an error: a block that may hold such rows must be read anyway.
    """
    match leaf:
        case Within(Field() as column, ranges):
            return (*_values(column, column.type, ranges), *_of_ranges(column, ranges), *_within(column, ranges))
        case Within(Apply(Function(substrings=substrings), (Field() as column, *_)), ranges) if substrings is not None:
            alternatives = in_bytes(substrings(ranges), folded=False)
            return (Texts(column, alternatives, folded=False),) if alternatives else ()
        case TextMatch(Field() as column, prefix=prefix, alternatives=alternatives, folded=folded, tokens=tokens):
            texts = (Texts(column, alternatives, folded, tokens),) if alternatives else ()
            texts = texts if texts and not folded else (*texts, *_of_ranges(column, prefix))
            return (*texts, *_within(column, prefix))
        case Holds(column, ranges):
            return _values(column, leaf.type, ranges)
        case Unsupported(needs=needs):
            return tuple(question for part in needs for question in questions(part))
        case _:
            return ()


def _values(column: Field, type_: pa.DataType, ranges: RangeSet) -> tuple[Values, ...]:
    points = ranges.points
    return (Values(column, type_, points),) if points is not None and 0 < len(points) <= MOST_POINTS else ()


def _within(column: Field, ranges: RangeSet) -> tuple[Ranges, ...]:
    is_asked = not ranges.is_everything and 0 < len(ranges.thresholds) <= 2 * MOST_POINTS
    return (Ranges(column, ranges),) if is_asked else ()


def _of_ranges(column: Field, ranges: RangeSet) -> tuple[Texts, ...]:
    """Convert a set of strings to a question about text."""
    alternatives = alternatives_of(ranges) if column.type == pa.string() else ()
    return (Texts(column, alternatives, folded=False, points=ranges.points),) if alternatives else ()
