"""Predicates as Python expressions: ``(col("user_id") == 42) & col("name").startswith("Ada")``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

from secateur.pruning.predicate.nodes import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Predicate,
)


class ColumnExpression:
    """A column to compare with values; every comparison gives a :class:`Predicate`."""

    def __init__(self, node: Column) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)

    def __lt__(self, other: object) -> Predicate:
        return Comparison("<", self.node, literal(other))

    def __le__(self, other: object) -> Predicate:
        return Comparison("<=", self.node, literal(other))

    def __gt__(self, other: object) -> Predicate:
        return Comparison(">", self.node, literal(other))

    def __ge__(self, other: object) -> Predicate:
        return Comparison(">=", self.node, literal(other))

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return Comparison("=", self.node, literal(other))

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return Not(Comparison("=", self.node, literal(other)))

    def __hash__(self) -> int:
        return hash(self.node)

    def __getitem__(self, name: str) -> ColumnExpression:
        """A field of a struct column."""
        return ColumnExpression(Column((*self.node.path, name)))

    def eq_null_safe(self, other: object) -> Predicate:
        """``<=>``: TRUE where both are NULL, never NULL."""
        return Comparison("<=>", self.node, literal(other))

    def isin(self, values: Iterable[object]) -> Predicate:
        """``IN (...)``, of any length; None among the values is NULL."""
        return In(self.node, tuple(literal(value) for value in values))

    def between(self, low: object, high: object) -> Predicate:
        """``BETWEEN low AND high``, both included."""
        return And((self >= low, self <= high))

    def is_null(self) -> Predicate:
        """``IS NULL``."""
        return IsNull(self.node)

    def is_not_null(self) -> Predicate:
        """``IS NOT NULL``."""
        return Not(IsNull(self.node))

    def like(self, pattern: str, escape: str = "\\") -> Predicate:
        """``LIKE``: ``%`` is any text, ``_`` any character."""
        return Like(self.node, pattern, escape)

    def startswith(self, prefix: str) -> Predicate:
        """Whether a string starts with `prefix`."""
        escaped = "".join("\\" + c if c in "%_\\" else c for c in prefix)
        return Like(self.node, escaped + "%", "\\")

    @property
    def is_true(self) -> Predicate:
        """A boolean column as a predicate of its own."""
        return self.node.is_true


def col(name: str) -> ColumnExpression:
    """The column of this name; nested fields with dots, a name that holds dots in back-quotes.

    >>> print((col("user_id") == 42) & col("address.zip").startswith("10"))
    (`user_id` = 42 AND `address`.`zip` LIKE '10%')
    """
    return ColumnExpression(Column(split_name(name)))


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; a part in back-quotes keeps its dots, and a doubled back-quote is one."""
    parts, part, quoted = [], "", False
    position = 0
    while position < len(name):
        match name[position], quoted:
            case "`", True if name[position : position + 2] == "``":
                part, position = part + "`", position + 1
            case "`", _:
                quoted = not quoted
            case ".", False:
                parts.append(part)
                part = ""
            case character, _:
                part += character
        position += 1
    return (*parts, part)


def literal(value: object) -> Literal:
    """A Python value as a literal: datetimes with a zone are instants, without one are in the session's zone."""
    match value:
        case Literal():
            return value
        case _ if hasattr(value, "item"):  # a numpy scalar, of which some are Python floats or strings too
            return literal(value.item())
        case None:
            return Literal(None, "null")
        case bool():
            return Literal(value, "boolean")
        case int():
            return Literal(value, "int")
        case float():
            return Literal(value, "double")
        case Decimal():
            return Literal(value, "decimal")
        case str():
            return Literal(value, "string")
        case bytes() | bytearray():
            return Literal(bytes(value), "binary")
        case dt.datetime():
            return Literal(value, "timestamp_ntz" if value.tzinfo is None else "timestamp")
        case dt.date():
            return Literal(value, "date")
        case _:
            raise TypeError(f"{value!r} of type {type(value).__name__} is no literal of Spark SQL")
