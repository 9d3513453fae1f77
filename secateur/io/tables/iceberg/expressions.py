"""Expressions of PyIceberg as predicates: ``EqualTo("a", 5)``, ``NotIn("s", ["x"])``, unbound, on column names.

Iceberg's conditions are TRUE or FALSE, never NULL, so the nodes are these:

====================  =========================================  ================================================
Iceberg               here                                       on NULL
====================  =========================================  ================================================
``NotEqualTo``        ``NOT a <=> x``                            TRUE
``NotIn``             ``a IS NULL OR NOT a IN (...)``            TRUE
``NotStartsWith``     ``a IS NULL OR NOT a LIKE 'x%'``           TRUE
``IsNaN``, ``NotNaN`` ``a <=> NaN``, ``NOT a <=> NaN``           FALSE, TRUE
all others            the same condition of SQL                  NULL, which leaves the row out just as FALSE does
====================  =========================================  ================================================

``Not`` is first pushed to the leaves, as Iceberg does before it evaluates: ``Not(LessThan)`` is ``GreaterThanOrEqual``,
FALSE on NULL. A datetime becomes text with the zone UTC, which is the instant beside a column with time zone and the
time of the clock beside one without, as in Iceberg. (PyIceberg's own scans filter with Arrow, whose ``!=`` drops NULL:
that is not followed.) In two things the rows are Spark's: NaN is above all numbers, and a Python float beside a
``float`` column is compared as a double (``FloatLiteral`` is the literal for those).
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
from pyiceberg import expressions as ice
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions import literals as ice_literals
from pyiceberg.expressions.visitors import rewrite_not

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.binding.temporal import date_of, moment_of
from secateur.pruning.predicate.calls import escaped
from secateur.pruning.predicate.constructors import integer
from secateur.pruning.predicate.nodes import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
)
from secateur.pruning.predicate.value_lists import compact

__all__ = ["BooleanExpression", "predicate_of"]

NAN = Literal(math.nan, "double")
_COMPARISONS: dict[type[BooleanExpression], str] = {
    ice.EqualTo: "=",
    ice.LessThan: "<",
    ice.LessThanOrEqual: "<=",
    ice.GreaterThan: ">",
    ice.GreaterThanOrEqual: ">=",
}


def predicate_of(expression: BooleanExpression) -> Predicate:
    """Return the predicate that is TRUE exactly where Iceberg's expression is. Raises InvalidPredicate, also for bound
    ones.
    """
    return _predicate(rewrite_not(expression))


def _predicate(expression: BooleanExpression) -> Predicate:
    match expression:
        case ice.AlwaysTrue():
            return Truth(True)
        case ice.AlwaysFalse():
            return Truth(False)
        case ice.And() | ice.Or():
            return _connective(expression)
        case ice.UnboundPredicate(term=ice.Reference(name=name)):
            return _condition(expression, Column(tuple(name.split("."))))
        case _:
            raise InvalidPredicate(f"cannot read {expression}: it is not an unbound expression on a column")


def _connective(expression: ice.And | ice.Or) -> Predicate:
    """Flatten a chain of ANDs or ORs, which PyIceberg nests, to one node."""
    kind, parts, left = type(expression), [], [expression.right, expression.left]
    while left:
        part = left.pop()
        if type(part) is kind:
            left += [part.right, part.left]
        else:
            parts.append(_predicate(part))
    return (And if kind is ice.And else Or)(tuple(parts))


def _condition(expression: ice.UnboundPredicate, column: Column) -> Predicate:
    match expression:
        case ice.IsNull():
            return IsNull(column)
        case ice.NotNull():
            return Not(IsNull(column))
        case ice.IsNaN():
            return Comparison("<=>", column, NAN)
        case ice.NotNaN():
            return Not(Comparison("<=>", column, NAN))
        case ice.In(literals=values):
            return _in(column, values)
        case ice.NotIn(literals=values):
            return Or((IsNull(column), Not(_in(column, values))))
        case ice.StartsWith(literal=value):
            return _starts_with(column, value)
        case ice.NotStartsWith(literal=value):
            return Or((IsNull(column), Not(_starts_with(column, value))))
        case ice.NotEqualTo(literal=value):
            return Not(Comparison("<=>", column, _literal(value)))
        case ice.LiteralPredicate(literal=value) if type(expression) in _COMPARISONS:
            return Comparison(_COMPARISONS[type(expression)], column, _literal(value))
        case _:
            raise InvalidPredicate(f"cannot read the Iceberg expression {expression}")


def _in(column: Column, values: set[Any]) -> In:
    """Build an In node. The set of values is sorted, so that equal expressions print alike."""
    ordered = sorted(values, key=lambda value: (type(value).__name__, value.value))
    return In(column, compact(tuple(map(_literal, ordered))))


def _starts_with(column: Column, value: Any) -> Predicate:
    return Like(column, escaped(str(value.value)) + "%", "\\")


def _literal(literal: Any) -> Literal:
    value = literal.value
    match literal:
        case ice_literals.BooleanLiteral():
            return Literal(value, "boolean")
        case ice_literals.LongLiteral():
            return integer(value)
        case ice_literals.FloatLiteral():
            return Literal(float(np.float32(value)), "float")
        case ice_literals.DoubleLiteral():
            return Literal(value, "double")
        case ice_literals.DecimalLiteral():
            return Literal(value, "decimal")
        case ice_literals.StringLiteral():
            return Literal(value, "string")
        case ice_literals.BinaryLiteral() | ice_literals.FixedLiteral() | ice_literals.UUIDLiteral():
            return Literal(value, "binary")
        case ice_literals.DateLiteral():
            return Literal(date_of(value), "date")
        case ice_literals.TimestampLiteral():
            return Literal(str(moment_of(value).replace(tzinfo=dt.UTC)), "string")
        case _:
            raise InvalidPredicate(f"cannot read the Iceberg literal {literal!r}")
