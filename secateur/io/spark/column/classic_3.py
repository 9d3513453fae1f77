"""Read the columns of Spark Classic 3.5, which are Catalyst's own expressions, through py4j.

A node does not have the name of its function. A name is guessed from its class, and accepted if Spark's registry of
functions makes an equal node of this name and these arguments. So the SQL has the meaning of the column: a node that
holds more than its arguments, an evaluation mode for example, is equal only if that is the same too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.utils import get_active_spark_context

from secateur.io.spark.column.classic import items, resolved_path, value_of_literal
from secateur.io.spark.column.shapes import (
    CaseShape,
    Casted,
    FunctionShape,
    Item,
    Name,
    Node,
    Renamed,
    Shape,
    refuse,
)
from secateur.io.spark.to_spark import is_active_ansi
from secateur.pruning.predicate.cast_types import sql_type

_CATALYST = "org.apache.spark.sql.catalyst."
_SYMBOLS = {
    **{"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%", "UnaryMinus": "negative"},
    **{"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~"},
    **{"EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<="},
    **{"GreaterThan": ">", "GreaterThanOrEqual": ">="},
}
# Of these the registry asks the types of the arguments, which are not known yet. They have nothing but arguments.
_UNCHECKED = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_ESCAPE = "\\"  # of LIKE without ESCAPE
_SAID = {
    "AggregateExpression": "an aggregate function",
    "Exists": "a subquery",
    "InSubquery": "a subquery",
    "LambdaFunction": "a function with a lambda",
    "PythonUDF": "a Python function (a UDF)",
    "ScalarSubquery": "a subquery",
    "ScalaUDF": "a function that is not SQL's own (a UDF)",
    "SortOrder": "a sort order",
    "UnresolvedStar": "a star",
    "WindowExpression": "a window",
}


def reader() -> Callable[[Node], Shape]:
    """Return a function from a node to its shape."""
    return partial(_shape, get_active_spark_context())


def root(column: Any) -> Node:
    """Return the node at the root of a column."""
    return column._jc.expr()


def _shape(context: Any, node: Node) -> Shape:
    kind = node.productPrefix()
    match kind:
        case "Literal":
            return value_of_literal(node)
        case "UnresolvedAttribute":
            return Name(tuple(map(str, items(node.nameParts()))))
        case "UnresolvedFunction":
            return _named(node)
        case "Alias":
            path = resolved_path(node)
            return Name(path) if path else Renamed(node.child())
        case "AttributeReference" | "GetStructField":
            return _column(node)
        case "Cast":
            return Casted(node.child(), sql_type(node.dataType().simpleString()), _is_safe(node.evalMode().toString()))
        case "CaseWhen":
            branches = [(branch._1(), branch._2()) for branch in items(node.branches())]
            return CaseShape(branches, node.elseValue().get() if node.elseValue().isDefined() else None)
        case "UnresolvedExtractValue":
            return Item(node.child(), node.extraction())
        case "In":
            return FunctionShape("in", [node.value(), *items(node.list())])
        case _ if kind in _SAID:
            raise refuse(_SAID[kind])
        case _:
            return _function(context, node, kind)


def _named(node: Node) -> Shape:
    """Return the shape of a function that is given by its name: ``F.expr`` and ``F.call_function``."""
    name = ".".join(map(str, items(node.nameParts())))
    if node.isDistinct() or node.filter().isDefined() or node.ignoreNulls():
        raise refuse(f"the function {name!r} with a clause")
    return FunctionShape(name, list(items(node.arguments())))


def _column(node: Node) -> Shape:
    path = resolved_path(node)
    if not path:
        raise refuse(f"a column with a part of kind {node.productPrefix()}")
    return Name(path)


def _function(context: Any, node: Node, kind: str) -> Shape:
    if kind in ("Like", "ILike"):
        escape = str(node.escapeChar())
        escaped = [] if escape == _ESCAPE else [context._jvm.functions.lit(escape).expr()]
        return FunctionShape(kind.lower(), [node.left(), node.right(), *escaped])
    if kind in _UNCHECKED:
        return FunctionShape(_UNCHECKED[kind], list(items(node.children())))
    replaced = is_instance_of(context._gateway, node, f"{_CATALYST}expressions.InheritAnalysisRules")
    arguments = list(items(node.parameters() if replaced else node.children()))
    name = _SYMBOLS.get(kind) or str(node.prettyName()).lower()
    if not _is(context, node, name, arguments):
        raise refuse(f"a column with a part of kind {kind}")
    return FunctionShape(name, arguments)


def _is(context: Any, node: Node, name: str, arguments: Sequence[Node]) -> bool:
    """Return whether a function with these arguments is a node."""
    jvm = context._jvm
    registry = getattr(getattr(jvm, f"{_CATALYST}analysis.FunctionRegistry$"), "MODULE$").builtin()
    identifier = getattr(jvm, f"{_CATALYST}FunctionIdentifier")(name)
    try:
        return bool(registry.lookupFunction(identifier, jvm.PythonUtils.toSeq(list(arguments))).equals(node))
    except (Py4JError, PySparkException):  # no such function, or not with these arguments
        return False


def _is_safe(mode: str) -> bool:
    """Return whether a cast is TRY_CAST. A cast in another mode than the session's cannot be written as SQL."""
    if mode not in ("TRY", "ANSI" if is_active_ansi() else "LEGACY"):
        raise refuse(f"a cast of the mode {mode}")
    return mode == "TRY"
