r"""Regular expressions that match finitely many texts, or all with given prefixes: ``^(k1|k2)$``, ``^k[1-3]``.

Supported are literal characters, escaped punctuation, groups, alternatives, simple classes and ``?``, between an anchor
at the start and an optional one at the end. Source: ``java.util.regex.Pattern`` without flags, where ``$`` and ``\Z``
also match before a line terminator that ends the text.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from itertools import product

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.patterns.like import encoded
from secateur.pruning.predicate.patterns.substrings import MOST_ALTERNATIVES
from secateur.values.kinds import Kind

LONGEST = 2048  # characters of a pattern
_DEEPEST = 20  # nested groups
_TERMINATORS = ("", "\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029")
_SPECIAL = frozenset("\\^$.|?*+()[]{}")
_PUNCTUATION = frozenset(string.punctuation)
_CLASS = re.compile(r"\[((?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ ,;:.@#%=/])+)\]")
_NO_TEXT = re.compile("[\ud800-\udfff\ufffd]")


def matching_texts(pattern: str) -> RangeSet | None:
    """Return the keys of all texts in which a pattern is found, or None if that cannot be decided here."""
    if len(pattern) > LONGEST or _NO_TEXT.search(pattern):
        return None
    reader = _Reader(pattern)
    try:
        whole, prefixes = reader.branches()
    except _Unknown:
        return None
    if "" in prefixes:
        return None
    ranges = rangeset.points(Kind.BYTES, [encoded(text) for text in whole])
    for prefix in prefixes:
        ranges = rangeset.union(ranges, rangeset.starting_with(encoded(prefix)))
    return ranges


class _Unknown(Exception):
    """A part of a pattern that is not supported here."""


@dataclass
class _Reader:
    """Reads a pattern from left to right."""

    pattern: str
    position: int = 0

    def branches(self) -> tuple[set[str], set[str]]:
        """Return the texts that match as a whole, and the prefixes of those that match whatever follows."""
        whole: set[str] = set()
        prefixes: set[str] = set()
        while True:
            if not (self._take("^") or self._take("\\A")):
                raise _Unknown
            texts = self._sequence(0)
            if self._take("$") or self._take("\\Z"):
                whole |= {text + end for text in texts for end in _TERMINATORS}
            elif self._take("\\z"):
                whole |= texts
            else:
                self._take(".*")
                prefixes |= texts
            if self.position == len(self.pattern):
                return whole, prefixes
            if not self._take("|"):
                raise _Unknown

    def _take(self, token: str) -> bool:
        if not self.pattern.startswith(token, self.position):
            return False
        self.position += len(token)
        return True

    def _sequence(self, depth: int) -> set[str]:
        """Return the texts of consecutive parts, up to something else."""
        texts = {""}
        while (part := self._part(depth)) is not None:
            if self._take("?"):
                part = part | {""}
            if self.pattern[self.position : self.position + 1] in ("?", "*", "+", "{"):
                raise _Unknown
            if len(texts) * len(part) > MOST_ALTERNATIVES:
                raise _Unknown
            texts = {before + after for before, after in product(texts, part)}
        return texts

    def _part(self, depth: int) -> set[str] | None:
        character = self.pattern[self.position : self.position + 1]
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._class()
        if character == "\\" and self.pattern[self.position + 1 : self.position + 2] in _PUNCTUATION:
            self.position += 2
            return {self.pattern[self.position - 1]} if self.position <= len(self.pattern) else None
        if not character or character in _SPECIAL:
            return None
        self.position += 1
        return {character}

    def _group(self, depth: int) -> set[str]:
        if depth == _DEEPEST:
            raise _Unknown
        self.position += 1
        if not self._take("?:") and self._take("?"):
            raise _Unknown
        texts = self._sequence(depth + 1)
        while self._take("|"):
            texts |= self._sequence(depth + 1)
        if not self._take(")"):
            raise _Unknown
        return texts

    def _class(self) -> set[str]:
        match = _CLASS.match(self.pattern, self.position)
        if match is None:
            raise _Unknown
        self.position = match.end()
        characters: set[str] = set()
        for part in re.findall(r".-.|.", match[1]):
            first, last = part[0], part[-1]
            if first > last:
                raise _Unknown
            characters |= {chr(code) for code in range(ord(first), ord(last) + 1)}
        return characters
