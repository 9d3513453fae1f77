"""Draw random predicates over values of a table, to test an index with queries that nobody thought of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.expressions import ColumnExpression
from secateur.pruning.predicate.nodes import Column, Predicate
from secateur.values.conversion import scalar_of
from secateur.values.key import Key

MOST_LISTED = 5  # values in an IN list
MOST_LEAVES = 3  # per predicate
LONGEST_SUBSTRING = 8  # characters


@dataclass(frozen=True)
class DrawnColumn:
    """A column by its table name, with some of its values, none NULL."""

    path: tuple[str, ...]
    type: pa.DataType
    values: tuple[Any, ...]


def python_values(keys: Sequence[Key], type_: pa.DataType) -> tuple[Any, ...]:
    """Return the values of keys, without those that Python cannot represent."""
    values = []
    for key in keys:
        with suppress(ValueError, OverflowError, pa.ArrowException):  # text that is not UTF-8, a day after year 9999
            values.append(scalar_of(key, type_).as_py())
    return tuple(values)


def random_predicates(columns: Sequence[DrawnColumn], count: int, draw: np.random.Generator) -> Iterator[Predicate]:
    """Draw `count` predicates: `=`, IN, ranges, text patterns, IS NULL and their negations, under AND, OR and NOT."""
    usable = [column for column in columns if column.values]
    drawn = 0
    while usable and drawn < count:
        with suppress(InvalidPredicate):  # a value without a literal
            yield _tree(usable, int(draw.integers(1, MOST_LEAVES + 1)), draw)
            drawn += 1


def _tree(columns: Sequence[DrawnColumn], leaves: int, draw: np.random.Generator) -> Predicate:
    if leaves == 1:
        column = columns[int(draw.integers(len(columns)))]
        condition = _leaf(column, draw)
    else:
        left, right = _tree(columns, leaves - 1, draw), _tree(columns, 1, draw)
        condition = left & right if draw.random() < 0.5 else left | right
    return ~condition if draw.random() < 0.2 else condition


def _leaf(column: DrawnColumn, draw: np.random.Generator) -> Predicate:
    operand = ColumnExpression(Column(column.path))
    chosen = [column.values[int(i)] for i in draw.integers(0, len(column.values), MOST_LISTED)]
    first, second = chosen[:2]
    kinds: list[Callable[[], Predicate]] = [
        lambda: operand == first,
        lambda: operand == first,
        lambda: operand != first,
        lambda: operand < first,
        lambda: operand >= first,
        lambda: operand.isin(chosen),
        lambda: operand.between(min(first, second), max(first, second)),
        operand.is_null,
        operand.is_not_null,
    ]
    if isinstance(first, str):
        start = int(draw.integers(0, max(1, len(first))))
        substring = first[start : start + LONGEST_SUBSTRING]
        kinds += [
            lambda: operand.startswith(first[:LONGEST_SUBSTRING]),
            lambda: operand.contains(substring),
            lambda: operand.endswith(first[-LONGEST_SUBSTRING:]),
        ]
    return kinds[int(draw.integers(len(kinds)))]()
