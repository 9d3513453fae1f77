"""Pieces: bytes contained in every text for which a condition is TRUE, in any context.

Spark matches patterns, and maps case, on *decoded* text, in which U+FFFD replaces bytes that are not UTF-8. Decoding
and case mappings (``String.toLowerCase``, ICU's ``UCharacter``) go character by character and skip none, so what is
contiguous after them was contiguous before. There are two exceptions, and pieces are cut at both:

* U+FFFD itself may have been any byte.
* In lower case only ASCII is sure to have been the same ASCII letter in either case. Two characters beyond ASCII map to
  ASCII (``CASE_TRICKY``): nothing is claimed here about folded text that holds one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from typing import TypeAlias

from secateur.pruning.rangeset import RangeSet
from secateur.values import prefix_successor

MOST_ALTERNATIVES = 64
MOST_PIECES = 64  # of one alternative: all pairs are compared, and each is a question; fewer answer as well
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
        """Return whether a text contains the piece in its required place."""
        match self.starts, self.ends:
            case True, True:
                return text == self.text
            case True, False:
                return text.startswith(self.text)
            case False, True:
                return text.endswith(self.text)
            case _:
                return self.text in text


# one of them is contained, with all its pieces, if any is known
Alternatives: TypeAlias = tuple[tuple[Substring, ...], ...]


def fold(text: bytes) -> bytes:
    """Convert ASCII letters to lower case; other bytes are unchanged."""
    return text.lower()


def tokens_within(piece: Substring) -> tuple[bytes, ...]:
    """Return the whole tokens of every text that contains a piece: those that end inside it, or where the text does.

    A token is a maximal run of digits, ASCII letters, ``_`` and bytes from 0x80 on, hence all characters beyond ASCII.
    """
    matches = _TOKEN.finditer(piece.text)
    last = len(piece.text)
    return tuple(m[0] for m in matches if (m.start() > 0 or piece.starts) and (m.end() < last or piece.ends))


def tokens_in(text: bytes) -> list[bytes]:
    """Return the tokens of a whole text."""
    return _TOKEN.findall(text)


def is_token(text: bytes) -> bool:
    """Return whether a text is one token."""
    return _TOKEN.fullmatch(text) is not None


# ---- what is sure of pieces ------------------------------------------------------------------------------------------


def sure(alternatives: Alternatives, *, folded: bool) -> Alternatives:
    """Return what the bytes of a text contain if its characters contain one of the alternatives.

    Nothing is returned if an alternative is left empty. `folded`: the alternatives apply to the text in lower case, and
    the result to the text after :func:`fold`, for texts without a character of CASE_TRICKY.
    """
    if len(alternatives) > MOST_ALTERNATIVES:
        return ()
    parts = tuple(_telling(part for piece in pieces for part in _cut(piece, folded)) for pieces in alternatives)
    return tuple(dict.fromkeys(parts)) if all(parts) else ()


def anywhere(alternatives: Alternatives) -> Alternatives:
    """Return what contains the pieces at any place, as a text does one of whose parts has them at its ends."""
    return tuple(tuple(Substring(piece.text) for piece in pieces) for pieces in alternatives)


def _cut(piece: Substring, folded: bool) -> Iterator[Substring]:
    for start, end in _sure_spans(piece.text, folded):
        if start < end:
            text = fold(piece.text[start:end]) if folded else piece.text[start:end]
            yield Substring(text, piece.starts and start == 0, piece.ends and end == len(piece.text))


def _sure_spans(text: bytes, folded: bool) -> Iterator[tuple[int, int]]:
    if folded:
        yield from (match.span() for match in _ASCII.finditer(text))
        return
    start = 0
    for match in _UNDECODED.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _telling(pieces: Iterable[Substring]) -> tuple[Substring, ...]:
    """Drop pieces that follow from another one; if there are many, only the longest are considered."""
    distinct = list(dict.fromkeys(pieces))
    if len(distinct) > MOST_PIECES:
        longest = set(nlargest(MOST_PIECES, distinct, key=lambda piece: len(piece.text)))
        distinct = [piece for piece in distinct if piece in longest]
    return tuple(p for p in distinct if not any(p != q and _follows(p, q) for q in distinct))


def _follows(piece: Substring, other: Substring) -> bool:
    """Return whether every text that contains the other piece contains this one."""
    starts = not piece.starts or (other.starts and other.text.startswith(piece.text))
    ends = not piece.ends or (other.ends and other.text.endswith(piece.text))
    return starts and ends and piece.text in other.text


# ---- sets of keys ----------------------------------------------------------------------------------------------------


def alternatives_of(ranges: RangeSet) -> Alternatives:
    """Return the pieces of the texts in a set of BYTES keys: one alternative per point, and per range its prefix.

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
    return tuple((piece,) for piece in substrings) if all(piece.text for piece in substrings) else ()


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
