"""Fold texts: A-Z to a-z, other bytes unchanged, for filters on texts in lower case.

Spark maps whole characters. The ASCII bytes of a lower-case text equal those of the folded text, at the same places
among the others, unless a non-ASCII character is mapped to ASCII ones. There are two such characters, CASE_TRICKY in
``pruning/predicate/patterns/substrings``; a text with one of them cannot be folded. Non-ASCII bytes prove nothing:
é and É are one letter but different bytes.
"""

from __future__ import annotations

import re

import numpy as np

from secateur.pruning.predicate.patterns.substrings import CASE_TRICKY

_TRICKY = re.compile(b"|".join(re.escape(character.encode()) for character in sorted(CASE_TRICKY)))
_LONGEST = max(len(character.encode()) for character in CASE_TRICKY)
_SLICE = 1 << 20  # bytes; a plain ASCII slice is skipped at memory speed


def fold(data: np.ndarray) -> np.ndarray:
    """Fold UTF-8 bytes, uint8 of shape (n,): a vectorised ``fold`` of ``pruning/predicate/patterns/substrings``."""
    return np.frombuffer(data.tobytes().lower(), np.uint8)


def foldable(data: np.ndarray) -> bool:
    """Whether the UTF-8 bytes of texts, uint8 of shape (n,), contain no character of :data:`CASE_TRICKY`.

    For bytes that are not UTF-8 the answer may be needlessly False, but is never wrongly True: Spark reads every
    character from the bytes of its encoding, whatever surrounds them.
    """
    for start in range(0, len(data), _SLICE):
        part = np.ascontiguousarray(data[start : start + _SLICE + _LONGEST - 1])
        if part.max() >= 0x80 and _TRICKY.search(part.data):
            return False
    return True
