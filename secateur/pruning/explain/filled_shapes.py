"""Put literals in the place of the `?` of a predicate's shape, and say what each of them is compared with.

A shape is the text of :func:`secateur.pruning.shape.shape_of`: SQL but for the literals, and what only Spark can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import TokenType
from sqlglot.errors import SqlglotError

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.node_walks import children
from secateur.pruning.predicate.nodes import Cast, Column, Comparison, Expression, ILike, In, Like, Literal, Predicate
from secateur.pruning.predicate.sql.dialect import Dialect
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.predicate.trees import preorder

LIKE = "LIKE"
KEYS = "keys"  # of a join; a column is written in back-quotes
_PATTERNS = ([TokenType.LIKE], [TokenType.ILIKE])


@dataclass(frozen=True)
class Slot:
    """The place of one literal: the column that it is compared with, and how."""

    column: tuple[str, ...]
    test: str  # an operator of a comparison, or LIKE
    mask: str = ""  # of LIKE: the pattern with `?` for its text


@dataclass(frozen=True)
class _Place:
    """The characters of a shape that stand for a literal; `mask` is that of a pattern of LIKE."""

    start: int
    stop: int
    is_text: bool = False  # what is logged is text without quotes
    mask: str | None = None


def slots(shape: str) -> list[Slot | None]:
    """Return the slots of a shape from left to right; None for a literal that is compared with more than a column.

    The keys of a join are one literal.

    Raises InvalidPredicate if the shape is not SQL, for example because it was shortened, or only Spark can read it.
    """
    places = _places(shape)
    tree = parse(filled(shape, [_mark(i, place) for i, place in enumerate(places)]))
    root: Predicate | Expression = tree
    by_mark = {mark: slot for node in preorder(root, children) for mark, slot in _slots_of(node)}
    return [by_mark.get(i) for i in range(len(places))]


def filled(shape: str, literals: Sequence[str]) -> str:
    """Return a shape with literals in their places, as :func:`secateur.pruning.shape.shape_of` gives them.

    Raises InvalidPredicate if there are more or fewer than places, for example because the log leaves out join keys.
    """
    places = _places(shape)
    if len(places) != len(literals):
        raise InvalidPredicate(f"{len(literals)} literals for the {len(places)} places of {shape!r}")
    parts, end = [], 0
    for place, literal in zip(places, literals, strict=True):
        parts += [shape[end : place.start], str(Literal(literal, "string")) if place.is_text else literal]
        end = place.stop
    return "".join([*parts, shape[end:]])


def _places(shape: str) -> list[_Place]:
    try:
        tokens = Dialect().tokenize(shape)
    except SqlglotError as error:
        raise InvalidPredicate(f"cannot read the shape {shape!r}: {error}") from None
    places = []
    for i, token in enumerate(tokens):
        before = [other.token_type for other in tokens[max(0, i - 2) : i]]
        if token.token_type is TokenType.PLACEHOLDER:
            places.append(_Place(token.start, token.end + 1, before[-1:] == [TokenType.RLIKE]))
        elif token.token_type is TokenType.STRING and before[-1:] in _PATTERNS:
            places.append(_Place(token.start, token.end + 1, is_text=True, mask=token.text))
        elif (token.token_type, token.text) == (TokenType.VAR, KEYS) and before == [TokenType.IN, TokenType.L_PAREN]:
            places.append(_Place(token.start, token.end + 1))
    return places


def _mark(number: int, place: _Place) -> str:
    """Return a text by which a literal's place is known again in the tree."""
    if place.mask is not None:
        return f"{number}:{place.mask}"
    return f"{number}:" if place.is_text else f"'{number}:'"


def _slots_of(node: object) -> Iterator[tuple[int, Slot]]:
    match node:
        case Comparison(op, Column(path), Literal(str(text), "string") | Cast(Literal(str(text), "string"))):
            yield _number(text), Slot(path, op)
        case In(Column(path), literals):
            yield from ((_number(literal.value), Slot(path, "=")) for literal in literals)
        case Like(Column(path), pattern) | ILike(Column(path), pattern):
            yield _number(pattern), Slot(path, LIKE, pattern.partition(":")[2])


def _number(mark: object) -> int:
    return int(str(mark).partition(":")[0])
