"""Predicates as text for people: of a long list of values only the first ones.

The whole text, which Spark reads, is ``str(predicate)``; of a list of 100,000 keys it is a megabyte.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from secateur.pruning.predicate.nodes import Expression, In, Predicate, Sql, children

MOST_SHOWN = 20  # values of a list; of a longer one the first few
_FIRST = 3


@dataclass(frozen=True, repr=False)
class _Shown(Predicate):
    text: str

    def __str__(self) -> str:
        return self.text


def brief(sql: Sql) -> str:
    """A predicate as text in which long lists are cut short; text that was given as such stays as it is."""
    if isinstance(sql, str):
        return sql
    return str(_shortened(sql) if _has_long_list(sql) else sql)


def _has_long_list(node: Predicate | Expression) -> bool:
    return (isinstance(node, In) and len(node.literals) > MOST_SHOWN) or any(map(_has_long_list, children(node)))


def _shortened(part: Any) -> Any:
    match part:
        case In(operand, literals) if len(literals) > MOST_SHOWN:
            first = ", ".join(map(str, literals[:_FIRST]))
            return _Shown(f"{_shortened(operand)} IN ({first}, ... {len(literals) - _FIRST:,} more)")
        case tuple():
            return tuple(map(_shortened, part))
        case _ if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{each.name: _shortened(getattr(part, each.name)) for each in fields(part)})
        case _:
            return part
