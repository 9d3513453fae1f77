"""Pieces: bytes that every text holds for which a condition is TRUE, whatever stands around them.

Spark matches patterns, and maps case, on *decoded* text, in which U+FFFD stands for bytes that are no UTF-8. Decoding
and case mappings (``String.toLowerCase``, ICU's ``UCharacter``) go from character to character and leave none out, so
what is contiguous after them was contiguous before. Two doubts remain, and pieces are cut at both:

* U+FFFD itself may have been any byte.
* In lower case only what is ASCII is sure to have been the same ASCII letter in either case. Two characters beyond
  ASCII turn into ASCII (``CASE_TRICKY``): a text that holds one is outside of every claim made here of folded text.
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
MOST_PIECES = 64  # of one alternative: all pairs of them are compared, and each is a question that fewer answer as well
CASE_TRICKY = frozenset("\u0130\u212a")  # I with a dot, and the Kelvin sign: their lower case has ASCII letters

_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_ASCII = re.compile(rb"[\x00-\x7f]+")
_UNDECODED = re.compile(rb"\xef\xbf\xbd|\xed[\xa0-\xbf][\x80-\xbf]")  # U+FFFD, and surrogates, which are no text


@dataclass(frozen=True)
class Substring:
    """Bytes that one text must hold, contiguous: at its beginning where `starts`, at its end where `ends`."""

    text: bytes
    starts: bool = False
    ends: bool = False

    def is_in(self, text: bytes) -> bool:
        """Whether a text holds the piece where it has to stand."""
        match self.starts, self.ends:
            case True, True:
                return text == self.text
            case True, False:
                return text.startswith(self.text)
            case False, True:
                return text.endswith(self.text)
            case _:
                return self.text in text


Alternatives: TypeAlias = tuple[tuple[Substring, ...], ...]  # one of them is held, with all its pieces; if any is known


def fold(text: bytes) -> bytes:
    """ASCII letters in lower case, all other bytes as they are."""
    return text.lower()


def tokens_within(piece: Substring) -> tuple[bytes, ...]:
    """The whole tokens of every text that holds a piece: those that end inside of it, or where the text does.

    A token is a maximal run of digits, ASCII letters, ``_`` and bytes from 0x80 on, so of all characters beyond ASCII.
    """
    found = _TOKEN.finditer(piece.text)
    last = len(piece.text)
    return tuple(m[0] for m in found if (m.start() > 0 or piece.starts) and (m.end() < last or piece.ends))


def tokens_in(text: bytes) -> list[bytes]:
    """The tokens of a whole text."""
    return _TOKEN.findall(text)


def is_token(text: bytes) -> bool:
    """Whether a text is one token."""
    return _TOKEN.fullmatch(text) is not None


# ---- what is sure of pieces ------------------------------------------------------------------------------------------


def sure(alternatives: Alternatives, *, folded: bool) -> Alternatives:
    """What the bytes of a text hold if its characters hold one of the alternatives; nothing where one is left empty.

    `folded`: the alternatives are of the text in lower case; what is found is of the text after :func:`fold`,
    for texts without a character of CASE_TRICKY.
    """
    if len(alternatives) > MOST_ALTERNATIVES:
        return ()
    found = tuple(_telling(part for piece in pieces for part in _cut(piece, folded)) for pieces in alternatives)
    return tuple(dict.fromkeys(found)) if all(found) else ()


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
    """The pieces that do not follow from another one; of many, the longest are looked at."""
    distinct = list(dict.fromkeys(pieces))
    if len(distinct) > MOST_PIECES:
        longest = set(nlargest(MOST_PIECES, distinct, key=lambda piece: len(piece.text)))
        distinct = [piece for piece in distinct if piece in longest]
    return tuple(p for p in distinct if not any(p != q and _follows(p, q) for q in distinct))


def _follows(piece: Substring, other: Substring) -> bool:
    """Whether every text that holds the other piece holds this one."""
    starts = not piece.starts or (other.starts and other.text.startswith(piece.text))
    ends = not piece.ends or (other.ends and other.text.endswith(piece.text))
    return starts and ends and piece.text in other.text


# ---- sets of keys ----------------------------------------------------------------------------------------------------


def alternatives_of(ranges: RangeSet) -> Alternatives:
    """The pieces of the texts in a set of BYTES keys: an alternative for each point, and for each range its prefix.

    None where the set is open above, has more than MOST_ALTERNATIVES parts, or one without a prefix.
    """
    count, is_open = divmod(len(ranges.thresholds), 2)
    if is_open or count > MOST_ALTERNATIVES:
        return ()
    points = ranges.points
    if points is not None:
        found = [Substring(key, starts=True, ends=True) for key in points.tolist()]
    else:
        bounds = zip(ranges.thresholds[::2].tolist(), ranges.thresholds[1::2].tolist(), strict=True)
        found = [_whole_of(start, stop) for start, stop in bounds]
    return tuple((piece,) for piece in found) if all(piece.text for piece in found) else ()


def _whole_of(start: bytes, stop: bytes) -> Substring:
    """What all byte strings of [start, stop) begin with, or are."""
    if stop == start + b"\0":
        return Substring(start, starts=True, ends=True)
    shared = (start[:n] for n in range(len(start), 0, -1))
    for prefix in shared:
        after = prefix_successor(prefix)
        if after is not None and stop <= after:
            return Substring(prefix, starts=True)
    return Substring(b"", starts=True)
