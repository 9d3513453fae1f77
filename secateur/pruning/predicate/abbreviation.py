"""Print predicates for people: only the first values of a long list, and the first characters of a long text.

The full text, which Spark reads, is ``str(predicate)``; for a list of 100,000 keys it is a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterable

from secateur.pruning.predicate.nodes import In, Sql
from secateur.pruning.predicate.trees import Node, joined, written

MOST_SHOWN = 20  # values of a list; a longer one shows only the first few
_FIRST = 3
MOST_CHARACTERS = 1000  # predicates nested 100 deep would fill a book


def brief(sql: Sql) -> str:
    """Print the beginning of a predicate, with long lists cut short."""
    text = sql if isinstance(sql, str) else written(sql, _brief_parts, MOST_CHARACTERS)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."


def _brief_parts(node: Node) -> Iterable[object]:
    match node:
        case In(operand, literals) if len(literals) > MOST_SHOWN:
            first = joined(", ", literals[:_FIRST])
            return operand, " IN (", *first, f", ... {len(literals) - _FIRST:,} more)"
        case _:
            return node.sql_parts()
