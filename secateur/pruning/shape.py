"""The shape of a predicate: its text without its literals, which queries of one kind share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from secateur.pruning.predicate.nodes import (
    Call,
    Column,
    Duration,
    ILike,
    In,
    Like,
    Literal,
    Opaque,
    Predicate,
    RLike,
    SemiJoin,
)
from secateur.pruning.predicate.trees import Node, joined, written

MOST_CHARACTERS = 2_000  # of a shape
MOST_LITERALS = 64  # whose hashes or texts are kept
_HIDDEN = "?"
_KEPT = ("boolean", "null")  # types whose literals say nothing about the data


@dataclass(frozen=True)
class PredicateShape:
    """A predicate's text with `?` for every literal, and the literals, from left to right."""

    text: str
    literals: tuple[str, ...]  # as Spark SQL; for a long list only their number

    def hashed(self) -> tuple[str, ...]:
        """Return the literals as hashes of 32 bits, which show only which of them are equal."""
        return tuple(hashlib.blake2b(text.encode(), digest_size=4).hexdigest() for text in self.literals)


def shape_of(predicate: Predicate) -> PredicateShape:
    """Return the shape of a predicate.

    Lists of any length have one shape, and so have LIKE patterns with wildcards at the same places. What only Spark
    can read is replaced by the columns that it names.
    """
    literals: list[str] = []

    def masked(node: Node) -> Iterable[object]:
        if isinstance(node, _Hidden):
            literals.append(node.text)
            return (node.mask,)
        return _parts(node)

    text = written(predicate, masked, MOST_CHARACTERS)
    shortened = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."
    return PredicateShape(shortened, tuple(literals[:MOST_LITERALS]))


@dataclass(frozen=True, eq=False, repr=False)
class _Hidden(Node):
    """A literal, and what the shape has in its place; a node, so that it is written in its turn."""

    text: str
    mask: str = _HIDDEN


def _parts(node: Node) -> Iterator[object]:
    match node:
        case Opaque(columns=columns):
            yield from ("(? of ", *joined(", ", dict.fromkeys(map(str, columns))), ")")
        case In(operand, literals) if literals:
            few = len(literals) <= MOST_LITERALS
            values = ", ".join(map(str, literals)) if few else f"{len(literals)} values"
            yield from (*_part(operand), " IN (", _Hidden(values), ")")
        case Like(operand, pattern) | ILike(operand, pattern):
            name = "LIKE" if isinstance(node, Like) else "ILIKE"
            yield from (*_part(operand), f" {name} ", _Hidden(pattern, f"'{re.sub('[^%_]+', _HIDDEN, pattern)}'"))
        case RLike(operand, pattern):
            yield from (*_part(operand), " RLIKE ", _Hidden(pattern))
        case SemiJoin(columns):
            yield from ("(", *joined(", ", columns), ") IN (keys)")
        case Call("timestampadd" | "timestampdiff" as function, arguments):
            yield from (f"{function}(", *(part for a in joined(", ", arguments) for part in _part(a)), ")")
        case _:
            for part in node.sql_parts():
                yield from _part(part)


def _part(part: object) -> Iterator[object]:
    match part:
        case Literal(type=type_) if type_ in _KEPT:
            yield str(part)
        case Literal() | Duration():
            yield _Hidden(str(part))
        case Column():
            yield str(part)
        case _:
            yield part
