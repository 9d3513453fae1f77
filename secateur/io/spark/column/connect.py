"""Read the nodes of a Spark Connect column, which are Python objects.

They are recognised by class name: importing the classes would require gRPC, which only Connect needs.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

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
from secateur.io.spark.version import IS_3
from secateur.pruning.functions.types import size_of
from secateur.pruning.predicate.cast_types import sql_type
from secateur.pruning.predicate.expressions import split_name

_SAID = {
    "CommonInlineUserDefinedFunction": "a Python function (a UDF)",
    "LambdaFunction": "a function with a lambda",
    "SortOrder": "a sort order",
    "SubqueryExpression": "a subquery",
    "UnresolvedStar": "a star",
    "WindowExpression": "a window",
}


def is_column(column: Any) -> bool:
    """Return whether a column belongs to Connect."""
    return type(column).__module__.startswith("pyspark.sql.connect.")


def root(column: Any) -> Node:
    """Return the node at the root of a column."""
    return column._expr


def shape_of(node: Node) -> Shape:
    """Return the shape of a node. Raises InvalidPredicate if SQL text cannot express it."""
    match type(node).__name__:
        case "ColumnReference" if not getattr(node, "_is_metadata_column", False):
            return Name(split_name(node._unparsed_identifier))
        case "LiteralExpression":
            return _value(node)
        case "UnresolvedFunction" if not node._is_distinct:
            return FunctionShape(node._name, node._args)
        case "CallFunction":
            return FunctionShape(node._name, node._args)
        case "ColumnAlias":
            return Renamed(node._parent if IS_3 else node.children[0])
        case "CastExpression":
            return Casted(node._expr, _type(node._data_type), _is_safe(getattr(node, "_eval_mode", None)))
        case "CaseWhen":
            return CaseShape(node._branches, node._else_value)
        case "UnresolvedExtractValue":
            return Item(node._child, node._extraction)
        case "SQLExpression":
            return Text(node._expr)
        case kind:
            raise refuse(_SAID.get(kind, f"a column with a part of kind {kind}"))


def _value(node: Any) -> Value:
    """Return a literal. Spark widens a decimal's declared type, by default decimal(10,0), until it holds the value."""
    value = value_of(node._value, str(node._dataType.simpleString()))
    if not isinstance(value.literal.value, Decimal):
        return value
    precision, scale = size_of(value.literal.value)
    scale = max(scale, node._dataType.scale)
    return Value(value.literal, f"decimal({max(precision, node._dataType.precision, scale)},{scale})")


def _type(declared: Any) -> str:
    return sql_type(declared if isinstance(declared, str) else declared.simpleString())


def _is_safe(mode: str | None) -> bool:
    if mode not in (None, "try"):
        raise refuse(f"a cast of the mode {mode}")
    return mode == "try"
