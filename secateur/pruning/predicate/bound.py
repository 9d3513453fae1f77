"""Predicates bound to a table: every leaf names a field and the set of keys that it asks for.

Comparisons, IN lists and prefixes all become :class:`Within`: whether the value's key lies in a set. What
remains are null tests, general LIKE patterns, constants, and expressions that pruning cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth, quoted_name
from secateur.pruning.rangeset import RangeSet


@dataclass(frozen=True)
class Field:
    """A column of the table, or a field nested in structs, with its type."""

    path: tuple[str, ...]
    type: pa.DataType

    def __str__(self) -> str:
        return ".".join(quoted_name(part) if not part.isidentifier() else part for part in self.path)


@dataclass(frozen=True)
class Within(Predicate):
    """TRUE where the value's key lies in `ranges`, FALSE where it does not, NULL where the value is NULL."""

    field: Field
    ranges: RangeSet
    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Missing(Predicate):
    """TRUE where the value is NULL, else FALSE."""

    field: Field
    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Matches(Predicate):
    """LIKE with a wildcard before the pattern's end: TRUE only where the value starts with the literal prefix."""

    field: Field
    regex: str  # anchored, for the whole value, of RE2
    prefix: RangeSet
    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Unsupported(Predicate):
    """An expression that can be anything on any row, as far as pruning knows."""

    sql: str
    reason: str
    fields: tuple[Field, ...]  # that evaluating it needs

    def __str__(self) -> str:
        return self.sql


Leaf: TypeAlias = Within | Missing | Matches | Unsupported | Truth


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """The leaves of a bound predicate from left to right."""
    match predicate:
        case And(children) | Or(children):
            for child in children:
                yield from leaves(child)
        case Not(child) | Is(child):
            yield from leaves(child)
        case Within() | Missing() | Matches() | Unsupported() | Truth():
            yield predicate
        case _:
            raise TypeError(f"{predicate!r} is not bound")


def fields(predicate: Predicate) -> list[Field]:
    """The fields whose statistics a bound predicate can use, each once, in order of appearance."""
    named = (leaf.field for leaf in leaves(predicate) if isinstance(leaf, Within | Missing | Matches))
    return list(dict.fromkeys(named))


def columns(predicate: Predicate) -> list[str]:
    """The top-level columns that evaluating a bound predicate on rows needs, each once."""
    unsupported = (field for leaf in leaves(predicate) if isinstance(leaf, Unsupported) for field in leaf.fields)
    return list(dict.fromkeys(field.path[0] for field in (*fields(predicate), *unsupported)))


def is_supported(predicate: Predicate) -> bool:
    """Whether every leaf can be evaluated here, without Spark."""
    return not any(isinstance(leaf, Unsupported) for leaf in leaves(predicate))
