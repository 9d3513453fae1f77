"""What a predicate as written consists of: its nodes, its columns, its parts that are kept as text."""

from __future__ import annotations

from collections.abc import Iterator

from secateur.pruning.predicate.nodes import (
    Among,
    And,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    ILike,
    In,
    Is,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    RLike,
    SemiJoin,
    Test,
)
from secateur.pruning.predicate.trees import preorder


def children(node: Predicate | Expression) -> Iterator[Predicate | Expression]:
    """Return the nodes directly below a node, from left to right."""
    match node:
        case And(inner) | Or(inner) | Call(arguments=inner):
            yield from inner
        case Case(branches, otherwise):
            for condition, value in branches:
                yield condition
                yield value
            yield otherwise
        case Comparison(left=left, right=right):
            yield left
            yield right
        case Among(operand, options):
            yield operand
            yield from options
        case SemiJoin(named):
            yield from named
        case Not(child) | Is(child) | Test(child):
            yield child
        case Cast(operand) | In(operand) | IsNull(operand) | Like(operand) | ILike(operand) | RLike(operand):
            yield operand


def columns(node: Predicate | Expression) -> Iterator[Column]:
    """Return the columns that a tree names, from left to right, with repetitions."""
    for part in preorder(node, children):
        match part:
            case Column():
                yield part
            case Opaque(columns=named):
                yield from named


def opaque(node: Predicate | Expression) -> Iterator[Opaque]:
    """The parts of a tree that are kept as text."""
    return (part for part in preorder(node, children) if isinstance(part, Opaque))
