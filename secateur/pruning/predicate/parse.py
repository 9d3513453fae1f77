"""Predicate text in Spark SQL to predicate nodes; `sqlglot` does the parsing.

What has no node becomes :class:`Opaque` text, which keeps every block. A syntax-tree node with an argument that
is not expected here (``negate`` of ``NOT LIKE``, say) counts as having no node: nothing is dropped on a guess.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.nodes import (
    And,
    Call,
    Column,
    Comparison,
    In,
    Is,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    Truth,
)

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED: dict[type[exp.Expression], str] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGER_WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEMPORAL = {
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}


def parse(text: str) -> Predicate:
    """The predicate that a Spark SQL expression says.

    Raises InvalidPredicate, with line and column, where the text is no single boolean expression.
    """
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except ParseError as error:
        raise InvalidPredicate(_explain(text, error)) from None
    except SqlglotError as error:
        raise InvalidPredicate(f"cannot read the predicate {text!r}: {error}") from None
    if not isinstance(tree, exp.Condition):
        raise InvalidPredicate(f"{text!r} is not one boolean expression: it reads as {type(tree).__name__.upper()}")
    return _predicate(tree)  # type: ignore[arg-type]


def _explain(text: str, error: ParseError) -> str:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    if line is None or column is None:
        return f"cannot parse the predicate {text!r}: {error}"
    marker = " " * max(0, column - len(str(detail.get("highlight") or " "))) + "^"
    source = text.splitlines()[line - 1] if text.splitlines() else text
    return (
        f"cannot parse the predicate at line {line}, column {column}: {detail['description']}\n  {source}\n  {marker}"
    )


def _predicate(node: exp.Expression) -> Predicate:
    match node:
        case exp.Paren() if _only(node, "this"):
            return _predicate(node.this)
        case exp.And() | exp.Or() if _only(node, "this", "expression"):
            return _connective(node)
        case exp.Not() if _only(node, "this"):
            return Not(_predicate(node.this))
        case exp.Boolean():
            return Truth(bool(node.this))
        case exp.Null():
            return Truth(None)
        case exp.Column() | exp.Dot():
            column = _column(node)
            return _opaque(node) if column is None else column.is_true
        case _:
            leaf = _leaf(node)
            return _opaque(node) if leaf is None else leaf


def _connective(node: exp.Expression) -> Predicate:
    """AND and OR as one node with all children: sqlglot nests them to the left."""
    kind, children = type(node), []
    while type(node) is kind and _only(node, "this", "expression"):
        children.append(_predicate(node.args["expression"]))
        node = node.this
    children.append(_predicate(node))
    return (And if kind is exp.And else Or)(tuple(reversed(children)))


def _leaf(node: exp.Expression) -> Predicate | None:
    match node:
        case exp.Is() if _only(node, "this", "expression"):
            return _is(node.this, node.expression)
        case exp.Anonymous() if str(node.this).lower() in ("isnull", "isnotnull") and len(node.expressions) == 1:
            null = _is(node.expressions[0], exp.Null())
            return null if str(node.this).lower() == "isnull" else Not(null)
        case exp.IsNan() if _only(node, "this"):
            operand = _operand(node.this)
            return Comparison("<=>", operand, Literal(math.nan, "double")) if operand else None
        case exp.StartsWith() | exp.EndsWith() | exp.Contains() if _only(node, "this", "expression"):
            return _substring(node)
        case exp.Between() if _only(node, "this", "low", "high"):
            operand, low, high = _operand(node.this), _literal(node.args["low"]), _literal(node.args["high"])
            if operand is None or low is None or high is None:
                return None
            return And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
        case exp.In() if _only(node, "this", "expressions"):
            operand, literals = _operand(node.this), [_literal(item) for item in node.expressions]
            known = tuple(item for item in literals if item is not None)
            return In(operand, known) if operand and known and len(known) == len(literals) else None
        case exp.Escape() if _only(node, "this", "expression") and isinstance(node.this, exp.Like):
            return _like(node.this, _literal(node.args["expression"]))
        case exp.Like():
            return _like(node, Literal("\\", "string"))
        case _ if type(node) in _COMPARISONS and _only(node, "this", "expression"):
            return _comparison(_COMPARISONS[type(node)], node)
        case _ if type(node) in _NEGATED and _only(node, "this", "expression"):
            comparison = _comparison(_NEGATED[type(node)], node)
            return None if comparison is None else Not(comparison)
        case _:
            return None


def _comparison(op: str, node: exp.Expression) -> Predicate | None:
    left, right = node.this, node.args["expression"]
    if (operand := _operand(left)) and (literal := _literal(right)):
        return Comparison(op, operand, literal)
    if (operand := _operand(right)) and (literal := _literal(left)):
        return Comparison(_FLIPPED[op], operand, literal)
    return None


def _is(node: exp.Expression, value: exp.Expression) -> Predicate:
    """``IS NULL`` of an operand, or ``IS TRUE``, ``IS FALSE``, ``IS UNKNOWN`` (NULL) of a predicate."""
    operand = _operand(node)
    match value:
        case exp.Null() if operand:
            return IsNull(operand)
        case exp.Null():
            return Is(_predicate(node), None)
        case exp.Boolean():
            return Is(_predicate(node), bool(value.this))
        case _:
            return _opaque(exp.Is(this=node, expression=value))


def _substring(node: exp.Expression) -> Predicate | None:
    """``startswith``, ``endswith`` and ``contains`` of a literal, as LIKE."""
    column, part = _column(node.this), _literal(node.args["expression"])
    if column is None or part is None or not isinstance(part.value, str):
        return None
    text = "".join("\\" + c if c in "%_\\" else c for c in part.value)
    before = "" if isinstance(node, exp.StartsWith) else "%"
    after = "" if isinstance(node, exp.EndsWith) else "%"
    return Like(column, before + text + after, "\\")


def _like(node: exp.Expression, escape: Literal | None) -> Predicate | None:
    if not _only(node, "this", "expression", "negate"):
        return None
    column, pattern = _column(node.this), _literal(node.args["expression"])
    match pattern, escape:
        case Literal(str(text), "string"), Literal(str(mark), "string") if column and len(mark) == 1:
            like = Like(column, text, mark)
            return Not(like) if node.args.get("negate") else like
        case _:
            return None


def _operand(node: exp.Expression | None) -> Operand | None:
    """A column, or functions of one that may be monotone; whether they are, binding knows by the types."""
    match node:
        case exp.Paren() if _only(node, "this"):
            return _operand(node.this)
        case exp.Cast() if _only(node, "this", "to") and _type_name(node.to) == "DATE":
            return _call("to_date", node.this)
        case exp.TsOrDsToDate() if _only(node, "this", "safe"):
            return _call("to_date", node.this)
        case exp.Year() if _only(node, "this"):
            return _call("year", node.this)
        case exp.TimestampTrunc() if _only(node, "this", "unit"):
            return _call("date_trunc", node.this, node.args["unit"].name.upper())
        case exp.DateTrunc() if _only(node, "this", "unit"):
            return _call("trunc", node.this, node.args["unit"].name.upper())
        case _:
            return _column(node)


def _call(function: str, argument: exp.Expression, parameter: str | None = None) -> Call | None:
    operand = _operand(argument)
    return Call(function, operand, parameter) if operand else None


def _column(node: exp.Expression | None) -> Column | None:
    match node:
        case exp.Paren() if _only(node, "this"):
            return _column(node.this)
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return Column(tuple(part.name for part in node.parts))
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            parent = _column(node.this)
            return Column((*parent.path, node.expression.name)) if parent else None
        case _:
            return None


def _literal(node: exp.Expression | None) -> Literal | None:
    match node:
        case exp.Null():
            return Literal(None, "null")
        case exp.Boolean():
            return Literal(bool(node.this), "boolean")
        case exp.Literal() if node.is_string:
            return Literal(str(node.this), "string")
        case exp.Literal():
            return _number(str(node.this))
        case exp.HexString() if _only(node, "this"):
            digits = str(node.this)
            return Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")), "binary")
        case exp.Neg() if _only(node, "this"):
            inner = _literal(node.this)
            match inner:
                case Literal(int() | float() | Decimal() as number, "int" | "decimal" | "double" | "float" as type_):
                    return Literal(number.copy_negate() if isinstance(number, Decimal) else -number, type_)
            return None
        case exp.Paren() if _only(node, "this"):
            return _literal(node.this)
        case exp.Cast() if _only(node, "this", "to", "safe"):
            return _cast(_literal(node.this), node.to)
        case _:
            return None


def _number(text: str) -> Literal | None:
    """A number without suffix: with an exponent a double, with a point a decimal, else an integer."""
    if sum(c.isdigit() for c in text) > 38:
        return None  # beyond Spark's widest decimal
    try:
        if "e" in text.lower():
            return Literal(float(text), "double")
        return Literal(Decimal(text), "decimal") if "." in text else Literal(int(text), "int")
    except (ValueError, ArithmeticError):
        return None


def _cast(inner: Literal | None, to: exp.DataType) -> Literal | None:
    """A typed literal: ``DATE '...'``, ``1.5D``, ``5L``, ``1.5BD``, ``CAST('NaN' AS DOUBLE)``."""
    name = _type_name(to)
    match inner:
        case Literal(str(text), "string") if name in _TEMPORAL:
            return Literal(text, _TEMPORAL[name])
        case Literal(int(number), "int") if name in _INTEGER_WIDTHS:
            limit = 2 ** (_INTEGER_WIDTHS[name] - 1)
            return Literal(number, "int") if -limit <= number < limit else None
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
    with np.errstate(over="ignore"):  # beyond a float's range is infinite, as in Spark
        return Literal(float(np.float32(value)), "float") if name == "FLOAT" else Literal(value, "double")


def _decimal(text: str, parameters: list[int]) -> Literal | None:
    """A ``BD`` literal, which sqlglot writes as a cast to the decimal type that holds it exactly."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    if len(parameters) != 2 or not value.is_finite():
        return None
    precision, scale = parameters
    _, digits, exponent = value.as_tuple()
    return Literal(value, "decimal") if -int(exponent) <= scale and len(digits) <= precision else None


def _opaque(node: exp.Expression) -> Opaque:
    """The text of an expression, with the columns it names (none where a lambda's names would be among them)."""
    has_lambda = node.find(exp.Lambda) is not None
    columns = [] if has_lambda else [_column(found) for found in node.find_all(exp.Column)]
    return Opaque(node.sql(dialect="spark"), tuple(column for column in columns if column is not None))


def _only(node: exp.Expression, *names: str) -> bool:
    """Whether a syntax-tree node has no arguments but these."""
    return all(name in names for name, value in node.args.items() if value not in (None, False, []))
