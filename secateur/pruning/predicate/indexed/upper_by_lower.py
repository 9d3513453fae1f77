"""Conditions on text in upper case, as questions about the same text in lower case, if that is indexed.

A text whose upper case is an ASCII text consists of its letters in either case, and of the few characters beyond ASCII
that become ASCII: sharp s, long s, dotless i and ligatures; in Lithuanian also of a dot above i and j, which is
dropped. So its lower case is one of few texts. Source: Unicode's ``SpecialCasing.txt``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.text import preimages
from secateur.pruning.predicate.bound import Apply, Field, OfValue, Operand, TextMatch, Within
from secateur.pruning.predicate.nodes import And, Predicate
from secateur.pruning.predicate.trees import Node, rebuilt
from secateur.values.kinds import Kind

MOST_TEXTS = 256  # texts in lower case to look for


def with_lower(predicate: Predicate, indexed: Mapping[Operand, Field]) -> Predicate:
    """Add to each test of ``upper(text)`` what it implies for an indexed ``lower(text)``.

    Sound: the value on every row stays the same, because the added condition is TRUE where the test is TRUE, and NULL
    only where the test is NULL.
    """
    lowered = {
        operand.arguments: field
        for operand, field in indexed.items()
        if isinstance(operand, Apply) and operand.function.name == "lower"
    }

    def change(node: Node) -> Node:
        match node:
            case TextMatch(test=OfValue(Apply(function, arguments), RangeSet() as ranges)) if function.name == "upper":
                texts = lower_of_upper(ranges) if arguments in lowered else None
                return node if texts is None else And((node, Within(lowered[arguments], texts, node.sql)))
            case _:
                return node

    return rebuilt(predicate, change) if lowered else predicate  # type: ignore[return-value]


def lower_of_upper(ranges: RangeSet) -> RangeSet | None:
    """Return a superset of ``lower(text)`` for the texts whose ``upper`` is in `ranges`; None if they are too many."""
    points = ranges.points
    if points is None or len(points) > MOST_TEXTS or not all(point.isascii() for point in points.tolist()):
        return None
    texts = (text for point in points.tolist() for text in _lowered(point.decode()))
    some = list(islice(texts, MOST_TEXTS + 1))
    return None if len(some) > MOST_TEXTS else rangeset.points(Kind.BYTES, sorted({text.encode() for text in some}))


def _lowered(text: str) -> Iterator[str]:
    """Yield the lower case of the texts that have this upper case."""
    pending = [("", 0)]
    while pending:
        before, at = pending.pop()
        if at == len(text):
            yield before
            continue
        candidates = preimages("upper").get(text[at], [(text[at], text[at])])
        parts = {(character.lower(), len(mapped)) for character, mapped in candidates if text.startswith(mapped, at)}
        pending += [(before + character, at + length) for character, length in parts]
