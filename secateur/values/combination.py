"""Arrays of keys chosen from, concatenated, compared and reduced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secateur.values.keys import UNBOUNDED, Keys


def choose(condition: np.ndarray, yes: Keys, no: Keys) -> Keys:
    """Choose element-wise between two arrays of keys of one kind."""
    yes, no = same_width([yes, no])
    return Keys(yes.kind, tuple(np.where(condition, a, b) for a, b in zip(yes.words, no.words, strict=True)))


def concatenate(parts: Sequence[Keys]) -> Keys:
    """Concatenate the keys of all parts; at least one part, all of one kind."""
    parts = same_width(parts)
    return Keys(parts[0].kind, tuple(np.concatenate(words) for words in zip(*(p.words for p in parts), strict=True)))


def same_width(parts: Sequence[Keys]) -> list[Keys]:
    """Pad the parts to as many words as the widest: zeros before the length, all ones where it is unbounded."""
    width = max(len(part.words) for part in parts)
    return [part if len(part.words) == width else _widen(part, width) for part in parts]


def _widen(keys: Keys, width: int) -> Keys:
    *body, length = keys.words
    padding = np.where(length == UNBOUNDED, UNBOUNDED, np.uint64(0))
    return Keys(keys.kind, (*body, *([padding] * (width - len(keys.words))), length))


def less(a: Keys, b: Keys) -> np.ndarray:
    """Mark the keys less than those at the same places of another array: bool of shape (n,)."""
    a, b = same_width([a, b])
    is_less = np.zeros(len(a), bool)
    for x, y in reversed(list(zip(a.words, b.words, strict=True))):
        is_less = (x < y) | ((x == y) & is_less)
    return is_less


def least_per_group(keys: Keys, starts: np.ndarray) -> Keys:
    """Return the least key of every group: groups are the non-empty runs that begin at `starts`."""
    if len(keys.words) == 1:
        return Keys(keys.kind, (np.minimum.reduceat(keys.words[0], starts),))
    return keys.take(_sorted_within(keys, starts)[starts])


def greatest_per_group(keys: Keys, starts: np.ndarray) -> Keys:
    """Return the greatest key of every group: groups are the non-empty runs that begin at `starts`."""
    if len(keys.words) == 1:
        return Keys(keys.kind, (np.maximum.reduceat(keys.words[0], starts),))
    return keys.take(_sorted_within(keys, starts)[np.append(starts[1:], len(keys)) - 1])


def _sorted_within(keys: Keys, starts: np.ndarray) -> np.ndarray:
    groups = np.zeros(len(keys), np.int64)
    groups[starts[1:]] = 1
    return np.lexsort((*reversed(keys.words), np.cumsum(groups)))
