"""LIKE patterns: runs of literal text with wildcards between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.nodes import Sql
from secateur.pruning.predicate.patterns.substrings import Alternatives, Substring

_WILDCARD = 13  # RE2 instructions for any character in UTF-8; a literal byte takes one
_MOST_INSTRUCTIONS = 500_000  # in 8 MB, RE2's default limit
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True)
class Pattern:
    """``literals[0] wildcards[0] literals[1] ...``: n + 1 texts, some of them empty, between n wildcards (% or _)."""

    literals: tuple[str, ...]
    wildcards: tuple[str, ...]

    @property
    def prefix(self) -> bytes:
        """The prefix of every matching text."""
        return encoded(self.literals[0])

    @property
    def is_literal(self) -> bool:
        """Whether exactly one text matches."""
        return not self.wildcards

    @property
    def is_prefix(self) -> bool:
        """Whether exactly the texts with the prefix match."""
        return set(self.wildcards) == {"%"} and not any(self.literals[1:])

    @property
    def regex(self) -> str | None:
        """The pattern as a regular expression of RE2; None if it is too large for RE2 to compile."""
        if sum(map(len, self.literals)) + _WILDCARD * len(self.wildcards) > _MOST_INSTRUCTIONS:
            return None
        parts = (
            re.escape(literal) + {"%": ".*", "_": ".", "": ""}[wildcard]
            for literal, wildcard in zip_longest(self.literals, self.wildcards, fillvalue="")
        )
        return f"(?s)\\A{''.join(parts)}\\z"

    @property
    def alternatives(self) -> Alternatives:
        """The substrings of a matching text; the first and the last literal are at its ends."""
        last = len(self.wildcards)
        substrings = (Substring(encoded(text), i == 0, i == last) for i, text in enumerate(self.literals) if text)
        return (tuple(substrings),)

    def in_lower_case(self) -> Pattern:
        """Return the pattern with its ASCII letters in lower case.

        Next to characters beyond ASCII the lower case of I depends on the locale, so I is left out there.
        """
        if not all(map(str.isascii, self.literals)):
            literals = tuple(literal.replace("I", "\ufffd") for literal in self.literals)
        else:
            literals = self.literals
        return replace(self, literals=tuple(literal.translate(_LOWER) for literal in literals))

    def mapped(self, change: Callable[[str], str]) -> Pattern:
        """Return the pattern with each of its literals changed."""
        return replace(self, literals=tuple(map(change, self.literals)))


def encoded(text: str) -> bytes:
    """Encode text as the bytes of its key."""
    return text.encode("utf-8", "surrogatepass")


def read_pattern(pattern: str, escape: str, sql: Sql) -> Pattern:
    """Parse a LIKE pattern.

    Raises InvalidPredicate if the escape character is not before ``%``, ``_`` or itself, which Spark refuses
    (INVALID_FORMAT.ESC_IN_THE_MIDDLE, ESC_AT_THE_END).
    """
    literals: list[list[str]] = [[]]
    wildcards = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal not in ("%", "_", escape):
                raise InvalidPredicate(f"{sql}: the escape character {escape!r} must precede %, _ or itself")
            literals[-1].append(literal)
        elif character in "%_":
            wildcards.append(character)
            literals.append([])
        else:
            literals[-1].append(character)
    return Pattern(tuple(map("".join, literals)), tuple(wildcards))
