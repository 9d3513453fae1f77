"""Read the nodes of a Spark Classic column, which are Java objects, through py4j."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql.utils import get_active_spark_context

from secateur.io.spark.column.shapes import (
    CaseShape,
    Casted,
    FunctionShape,
    Item,
    Name,
    Node,
    Renamed,
    Shape,
    Text,
    Value,
    refuse,
    value_of,
)
from secateur.pruning.predicate.cast_types import sql_type

_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$"


def reader() -> Callable[[Node], Shape]:
    """Return a function from a node to its shape; needs the running Spark, which has the types of literals."""
    converter = getattr(getattr(get_active_spark_context()._jvm, _CONVERTER), "MODULE$")

    def shape_of(node: Node) -> Shape:
        kind = node.productPrefix()  # the name of its class
        return value_of_literal(converter.apply(node)) if kind == "Literal" else _shape(node, kind)

    return shape_of


def root(column: Any) -> Node:
    """Return the node at the root of a column."""
    return column._jc.node()


def _shape(node: Node, kind: str) -> Shape:
    match kind:
        case "UnresolvedAttribute" if not node.isMetadataColumn():
            return Name(tuple(map(str, items(node.nameParts()))))
        case "UnresolvedFunction" if not node.isDistinct() and not node.isInternal():
            return FunctionShape(str(node.functionName()), list(items(node.arguments())))
        case "UnresolvedFunction":
            raise refuse(f"the function {node.functionName()!r}, which SQL does not have")
        case "Alias":
            return Renamed(node.child())
        case "Cast":
            return Casted(node.child(), sql_type(node.dataType().simpleString()), _is_safe(node.evalMode()))
        case "CaseWhenOtherwise":
            branches = [(branch._1(), branch._2()) for branch in items(node.branches())]
            return CaseShape(branches, node.otherwise().get() if node.otherwise().isDefined() else None)
        case "UnresolvedExtractValue":
            return Item(node.child(), node.extraction())
        case "SqlExpression":
            return Text(str(node.expression()))
        case "ExpressionColumnNode":
            return _resolved(node.expression())
        case "LazyExpression":
            return Renamed(node.child())
        case _ if kind in _SAID:
            raise refuse(_SAID[kind])
        case _:
            raise refuse(f"a column with a part of kind {kind}")


_SAID = {
    "InvokeInlineUserDefinedFunction": "a function that is not SQL's own (a UDF)",
    "LambdaFunction": "a function with a lambda",
    "PythonUDF": "a Python function (a UDF)",
    "SortOrder": "a sort order",
    "SubqueryExpression": "a subquery",
    "UnresolvedStar": "a star",
    "Window": "a window",
}


def _resolved(expression: Any) -> Shape:
    """Return the shape of an expression that Spark has resolved: ``frame.a``, ``frame["address.zip"]``."""
    path = resolved_path(expression)
    if path:
        return Name(path)
    kind = expression.productPrefix()
    raise refuse(_SAID.get(kind, f"a column with a part of kind {kind}"))


def resolved_path(expression: Any) -> tuple[str, ...]:
    """Return the path of a column or field that Spark has resolved; empty for other expressions."""
    match expression.productPrefix():
        case "AttributeReference":
            return (str(expression.name()),)
        case "Alias":
            return resolved_path(expression.child())
        case "GetStructField":
            parent = resolved_path(expression.child())
            return (*parent, str(expression.extractFieldName())) if parent else ()
        case _:
            return ()


def value_of_literal(literal: Any) -> Value:
    """Return a literal as Spark resolves it. Composite values (an array) are not literals."""
    if literal.productPrefix() != "Literal":
        raise refuse(f"the literal {literal.toString()}")
    value = literal.value()
    return value_of(
        value.toString() if isinstance(value, JavaObject) else value, str(literal.dataType().simpleString())
    )


def _is_safe(mode: Any) -> bool:
    """Return whether a cast is TRY_CAST. A cast in another mode than the session's cannot be written as SQL."""
    if not mode.isDefined():
        return False
    name = mode.get().getClass().getSimpleName()
    if name != "Try$":
        raise refuse(f"a cast of the mode {name.rstrip('$')}")
    return True


def items(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    for i in range(sequence.size()):
        yield sequence.apply(i)
