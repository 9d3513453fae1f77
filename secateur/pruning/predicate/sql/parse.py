"""Parse predicates in Spark SQL to predicate nodes, using `sqlglot`.

Anything without a node becomes :class:`Opaque` text, which keeps every block. A syntax-tree node with an unexpected
argument (for example ``negate`` of ``NOT LIKE``) counts as having no node: nothing is dropped on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
import sqlglot
from sqlglot import Dialect as AnyDialect
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from secateur.errors import InvalidPredicate
from secateur.pruning.functions.types import size_of
from secateur.pruning.predicate.calls import build
from secateur.pruning.predicate.interval_literals import duration_between, duration_of, negative
from secateur.pruning.predicate.nodes import (
    INTEGERS,
    SYMBOLS,
    Among,
    And,
    Case,
    Cast,
    Column,
    Duration,
    Expression,
    ILike,
    In,
    Is,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    RLike,
    Truth,
    as_expression,
    as_predicate,
    children,
    compare,
    integer,
)
from secateur.pruning.predicate.recursion import room_for_recursion
from secateur.pruning.predicate.sql.syntax import call_of, has_only, longhand, with_variant_paths
from secateur.pruning.predicate.trees import preorder, rebuilt
from secateur.pruning.predicate.value_lists import compact

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED: dict[type[exp.Expression], str] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
_ARITHMETIC: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_TEMPORAL = {
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}
_OPENING = frozenset(  # tokens followed by an operand, not by an operator
    {
        *(TokenType.L_PAREN, TokenType.COMMA, TokenType.AND, TokenType.OR, TokenType.BETWEEN),
        *(TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ),
        *(TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
        *(TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    }
)
# Spark's aggregate functions, but for those that the parser reads as something else: any, some and every.
_AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or"),
        *("bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if"),
        *("covar_pop", "covar_samp", "first", "first_value", "kurtosis", "last", "last_value", "listagg", "max"),
        *("max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "regr_count"),
        *("skewness", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum"),
        *("var_pop", "var_samp", "variance"),
    }
)
_MISSING_OPERAND = re.compile("Required keyword: '(this|expression)' missing for ")
_INSTEAD = {"WHERE": "leave out WHERE: a predicate is what follows it", "&&": "write AND in place of &&"}
_UNIT_FUNCTIONS = {  # of 3 arguments, the first an unquoted unit of time
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff", "timediff"), "timestampdiff"),
}


Parsed = TypeVar("Parsed", Predicate, Expression)


class Dialect(Spark):
    """Spark SQL whose functions keep their names: :mod:`..calls` defines what they mean, not the parser."""

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

    def tokenize(self, sql: str, dialect: str | AnyDialect | type[AnyDialect] | None = None) -> list[Token]:
        """Tokenize text; ``between`` before a parenthesis is a name if no operand precedes it."""
        tokens: list[Token] = super().tokenize(sql, dialect)
        before = TokenType.L_PAREN  # the last token other than NOT
        for token, after in pairwise(tokens):
            if token.token_type is TokenType.BETWEEN and after.token_type is TokenType.L_PAREN and before in _OPENING:
                token.token_type = TokenType.VAR
            if token.token_type is not TokenType.NOT:
                before = token.token_type
        return tokens


def parse(text: str) -> Predicate:
    """Parse a Spark SQL expression to a predicate.

    Raises InvalidPredicate, with line and column, if the text is not a single boolean expression.
    """
    return _parsed(text, _read)


def parse_value(text: str) -> Expression:
    """Parse a Spark SQL expression of any type. Raises InvalidPredicate as :func:`parse`, or if it has no node."""
    return _parsed(text, _read_value)


def _parsed(text: str, read: Callable[[str], Parsed]) -> Parsed:
    try:
        with room_for_recursion():
            return read(text)
    except ParseError as error:
        raise InvalidPredicate(_explain(text, error)) from None
    except SqlglotError as error:
        raise InvalidPredicate(f"cannot read the predicate {text!r}: {error}") from None
    except RecursionError:
        raise InvalidPredicate(f"the predicate is nested too deeply: {text[:80]!r}...") from None


def _read_value(text: str) -> Expression:
    value = _expression(_tree(text))
    if value is None or _has_unread(value):
        raise InvalidPredicate(f"only Spark can evaluate {text!r}: no rule for this expression")
    return value


def _tree(text: str) -> exp.Expression:
    tree = sqlglot.parse_one(text, dialect=Dialect)
    if not isinstance(tree, exp.Condition):
        raise InvalidPredicate(f"{text!r} is not one boolean expression: it reads as {type(tree).__name__.upper()}")
    _require_condition_on_rows(tree)
    return with_variant_paths(tree)  # type: ignore[return-value]


def _read(text: str) -> Predicate:
    predicate = _predicate(_tree(text))
    if not _has_unread(predicate):
        return predicate
    return rebuilt(predicate, lambda part: _opaque(part.node) if isinstance(part, _Unread) else part)  # type: ignore[return-value]


def _has_unread(predicate: Predicate | Expression) -> bool:
    return any(isinstance(part, _Unread) for part in preorder(predicate, children))


def _require_condition_on_rows(tree: exp.Condition) -> None:
    """Raise InvalidPredicate for anything that Spark's WHERE refuses, and for parameters, which have no value here."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):  # a subquery has rows of its own
        match node:
            case exp.Placeholder() | exp.Parameter():
                what = "a parameter without a value: give it one by params="
            case exp.Window():
                what = "a window function: a predicate, as after WHERE, is about a single row"
            case exp.Anonymous(this=str(name)) if name.lower() in _AGGREGATES:
                what = "an aggregate: a predicate, as after WHERE, is about a single row"
            case exp.In() if not any(node.args.get(name) for name in node.args.keys() - {"this"}):
                what = "a list without values, which Spark's parser refuses; `col.isin([])` is FALSE on every row"
            case _:
                continue
        raise InvalidPredicate(f"{node.sql(Dialect)} is {what}")


def _explain(text: str, error: ParseError) -> str:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    if line is None or column is None:
        return f"cannot parse the predicate {text!r}: {error}"
    marker = " " * max(0, column - len(str(detail.get("highlight") or " "))) + "^"
    source = text.splitlines()[line - 1] if text.splitlines() else text
    missing = _MISSING_OPERAND.match(detail["description"])
    at_fault = str(detail.get("highlight")).upper()
    what = "an operand is missing" if missing else _INSTEAD.get(at_fault, detail["description"])
    return f"cannot parse the predicate at line {line}, column {column}: {what}\n  {source}\n  {marker}"


def _predicate(node: exp.Expression) -> Predicate:
    match node:
        case exp.Paren() if has_only(node, "this"):
            return _predicate(node.this)
        case exp.And() | exp.Or() if has_only(node, "this", "expression"):
            return _connective(node)
        case exp.Not() if has_only(node, "this"):
            return Not(_predicate(node.this))
        case exp.Boolean():
            return Truth(bool(node.this))
        case exp.Null():
            return Truth(None)
        case _:
            condition = _condition(node)
            node_or_value = _value(node) if condition is None else condition
            if node_or_value is None:
                return _Unread(node)
            return node_or_value if isinstance(node_or_value, Predicate) else as_predicate(node_or_value)


def _connective(node: exp.Expression) -> Predicate:
    """Convert AND and OR to one node with all children: sqlglot nests them to the left."""
    kind, children = type(node), []
    while type(node) is kind and has_only(node, "this", "expression"):
        children.append(_predicate(node.args["expression"]))
        node = node.this
    children.append(_predicate(node))
    return (And if kind is exp.And else Or)(tuple(reversed(children)))


def _condition(node: exp.Expression) -> Predicate | None:
    """Convert syntax that is a condition; None for other expressions and for what has no node."""
    if (plain := longhand(node)) is not None:
        return _predicate(plain)
    match node:
        case exp.Is() if has_only(node, "this", "expression"):
            return _is(node.this, node.expression)
        case exp.Between() if has_only(node, "this", "low", "high"):
            operand, low, high = (_expression(node.args[name]) for name in ("this", "low", "high"))
            if operand is None or low is None or high is None:
                return None
            return And((compare(operand, ">=", low), compare(operand, "<=", high)))
        case exp.In() if has_only(node, "this", "expressions"):
            return _in(_expression(node.this), node.expressions)
        case exp.Escape() if has_only(node, "this", "expression") and isinstance(node.this, exp.Like | exp.ILike):
            return _like(node.this, _literal(node.args["expression"]))
        case exp.Like() | exp.ILike():
            return _like(node, Literal("\\", "string"))
        case exp.RegexpLike() if has_only(node, "this", "expression"):
            operand, pattern = _expression(node.this), _literal(node.args["expression"])
            if pattern is None and (call := _call("rlike", node.this, node.args["expression"])) is not None:
                return call if isinstance(call, Predicate) else as_predicate(call)
            return RLike(operand, pattern.value) if operand and pattern and isinstance(pattern.value, str) else None
        case _ if type(node) in _COMPARISONS and has_only(node, "this", "expression"):
            return _comparison(_COMPARISONS[type(node)], node)
        case _ if type(node) in _NEGATED and has_only(node, "this", "expression"):
            comparison = _comparison(_NEGATED[type(node)], node)
            return None if comparison is None else Not(comparison)
        case _:
            return None


def _in(operand: Expression | None, items: list[exp.Expression]) -> Predicate | None:
    """Convert IN with literals or other values."""
    if operand is None or not items:
        return None
    literals = [_literal(item) for item in items]
    if not isinstance(operand, Literal) and all(literals):
        return In(operand, compact(tuple(literal for literal in literals if literal is not None)))
    options = [_expression(item) for item in items]
    known = tuple(option for option in options if option is not None)
    return Among(operand, known) if len(known) == len(options) else None


def _comparison(op: str, node: exp.Expression) -> Predicate | None:
    left, right = _expression(node.this), _expression(node.args["expression"])
    return None if left is None or right is None else compare(left, op, right)


def _is(node: exp.Expression, value: exp.Expression) -> Predicate:
    """Parse ``IS NULL`` of a value, or ``IS TRUE``, ``IS FALSE``, ``IS UNKNOWN`` (NULL) of a condition."""
    match value:
        case exp.Null():
            if _is_condition(node):
                return Is(_predicate(node), None)
            operand = _expression(node)
            return Is(_Unread(_inside(node)), None) if operand is None else IsNull(operand)
        case exp.Boolean():
            return Is(_predicate(node), bool(value.this))
        case _:
            return _Unread(exp.Is(this=node, expression=value))


def _is_condition(node: exp.Expression) -> bool:
    return isinstance(node.unnest(), exp.And | exp.Or | exp.Not | exp.Predicate)


def _like(node: exp.Expression, escape: Literal | None) -> Predicate | None:
    if not has_only(node, "this", "expression", "negate"):
        return None
    operand, pattern = _expression(node.this), _literal(node.args["expression"])
    match pattern, escape:
        case Literal(str(text), "string"), Literal(str(mark), "string") if operand and len(mark) == 1:
            like = (Like if isinstance(node, exp.Like) else ILike)(operand, text, mark)
            return Not(like) if node.args.get("negate") else like
        case None, Literal("\\", "string") if not isinstance(
            node.expression, exp.Any | exp.All
        ):  # maybe of a constant that is not a literal
            call = _call(type(node).__name__.lower(), node.this, node.args["expression"])
            condition = as_predicate(call) if call is not None and not isinstance(call, Predicate) else call
            return Not(condition) if condition is not None and node.args.get("negate") else condition
        case _:
            return None


def _expression(node: exp.Expression | None) -> Expression | None:
    """Convert a value of a row; None for what has no node."""
    if node is None:
        return None
    if _is_condition(node):
        return as_expression(_predicate(node))
    value = _value(node.unnest())  # type: ignore[arg-type]
    return as_expression(value) if isinstance(value, Predicate) else value


def _value(node: exp.Expression) -> Expression | Predicate | None:
    literal = _literal(node) if _may_be_literal(node) else None
    if literal is not None and _is_written(node, literal):
        return literal
    match node:
        case exp.Cast() if literal is not None and (type_ := _type(node.to)) is not None:
            return Cast(literal, type_)
        case exp.Column() | exp.Dot():
            return column_of(node)
        case exp.Bracket() if (column := column_of(node)) is not None:
            return column
        case exp.Neg() if has_only(node, "this"):
            return _call("negative", node.this)
        case _ if type(node) in _ARITHMETIC and has_only(node, "this", "expression", "typed", "safe"):
            return _call(_ARITHMETIC[type(node)], node.this, node.args["expression"])
        case exp.Cast() if has_only(node, "this", "to", "safe"):
            operand, type_ = _expression(node.this), _type(node.to)
            return None if operand is None or type_ is None else Cast(operand, type_, bool(node.args.get("safe")))
        case exp.If() if has_only(node, "this", "true", "false"):
            return _case([node], node.args.get("false"))
        case exp.Case() if has_only(node, "this", "ifs", "default"):
            return _case(node.args["ifs"], node.args.get("default"), node.args.get("this"))
        case exp.Substring() if has_only(node, "this", "start", "length"):
            return _call("substring", *(node.args[name] for name in ("this", "start", "length") if node.args.get(name)))
        case exp.Ceil() | exp.Floor() if has_only(node, "this"):
            return _call(type(node).__name__.lower(), node.this)
        case exp.Extract() if has_only(node, "this", "expression") and isinstance(node.this, exp.Var):
            return _call("extract", exp.Literal.string(node.this.name), node.expression)
        case exp.Interval(this=exp.Literal() | exp.Neg(this=exp.Literal()) as amount, unit=exp.Expression() as unit):
            return _duration(amount, unit)
        case exp.CurrentDate() | exp.CurrentTimestamp() if has_only(node):
            return build("current_date" if isinstance(node, exp.CurrentDate) else "current_timestamp", ())
        case exp.Anonymous() if has_only(node, "this", "expressions") and _takes_unit(node):
            return _of_unit(_UNIT_FUNCTIONS[str(node.this).lower()], *node.expressions)
        case exp.Anonymous() if has_only(node, "this", "expressions"):
            return _call(str(node.this), *node.expressions)
        case _ if (call := call_of(node)) is not None:
            name, arguments = call
            return _call(name, *arguments)
        case _:
            return None


def _may_be_literal(node: exp.Expression) -> bool:
    """Return whether a node is a literal below parentheses, signs and casts, without converting these."""
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.RawString | exp.HexString)


def _is_written(node: exp.Expression, literal: Literal) -> bool:
    """Return whether Spark reads a literal here, not a cast or a negation of one: beside a decimal, it sets the type.

    An int has no suffix, and the suffix of a decimal gives it exactly its digits.
    """
    match node:
        case exp.Paren():
            return _is_written(node.this, literal)
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


def _call(name: str, *arguments: exp.Expression) -> Expression | Predicate | None:
    values = [_expression(argument) for argument in arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or (not name.isidentifier() and name not in SYMBOLS):
        return None
    return build(name, known)


def _of_unit(name: str, unit: exp.Expression, *arguments: exp.Expression) -> Expression | Predicate | None:
    """Convert a function whose first argument is the name of a unit of time; Spark refuses a quoted one."""
    if not isinstance(unit, exp.Column) or len(unit.parts) != 1:
        return None
    return _call(name, exp.Literal.string(unit.name.upper()), *arguments)


def _case(
    branches: list[exp.Expression], default: exp.Expression | None, subject: exp.Expression | None = None
) -> Expression | None:
    """Convert CASE with conditions, or with values that a `subject` is compared with."""
    whens: list[tuple[Predicate, Expression]] = []
    compared = _expression(subject)
    for branch in branches:
        then = _expression(branch.args["true"])
        if then is None:
            return None
        whens.append((_when(branch.this, subject, compared), then))
    otherwise = Literal(None, "null") if default is None else _expression(default)
    return None if otherwise is None else Case(tuple(whens), otherwise)


def _when(when: exp.Expression, subject: exp.Expression | None, compared: Expression | None) -> Predicate:
    """Convert a condition of CASE, or its comparison with a subject, `compared`."""
    if subject is None:
        return _predicate(when)
    value = None if compared is None else _expression(when)
    if compared is None or value is None:
        return _Unread(exp.EQ(this=subject.copy(), expression=when.copy()))
    return compare(compared, "=", value)


def _duration(amount: exp.Expression, unit: exp.Expression) -> Duration | None:
    text = str(amount.this.this if isinstance(amount, exp.Neg) else amount.this)
    match unit:
        case exp.Var():
            duration = duration_of(text, unit.name.upper())
        case exp.IntervalSpan(this=exp.Var() as first, expression=exp.Var() as last):
            duration = duration_between(text, first.name.upper(), last.name.upper())
        case _:
            return None
    return negative(duration) if duration and isinstance(amount, exp.Neg) else duration


def _type(to: exp.DataType) -> str | None:
    """Return the type of a cast if Spark has it under this name: TIME is none of its timestamps."""
    return None if _type_name(to) in ("TIME", "TIMETZ", "DATETIME") else str(to.sql(dialect="spark")).upper()


def column_of(node: exp.Expression | None) -> Column | None:
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


def _literal(node: exp.Expression | None) -> Literal | None:
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
            return _literal(node.this)
        case exp.Cast() if has_only(node, "this", "to", "safe") and not node.args.get("safe"):
            return _cast(_literal(node.this), node.to)
        case _:
            return None


def _negative(node: exp.Expression) -> Literal | None:
    match node:
        case exp.Cast(this=exp.Literal(is_string=False) as digits) if _type_name(node.to).lower() in INTEGERS:
            type_ = _type_name(node.to).lower()
            fits = str(digits.this).isdigit() and int(str(digits.this)) <= 2 ** (INTEGERS[type_] - 1)
            return Literal(-int(str(digits.this)), type_) if fits else None
    match _literal(node):
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


def _inside(node: exp.Expression) -> exp.Expression:
    """Return what stands inside of parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


@dataclass(frozen=True, eq=False, repr=False)
class _Unread(Predicate):
    """A part of the syntax tree without a node of its own, as long as it is not known to stay in the predicate.

    Most such parts lie within another one. Printing each of them would take time quadratic in the depth.
    """

    node: exp.Expression

    def sql_parts(self) -> Iterable[object]:
        return _opaque(self.node).sql_parts()


def _opaque(node: exp.Expression) -> Opaque:
    """Keep an expression as text with its column names (none if a lambda's names could be among them)."""
    has_lambda = node.find(exp.Lambda) is not None
    named = [node_of_column for node_of_column in node.find_all(exp.Column) if not _is_unit(node_of_column)]
    columns = [] if has_lambda else [column_of(node_of_column) for node_of_column in named]
    return Opaque(node.sql(dialect="spark"), tuple(column for column in columns if column is not None))


def _is_unit(column: exp.Column) -> bool:
    """Return whether a name is a unit of time, as MONTH in ``timestampadd(MONTH, 1, d)``."""
    call = column.parent
    return isinstance(call, exp.Anonymous) and _takes_unit(call) and call.expressions[0] is column


def _takes_unit(call: exp.Anonymous) -> bool:
    return str(call.this).lower() in _UNIT_FUNCTIONS and len(call.expressions) == 3
