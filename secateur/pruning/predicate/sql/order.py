"""Parse the items of ORDER BY, ``ts DESC NULLS LAST, id``, using `sqlglot`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from secateur.errors import InvalidOrder
from secateur.pruning.order import OrderItem
from secateur.pruning.predicate.sql.dialect import Dialect
from secateur.pruning.predicate.sql.leaves import column_of
from secateur.pruning.predicate.sql.syntax import has_only


def parse_order(texts: Iterable[str]) -> tuple[OrderItem, ...]:
    """Return the items of all texts, in order, with Spark's defaults filled in. Raises InvalidOrder."""
    return tuple(item for text in texts for item in _items(text))


@lru_cache(maxsize=256)
def _items(text: str) -> tuple[OrderItem, ...]:
    """Parse the items of one text; cached, because dashboards repeat their queries."""
    try:
        tree = sqlglot.parse_one(f"ORDER BY {text}", into=exp.Order, dialect=Dialect)
    except (SqlglotError, RecursionError):
        raise InvalidOrder(_advice(text)) from None
    return tuple(_item(text, item) for item in tree.expressions)


def _item(text: str, tree: exp.Expression) -> OrderItem:
    column = column_of(tree.this) if isinstance(tree, exp.Ordered) else None
    if column is None or not has_only(tree, "this", "desc", "nulls_first"):
        raise InvalidOrder(_advice(text))
    return OrderItem(column, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first")))


def _advice(text: str) -> str:
    return (
        f"cannot order by {text!r}: write a column's name, then ASC or DESC, then NULLS FIRST or NULLS LAST, both as "
        "you like; a name with spaces or dots in back-quotes. Only columns are ordered by, not expressions"
    )
