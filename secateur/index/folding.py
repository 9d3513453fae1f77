"""Folding of texts: A-Z to a-z, other bytes as they are, for filters that are asked about texts in lower or upper case.

Spark maps whole characters. The bytes of a text in lower (or upper) case fold to the same ASCII bytes in the same
places among the others as those of the text itself, unless a character that is not ASCII is mapped to some that are.
There are few, :data:`UNFOLDABLE`; a text with one of them cannot be treated. Bytes that are not ASCII prove nothing: é
and É are one letter and four different bytes.
"""

from __future__ import annotations

import re

import numpy as np

# All characters that str.lower and str.upper, in whatever turn, lead to ASCII. Java maps them alike.
UNFOLDABLE = "ßİıŉſǰẖẗẘẙẚẞ\N{KELVIN SIGN}ﬀﬁﬂﬃﬄﬅﬆ"

_UNFOLDABLE = re.compile(b"|".join(re.escape(character.encode()) for character in UNFOLDABLE))
_LONGEST = max(len(character.encode()) for character in UNFOLDABLE)
_SLICE = 1 << 20  # bytes: one ASCII text more or less is passed over at the speed of memory


def folded(text: bytes) -> bytes:
    """The text with A-Z as a-z, and all other bytes as they are."""
    return text.lower()  # of bytes, this is about ASCII alone


def fold(data: np.ndarray) -> np.ndarray:
    """Vectorised :func:`folded`: uint8 of shape (n,) to the same."""
    return np.frombuffer(data.tobytes().lower(), np.uint8)


def foldable(data: np.ndarray) -> bool:
    """Whether no character in the UTF-8 bytes of texts, uint8 of shape (n,), is one of :data:`UNFOLDABLE`.

    Bytes that are no UTF-8 may say no without need, and never yes: Spark reads every character from the bytes that are
    its encoding, whatever is around them.
    """
    for start in range(0, len(data), _SLICE):
        part = np.ascontiguousarray(data[start : start + _SLICE + _LONGEST - 1])
        if part.max() >= 0x80 and _UNFOLDABLE.search(part.data):
            return False
    return True
