"""What a bound predicate consists of: its leaves, operands and fields, and which of them rows or statistics decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.bound import (
    Apply,
    Compared,
    Conditional,
    Field,
    Holds,
    Joined,
    Leaf,
    Missing,
    OfValue,
    Operand,
    Tested,
    TextMatch,
    Unsupported,
    Varying,
    Within,
)
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.predicate.patterns.text_tests import OnlySpark
from secateur.pruning.predicate.trees import preorder
from secateur.values.kinds import kind_of


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Return the leaves of a bound predicate from left to right, each once, without those inside operands."""
    for part in preorder(predicate, _connected):
        match part:
            case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
                yield part
            case And() | Or() | Not() | Is():
                pass
            case _:
                raise TypeError(f"{part!r} is not bound")


def _connected(predicate: Predicate) -> Iterable[Predicate]:
    """Return the children of a connective."""
    match predicate:
        case And(children) | Or(children):
            return children
        case Not(child) | Is(child):
            return (child,)
        case _:
            return ()


def shared(predicate: Predicate) -> frozenset[int]:
    """Return the ids of the connectives that occur more than once in the tree."""
    below = Counter(id(child) for part in preorder(predicate, _connected) for child in _connected(part))
    return frozenset(node for node, count in below.items() if count > 1)


def children(node: Predicate | Operand) -> Iterable[Predicate | Operand]:
    """Return the direct children of a part of a bound predicate, from left to right."""
    match node:
        case Within(operand) | Missing(operand) | TextMatch(operand):
            return (operand,)
        case Compared(left=left, right=right):
            return left, right
        case Joined(columns=joined_columns):
            return joined_columns
        case Apply(arguments=arguments):
            return arguments
        case Conditional(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Tested(predicate):
            return (predicate,)
        case Predicate():
            return _connected(node)
        case _:
            return ()


def everything_in(predicate: Predicate | Operand) -> Iterator[Predicate | Operand]:
    """Return a bound predicate, or an operand, and everything below it, from left to right, each once."""
    return preorder(predicate, children)


def all_leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Return the leaves of a bound predicate and of the conditions inside its operands, each once."""
    for part in everything_in(predicate):
        match part:
            case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
                yield part


def operands(leaf: Leaf) -> tuple[Operand, ...]:
    """Return the operands of a leaf."""
    match leaf:
        case Within(operand) | Missing(operand) | TextMatch(operand):
            return (operand,)
        case Compared(left=left, right=right):
            return (left, right)
        case _:
            return ()


def parts(leaf: Leaf) -> Iterator[Operand]:
    """Return the operands of a leaf and all below them, without those of conditions inside them."""
    return (part for operand in operands(leaf) for part in preorder(operand, _values_below))


def _values_below(node: Operand) -> Iterable[Operand]:
    match node:
        case Apply(arguments=arguments):
            return arguments
        case Conditional(branches, otherwise):
            return (*(value for _, value in branches), otherwise)
        case _:
            return ()


def is_repeatable(operand: Operand) -> bool:
    """Return whether an operand written twice has the same value on a row; Spark-only ones may be random."""
    return not any(isinstance(leaf, Unsupported) for leaf in all_leaves(Missing(operand, "")))


def is_total(predicate: Predicate) -> bool:
    """Return whether a bound predicate is known to raise an error on no row, whatever its values."""
    return not any(
        isinstance(part, Apply | Unsupported) or (isinstance(part, Within) and part.fails is not None)
        for part in everything_in(predicate)
    )


def fields(predicate: Predicate | Operand) -> list[Field]:
    """Return the fields whose statistics a bound predicate or an operand can use, each once, in order of appearance."""
    return list(dict.fromkeys(part for part in everything_in(predicate) if isinstance(part, Field)))


def columns(predicate: Predicate) -> list[str]:
    """Return the top-level columns needed to evaluate a bound predicate on rows, each once."""
    without = (field for leaf in all_leaves(predicate) for field in _without_statistics(leaf))
    return list(dict.fromkeys(field.path[0] for field in (*fields(predicate), *without)))


def _without_statistics(leaf: Leaf) -> tuple[Field, ...]:
    match leaf:
        case Unsupported(fields=named):
            return named
        case Holds(column):
            return (column,)
        case _:
            return ()


def is_supported(predicate: Predicate) -> bool:
    """Return whether every leaf can be evaluated on rows here, without Spark."""
    return not any(True for _ in left_to_spark(predicate))


def unbounded(predicate: Predicate, served: Container[Leaf] = ()) -> Iterator[str]:
    """Return the leaves that no statistics can bound, as text with the reason.

    Leaves in `served`, which filters support, are omitted.
    """
    for leaf in all_leaves(predicate):
        match leaf:
            case _ if leaf in served:
                continue
            case Unsupported(sql, reason):
                yield f"{brief(sql)}: {reason}"
            case TextMatch(prefix=prefix, sql=sql) if prefix.is_everything:
                yield f"{brief(sql)}: no literal prefix bounds it"
            case Holds(column, sql=sql):
                yield f"{brief(sql)}: no bounds are kept of what is in a {column.type}"
            case Missing(Field(type=type_), sql) if kind_of(type_) is None:
                yield f"{brief(sql)}: no statistics are kept of a {type_}"


def left_to_spark(predicate: Predicate) -> Iterator[str]:
    """Return the leaves that only Spark can evaluate on rows, as text, with the reason if there is one."""
    for leaf in all_leaves(predicate):
        match leaf:
            case Unsupported(sql, reason) | TextMatch(test=OnlySpark(reason), sql=sql):
                yield f"{brief(sql)}: {reason}"
            case TextMatch(test=OfValue(test=OnlySpark(reason)), sql=sql):
                yield f"{brief(sql)}: {reason}"
            case Truth():
                pass
            case TextMatch(test=OfValue(value), sql=sql) if not is_known_on_rows(value):
                yield brief(sql)
            case _ if not all(map(_is_known, parts(leaf))):
                yield brief(leaf.sql)


def is_known_on_rows(operand: Operand) -> bool:
    """Return whether all functions of an operand can be computed on rows here; conditions in it are not looked at."""
    return all(map(_is_known, preorder(operand, _values_below)))


def _is_known(part: Operand) -> bool:
    match part:
        case Apply(function):
            return function.is_known_on_rows
        case _:
            return not isinstance(part, Varying)
