"""The leaves of sqlglot's syntax trees: columns, literals as Spark types them, and the names of types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from sqlglot import exp

from secateur.pruning.functions.types import size_of
from secateur.pruning.predicate.constructors import integer
from secateur.pruning.predicate.nodes import INTEGERS, Column, Literal
from secateur.pruning.predicate.sql.syntax import has_only

_TEMPORAL = {
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}


def column_of(node: exp.Expression | None) -> Column | None:
    """Return the column, or the field of a struct, that a tree names; None for anything else."""
    match node:
        case exp.Paren() if has_only(node, "this"):
            return column_of(node.this)
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return Column(tuple(part.name for part in node.parts))
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            parent = column_of(node.this)
            return Column((*parent.path, node.expression.name)) if parent else None
        case exp.Bracket(expressions=[exp.Literal(is_string=True) as name]) if has_only(node, "this", "expressions"):
            parent = column_of(node.this)  # `a['b']` is `a.b`: a field of a struct, or the value of a map key
            return Column((*parent.path, str(name.this))) if parent else None
        case _:
            return None


def literal_of(node: exp.Expression | None) -> Literal | None:
    """Return the literal that a tree is, below parentheses, signs and casts of literals; None for anything else."""
    match node:
        case exp.Null():
            return Literal(None, "null")
        case exp.Boolean():
            return Literal(bool(node.this), "boolean")
        case exp.Literal(is_string=True) | exp.RawString():
            return Literal(str(node.this), "string")
        case exp.Literal():
            return _number(str(node.this))
        case exp.HexString() if has_only(node, "this"):
            digits = str(node.this)
            return Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")), "binary")
        case exp.Neg() if has_only(node, "this"):
            return _negative(node.this)
        case exp.Paren() if has_only(node, "this"):
            return literal_of(node.this)
        case exp.Cast() if has_only(node, "this", "to", "safe") and not node.args.get("safe"):
            return _cast(literal_of(node.this), node.to)
        case _:
            return None


def _negative(node: exp.Expression) -> Literal | None:
    match node:
        case exp.Cast(this=exp.Literal(is_string=False) as digits) if _type_name(node.to).lower() in INTEGERS:
            type_ = _type_name(node.to).lower()
            fits = str(digits.this).isdigit() and int(str(digits.this)) <= 2 ** (INTEGERS[type_] - 1)
            return Literal(-int(str(digits.this)), type_) if fits else None
    match literal_of(node):
        case Literal(int(whole), type_) if type_ in INTEGERS:
            if whole == 2**31 and type_ == "bigint":  # the least int, without its sign
                return integer(-whole)
            return Literal(-whole, type_) if -whole < 2 ** (INTEGERS[type_] - 1) else None
        case Literal(Decimal() as number, "decimal"):
            is_least = number == 2**63 and number.as_tuple().exponent == 0  # the least bigint, without its sign
            return integer(-(2**63)) if is_least else Literal(number.copy_negate(), "decimal")
        case Literal(float(double), "double" | "float" as type_):
            return Literal(-double, type_)
        case _:
            return None


def _number(text: str) -> Literal | None:
    """Convert a number without suffix: with an exponent a double, with a point a decimal, else an integer."""
    if len(text) < 19 and text.isdecimal():
        return integer(int(text))
    if sum(c.isdigit() for c in text) > 38:
        return None  # exceeds Spark's widest decimal
    try:
        if "e" in text.lower():
            return Literal(float(text), "double")
        return Literal(Decimal(text), "decimal") if "." in text else integer(int(text))
    except (ValueError, ArithmeticError):
        return None


def _cast(inner: Literal | None, to: exp.DataType) -> Literal | None:
    """Convert a typed literal: ``DATE '...'``, ``1.5D``, ``5L``, ``1.5BD``, ``CAST('NaN' AS DOUBLE)``."""
    name = _type_name(to)
    match inner:
        case Literal(str(text), "string") if name in _TEMPORAL:
            return Literal(text, _TEMPORAL[name])
        case Literal(int(number)) if name.lower() in INTEGERS and not isinstance(number, bool):
            limit = 2 ** (INTEGERS[name.lower()] - 1)
            return Literal(number, name.lower()) if -limit <= number < limit else None
        case Literal(int() | Decimal() | float() | str() as number) if name in ("DOUBLE", "FLOAT"):
            return _floating(str(number).strip(), name)
        case Literal(str(text), "string") if name == "DECIMAL":
            return _decimal(text, [int(p.name) for p in to.expressions])
        case _:
            return None


def _type_name(to: exp.DataType) -> str:
    return str(to.this.name if hasattr(to.this, "name") else to.this).upper()


def _floating(text: str, name: str) -> Literal | None:
    try:
        value = float(text)
    except ValueError:
        return None
    with np.errstate(over="ignore"):  # beyond a float's range the value is infinite, as in Spark
        return Literal(float(np.float32(value)), "float") if name == "FLOAT" else Literal(value, "double")


def _decimal(text: str, parameters: list[int]) -> Literal | None:
    """Convert a ``BD`` literal, which sqlglot represents as a cast to the decimal type that holds it exactly."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    if len(parameters) != 2 or not value.is_finite():
        return None
    precision, scale = parameters
    _, digits, exponent = value.as_tuple()
    return Literal(value, "decimal") if -int(exponent) <= scale and len(digits) <= precision else None


def may_be_literal(node: exp.Expression) -> bool:
    """Return whether a node is a literal below parentheses, signs and casts, without converting these."""
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.RawString | exp.HexString)


def is_written(node: exp.Expression, literal: Literal) -> bool:
    """Return whether Spark reads a literal here, not a cast or a negation of one: beside a decimal, it sets the type.

    An int has no suffix, and the suffix of a decimal gives it exactly its digits.
    """
    match node:
        case exp.Paren():
            return is_written(node.this, literal)
        case exp.Neg():
            return not isinstance(node.this, exp.Paren | exp.Neg)
        case exp.Cast() if _type_name(node.to) == "DECIMAL":
            return isinstance(literal.value, Decimal) and tuple(int(p.name) for p in node.to.expressions) == size_of(
                literal.value
            )
        case exp.Cast():
            return _type_name(node.to) != "INT"
        case _:
            return True


def cast_type(to: exp.DataType) -> str | None:
    """Return the type of a cast if Spark has it under this name: TIME is none of its timestamps."""
    return None if _type_name(to) in ("TIME", "TIMETZ", "DATETIME") else str(to.sql(dialect="spark")).upper()
