"""Expressions that are indexed as columns of their own.

Their values must be the same in every session, so expressions that depend on its time zone or its ANSI mode are
refused. Errors of ANSI mode are allowed: they make the value unknown. So are the values at a path into VARIANT, some of
which only Spark knows (:mod:`secateur.pruning.variants.variant_values`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import pyarrow as pa

from secateur.errors import InvalidOption
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate import bound_walks
from secateur.pruning.predicate.binding.bind import operand_of
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.binding.typed_constants import NoRule
from secateur.pruning.predicate.binding.variants import UNTYPED, VARIANT_NAMES, field_at_path
from secateur.pruning.predicate.bound import Constant, Field, Missing, Operand
from secateur.pruning.predicate.bound_walks import left_to_spark
from secateur.pruning.predicate.index_paths import expression_path, text_of_expression
from secateur.pruning.predicate.inverse import strictly
from secateur.pruning.predicate.nodes import Call, Column, Expression, Literal
from secateur.pruning.predicate.trees import Node, rebuilt

_SESSIONS = {  # time zone, ANSI mode
    "time zone": ("America/Los_Angeles", True),
    "ANSI mode (spark.sql.ansi.enabled)": ("UTC", False),
}

Path = tuple[str, ...]


@dataclass(frozen=True)
class IndexedExpression:
    """An expression over a table's columns, bound as in ANSI mode."""

    sql: str
    operand: Operand

    @property
    def field(self) -> Field:
        """The field as which it is indexed."""
        return self.at_path or Field(
            expression_path(self.sql, (field.type for field in self.fields)), self.operand.type
        )

    @property
    def at_path(self) -> Field | None:
        """The field, for values at a path into VARIANT; None for what is computed from columns."""
        return field_at_path(self.operand)

    @property
    def fields(self) -> list[Field]:
        """The columns that it is made of."""
        return bound_walks.fields(self.operand)


def normalised(text: str, schema: pa.Schema) -> str:
    """Return an expression as it is stored: printed by this package, with columns spelled as in the schema.

    Raises InvalidOption for an expression that cannot be indexed, UnknownColumn, AmbiguousColumn, InvalidPredicate.
    """
    binder = Binder(schema, dt.UTC)
    sql = renamed(text, lambda path: resolve(Column(path), binder).path)
    return text_of_expression(indexed_expression(sql, schema).field.path)


def renamed(text: str, name: Callable[[Path], Path]) -> str:
    """Return an expression with other names for its columns. Raises InvalidPredicate."""

    def change(node: Node) -> Node:
        values = [getattr(node, part.name) for part in fields(node)]  # type: ignore[arg-type]
        return type(node)(*(_with_names(value, name) for value in values))

    expression = _parsed(text)
    return str(rebuilt(expression, change) if isinstance(expression, Node) else _with_names(expression, name))


def _with_names(value: Any, name: Callable[[Path], Path]) -> Any:
    match value:
        case Column(path):
            return Column(name(path))
        case tuple():
            return tuple(_with_names(item, name) for item in value)
        case _:
            return value


@lru_cache(maxsize=1024)
def indexed_expression(sql: str, schema: pa.Schema) -> IndexedExpression:
    """Bind an expression to the columns of a schema, whose names it spells.

    Raises InvalidOption if it cannot be indexed, with the reason; UnknownColumn, InvalidPredicate.
    """
    expression = _parsed(sql)
    if isinstance(expression, Call) and expression.function in VARIANT_NAMES and len(expression.arguments) == UNTYPED:
        raise InvalidOption(f"{sql} is VARIANT: name the type that conditions read it as, with ::string or ::bigint")
    operand = _bound(sql, expression, schema, "UTC", ansi=True)
    match operand:
        case Field():
            raise InvalidOption(f"{sql} is the column {operand}: name that")
        case Constant():
            raise InvalidOption(f"{sql} is a constant: an index on it would save nothing")
    if field_at_path(operand) is None and (left := list(left_to_spark(Missing(operand, sql)))):
        raise InvalidOption(f"{sql} cannot be indexed, as only Spark can evaluate it: {'; '.join(left)}")
    for setting, (zone, ansi) in _SESSIONS.items():
        if _bound(sql, expression, schema, zone, ansi=ansi) != operand:
            raise InvalidOption(
                f"{sql} cannot be indexed: its value depends on the session's {setting}. Write it so that it does "
                "not, or index the column itself"
            )
    if not bound_walks.fields(operand):
        raise InvalidOption(f"{sql} cannot be indexed: it names no column")
    return IndexedExpression(sql, operand)


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> Expression:
    from secateur.pruning.predicate.sql.parse import parse_value  # importing sqlglot takes longer than planning

    return parse_value(sql)


def _bound(sql: str, expression: Expression | Literal, schema: pa.Schema, zone: str, *, ansi: bool) -> Operand:
    """Bind an expression in a session, with errors where ANSI mode has them."""
    try:
        binder = Binder(schema, known_zone(zone), case_sensitive=True, ansi=ansi, variant_values=True)
        return strictly(operand_of(expression, binder))
    except NoRule as reason:
        raise InvalidOption(f"{sql} cannot be indexed, as only Spark can evaluate it: {reason}") from None
