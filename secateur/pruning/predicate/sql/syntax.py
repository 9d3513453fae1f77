"""Expand shorthand syntax: operators that are functions, paths into VARIANT, tuples, and LIKE with many patterns.

Everything here maps one sqlglot syntax tree to another, or to a function's name and arguments.

sqlglot gives ``||`` and the bit operators one precedence, Spark several. They are accepted only if their operands
cannot be grouped differently.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from sqlglot import exp

from secateur.errors import InvalidPredicate

_ON_BITS: dict[type[exp.Expression], str] = {
    exp.DPipe: "concat",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_COMPARING = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = (exp.Paren, exp.Literal, exp.Column, exp.Anonymous, exp.Cast, exp.Boolean, exp.Null, exp.Case, exp.Trim)


def call_of(node: exp.Expression) -> tuple[str, list[exp.Expression]] | None:
    """Return the function that an operator or a keyword syntax stands for, and its arguments."""
    match node:
        case exp.IntDiv() if has_only(node, "this", "expression"):
            return "div", [node.this, node.expression]
        case exp.BitwiseNot() if has_only(node, "this"):
            return "~", [node.this]
        case _ if type(node) in _ON_BITS and has_only(node, "this", "expression", "safe"):
            arguments = [node.this, node.expression]
            return (_ON_BITS[type(node)], arguments) if _is_unambiguous(node) else None
        case exp.Concat() if has_only(node, "expressions"):
            return "concat", node.expressions
        case exp.Trim() if has_only(node, "this"):
            return "trim", [node.this]
        case exp.Initcap() if has_only(node, "this", "expression") and node.expression == exp.Literal.string(" "):
            return "initcap", [node.this]
        case exp.Bracket(this=exp.Anonymous() as split, expressions=[index]) if has_only(node, "this", "expressions"):
            is_split = str(split.this).lower() == "split" and has_only(split, "this", "expressions")
            return ("split_item", [*split.expressions, index]) if is_split else None
        case exp.StrPosition() if has_only(node, "this", "substr"):
            return "locate", [node.args["substr"], node.this]
        case _:
            return None


def field_of_json(node: exp.Dot) -> list[exp.Expression] | None:
    """Return the text, the schema and the names of ``from_json(text, schema).name``; None for anything else."""
    names: list[exp.Expression] = []
    below: Any = node
    while isinstance(below, exp.Dot) and isinstance(below.expression, exp.Identifier):
        names.insert(0, exp.Literal.string(below.expression.name))
        below = below.this
    match below:
        case exp.Anonymous(this=str(name), expressions=[text, exp.Literal() as schema]) if name.lower() == "from_json":
            return [text, schema, *names] if schema.is_string and has_only(below, "this", "expressions") else None
        case _:
            return None


def _is_unambiguous(node: exp.Expression) -> bool:
    """Return whether both operands are unambiguous; on the left of ``||`` another ``||`` is allowed."""
    left, right = node.this, node.expression
    while isinstance(node, exp.DPipe) and isinstance(left, exp.DPipe) and _is_whole(right):
        left, right = left.this, left.expression
    return _is_whole(left) and _is_whole(right)


def _is_whole(node: exp.Expression) -> bool:
    while isinstance(node, exp.Neg | exp.BitwiseNot):
        node = node.this
    return isinstance(node, _WHOLE)


def longhand(node: exp.Expression) -> exp.Expression | None:
    """Rewrite a condition without LIKE ANY, LIKE ALL and tuples; None if it has none of them."""
    match node:
        case exp.Like() | exp.ILike() if isinstance(node.expression, exp.Any | exp.All):
            return _any_like(node) if has_only(node, "this", "expression", "negate") else None
        case exp.EQ(this=exp.Tuple() as left, expression=exp.Tuple() as right):
            return _equal(left, right)
        case exp.NullSafeEQ(this=exp.Tuple() as left, expression=exp.Tuple() as right):
            return _equal(left, right)
        case exp.NEQ(this=exp.Tuple() as left, expression=exp.Tuple() as right):
            equal = _equal(left, right)
            return None if equal is None else exp.Not(this=exp.Paren(this=equal))
        case exp.In(this=exp.Tuple() as left) if has_only(node, "this", "expressions"):
            options = [_equal(left, item) if isinstance(item, exp.Tuple) else None for item in node.expressions]
            known = [option for option in options if option is not None]
            return reduce(_or, known) if known and len(known) == len(options) else None
        case _:
            return None


def _any_like(node: exp.Expression) -> exp.Expression | None:
    """Expand: ``s NOT LIKE ANY (a, b)`` is ``s NOT LIKE a OR s NOT LIKE b``, with the NULLs of both."""
    inside = node.expression.this
    patterns = inside.expressions if isinstance(inside, exp.Tuple) else [inside.unnest()]
    negated = {"negate": True} if node.args.get("negate") else {}
    tests = [type(node)(this=node.this.copy(), expression=pattern.copy(), **negated) for pattern in patterns]
    if not tests or node.find(exp.Query) is not None:
        return None
    return reduce(_or if isinstance(node.expression, exp.Any) else _and, tests)


def _equal(left: exp.Tuple, right: exp.Tuple) -> exp.Expression | None:
    """Compare tuples; the result is never NULL: a tuple is not NULL, and a NULL in one equals a NULL in the other."""
    pairs = list(zip(left.expressions, right.expressions, strict=False))
    if len(left.expressions) != len(right.expressions) or not pairs:
        return None
    equal: list[exp.Expression] = [exp.NullSafeEQ(this=a.copy(), expression=b.copy()) for a, b in pairs]
    return reduce(_and, equal)


def _and(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.And(this=left, expression=right)


def _or(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.Or(this=exp.Paren(this=left) if isinstance(left, exp.And) else left, expression=right)


def has_only(node: exp.Expression, *names: str) -> bool:
    """Return whether a syntax-tree node has no arguments except these."""
    return all(name in names for name, value in node.args.items() if value not in (None, False, []))


def with_variant_paths(tree: exp.Condition) -> exp.Condition:
    """Replace paths by calls of ``variant_get``. Raises InvalidPredicate for a path or a comparison that Spark refuses.

    sqlglot takes a path for one into JSON text, which has another meaning.
    """
    if tree.find(exp.JSONExtract) is None:
        return tree
    for node in tree.find_all(exp.JSONExtract):
        _require_type(node)
    changed: Any = tree.transform(lambda node: _variant_get(node) if isinstance(node, exp.JSONExtract) else node)
    return changed


def _require_type(node: exp.JSONExtract) -> None:
    operator = node.parent
    while isinstance(operator, exp.Paren):
        operator = operator.parent
    if isinstance(operator, _COMPARING):
        text = f"{node.this.sql('spark')}:{_variant_path(node)[2:]}"
        raise InvalidPredicate(f"{text} is VARIANT, which does not compare: say its type, as in {text}::int")


def _variant_get(node: exp.JSONExtract) -> exp.Expression:
    return exp.Anonymous(this="variant_get", expressions=[node.this, exp.Literal.string(_variant_path(node))])


def _variant_path(node: exp.JSONExtract) -> str:
    parts = node.expression.expressions if isinstance(node.expression, exp.JSONPath) else [None]
    return "$" + "".join(_path_step(part) for part in parts if not isinstance(part, exp.JSONPathRoot))


def _path_step(part: exp.Expression | None) -> str:
    match part:
        case exp.JSONPathKey(this=str(name)) if _PLAIN_NAME.fullmatch(name):
            return f".{name}"
        case exp.JSONPathKey(this=str(name)) if "'" not in name:
            return f"['{name}']"
        case exp.JSONPathSubscript(this=int(index)) if index >= 0:
            return f"[{index}]"
        case _:
            raise InvalidPredicate(
                "a path into VARIANT has names without quotes and whole numbers: payload:items[0].id"
            )
