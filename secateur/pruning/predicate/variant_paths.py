"""Paths into VARIANT: ``payload:user.id`` is ``variant_get(payload, '$.user.id')``, as in Spark."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from secateur.errors import InvalidPredicate

_COMPARING = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_calls(tree: exp.Condition) -> exp.Condition:
    """Replace paths by calls of ``variant_get``. Raises InvalidPredicate for a path or a comparison that Spark refuses.

    sqlglot takes a path for one into JSON text, which has another meaning.
    """
    if tree.find(exp.JSONExtract) is None:
        return tree
    for node in tree.find_all(exp.JSONExtract):
        _require_type(node)
    changed: Any = tree.transform(lambda node: _call(node) if isinstance(node, exp.JSONExtract) else node)
    return changed


def _require_type(node: exp.JSONExtract) -> None:
    operator = node.parent
    while isinstance(operator, exp.Paren):
        operator = operator.parent
    if isinstance(operator, _COMPARING):
        text = f"{node.this.sql('spark')}:{_path(node)[2:]}"
        raise InvalidPredicate(f"{text} is VARIANT, which does not compare: say its type, as in {text}::int")


def _call(node: exp.JSONExtract) -> exp.Expression:
    return exp.Anonymous(this="variant_get", expressions=[node.this, exp.Literal.string(_path(node))])


def _path(node: exp.JSONExtract) -> str:
    parts = node.expression.expressions if isinstance(node.expression, exp.JSONPath) else [None]
    return "$" + "".join(_step(part) for part in parts if not isinstance(part, exp.JSONPathRoot))


def _step(part: exp.Expression | None) -> str:
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
