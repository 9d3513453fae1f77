"""Tests that decide on the text itself whether a :class:`~secateur.pruning.predicate.bound.TextMatch` is TRUE.

They are values; :mod:`secateur.pruning.rows.text_rows` evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.patterns.java_regex import Untranslatable, translated
from secateur.pruning.predicate.patterns.letter_case import LOCALES, is_doubtful, lowered
from secateur.pruning.predicate.patterns.like import Pattern
from secateur.pruning.predicate.patterns.regular_expressions import is_plain, token_bytes, token_of

MOST_TRANSLATED = 1 << 14  # characters of a pattern; a translation takes some 6 microseconds for each


@dataclass(frozen=True)
class Search:
    """Whether a regular expression of RE2 is found.

    If `bytewise`, it is found in the bytes exactly where Spark finds it in decoded text, even if they are not UTF-8.
    The others are as in :class:`.java_regex.Translation`.
    """

    regex: str
    bytewise: bool = False
    before_line_end: bool = False
    ascii_only: bool = False


@dataclass(frozen=True)
class InLowerCase:
    """A test of the text in lower case, for each of :data:`.letter_case.LOCALES`: ranges of texts, or a search."""

    by_locale: tuple[RangeSet | Search, ...]


@dataclass(frozen=True)
class OnlySpark:
    """A test that only Spark can make; `reason` says why."""

    reason: str


TextTest: TypeAlias = Search | InLowerCase | OnlySpark


def in_lower_case(test: TextTest | RangeSet) -> TextTest:
    """Return a test of ``lower(text)`` that is the same in every locale."""
    return test if isinstance(test, InLowerCase | OnlySpark) else InLowerCase((test,) * len(LOCALES))


def like(pattern: Pattern) -> TextTest:
    """Return the test of LIKE."""
    if pattern.regex is None:
        return OnlySpark("its pattern is too long")
    if any(map(_has_surrogate, pattern.literals)):
        return OnlySpark("its pattern has half a character")
    decoded = "_" in pattern.wildcards or any("\ufffd" in literal for literal in pattern.literals)
    return Search(pattern.regex, bytewise=not decoded)


def ilike(pattern: Pattern) -> TextTest:
    """Return the test of ILIKE, which puts the pattern in lower case too."""
    if any(map(is_doubtful, pattern.literals)):
        return OnlySpark("its pattern has a letter without a lower case that is the same everywhere")
    plain = all(map(str.isascii, pattern.literals))
    tests = [like(pattern.mapped(partial(lowered, locale=LOCALES[0] if plain else locale))) for locale in LOCALES]
    known = tuple(test for test in tests if isinstance(test, Search))
    return InLowerCase(known) if len(known) == len(tests) else tests[0]


def rlike(pattern: str) -> TextTest:
    """Return the test of RLIKE."""
    word = token_of(pattern)
    if word is not None:
        return Search(token_bytes(word), bytewise=True)
    if is_plain(pattern):
        return Search(pattern, bytewise=True)
    if len(pattern) > MOST_TRANSLATED:
        return OnlySpark(f"its pattern has more than {MOST_TRANSLATED:,} characters")
    try:
        regex = translated(pattern)
    except Untranslatable as reason:
        return OnlySpark(f"only Java's regular expressions have {reason} like this")
    return Search(regex.regex, before_line_end=regex.before_line_end, ascii_only=regex.ascii_only)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
