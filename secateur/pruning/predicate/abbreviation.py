"""Predicates as text for people: of a long list of values only the first ones.

The whole text, which Spark reads, is ``str(predicate)``; of a list of 100,000 keys it is a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterable

from secateur.pruning.predicate.nodes import In, Sql
from secateur.pruning.predicate.trees import Node, joined, written

MOST_SHOWN = 20  # values of a list; of a longer one the first few
_FIRST = 3


def brief(sql: Sql) -> str:
    """A predicate as text in which long lists are cut short; text that was given as such stays as it is."""
    return sql if isinstance(sql, str) else written(sql, _brief_pieces)


def _brief_pieces(node: Node) -> Iterable[object]:
    match node:
        case In(operand, literals) if len(literals) > MOST_SHOWN:
            first = joined(", ", literals[:_FIRST])
            return operand, " IN (", *first, f", ... {len(literals) - _FIRST:,} more)"
        case _:
            return node.pieces()
