"""What a predicate implies for one column: the keys on which it can have a truth value, whatever the other columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import Field, Missing, TextMatch, Within
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.values.kinds import Kind, ordered_kind


@dataclass(frozen=True)
class ColumnKeys:
    """Values of a column: those with a key in `values`, and NULL if `null` is set."""

    values: RangeSet
    null: bool

    @property
    def is_everything(self) -> bool:
        """Whether the column may hold anything."""
        return self.null and self.values.is_everything


def keys_where(predicate: Predicate, truth: bool | None, field: Field) -> ColumnKeys:
    """Return the values of a column in rows on which a bound predicate may have a truth value.

    Sound: a row on which the predicate has that value, or on which Spark raises an error in a leaf on this column,
    holds one of them. `field` must be of an orderable type.
    """
    return unrolled(partial(_keys_where, field=field, kind=ordered_kind(field.type)), (predicate, truth), {})


def _keys_where(asked: tuple[Predicate, bool | None], field: Field, kind: Kind) -> Steps[ColumnKeys]:
    predicate, truth = asked
    match predicate, truth:
        case Truth(value), _:
            return _everything(kind) if value is truth else _nothing(kind)
        case Not(child), _:
            return (yield child, None if truth is None else not truth)
        case Is(child, value), True:
            return (yield child, value)
        case Is(child, value), False:
            others = yield from each_of((child, other) for other in (True, False, None) if other is not value)
            return reduce(_either, others)
        case Is(), None:
            return _nothing(kind)
        case (And(children), True) | (Or(children), False):
            return reduce(_both, (yield from each_of((child, truth) for child in children)))
        case ((And(children) | Or(children)), _):  # some child has the value
            return reduce(_either, (yield from each_of((child, truth) for child in children)))
        case ((Within(operand) | Missing(operand) | TextMatch(operand)), _) if operand == field:
            return _of_leaf(predicate, truth, kind)
        case _:
            return _everything(kind)


def _of_leaf(leaf: Predicate, truth: bool | None, kind: Kind) -> ColumnKeys:
    """Handle a leaf on the column itself: Within and Matches are NULL exactly on NULL, Missing never."""
    match leaf, truth:
        case Within(ranges=ranges, fails=fails), _:
            inside = {True: ranges, False: rangeset.complement(ranges), None: rangeset.empty(kind)}[truth]
            return ColumnKeys(inside if fails is None else rangeset.union(inside, fails), truth is None)
        case Missing(), True:
            return ColumnKeys(rangeset.empty(kind), True)
        case Missing(), None:
            return _nothing(kind)
        case TextMatch(prefix=prefix), True:
            return ColumnKeys(prefix, False)
        case TextMatch(), None:
            return ColumnKeys(rangeset.empty(kind), True)
        case _:  # Missing or Matches is FALSE
            return ColumnKeys(rangeset.everything(kind), False)


def _everything(kind: Kind) -> ColumnKeys:
    return ColumnKeys(rangeset.everything(kind), True)


def _nothing(kind: Kind) -> ColumnKeys:
    return ColumnKeys(rangeset.empty(kind), False)


def _both(a: ColumnKeys, b: ColumnKeys) -> ColumnKeys:
    if a.is_everything or b.is_everything:
        return b if a.is_everything else a
    return _combined(a, b, rangeset.intersection, a.null and b.null)


def _either(a: ColumnKeys, b: ColumnKeys) -> ColumnKeys:
    if a.is_everything or b.is_everything:
        return a if a.is_everything else b
    return _combined(a, b, rangeset.union, a.null or b.null)


def _combined(
    a: ColumnKeys, b: ColumnKeys, combine: Callable[[RangeSet, RangeSet], RangeSet], null: bool
) -> ColumnKeys:
    return ColumnKeys(combine(a.values, b.values), null)
