"""Find the substrings that are contained in every text for which a condition is TRUE, in any context.

Spark matches patterns, and maps case, on *decoded* text, in which U+FFFD replaces bytes that are not UTF-8. Decoding
and case mappings (``String.toLowerCase``, ICU's ``UCharacter``) go character by character and skip none, so what is
contiguous after them was contiguous before. There are two exceptions, and substrings are cut at both:

* U+FFFD itself may have been any byte.
* In lower case only an ASCII letter is certain to come from the same ASCII letter, in either case. Two characters
  beyond ASCII map to ASCII (``CASE_TRICKY``): nothing is claimed here about folded text that holds one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from typing import TypeAlias

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.key import prefix_successor

MOST_ALTERNATIVES = 64
MOST_SUBSTRINGS = 64  # of one alternative: all pairs are compared, and each is a question; fewer answer as well
CASE_TRICKY = frozenset("\u0130\u212a")  # I with a dot, and the Kelvin sign: their lower case has ASCII letters

_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_ASCII = re.compile(rb"[\x00-\x7f]+")
_UNDECODED = re.compile(rb"\xef\xbf\xbd|\xed[\xa0-\xbf][\x80-\xbf]")  # U+FFFD, and surrogates, which are not text


@dataclass(frozen=True)
class Substring:
    """Bytes that a text must contain contiguously: at its beginning if `starts`, at its end if `ends`."""

    text: bytes
    starts: bool = False
    ends: bool = False

    def is_in(self, text: bytes) -> bool:
        """Return whether a text contains the substring in its required place."""
        match self.starts, self.ends:
            case True, True:
                return text == self.text
            case True, False:
                return text.startswith(self.text)
            case False, True:
                return text.endswith(self.text)
            case _:
                return self.text in text


# a text contains all substrings of one alternative; without alternatives nothing is known of it
Alternatives: TypeAlias = tuple[tuple[Substring, ...], ...]


def fold(text: bytes) -> bytes:
    """Convert ASCII letters to lower case; other bytes are unchanged."""
    return text.lower()


def tokens_within(substring: Substring) -> tuple[bytes, ...]:
    """Return the whole tokens of every text that contains a substring: they end inside it, or where the text ends.

    A token is a maximal run of digits, ASCII letters, ``_`` and bytes from 0x80 on, hence all characters beyond ASCII.
    """
    matches = _TOKEN.finditer(substring.text)
    last = len(substring.text)
    return tuple(m[0] for m in matches if (m.start() > 0 or substring.starts) and (m.end() < last or substring.ends))


def tokens_in(text: bytes) -> list[bytes]:
    """Return the tokens of a whole text."""
    return _TOKEN.findall(text)


def is_token(text: bytes) -> bool:
    """Return whether a text is one token."""
    return _TOKEN.fullmatch(text) is not None


# ---- what the bytes of a text must contain ---


def in_bytes(alternatives: Alternatives, *, folded: bool) -> Alternatives:
    """Return what the bytes of a text contain if its characters contain one of the alternatives.

    Nothing is returned if an alternative is left empty. `folded`: the alternatives apply to the text in lower case, and
    the result to the text after :func:`fold`, for texts without a character of CASE_TRICKY.
    """
    if len(alternatives) > MOST_ALTERNATIVES:
        return ()
    parts = tuple(
        _independent(part for substring in substrings for part in _cut(substring, folded))
        for substrings in alternatives
    )
    return tuple(dict.fromkeys(parts)) if all(parts) else ()


def anywhere(alternatives: Alternatives) -> Alternatives:
    """Return the alternatives without anchors: a text whose part has substrings at its ends has them anywhere."""
    return tuple(tuple(Substring(substring.text) for substring in substrings) for substrings in alternatives)


def _cut(substring: Substring, folded: bool) -> Iterator[Substring]:
    for start, end in _certain_spans(substring.text, folded):
        if start < end:
            text = fold(substring.text[start:end]) if folded else substring.text[start:end]
            yield Substring(text, substring.starts and start == 0, substring.ends and end == len(substring.text))


def _certain_spans(text: bytes, folded: bool) -> Iterator[tuple[int, int]]:
    if folded:
        yield from (match.span() for match in _ASCII.finditer(text))
        return
    start = 0
    for match in _UNDECODED.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _independent(substrings: Iterable[Substring]) -> tuple[Substring, ...]:
    """Drop substrings that are implied by another one; if there are many, only the longest are considered."""
    distinct = list(dict.fromkeys(substrings))
    if len(distinct) > MOST_SUBSTRINGS:
        longest = set(nlargest(MOST_SUBSTRINGS, distinct, key=lambda substring: len(substring.text)))
        distinct = [substring for substring in distinct if substring in longest]
    return tuple(p for p in distinct if not any(p != q and _is_implied(p, q) for q in distinct))


def _is_implied(substring: Substring, other: Substring) -> bool:
    """Return whether every text that contains the other substring contains this one."""
    starts = not substring.starts or (other.starts and other.text.startswith(substring.text))
    ends = not substring.ends or (other.ends and other.text.endswith(substring.text))
    return starts and ends and substring.text in other.text


# ---- sets of keys ----------------------------------------------------------------------------------------------------


def alternatives_of(ranges: RangeSet) -> Alternatives:
    """Return the substrings of the texts in a set of BYTES keys: one alternative per point, and per range its prefix.

    None if the set is open above, has more than MOST_ALTERNATIVES parts, or one without a prefix.
    """
    count, is_open = divmod(len(ranges.thresholds), 2)
    if is_open or count > MOST_ALTERNATIVES:
        return ()
    points = ranges.points
    if points is not None:
        substrings = [Substring(key, starts=True, ends=True) for key in points.tolist()]
    else:
        bounds = zip(ranges.thresholds[::2].tolist(), ranges.thresholds[1::2].tolist(), strict=True)
        substrings = [_whole_of(start, stop) for start, stop in bounds]
    return tuple((substring,) for substring in substrings) if all(substring.text for substring in substrings) else ()


def _whole_of(start: bytes, stop: bytes) -> Substring:
    """Return the common prefix of all byte strings of [start, stop), or the only one."""
    if stop == start + b"\0":
        return Substring(start, starts=True, ends=True)
    shared = (start[:n] for n in range(len(start), 0, -1))
    for prefix in shared:
        after = prefix_successor(prefix)
        if after is not None and stop <= after:
            return Substring(prefix, starts=True)
    return Substring(b"", starts=True)
