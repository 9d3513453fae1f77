"""Parse predicates in Spark SQL to predicate nodes, using `sqlglot`.

Anything without a node becomes :class:`Opaque` text, which keeps every block. A syntax-tree node with an unexpected
argument (for example ``negate`` of ``NOT LIKE``) counts as having no node: nothing is dropped on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.calls import build
from secateur.pruning.predicate.constructors import as_expression, as_predicate, compare
from secateur.pruning.predicate.interval_literals import duration_between, duration_of, negative
from secateur.pruning.predicate.node_walks import children
from secateur.pruning.predicate.nodes import (
    SYMBOLS,
    Among,
    And,
    Case,
    Cast,
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
)
from secateur.pruning.predicate.recursion import room_for_recursion
from secateur.pruning.predicate.sql.dialect import explain_error, tree_of
from secateur.pruning.predicate.sql.leaves import cast_type, column_of, is_written, literal_of, may_be_literal
from secateur.pruning.predicate.sql.syntax import call_of, field_of_json, has_only, longhand
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
_UNCLOSED = re.compile(r"Missing (\S+) from ")  # of sqlglot, before the place
_UNIT_FUNCTIONS = {  # of 3 arguments, the first an unquoted unit of time
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff", "timediff"), "timestampdiff"),
}


Parsed = TypeVar("Parsed", Predicate, Expression)


def parse(text: str) -> Predicate:
    """Parse a Spark SQL expression to a predicate.

    Raises InvalidPredicate, with line and column, if the text is not a single boolean expression.
    """
    if not text.strip():
        raise InvalidPredicate("the predicate is empty: write true for all rows")
    return _parsed(text, _read)


def parse_value(text: str) -> Expression:
    """Parse a Spark SQL expression of any type. Raises InvalidPredicate as :func:`parse`, or if it has no node."""
    return _parsed(text, _read_value)


def _parsed(text: str, read: Callable[[str], Parsed]) -> Parsed:
    try:
        with room_for_recursion():
            return read(text)
    except ParseError as error:
        raise InvalidPredicate(explain_error(text, error)) from None
    except SqlglotError as error:
        unclosed = _UNCLOSED.match(str(error.__cause__))
        reason = f"{unclosed[1]} is not closed" if unclosed else str(error)
        raise InvalidPredicate(f"cannot read the predicate {text!r}: {reason}") from None
    except RecursionError:
        raise InvalidPredicate(f"the predicate is nested too deeply: {text[:80]!r}...") from None


def _read_value(text: str) -> Expression:
    value = _expression(tree_of(text))
    if value is None or _has_unread(value):
        raise InvalidPredicate(f"only Spark can evaluate {text!r}: no rule for this expression")
    return value


def _read(text: str) -> Predicate:
    predicate = _predicate(tree_of(text))
    if not _has_unread(predicate):
        return predicate
    return rebuilt(predicate, lambda part: _opaque(part.node) if isinstance(part, _Unread) else part)  # type: ignore[return-value]


def _has_unread(predicate: Predicate | Expression) -> bool:
    return any(isinstance(part, _Unread) for part in preorder(predicate, children))


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
            return _like(node.this, literal_of(node.args["expression"]))
        case exp.Like() | exp.ILike():
            return _like(node, Literal("\\", "string"))
        case exp.RegexpLike() if has_only(node, "this", "expression"):
            operand, pattern = _expression(node.this), literal_of(node.args["expression"])
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
    literals = [literal_of(item) for item in items]
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
    operand, pattern = _expression(node.this), literal_of(node.args["expression"])
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
    literal = literal_of(node) if may_be_literal(node) else None
    if literal is not None and is_written(node, literal):
        return literal
    match node:
        case exp.Cast() if literal is not None and (type_ := cast_type(node.to)) is not None:
            return Cast(literal, type_)
        case exp.Dot() if (field := field_of_json(node)) is not None:
            return _call("from_json_field", *field)
        case exp.Column() | exp.Dot():
            return column_of(node)
        case exp.Bracket() if (column := column_of(node)) is not None:
            return column
        case exp.Neg() if has_only(node, "this"):
            return _call("negative", node.this)
        case _ if type(node) in _ARITHMETIC and has_only(node, "this", "expression", "typed", "safe"):
            return _call(_ARITHMETIC[type(node)], node.this, node.args["expression"])
        case exp.Cast() if has_only(node, "this", "to", "safe"):
            operand, type_ = _expression(node.this), cast_type(node.to)
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
