"""Trees of predicates, compared."""

from __future__ import annotations

from secateur.pruning.predicate.nodes import And, Not, Or, Predicate


def flat(predicate: Predicate) -> Predicate:
    """A tree with nested ANDs and ORs as one, which operators on expressions nest and text does not."""
    match predicate:
        case And(children) | Or(children):
            kind = type(predicate)
            inner = [flat(child) for child in children]
            return kind(tuple(x for child in inner for x in (child.children if isinstance(child, kind) else (child,))))
        case Not(child):
            return Not(flat(child))
        case _:
            return predicate
