"""PySpark columns as predicate text: ``F.col("a") + 1 > 5`` is ``(`a` + 1) > 5``, on Spark Classic and on Connect.

A Column is a tree, and each node is written as the SQL with the same meaning in Spark. So a Column and its SQL give the
same tree and the same answer. A node without such SQL (a Python function, a window, a sort order) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql.column import Column

from secateur.errors import InvalidPredicate
from secateur.io.spark.column import classic, classic_3, connect
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
)
from secateur.io.spark.to_spark import is_active_ansi
from secateur.io.spark.version import IS_3
from secateur.pruning.functions.types import size_of
from secateur.pruning.predicate.nodes import Literal, quoted_name
from secateur.pruning.predicate.sql.parse import parse

__all__ = ["Column", "sql_of"]

of_classic = classic_3 if IS_3 else classic

_INFIX = {
    **{op: op for op in ("+", "-", "*", "/", "%", "=", "<=>", "<", "<=", ">", ">=", "&", "|", "^")},
    **{"==": "=", "!=": "!=", "<>": "!=", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"},
}
_PREFIX = {"negative": "-", "~": "~", "not": "NOT", "!": "NOT"}
_SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_COMPARISONS = {"=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>"}
_RENAMED = {"extract": "date_part"}  # EXTRACT has syntax of its own
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARED = re.compile(r"decimal\((\d+),(\d+)\)")


def sql_of(column: Column) -> str:
    """Return predicate text with the meaning of a column.

    Raises InvalidPredicate, naming the part that has no SQL.
    """
    try:
        if connect.is_column(column):
            return _Writer(connect.shape_of).statement(connect.root(column))
        return _Writer(of_classic.reader()).statement(of_classic.root(column))
    except RecursionError:
        raise InvalidPredicate("the column is nested too deeply: join its conditions in one row of & or |") from None


@dataclass(frozen=True)
class _Writer:
    """Writes nodes as SQL; `shape` returns their shapes.

    Every text comes with a flag: whether it needs parentheses inside another.
    """

    shape: Callable[[Node], Shape]

    def statement(self, node: Node) -> str:
        return self._bare(self.shape(node))[0]

    def _text(self, node: Node) -> str:
        return self._enclosed(self.shape(node))

    def _enclosed(self, shape: Shape) -> str:
        sql, compound = self._bare(shape)
        return f"({sql})" if compound else sql

    def _bare(self, shape: Shape) -> tuple[str, bool]:
        match shape:
            case Name(path):
                return _dotted(path), False
            case Value(literal):
                return str(literal), False
            case FunctionShape(name, arguments):
                return self._function(name, name.lower(), arguments)
            case Casted(child, type_, safe):
                return f"{'TRY_CAST' if safe else 'CAST'}({self.statement(child)} AS {type_})", False
            case CaseShape(branches, otherwise):
                return self._choice(branches, otherwise), False
            case Item(child, key):
                path = self._path(shape)
                return _dotted(path) if path else f"{self._text(child)}[{self.statement(key)}]", False
            case Text(sql):
                parse(sql)  # must be one complete expression, so it cannot escape its parentheses
                return (sql + "\n" if "--" in sql else sql), True
            case Renamed(child):
                return self._bare(self.shape(child))

    def _function(self, name: str, lower: str, arguments: Sequence[Node]) -> tuple[str, bool]:
        match lower, arguments:
            case (("and" | "or"), (_, _)):
                return f" {lower.upper()} ".join(self._row(lower, arguments)), True
            case _, (left, right) if lower in _COMPARISONS:
                return f"{self._text(left)} {_INFIX[lower]} {self._text(right)}", True
            case _, (left, right) if lower in _INFIX:
                return f"{self._operand(left)} {_INFIX[lower]} {self._operand(right)}", True
            case _, (operand,) if lower in _PREFIX:
                return f"{_PREFIX[lower]} {self._operand(operand)}", True
            case _, (operand,) if lower in _SUFFIX:
                return f"{self._text(operand)} {_SUFFIX[lower]}", True
            case "in", (operand,):  # empty IN: FALSE, which without ANSI is NULL on NULL
                return ("FALSE", False) if is_active_ansi() else (f"{self._text(operand)} IS NULL AND NULL", True)
            case "in", (operand, *items):
                return f"{self._text(operand)} IN ({', '.join(self._text(item) for item in items)})", True
            case (("like" | "ilike"), (operand, pattern, escape)):
                return f"{self._text(operand)} {_INFIX[lower]} {self._text(pattern)} ESCAPE {self._text(escape)}", True
            case _ if _PLAIN_NAME.fullmatch(name):
                return f"{_RENAMED.get(lower, name)}({', '.join(map(self._operand, arguments))})", False
            case _:
                raise refuse(f"the function {name!r}")

    def _row(self, name: str, arguments: Sequence[Node]) -> list[str]:
        """Flatten a chain of ANDs or ORs, which Python's operators nest to the left."""
        parts, left = [], list(arguments)
        while left:
            match self.shape(left.pop()):
                case FunctionShape(inner, (first, second)) if inner.lower() == name:
                    left += [first, second]
                case shape:
                    parts.append(self._enclosed(shape))
        return parts[::-1]

    def _operand(self, node: Node) -> str:
        """Write an operand that determines a result type: a decimal keeps its declared type."""
        match self.shape(node):
            case Value(Literal(Decimal() as number) as literal, type_) if declared := _DECLARED.fullmatch(type_):
                precision, scale = int(declared[1]), int(declared[2])
                is_implied = size_of(number) == (precision, scale)
                return str(literal) if is_implied else f"CAST({literal} AS DECIMAL({precision}, {scale}))"
            case shape:
                return self._enclosed(shape)

    def _choice(self, branches: Sequence[tuple[Node, Node]], otherwise: Node | None) -> str:
        whens = [f"WHEN {self.statement(condition)} THEN {self._operand(value)}" for condition, value in branches]
        default = "" if otherwise is None else f" ELSE {self._operand(otherwise)}"
        return f"CASE {' '.join(whens)}{default} END"

    def _path(self, shape: Shape) -> tuple[str, ...]:
        """Return the path of a column, or of a field by name; empty for other nodes."""
        match shape:
            case Name(path):
                return path
            case Renamed(child):
                return self._path(self.shape(child))
            case Item(child, key):
                path, name = self._path(self.shape(child)), self.shape(key)
                is_name = isinstance(name, Value) and name.literal.type == "string"
                return (*path, str(name.literal.value)) if path and is_name else ()  # type: ignore[union-attr]
            case _:
                return ()


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(quoted_name, path))
