"""Folding of texts: A-Z to a-z, other bytes as they are, for filters that are asked about texts in lower case.

Spark maps whole characters. The ASCII bytes of a text in lower case are those of the folded text, in the same places
among the others, unless a character that is not ASCII is mapped to some that are. There are two,
CASE_TRICKY in ``predicate/patterns/pieces``; a text with one of them cannot be treated. Bytes that are not ASCII
prove nothing: é and É are one letter and four different bytes.
"""

from __future__ import annotations

import re

import numpy as np

from secateur.pruning.predicate.patterns.pieces import CASE_TRICKY

_TRICKY = re.compile(b"|".join(re.escape(character.encode()) for character in sorted(CASE_TRICKY)))
_LONGEST = max(len(character.encode()) for character in CASE_TRICKY)
_SLICE = 1 << 20  # bytes: one ASCII text more or less is passed over at the speed of memory


def fold(data: np.ndarray) -> np.ndarray:
    """Vectorised :func:`secateur.pruning.predicate.patterns.pieces.fold`: uint8 of shape (n,) to the same."""
    return np.frombuffer(data.tobytes().lower(), np.uint8)


def foldable(data: np.ndarray) -> bool:
    """Whether no character in the UTF-8 bytes of texts, uint8 of shape (n,), is one of :data:`CASE_TRICKY`.

    Bytes that are no UTF-8 may say no without need, and never yes: Spark reads every character from the bytes that are
    its encoding, whatever is around them.
    """
    for start in range(0, len(data), _SLICE):
        part = np.ascontiguousarray(data[start : start + _SLICE + _LONGEST - 1])
        if part.max() >= 0x80 and _TRICKY.search(part.data):
            return False
    return True
