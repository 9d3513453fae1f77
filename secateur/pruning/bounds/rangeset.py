"""Sets of keys: the values that a comparison with literals, an IN list or a prefix selects in a column.

A set is a sorted array of *thresholds* t0 < t1 < ...: a key is inside iff it is >= an odd number of them, that is in
[t0, t1), [t2, t3), ...; with an odd number of thresholds the last range is open above. Keys are discrete (every key has
a successor), so half-open ranges can express any set, and intersection, union and complement are sweeps over
thresholds. Length does not matter: 100,000 values of an IN list are one set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import binaries
from secateur.integers import sorted_distinct
from secateur.pruning.bounds.threshold_grid import ThresholdGrid
from secateur.values.key import INT64_MAX, Key, least_key, prefix_successor, successor
from secateur.values.keys import Keys, keys_from
from secateur.values.kinds import Kind

MOST_ADJACENT_POINTS = 64
HASHED = 16  # thresholds that enter a set's hash


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
        """Return which keys are inside: bool of shape (n,). The usual case of one range is written out."""
        if self.kind is Kind.WORD and 0 < len(self.thresholds) <= 2:
            inside = keys.words[0] >= self.thresholds[0]
            if len(self.thresholds) == 2:
                inside &= keys.words[0] < self.thresholds[1]
            return inside
        return (keys.rank(self.table(keys.width)) & 1).astype(bool)

    def overlap(self, lower: Keys, upper: Keys) -> tuple[np.ndarray, np.ndarray]:
        """Return which intervals [lower, upper] hold a key inside, and which a key outside: bools of shape (n,).

        If both ends have the same rank, everything between them is in the same range or gap. If the rank changes, at
        least one threshold, hence keys of both sides, may lie between. The usual case of one range is written out.
        """
        if len(self.thresholds) == 1:
            return upper.at_least(self.thresholds[0]), ~lower.at_least(self.thresholds[0])
        if len(self.thresholds) == 2:
            start, stop = self.thresholds
            begun, ended = lower.at_least(start), upper.at_least(stop)
            return upper.at_least(start) & ~lower.at_least(stop), ~begun | ended
        low = lower.rank(self.table(lower.width))
        inside = (low & 1).astype(bool)
        crosses = self._reaches(upper, low)
        return crosses | inside, crosses | ~inside

    def _reaches(self, upper: Keys, low: np.ndarray) -> np.ndarray:
        """Return which upper bounds are >= the threshold that follows the first `low` ones."""
        if self.kind is not Kind.WORD or not len(self.thresholds):
            return upper.rank(self.table(upper.width)) > low
        following = self.thresholds.take(low, mode="clip")
        return (upper.words[0] >= following) & (low < len(self.thresholds))

    def reaches(self, lower: Keys, upper: Keys, units: np.ndarray | None = None, *, inside: bool) -> np.ndarray | None:
        """Return which intervals [lower, upper], all or chosen, may hold a key inside (or outside): bool of shape (n,).

        It costs one comparison per threshold, for words and at most two thresholds, as a range has. Returns None for
        other sets; use :func:`secateur.pruning.bounds.set_outcomes.outcomes_of`, which computes both sides at once.
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

    def table(self, width: int) -> Keys:
        """Return the thresholds as keys of `width` words of bytes."""
        if self.kind is Kind.WORD:
            return Keys(self.kind, (self.thresholds,))
        if width not in self._tables:
            self._tables[width] = keys_from(self.kind, self.thresholds.tolist(), width)
        return self._tables[width]

    @cached_property
    def _tables(self) -> dict[int, Keys]:
        return {}

    @cached_property
    def grids(self) -> dict[tuple[int, int, int, int], ThresholdGrid]:
        """The grids built so far, by thresholds [begin, end) and the word by which they are compared."""
        return {}

    @cached_property
    def texts(self) -> pa.Array:
        """The thresholds of a set of BYTES keys, as an Arrow array of large binary."""
        return binaries(self.thresholds.tolist())

    @cached_property
    def longest(self) -> bytes:
        """The longest threshold of a set of BYTES keys, not shorter than any single key inside."""
        return max(self.thresholds.tolist(), key=len)

    @property
    def is_empty(self) -> bool:
        """Whether no key is inside."""
        return len(self.thresholds) == 0

    @property
    def is_everything(self) -> bool:
        """Whether every key is inside."""
        return len(self.thresholds) == 1 and self.thresholds[0] == least_key(self.kind)

    @cached_property
    def points(self) -> np.ndarray | None:
        """The keys inside if they are finitely many single keys (from an equality or IN list), else None."""
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
    """Return the integers of all [start, stop) if each range has few."""
    counts = stops.view(np.uint64) - starts.view(np.uint64)  # a difference of two int64 may need 64 bits
    if counts.max(initial=0) > MOST_ADJACENT_POINTS:
        return None
    counts = counts.astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _run(start: Key, stop: Key) -> list[Key] | None:
    """Return the keys of [start, stop) if they are few: adjacent points form one range of thresholds."""
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
    """Return the set without keys."""
    return of_thresholds(kind, [])


def everything(kind: Kind) -> RangeSet:
    """Return the set of all keys."""
    return of_thresholds(kind, [least_key(kind)])


def between(kind: Kind, start: Key | None, stop: Key | None) -> RangeSet:
    """Return the keys in [start, stop); `start` None is above every key, `stop` None is unbounded."""
    if start is None or (stop is not None and stop <= start):  # type: ignore[operator]
        return empty(kind)
    return of_thresholds(kind, [start] if stop is None else [start, stop])


def points(kind: Kind, keys: Iterable[Key]) -> RangeSet:
    """Return the set of exactly these keys."""
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
    """Return the set of exactly these WORD keys: int64 of shape (n,), in any order, with or without repeats."""
    return RangeSet(Kind.WORD, _around(sorted_distinct(keys)))


def integer_spans(first: np.ndarray, last: np.ndarray) -> RangeSet:
    """Return the union of intervals [first, last] of WORD keys: int64 of shape (n,), in any order."""
    if not len(first):
        return empty(Kind.WORD)
    order = np.argsort(first)
    first, reached = first[order], np.maximum.accumulate(last[order])
    apart = (first[1:] > reached[:-1]) & (first[1:] - 1 != reached[:-1])
    return RangeSet(Kind.WORD, _thresholds(first[np.append(True, apart)], reached[np.append(apart, True)]))


def joined_spans(kind: Kind, starts: Sequence[Key], stops: Sequence[Key]) -> RangeSet:
    """Return the union of intervals [start, stop), ascending, that do not overlap but may be adjacent."""
    thresholds: list[Key] = []
    for start, stop in zip(starts, stops, strict=True):
        if thresholds and thresholds[-1] == start:
            thresholds.pop()
        else:
            thresholds.append(start)
        thresholds.append(stop)
    return of_thresholds(kind, thresholds)


def covering(ranges: RangeSet, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last keys of at most `most` intervals that hold a set of WORD keys: int64 of shape (n,).

    The widest gaps between its ranges are kept, the others filled.
    """
    first, stop = ranges.thresholds[::2], ranges.thresholds[1::2]
    last = stop - 1 if len(stop) == len(first) else np.append(stop - 1, INT64_MAX)
    if len(first) <= most:
        return first, last
    widths = first[1:].view(np.uint64) - last[:-1].view(np.uint64)
    kept = np.sort(np.argsort(widths)[len(widths) - most + 1 :])
    return first[np.append(0, kept + 1)], last[np.append(kept, len(last) - 1)]


def byte_points(keys: pa.Array) -> RangeSet:
    """Return the set of exactly these BYTES keys: large_binary without nulls, in any order, with or without repeats."""
    ordered = keys.take(pc.array_sort_indices(keys))
    first = np.append(True, pc.not_equal(ordered[1:], ordered[:-1]))[: len(ordered)]
    distinct = ordered.filter(pa.array(first, pa.bool_()))
    starts = distinct.to_pylist()
    if pc.any(pc.ends_with(distinct, b"\0")).as_py():  # may be adjacent to the key before
        return points(Kind.BYTES, starts)
    thresholds = np.empty(2 * len(starts), object)
    thresholds[::2], thresholds[1::2] = starts, [start + b"\0" for start in starts]
    ranges = RangeSet(Kind.BYTES, thresholds)
    ranges.__dict__["points"] = thresholds[::2]  # known without comparing each key's successor
    return ranges


def _around(keys: np.ndarray) -> np.ndarray:
    """Return the thresholds around distinct ascending integers: the start and the end of each adjacent run."""
    if not len(keys):
        return keys
    apart = keys[1:] - 1 != keys[:-1]
    return _thresholds(keys[np.append(True, apart)], keys[np.append(apart, True)])


def _thresholds(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the thresholds of intervals [first, last], ascending and not adjacent."""
    thresholds = np.column_stack([first, last]).ravel()
    thresholds[1::2] += last < INT64_MAX
    return thresholds[:-1] if last[-1] == INT64_MAX else thresholds


def starting_with(prefix: bytes) -> RangeSet:
    """Return the byte strings that start with `prefix`."""
    return between(Kind.BYTES, prefix, prefix_successor(prefix))


def complement(a: RangeSet) -> RangeSet:
    """Return the keys outside."""
    least = of_thresholds(a.kind, [least_key(a.kind)]).thresholds
    if len(a.thresholds) and a.thresholds[0] == least[0]:
        return RangeSet(a.kind, a.thresholds[1:])
    return RangeSet(a.kind, np.concatenate([least, a.thresholds]))


def intersection(a: RangeSet, b: RangeSet) -> RangeSet:
    """Return the keys inside both."""
    return _sweep(a, b, np.logical_and)


def union(a: RangeSet, b: RangeSet) -> RangeSet:
    """Return the keys inside either."""
    return _sweep(a, b, np.logical_or)


def _sweep(a: RangeSet, b: RangeSet, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> RangeSet:
    """Merge the thresholds of both sets in order, and keep those at which the combination changes."""
    cuts = np.concatenate([a.thresholds, b.thresholds])
    order = np.argsort(cuts, kind="stable")  # a merge of two sorted runs
    cuts, of_b = cuts[order], order >= len(a.thresholds)
    inside = combine((np.cumsum(~of_b) & 1).astype(bool), (np.cumsum(of_b) & 1).astype(bool))
    last = np.append(cuts[1:] != cuts[:-1], True)[: len(cuts)]  # the last of several thresholds at one key
    cuts, inside = cuts[last], inside[last]
    return RangeSet(a.kind, cuts[np.diff(inside, prepend=False)])


def of_thresholds(kind: Kind, thresholds: Sequence[Key]) -> RangeSet:
    """Return the set with these ascending thresholds."""
    array = np.empty(len(thresholds), np.int64 if kind is Kind.WORD else object)
    array[:] = thresholds
    return RangeSet(kind, array)
