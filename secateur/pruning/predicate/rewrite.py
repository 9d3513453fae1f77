"""Rewrite bound predicates: the same truth value on every row, with fewer and narrower leaves.

Adjacent leaves on one column are merged: their key sets are intersected under AND and united under OR, and NOT
complements them; NULL is unaffected. So ``a > 5 AND a < 3`` becomes the empty set and ``a > 5 OR a <= 5`` the set of
all keys, which needs no statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Operand, Within
from secateur.pruning.predicate.bound_walks import is_repeatable
from secateur.pruning.predicate.nodes import And, Is, Not, Opaque, Or, Predicate, Sql, Truth
from secateur.pruning.predicate.trees import Steps, each_of, preorder, unrolled


def rewrite(predicate: Predicate) -> Predicate:
    """Return an equivalent predicate: flat connectives, constants folded, one key set per column and connective.

    NOT is pushed down to the leaves, so every node is rewritten once, or twice if it occurs below both an even and an
    odd number of them.
    """
    return unrolled(_rewritten, (predicate, True), {})


def _rewritten(asked: tuple[Predicate, bool]) -> Steps[Predicate]:
    """Rewrite the predicate, or its negation if the flag is False."""
    predicate, as_it_is = asked
    match predicate:
        case And() | Or():
            parts = yield from each_of((child, as_it_is) for child in _flat(predicate))
            return (_conjunction if isinstance(predicate, And) == as_it_is else _disjunction)(parts)
        case Not(child):
            return (yield child, not as_it_is)
        case Is(child, value):
            result = _identity((yield child, True), value)
            return result if as_it_is else _negation(result)
        case _:
            return predicate if as_it_is else _negation(predicate)


def _flat(predicate: Predicate) -> Iterator[Predicate]:
    """Yield the parts below nested connectives of one kind."""
    kind = type(predicate)
    nested = preorder(predicate, lambda node: node.children if isinstance(node, kind) else ())  # type: ignore[attr-defined]
    return (node for node in nested if not isinstance(node, kind))


def _negation(child: Predicate) -> Predicate:
    match child:
        case Truth(value):
            return Truth(None if value is None else not value)
        case Within(operand, ranges, sql, fails):
            return Within(operand, rangeset.complement(ranges), Not(_written(sql)), fails)
        case _:
            return Not(child)


def _identity(child: Predicate, value: bool | None) -> Predicate:
    return Truth(child.value is value) if isinstance(child, Truth) else Is(child, value)


def _conjunction(children: Iterable[Predicate]) -> Predicate:
    flat = [part for child in children for part in (child.children if isinstance(child, And) else (child,))]
    if Truth(False) in flat:
        return Truth(False)
    merged = list(_merged(flat, And, rangeset.intersection))
    return _joined(And, [part for part in merged if part != Truth(True)], Truth(True))


def _disjunction(children: Iterable[Predicate]) -> Predicate:
    flat = [part for child in children for part in (child.children if isinstance(child, Or) else (child,))]
    if Truth(True) in flat:
        return Truth(True)
    merged = list(_merged(flat, Or, rangeset.union))
    return _joined(Or, [part for part in merged if part != Truth(False)], Truth(False))


def _joined(connective: type[And] | type[Or], parts: Sequence[Predicate], nothing: Truth) -> Predicate:
    """Combine parts by a connective, dropping repeated ones."""
    distinct = list(dict.fromkeys(parts))
    match distinct:
        case []:
            return nothing
        case [only]:
            return only
        case _:
            return connective(tuple(distinct))


def _merged(
    parts: Sequence[Predicate],
    connective: type[And] | type[Or],
    combine: Callable[[RangeSet, RangeSet], RangeSet],
) -> Iterator[Predicate]:
    """Merge the key sets for one column into its first occurrence."""
    by_operand: dict[tuple[Operand, RangeSet | None], list[Within]] = {}
    order: list[Predicate | tuple[Operand, RangeSet | None]] = []
    for part in parts:
        if not isinstance(part, Within) or not is_repeatable(part.operand):
            order.append(part)
            continue
        asked = (part.operand, part.fails)
        if asked not in by_operand:
            order.append(asked)
        by_operand.setdefault(asked, []).append(part)
    for item in order:
        yield _combined(by_operand[item], connective, combine) if isinstance(item, tuple) else item


def _combined(
    parts: Sequence[Within], connective: type[And] | type[Or], combine: Callable[[RangeSet, RangeSet], RangeSet]
) -> Within:
    """Merge the leaves on one column."""
    first = parts[0]
    if len(parts) == 1:
        return first
    written = tuple(dict.fromkeys(_written(part.sql) for part in parts))
    sql = written[0] if len(written) == 1 else connective(written)
    sides = tuple(side for part in parts for side in part.sides or (part,)) if connective is And else ()
    return Within(first.operand, reduce(combine, [part.ranges for part in parts]), sql, first.fails, sides)


def _written(sql: Sql) -> Predicate:
    return Opaque(sql) if isinstance(sql, str) else sql
