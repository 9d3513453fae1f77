"""Predicates as Python expressions: ``(col("user_id") == 42) & col("name").startswith("Ada")``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.calls import NULL, build
from secateur.pruning.predicate.cast_types import sql_type
from secateur.pruning.predicate.constructors import as_expression, as_predicate, compare
from secateur.pruning.predicate.nodes import (
    And,
    Case,
    Cast,
    Column,
    Expression,
    ILike,
    In,
    IsNull,
    Like,
    Not,
    Predicate,
    RLike,
)
from secateur.pruning.predicate.patterns.regular_expressions import token_pattern
from secateur.pruning.predicate.python_values import literal
from secateur.pruning.predicate.value_lists import listed


class ValueExpression:
    """A value of a row: comparisons give a :class:`Predicate`, arithmetic another value."""

    node: Expression
    __array_ufunc__ = None  # makes numpy scalars leave operators to this class
    __iter__ = None  # prevents iteration through __getitem__

    def __init__(self, node: Expression) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value by itself: compare it, or use .is_true for a boolean")

    def __hash__(self) -> int:
        return hash(self.node)

    # ---- comparisons

    def __lt__(self, other: object) -> Predicate:
        return compare(self.node, "<", operand(other))

    def __le__(self, other: object) -> Predicate:
        return compare(self.node, "<=", operand(other))

    def __gt__(self, other: object) -> Predicate:
        return compare(self.node, ">", operand(other))

    def __ge__(self, other: object) -> Predicate:
        return compare(self.node, ">=", operand(other))

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return compare(self.node, "=", operand(other))

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return Not(compare(self.node, "=", operand(other)))

    def eq_null_safe(self, other: object) -> Predicate:
        """Return ``<=>``: TRUE if both are NULL, never NULL."""
        return compare(self.node, "<=>", operand(other))

    def isin(self, values: Iterable[object]) -> Predicate:
        """Return ``IN (...)``, of any length; None among the values is NULL.

        Long lists are fastest as a numpy or Arrow array; see :func:`.value_lists.listed` for the types accepted. Raises
        InvalidPredicate for a single text, whose characters would be the values.
        """
        if isinstance(values, str | bytes):
            raise InvalidPredicate(f"{values!r} is one value; write a list of values: [{values!r}]")
        return In(self.node, listed(values))

    def between(self, low: object, high: object) -> Predicate:
        """Return ``BETWEEN low AND high``, both included."""
        return And((self >= low, self <= high))

    def is_null(self) -> Predicate:
        """Return ``IS NULL``."""
        return IsNull(self.node)

    def is_not_null(self) -> Predicate:
        """Return ``IS NOT NULL``."""
        return Not(IsNull(self.node))

    @property
    def is_true(self) -> Predicate:
        """Convert a boolean to a predicate."""
        return as_predicate(self.node)

    # ---- strings

    def like(self, pattern: str, escape: str = "\\") -> Predicate:
        """Return ``LIKE``: ``%`` matches any text, ``_`` any character."""
        return Like(self.node, pattern, escape)

    def ilike(self, pattern: str, escape: str = "\\") -> Predicate:
        """Return ``ILIKE``: LIKE without regard to case."""
        return ILike(self.node, pattern, escape)

    def rlike(self, pattern: str) -> Predicate:
        """Return ``RLIKE``: whether a Java regular expression matches anywhere in a string."""
        return as_predicate(call("rlike", self, pattern))

    def startswith(self, prefix: object) -> Predicate:
        """Return whether a string starts with `prefix`."""
        return as_predicate(call("startswith", self, prefix))

    def endswith(self, suffix: object) -> Predicate:
        """Return whether a string ends with `suffix`."""
        return as_predicate(call("endswith", self, suffix))

    def contains(self, part: object) -> Predicate:
        """Return whether a string contains `part`."""
        return as_predicate(call("contains", self, part))

    def substr(self, start: object, length: object = None) -> ValueExpression:
        """Return ``substring(value, start, length)``: the first character is number 1."""
        return ComputedExpression(call("substring", self, start, *(() if length is None else (length,))))

    # ---- arithmetic and casts

    def __add__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("+", self, other))

    def __radd__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("+", other, self))

    def __sub__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("-", self, other))

    def __rsub__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("-", other, self))

    def __mul__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("*", self, other))

    def __rmul__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("*", other, self))

    def __truediv__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("/", self, other))

    def __rtruediv__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("/", other, self))

    def __mod__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("%", self, other))

    def __rmod__(self, other: object) -> ValueExpression:
        return ComputedExpression(call("%", other, self))

    def __neg__(self) -> ValueExpression:
        return ComputedExpression(call("negative", self))

    def cast(self, type: str) -> ValueExpression:
        """Return ``CAST(value AS type)``."""
        return ComputedExpression(Cast(self.node, sql_type(type)))

    def try_cast(self, type: str) -> ValueExpression:
        """Return ``TRY_CAST(value AS type)``: NULL where the cast fails."""
        return ComputedExpression(Cast(self.node, sql_type(type), safe=True))


# The classes below are siblings: Python tries a subclass's operator first, which would reverse `computed == column`.


class ComputedExpression(ValueExpression):
    """A value computed from others."""


class ColumnExpression(ValueExpression):
    """A column, or a field of one."""

    def __init__(self, node: Column) -> None:
        super().__init__(node)
        self.path = node.path

    def __getitem__(self, name: str) -> ColumnExpression:
        """Return a field of a struct column."""
        return ColumnExpression(Column((*self.path, name)))


class CaseExpression(ValueExpression):
    """``CASE WHEN``, NULL if no condition is TRUE."""

    def __init__(self, *branches: tuple[Predicate, Expression]) -> None:
        super().__init__(Case(branches, NULL))
        self.branches = branches

    def when(self, condition: Predicate | ValueExpression, value: object) -> CaseExpression:
        """Add a branch: the value where this condition is TRUE and none before it is."""
        return CaseExpression(*self.branches, (as_predicate(operand(condition)), operand(value)))

    def otherwise(self, value: object) -> ValueExpression:
        """Set the value where no condition is TRUE."""
        return ComputedExpression(Case(self.branches, operand(value)))


def col(name: str) -> ColumnExpression:
    """Return the column of this name; nested fields are separated by dots, and back-quotes protect dots in names.

    >>> (col("user_id") == 42) & col("address.zip").startswith("10")
    (`user_id` = 42 AND `address`.`zip` LIKE '10%')
    >>> col("price") * 2 > col("limit") + 1
    (`price` * 2) > (`limit` + 1)
    """
    return ColumnExpression(Column(split_name(name)))


def when(condition: Predicate | ValueExpression, value: object) -> CaseExpression:
    """Return ``CASE WHEN condition THEN value``; continue with ``.when(condition, value)`` and ``.otherwise(value)``.

    >>> when(col("a") > 1, col("b")).otherwise(0) == 3
    CASE WHEN `a` > 1 THEN `b` ELSE 0 END = 3
    """
    return CaseExpression((as_predicate(operand(condition)), operand(value)))


def call_function(name: str, *arguments: object) -> Any:
    """Call a Spark SQL function by name; returns a value, or a predicate if the function is a condition (``isnan``).

    >>> call_function("year", col("ts")) == 2024
    year(`ts`) = 2024
    """
    if not name.isidentifier():
        raise InvalidPredicate(f"{name!r} is not the name of a function")
    node = build(name, [operand(argument) for argument in arguments])
    return node if isinstance(node, Predicate) else ComputedExpression(node)


def has_token(column: str | ValueExpression, word: str) -> Predicate:
    """Return whether a text, given as a value or a column name, contains a word as a whole token.

    A token is a maximal run of digits, ASCII letters, ``_`` and characters beyond ASCII. In Spark this is an RLIKE;
    token filters answer it for whole blocks. Raises ValueError for a word that is not one token.

    >>> str(has_token("message", "timeout")).count("timeout")
    1
    """
    text = col(column) if isinstance(column, str) else column
    return RLike(text.node, token_pattern(word))


def call(name: str, *arguments: object) -> Expression:
    """Return the node of a function or operator on values."""
    node = build(name, [operand(argument) for argument in arguments])
    return as_expression(node) if isinstance(node, Predicate) else node


def operand(value: object) -> Expression:
    """Convert an operand of an operator: an expression, a predicate as a boolean, or a Python value."""
    match value:
        case ValueExpression():
            return value.node
        case Predicate():
            return as_expression(value)
        case _:
            return literal(value)


def split_name(name: str) -> tuple[str, ...]:
    """Split a dotted name; a part in back-quotes keeps its dots, and a doubled back-quote is one."""
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
