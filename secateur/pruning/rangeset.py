"""Sets of keys: what a comparison with literals, an IN list or a prefix asks of a column.

A set is a sorted array of *thresholds* t0 < t1 < ...: a key lies inside iff it is at least an odd number of
them, that is in [t0, t1), [t2, t3), ...; an odd number of thresholds leaves the last range open above. Keys are
discrete (every key has a successor), so half-open ranges say everything, and intersection, union and
complement are sweeps over thresholds. Any length: 100,000 values of an IN list are one set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from secateur.values import Key, Keys, Kind, least_key, prefix_successor, successor

MOST_ADJACENT_POINTS = 64


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
        return hash((self.kind, self.thresholds.tobytes() if self.kind is Kind.WORD else tuple(self.thresholds)))

    def contains(self, keys: Keys) -> np.ndarray:
        """Which keys lie inside: bool of shape (n,)."""
        return (keys.rank(self.thresholds) & 1).astype(bool)

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
        low = lower.rank(self.thresholds)
        inside = (low & 1).astype(bool)
        crosses = upper.rank(self.thresholds) > low
        return crosses | inside, crosses | ~inside

    @property
    def is_empty(self) -> bool:
        """Whether no key lies inside."""
        return len(self.thresholds) == 0

    @property
    def is_everything(self) -> bool:
        """Whether every key lies inside."""
        return len(self.thresholds) == 1 and self.thresholds[0] == least_key(self.kind)

    @property
    def points(self) -> np.ndarray | None:
        """The keys inside if they are finitely many single keys (as an equality or IN list gives), else None."""
        starts, stops = self.thresholds[::2], self.thresholds[1::2]
        if len(starts) != len(stops):
            return None
        runs = [_run(start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        if any(run is None for run in runs):
            return None
        return _of(self.kind, [key for run in runs if run is not None for key in run]).thresholds


def _run(start: Key, stop: Key) -> list[Key] | None:
    """The keys of [start, stop) if they are few: adjacent points are one range of thresholds."""
    match start, stop:
        case bytes(), bytes():
            count = len(stop) - len(start)
            few = stop == start + b"\0" * count and count <= MOST_ADJACENT_POINTS
            return [start + b"\0" * i for i in range(count)] if few else None
        case int(), int():
            return list(range(start, stop)) if stop - start <= MOST_ADJACENT_POINTS else None
        case _:
            return None


def empty(kind: Kind) -> RangeSet:
    """The set without keys."""
    return _of(kind, [])


def everything(kind: Kind) -> RangeSet:
    """The set of all keys."""
    return _of(kind, [least_key(kind)])


def between(kind: Kind, start: Key | None, stop: Key | None) -> RangeSet:
    """The keys in [start, stop); a `start` of None is after every key, a `stop` of None is unbounded."""
    if start is None or (stop is not None and stop <= start):  # type: ignore[operator]
        return empty(kind)
    return _of(kind, [start] if stop is None else [start, stop])


def points(kind: Kind, keys: Iterable[Key]) -> RangeSet:
    """The set of just these keys."""
    ordered = _of(kind, sorted(set(keys))).thresholds
    if not len(ordered):
        return empty(kind)
    after = _of(kind, [s for key in ordered.tolist() if (s := successor(key, kind)) is not None]).thresholds
    starts = ordered[~np.isin(ordered, after)] if kind is Kind.WORD else _without(ordered, after)
    stops = after[~np.isin(after, ordered)] if kind is Kind.WORD else _without(after, ordered)
    return RangeSet(kind, np.sort(np.concatenate([starts, stops])))


def _without(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    present = set(others.tolist())
    return _of(Kind.BYTES, [key for key in keys.tolist() if key not in present]).thresholds


def starting_with(prefix: bytes) -> RangeSet:
    """The byte strings that start with `prefix`."""
    return between(Kind.BYTES, prefix, prefix_successor(prefix))


def complement(a: RangeSet) -> RangeSet:
    """The keys outside."""
    return _sweep(a, everything(a.kind), lambda inside, _: ~inside)


def intersection(a: RangeSet, b: RangeSet) -> RangeSet:
    """The keys inside both."""
    return _sweep(a, b, np.logical_and)


def union(a: RangeSet, b: RangeSet) -> RangeSet:
    """The keys inside either."""
    return _sweep(a, b, np.logical_or)


def _sweep(a: RangeSet, b: RangeSet, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> RangeSet:
    cuts = np.unique(np.concatenate([a.thresholds, b.thresholds]))
    inside = combine(
        (np.searchsorted(a.thresholds, cuts, side="right") & 1).astype(bool),
        (np.searchsorted(b.thresholds, cuts, side="right") & 1).astype(bool),
    )
    changes = np.diff(inside, prepend=False)
    return RangeSet(a.kind, cuts[changes])


def _of(kind: Kind, thresholds: list[Key]) -> RangeSet:
    array = np.empty(len(thresholds), np.int64 if kind is Kind.WORD else object)
    array[:] = thresholds
    return RangeSet(kind, array)
