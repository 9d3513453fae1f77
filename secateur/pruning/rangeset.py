"""Sets of keys: what a comparison with literals, an IN list or a prefix asks of a column.

A set is a sorted array of *thresholds* t0 < t1 < ...: a key lies inside iff it is at least an odd number of
them, that is in [t0, t1), [t2, t3), ...; an odd number of thresholds leaves the last range open above. Keys are
discrete (every key has a successor), so half-open ranges say everything, and intersection, union and
complement are sweeps over thresholds. Any length: 100,000 values of an IN list are one set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.outcomes import FALSE, TRUE, of_sides
from secateur.values import (
    FEW_THRESHOLDS,
    INT64_MAX,
    Key,
    Keys,
    Kind,
    common_words,
    keys_from,
    least_key,
    prefix_successor,
    sorted_distinct,
    successor,
)

MOST_ADJACENT_POINTS = 64
CHUNK = 1 << 18  # intervals: what is read of them several times stays in a core's cache
FEW_NEAR = 32  # one interval in so many is looked at by position; where more are near, whole words are compared
BUCKETS_OF_THRESHOLD = 4
STEPS = 2  # thresholds of a bucket that are tried one by one, before the others are searched
UNITS_OF_GRID = 4  # thresholds per interval above which laying out a grid costs more than searching
HASHED = 16  # thresholds that tell sets apart in a dictionary, before they are compared
_NONE = np.arange(0)
_SIDES = (FALSE, TRUE)  # of an interval without thresholds, by the rank of its keys modulo 2


@dataclass(frozen=True, eq=False)
class RangeSet:
    """A set of keys of one kind: `thresholds` is int64 for WORD keys, Python objects otherwise."""

    kind: Kind
    thresholds: np.ndarray

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RangeSet)
            and self.kind is other.kind
            and np.array_equal(self.thresholds, other.thresholds)
        )

    def __hash__(self) -> int:
        few = self.thresholds[:: 1 + len(self.thresholds) // HASHED]
        return hash((self.kind, len(self.thresholds), *few.tolist()))

    def contains(self, keys: Keys) -> np.ndarray:
        """Which keys lie inside: bool of shape (n,)."""
        return (keys.rank(self._table(keys.width)) & 1).astype(bool)

    def overlap(self, lower: Keys, upper: Keys) -> tuple[np.ndarray, np.ndarray]:
        """Which intervals [lower, upper] hold some key inside, and which hold some key outside: bools of shape (n,).

        Two keys of the same rank lie in the same gap or range, and so does everything between them; a rank that
        changes on the way means that at least one threshold, hence a key of either side, may lie between. One
        range, the usual case, is written out.
        """
        if len(self.thresholds) == 1:
            return upper.at_least(self.thresholds[0]), ~lower.at_least(self.thresholds[0])
        if len(self.thresholds) == 2:
            start, stop = self.thresholds
            begun, ended = lower.at_least(start), upper.at_least(stop)
            return upper.at_least(start) & ~lower.at_least(stop), ~begun | ended
        low = lower.rank(self._table(lower.width))
        inside = (low & 1).astype(bool)
        crosses = self._reaches(upper, low)
        return crosses | inside, crosses | ~inside

    def _reaches(self, upper: Keys, low: np.ndarray) -> np.ndarray:
        """Which upper bounds are at least the threshold after the `low` first ones."""
        if self.kind is not Kind.WORD or not len(self.thresholds):
            return upper.rank(self._table(upper.width)) > low
        following = self.thresholds.take(low, mode="clip")
        return (upper.words[0] >= following) & (low < len(self.thresholds))

    def reaches(self, lower: Keys, upper: Keys, units: np.ndarray | None = None, *, inside: bool) -> np.ndarray | None:
        """Which intervals [lower, upper], or of the chosen, may hold a key inside (or outside): bool of shape (n,).

        One comparison per threshold, for words and up to two thresholds, as of a range; None for other sets, of which
        :meth:`outcomes` tells both sides at once.
        """
        if self.kind is not Kind.WORD or not 0 < len(self.thresholds) <= 2:
            return None
        chosen = slice(None) if units is None else units
        start, stop = self.thresholds[0], self.thresholds[1:]
        if not inside:
            outside = np.less(lower.words[0][chosen], start)
            return outside | np.greater_equal(upper.words[0][chosen], stop[0]) if len(stop) else outside
        begun = np.greater_equal(upper.words[0][chosen], start)
        return begun & np.less(lower.words[0][chosen], stop[0]) if len(stop) else begun

    def outcomes(self, lower: Keys, upper: Keys) -> np.ndarray:
        """TRUE where [lower, upper] may hold a key inside, FALSE where it may hold one outside: uint8 of shape (n,).

        The same as :meth:`overlap` for intervals that are not empty, chunk by chunk, so that what is read several
        times stays in a core's cache.
        """
        n, width = len(lower), min(lower.width, upper.width)
        result = np.empty(n, np.uint8)
        thresholds = _Thresholds(self, width, n)
        everywhere = thresholds.undecided(thresholds.all, lower.common, upper.common)
        left = []
        for start in range(0, n, CHUNK):
            chunk = slice(start, start + CHUNK)
            rest = thresholds.fill(result[chunk], lower.take(chunk), upper.take(chunk), everywhere)
            if len(rest):
                left.append(rest + start)
        if left:
            rest = np.concatenate(left)
            result[rest] = self._sides(lower.take(rest), upper.take(rest))
        return result

    def _sides(self, lower: Keys, upper: Keys) -> np.ndarray:
        inside, outside = self.overlap(lower, upper)
        return of_sides(inside.view(np.uint8), outside.view(np.uint8))

    def _table(self, width: int) -> Keys:
        """The thresholds as keys of `width` words of bytes."""
        if self.kind is Kind.WORD:
            return Keys(self.kind, (self.thresholds,))
        if width not in self._tables:
            self._tables[width] = keys_from(self.kind, self.thresholds.tolist(), width)
        return self._tables[width]

    @cached_property
    def _tables(self) -> dict[int, Keys]:
        return {}

    @cached_property
    def _grids(self) -> dict[tuple[int, int, int, int], _Grid]:
        """Of words of bytes, the thresholds [begin, end) and the word by which they are compared: laid out once."""
        return {}

    @property
    def is_empty(self) -> bool:
        """Whether no key lies inside."""
        return len(self.thresholds) == 0

    @property
    def is_everything(self) -> bool:
        """Whether every key lies inside."""
        return len(self.thresholds) == 1 and self.thresholds[0] == least_key(self.kind)

    @cached_property
    def points(self) -> np.ndarray | None:
        """The keys inside if they are finitely many single keys (as an equality or IN list gives), else None."""
        if len(self.thresholds) % 2:
            return None
        starts, stops = self.thresholds[::2], self.thresholds[1::2]
        if self.kind is Kind.WORD:
            return _integers(starts, stops)
        if [successor(key, self.kind) for key in starts.tolist()] == stops.tolist():
            return starts
        runs = [_run(start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        if any(run is None for run in runs):
            return None
        return of_thresholds(self.kind, [key for run in runs if run is not None for key in run]).thresholds


def _integers(starts: np.ndarray, stops: np.ndarray) -> np.ndarray | None:
    """The integers of all [start, stop) if each has few."""
    counts = stops.view(np.uint64) - starts.view(np.uint64)  # a difference of two int64 may need 64 bits
    if counts.max(initial=0) > MOST_ADJACENT_POINTS:
        return None
    counts = counts.astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _run(start: Key, stop: Key) -> list[Key] | None:
    """The keys of [start, stop) if they are few: adjacent points are one range of thresholds."""
    match start, stop:
        case bytes(), bytes():
            count = len(stop) - len(start)
            few = count <= MOST_ADJACENT_POINTS and stop == start + b"\0" * count
            return [start + b"\0" * i for i in range(count)] if few else None
        case int(), int():
            return list(range(start, stop)) if stop - start <= MOST_ADJACENT_POINTS else None
        case _:
            return None


def empty(kind: Kind) -> RangeSet:
    """The set without keys."""
    return of_thresholds(kind, [])


def everything(kind: Kind) -> RangeSet:
    """The set of all keys."""
    return of_thresholds(kind, [least_key(kind)])


def between(kind: Kind, start: Key | None, stop: Key | None) -> RangeSet:
    """The keys in [start, stop); a `start` of None is after every key, a `stop` of None is unbounded."""
    if start is None or (stop is not None and stop <= start):  # type: ignore[operator]
        return empty(kind)
    return of_thresholds(kind, [start] if stop is None else [start, stop])


def points(kind: Kind, keys: Iterable[Key]) -> RangeSet:
    """The set of just these keys."""
    if kind is Kind.WORD:
        return integer_points(np.array(list(keys), np.int64))
    thresholds: list[Key | None] = []
    for key in sorted(set(keys)):
        if not thresholds or thresholds[-1] != key:
            thresholds.append(key)
        else:  # adjacent to the key before
            thresholds.pop()
        thresholds.append(successor(key, kind))
    return of_thresholds(kind, [threshold for threshold in thresholds if threshold is not None])


def integer_points(keys: np.ndarray) -> RangeSet:
    """The set of just these WORD keys: int64 of shape (n,), in any order, repeated or not."""
    return RangeSet(Kind.WORD, _around(sorted_distinct(keys)))


def byte_points(keys: pa.Array) -> RangeSet:
    """The set of just these BYTES keys: large_binary without nulls, in any order, repeated or not."""
    ordered = keys.take(pc.array_sort_indices(keys))
    first = np.append(True, pc.not_equal(ordered[1:], ordered[:-1]))[: len(ordered)]
    distinct = ordered.filter(pa.array(first, pa.bool_()))
    starts = distinct.to_pylist()
    if pc.any(pc.ends_with(distinct, b"\0")).as_py():  # may be adjacent to the key before
        return points(Kind.BYTES, starts)
    thresholds = np.empty(2 * len(starts), object)
    thresholds[::2], thresholds[1::2] = starts, [start + b"\0" for start in starts]
    return RangeSet(Kind.BYTES, thresholds)


def _around(keys: np.ndarray) -> np.ndarray:
    """The thresholds of distinct ascending integers: the first of every run of adjacent ones, and what follows it."""
    if not len(keys):
        return keys
    apart = keys[1:] - 1 != keys[:-1]
    first, last = keys[np.append(True, apart)], keys[np.append(apart, True)]
    thresholds = np.column_stack([first, last]).ravel()
    thresholds[1::2] += last < INT64_MAX
    return thresholds[:-1] if last[-1] == INT64_MAX else thresholds


def starting_with(prefix: bytes) -> RangeSet:
    """The byte strings that start with `prefix`."""
    return between(Kind.BYTES, prefix, prefix_successor(prefix))


def complement(a: RangeSet) -> RangeSet:
    """The keys outside."""
    least = of_thresholds(a.kind, [least_key(a.kind)]).thresholds
    if len(a.thresholds) and a.thresholds[0] == least[0]:
        return RangeSet(a.kind, a.thresholds[1:])
    return RangeSet(a.kind, np.concatenate([least, a.thresholds]))


def intersection(a: RangeSet, b: RangeSet) -> RangeSet:
    """The keys inside both."""
    return _sweep(a, b, np.logical_and)


def union(a: RangeSet, b: RangeSet) -> RangeSet:
    """The keys inside either."""
    return _sweep(a, b, np.logical_or)


def _sweep(a: RangeSet, b: RangeSet, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> RangeSet:
    """Walks along the thresholds of both in one order, and keeps those where the combination changes."""
    cuts = np.concatenate([a.thresholds, b.thresholds])
    order = np.argsort(cuts, kind="stable")  # of two sorted runs, which it merges
    cuts, of_b = cuts[order], order >= len(a.thresholds)
    inside = combine((np.cumsum(~of_b) & 1).astype(bool), (np.cumsum(of_b) & 1).astype(bool))
    last = np.append(cuts[1:] != cuts[:-1], True)[: len(cuts)]  # of the thresholds at one key
    cuts, inside = cuts[last], inside[last]
    return RangeSet(a.kind, cuts[np.diff(inside, prepend=False)])


def of_thresholds(kind: Kind, thresholds: Sequence[Key]) -> RangeSet:
    """The set with these thresholds, which ascend."""
    array = np.empty(len(thresholds), np.int64 if kind is Kind.WORD else object)
    array[:] = thresholds
    return RangeSet(kind, array)


class _Part(NamedTuple):
    """The thresholds [begin, end), and the word by which they are compared."""

    begin: int
    end: int
    word: int


class _Thresholds:
    """The thresholds of a set, laid out for comparing them with many intervals."""

    def __init__(self, ranges: RangeSet, width: int, n: int) -> None:
        self.ranges = ranges
        self.table = ranges._table(width).words
        self.exact = ranges.kind is Kind.WORD  # no words follow the first, so a tie is equality
        self.words = max(1, width) if ranges.kind is Kind.BYTES else len(self.table)
        below = int(len(ranges.thresholds) > 0 and ranges.thresholds[0] == least_key(ranges.kind))
        self.all = _Part(below, len(ranges.thresholds), 0)
        self.spare = np.empty((2, min(n, CHUNK)), bool)
        self.width = width
        self._before: np.ufunc = np.less if self.exact else np.less_equal
        self.worth_a_grid = n * UNITS_OF_GRID > len(ranges.thresholds)

    def fill(self, result: np.ndarray, lower: Keys, upper: Keys, everywhere: _Part) -> np.ndarray:
        """Writes the outcomes of the intervals of one chunk, but for those at the positions that it gives back."""
        begin, end, word = self.undecided(
            everywhere, common_words(lower.words[everywhere.word : -1]), common_words(upper.words[everywhere.word : -1])
        )
        thresholds = self.table[word][begin:end]
        low, high = lower.words[word], upper.words[word]
        outside, flipped = _SIDES[begin % 2], begin % 2 == 1
        if not len(thresholds):
            result.fill(outside)
            return _NONE
        if len(thresholds) % 2 == 0:
            near = self._near(result, low, high, thresholds)
            positions = _few(near)
            if positions is not None:
                result.fill(outside)
                return self._compare_at(positions, result, low, high, thresholds, flipped)
        if len(thresholds) <= 2:
            rest = self._compare(result, low, high, thresholds, flipped)
        elif len(thresholds) <= FEW_THRESHOLDS or not self.worth_a_grid:
            rest = None
        else:
            rest = self._grid(begin, end, word).fill(result, low, high)
        if rest is None:
            result[:] = self.ranges._sides(lower, upper)
            return _NONE
        return rest

    def undecided(self, among: _Part, low: Sequence[np.generic], high: Sequence[np.generic]) -> _Part:
        """The thresholds that keys may be on both sides of, by the words that all lower and all upper bounds share.

        Thresholds with a lesser word than all keys are below them all, those with a greater one above them all,
        and for the others the next word decides.
        """
        begin, end, word = among
        for value, other in zip(low, high, strict=False):
            if value != other or begin == end or word + 1 == self.words:
                break
            column = self.table[word][begin:end]
            end = begin + int(np.searchsorted(column, value, side="right"))
            begin += int(np.searchsorted(column, value, side="left"))
            word += 1
        return _Part(begin, end, word)

    def _near(self, result: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Which intervals may reach between the first threshold and the last, in the memory of `result`."""
        near, spare = result.view(bool), self.spare[0, : len(low)]
        np.greater_equal(high, thresholds[0], out=near)
        self._before(low, thresholds[-1], out=spare)
        return np.logical_and(near, spare, out=near)

    def _compare_at(
        self,
        positions: np.ndarray,
        result: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        thresholds: np.ndarray,
        flipped: bool,
    ) -> np.ndarray:
        """Writes the outcomes of a few intervals near two thresholds; gives the positions of those still to find."""
        if len(thresholds) > 2:
            return positions
        found = np.ones(len(positions), np.uint8)
        rest = self._compare(found, low[positions], high[positions], thresholds, flipped)
        result[positions] = found
        return positions if rest is None else positions[rest]

    def _compare(
        self, result: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray, flipped: bool
    ) -> np.ndarray | None:
        """Writes the outcomes for one threshold, or for two where `result` is :meth:`_near`; gives positions of ties.

        Words that differ decide both sides. Where a word ties with a threshold's, both sides are written.
        """
        inside = result.view(bool)
        outside, spare = self.spare[:, : len(low)]
        self._before(low, thresholds[0], out=outside)
        if len(thresholds) == 1:
            np.greater_equal(high, thresholds[0], out=inside)
        else:
            np.greater_equal(high, thresholds[1], out=spare)
            np.logical_or(outside, spare, out=outside)
        both = None if self.exact else np.logical_and(inside, outside, out=spare)
        doubled = (inside if flipped else outside).view(np.uint8)
        doubled += doubled
        result |= outside.view(np.uint8)
        return _NONE if both is None else self._tied(both, low, high, thresholds)

    def _tied(self, both: np.ndarray, low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray | None:
        """Positions of the intervals of which one word, or both, ties with a threshold's; None for the most."""
        positions = _few(both)
        if positions is None:
            positions = np.flatnonzero(both & _ties(low, high, thresholds))
            return None if len(positions) * 2 > len(both) else positions
        return positions[_ties(low[positions], high[positions], thresholds)]

    def _grid(self, begin: int, end: int, word: int) -> _Grid:
        grids, key = self.ranges._grids, (self.width, begin, end, word)
        if key not in grids:
            grids[key] = _Grid.over(self.table[word][begin:end], begin, self.exact)
        return grids[key]


@dataclass(frozen=True)
class _Grid:
    """Many thresholds counted by buckets of equal width: most intervals reach over buckets without any."""

    thresholds: np.ndarray
    below: int  # thresholds before these
    exact: bool  # whether words that tie are keys that are equal
    first: np.generic
    last: np.generic
    shift: np.uint64
    counts: np.ndarray  # int32: for every bucket, and for what follows the last, the thresholds before it

    @staticmethod
    def over(thresholds: np.ndarray, below: int, exact: bool) -> _Grid:
        """The grid over some sorted words."""
        first, last = thresholds[0], thresholds[-1]
        wanted = len(thresholds) * BUCKETS_OF_THRESHOLD
        shift = np.uint64(max(0, (int(last) - int(first)).bit_length() - wanted.bit_length()))
        buckets = (thresholds.view(np.uint64) - first.view(np.uint64)) >> shift
        counts = np.cumsum(np.bincount(buckets.view(np.int64) + 1))
        return _Grid(thresholds, below, exact, first, last, shift, counts.astype(np.int32))

    def fill(self, result: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
        """Writes the outcomes, but for the intervals at the positions that it gives back; None for most."""
        start = self._bucket(low)
        start += low > self.last
        stop = self._bucket(high)
        ranks = self.counts.take(start)
        np.subtract(FALSE, (ranks + self.below) & 1, out=result, casting="unsafe")
        touched = self.counts.take(stop + 1) > ranks
        touched &= high >= self.first
        near = np.flatnonzero(touched)
        crossed = self.counts[stop[near]] > self.counts[start[near] + 1]  # a threshold in a bucket between
        result[near[crossed]] = TRUE | FALSE
        near = near[~crossed]
        if self.exact:
            near = self._walk(result, low, high, near, ranks[near])
        return None if len(near) * 2 > len(low) else near

    def _walk(
        self, result: np.ndarray, low: np.ndarray, high: np.ndarray, near: np.ndarray, ranks: np.ndarray
    ) -> np.ndarray:
        """Writes the outcomes where the rank of the lower bound is a few thresholds from its bucket's first."""
        lowest, n = low[near], len(self.thresholds)
        for _ in range(STEPS):
            ranks += (self.thresholds.take(ranks, mode="clip") <= lowest) & (ranks < n)
        following = self.thresholds.take(ranks, mode="clip")
        crosses = (following <= high[near]) & (ranks < n)
        result[near] = np.where(crosses, TRUE | FALSE, FALSE - ((ranks + self.below) & 1))
        return near[(following <= lowest) & (ranks < n)]

    def _bucket(self, words: np.ndarray) -> np.ndarray:
        offsets = np.clip(words, self.first, self.last).view(np.uint64)
        offsets -= self.first.view(np.uint64)
        offsets >>= self.shift
        return offsets.view(np.int64)


def _ties(low: np.ndarray, high: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Which intervals have a word that is one of the thresholds."""
    return np.logical_or.reduce([word == threshold for threshold in thresholds for word in (low, high)])


def _few(flags: np.ndarray) -> np.ndarray | None:
    """Where flags are set, looked up eight at a time; None where they are not few."""
    if len(flags) % 8:
        return None if np.count_nonzero(flags) * FEW_NEAR > len(flags) else np.flatnonzero(flags)
    eights = flags.view(np.uint64) != 0
    if np.count_nonzero(eights) * FEW_NEAR > len(flags):
        return None
    found = np.flatnonzero(eights)
    bits = np.flatnonzero(flags.reshape(-1, 8)[found])
    return found[bits >> 3] * 8 + (bits & 7)
