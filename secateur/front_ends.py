"""Predicates, orders and parameters in any form that users write them, as nodes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache

from secateur.errors import InvalidPredicate
from secateur.pruning.order import OrderItem
from secateur.pruning.predicate.nodes import VARIABLE, Predicate, Sql

MOST_REMEMBERED = 2_000  # characters of the longest predicate text whose nodes are cached
OF_TREE = ("has_token", VARIABLE)  # of a text with one of these, Spark gets what its tree prints: it does not know the
# first, and would put the value of a variable in place of the other


def read_predicate(predicate: object) -> tuple[Predicate, Sql]:
    """Convert a predicate of any front end to nodes, and to an object that prints as SQL for Spark."""
    match predicate:
        case str():
            tree = _parsed(predicate) if len(predicate) <= MOST_REMEMBERED else _parse(predicate)
            return tree, tree if _is_of_tree(predicate) else predicate
        case Predicate():
            return predicate, predicate
        case _ if _is_a(predicate, "pyspark.sql.column", "Column") or _is_a(
            predicate, "pyspark.sql.connect.column", "Column"
        ):
            from secateur.io.spark.column.sql import sql_of

            return read_predicate(sql_of(predicate))  # type: ignore[arg-type]
        case _ if _is_a(predicate, "pyiceberg.expressions", "BooleanExpression"):
            from secateur.io.tables.iceberg.expressions import predicate_of

            return read_predicate(predicate_of(predicate))  # type: ignore[arg-type]
        case _:
            raise InvalidPredicate(
                f"{predicate!r} is not a predicate: use SQL text or a comparison on secateur.col(), "
                "a PySpark Column, or an expression of PyIceberg"
            )


def _is_of_tree(text: str) -> bool:
    """Return whether Spark might read a text otherwise: also one with two quotes for one, which Spark 3.5 drops."""
    from secateur.pruning.predicate.sql.dialect import has_doubled_quotes  # it imports sqlglot

    return any(part in text.lower() for part in OF_TREE) or has_doubled_quotes(text)


def filled_text(predicate: object, params: Mapping[str, object] | Sequence[object]) -> str:
    """Put values in the place of parameters. Raises InvalidPredicate."""
    if not isinstance(predicate, str) or isinstance(params, str):
        raise InvalidPredicate("params are values for the parameters of SQL text: a mapping for :name, a list for ?")
    from secateur.parameters import filled

    return filled(predicate, params)


def read_order(texts: Sequence[str]) -> tuple[OrderItem, ...]:
    """Parse the items of an ORDER BY, such as ``"ts DESC NULLS LAST"``. Raises InvalidPredicate."""
    if not texts:
        return ()
    from secateur.pruning.predicate.sql.order import parse_order  # it imports sqlglot

    return parse_order(texts)


@lru_cache(maxsize=256)
def _parsed(sql: str) -> Predicate:
    """Parse a predicate. Nodes are immutable, so the result is cached: dashboards repeat their queries."""
    return _parse(sql)


def _parse(sql: str) -> Predicate:
    from secateur.pruning.predicate.sql.parse import parse  # importing sqlglot takes longer than planning

    return parse(sql)


def _is_a(value: object, module: str, name: str) -> bool:
    """Return whether a value is an instance of another library's class, without importing that library."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))
