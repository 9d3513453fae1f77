"""Sets of tuples of keys: which rows of several columns a semi join selects, and which units may hold one.

Every column has its distinct keys in order, and a key is its place among them. The tuples are numbered in lexical
order, column by column: a prefix of a tuple is the pair (number of the shorter prefix, place of the next key), and the
distinct pairs, in order, number the longer prefixes. A unit with bounds on every column holds only tuples that lie in
lexical order between the tuple of its lower bounds and that of its upper bounds. So a unit is proven to hold none if no
number is left between the two; a row is a unit whose bounds are its values, and for it the answer is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.integers import sorted_distinct
from secateur.pruning.bounds.outcomes import NULL, of_sides
from secateur.pruning.bounds.zones import Zones
from secateur.values.combination import less
from secateur.values.keys import Keys
from secateur.values.kinds import Kind


@dataclass(frozen=True, eq=False)
class JoinedColumn:
    """The distinct keys of a column, in order; if NULL is looked for, its place follows theirs."""

    keys: Keys
    has_null: bool = False

    @property
    def places(self) -> int:
        """The number of places, that of NULL included."""
        return len(self.keys) + self.has_null

    def span(self, zones: Zones | None, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last place that units may hold: int64 of shape (n,); first > last if none."""
        count = len(self.keys)
        if zones is None:
            return np.zeros(n, np.int64), np.full(n, self.places - 1)
        if self.keys.kind is Kind.WORD:
            (words,) = self.keys.words
            first = np.searchsorted(words, zones.lower.words[0])
            last = np.searchsorted(words, zones.upper.words[0], side="right") - 1
        else:
            first = zones.lower.rank(self._edges(zones.lower.width)) // 2
            last = (zones.upper.rank(self._edges(zones.upper.width)) + 1) // 2 - 1
        is_null = zones.value == 0
        first, last = np.where(is_null, count, first), np.where(is_null, count - 1, last)
        if self.has_null:
            last = np.where(zones.null != 0, count, last)
        return first.astype(np.int64), last.astype(np.int64)

    def _edges(self, width: int) -> Keys:
        """Return every key followed by its successor, with `width` words of bytes."""
        if width not in self._tables:
            self._tables[width] = _edges(self.keys, width)
        return self._tables[width]

    @cached_property
    def _tables(self) -> dict[int, Keys]:
        return {}


def _edges(keys: Keys, width: int) -> Keys:
    """Interleave keys with their successors: half the rank of a key is the number of keys less than it."""
    *body, low = keys.words
    after = low + np.uint64(1)
    if keys.kind is Kind.WIDE:
        return Keys(keys.kind, (_interleaved(body[0], body[0] + (after == 0)), _interleaved(low, after)))
    padded = [*body, *([np.zeros(len(keys), np.uint64)] * (width - len(body)))][:width]
    # Zeros follow the bytes in the last of their words: one zero more changes only the length.
    return Keys(keys.kind, (*(np.repeat(word, 2) for word in padded), _interleaved(low, after)))


def _interleaved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.column_stack([a, b]).ravel()


@dataclass(frozen=True, eq=False)
class KeyTuples:
    """A set of tuples of keys. If `null_safe`, NULL equals NULL; else a tuple with NULL is in no set."""

    columns: tuple[JoinedColumn, ...]
    prefixes: tuple[np.ndarray, ...]  # of columns 2, 3, ...: ascending (prefix before) * places + place
    null_safe: bool

    def outcomes(self, zones: Sequence[Zones | None], n: int) -> np.ndarray:
        """Return whether the tuples of units may be inside or outside, or NULL: uint8 of shape (n,)."""
        spans = [column.span(of_column, n) for column, of_column in zip(self.columns, zones, strict=True)]
        first, last = spans[0]
        possible = first <= last
        for column, numbers, (low, high) in zip(self.columns[1:], self.prefixes, spans[1:], strict=True):
            possible &= low <= high
            first = np.searchsorted(numbers, first * column.places + low)
            last = np.searchsorted(numbers, last * column.places + high, side="right") - 1
            possible &= first <= last
        known = [of_column for of_column in zones if of_column is not None]
        one_tuple = np.full(n, len(known) == len(zones))  # in which the answer is exact
        values, null = np.ones(n, bool), np.full(n, len(known) < len(zones))
        for of_column in known:
            has_value, has_null = of_column.value != 0, of_column.null != 0
            one_tuple &= ~has_value | (~has_null & ~less(of_column.lower, of_column.upper))
            values &= has_value
            null |= has_null
        outside = ~(possible & one_tuple)
        if self.null_safe:
            return of_sides(possible.view(np.uint8), outside.view(np.uint8))
        inside = of_sides(possible.view(np.uint8), (outside & values).view(np.uint8))
        return inside | np.where(null, np.uint8(NULL), np.uint8(0))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KeyTuples)
            and self.null_safe == other.null_safe
            and [column.has_null for column in self.columns] == [column.has_null for column in other.columns]
            and all(
                len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))
                for ours, theirs in zip(self._arrays, other._arrays, strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash((len(self.columns), *(len(column.keys) for column in self.columns)))

    @property
    def _arrays(self) -> tuple[tuple[np.ndarray, ...], ...]:
        return (self.prefixes, *(column.keys.words for column in self.columns))


def key_tuples(columns: Sequence[tuple[Keys, np.ndarray]], *, null_safe: bool) -> KeyTuples:
    """Return the set of some tuples: per column its keys, and whether each is NULL, bool of shape (n,).

    Without `null_safe` no tuple has a NULL.
    """
    tables: list[JoinedColumn] = []
    prefixes: list[np.ndarray] = []
    pairs = np.zeros(0, np.int64)
    for i, (keys, null) in enumerate(columns):
        distinct, places = _numbered(keys, null)
        tables.append(JoinedColumn(distinct, bool(null.any())))
        if not i:
            pairs = places
            continue
        before = pairs if i == 1 else np.searchsorted(prefixes[-1], pairs)
        pairs = before * tables[-1].places + places
        prefixes.append(sorted_distinct(pairs))
    return KeyTuples(tuple(tables), tuple(prefixes), null_safe)


def _numbered(keys: Keys, null: np.ndarray) -> tuple[Keys, np.ndarray]:
    """Return the distinct keys that are not NULL in order, and the place of every key: int64 of shape (n,)."""
    present = np.flatnonzero(~null)
    words = keys.take(present).words
    order = present[np.argsort(words[0]) if len(words) == 1 else np.lexsort(tuple(reversed(words)))]
    ordered = keys.take(order)
    is_first = np.append(True, np.logical_or.reduce([word[1:] != word[:-1] for word in ordered.words]))[: len(order)]
    places = np.full(len(keys), np.count_nonzero(is_first))
    places[order] = np.cumsum(is_first) - 1
    return ordered.take(is_first), places
