"""Literals and comparisons in their usual form, and boolean expressions as predicates and back."""

from __future__ import annotations

from decimal import Decimal

from secateur.pruning.predicate.nodes import Comparison, Expression, Literal, Predicate, Test, Truth


def integer(value: int) -> Literal:
    """Return a whole number with its SQL type: int, bigint if it is too wide for int, else decimal."""
    if -(2**31) <= value < 2**31:
        return Literal(value, "int")
    return Literal(value, "bigint") if -(2**63) <= value < 2**63 else Literal(Decimal(value), "decimal")


FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(left: Expression, op: str, right: Expression) -> Comparison:
    """Build ``left op right`` with a literal on the right."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return Comparison(FLIPPED[op], right, left)
    return Comparison(op, left, right)


def as_predicate(expression: Expression) -> Predicate:
    """Convert a boolean expression to a predicate."""
    match expression:
        case Test(predicate):
            return predicate
        case Literal(bool() | None as value, "boolean" | "null"):
            return Truth(value)
        case _:
            return Comparison("=", expression, Literal(True, "boolean"))


def as_expression(predicate: Predicate) -> Expression:
    """Convert a predicate to a boolean value."""
    match predicate:
        case Truth(None):
            return Literal(None, "null")
        case Truth(value):
            return Literal(value, "boolean")
        case Comparison("=", operand, Literal(True, "boolean")):
            return operand
        case _:
            return Test(predicate)
