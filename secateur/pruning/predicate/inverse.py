"""Convert conditions on monotone functions of one column to conditions on the column itself.

For monotone f, ``f(x) >= t`` holds from some key on, or up to some key. So a set of keys of f(x), an array of
thresholds, is pulled back to a set of keys of x threshold by threshold, by bisection: statistics and bloom filters
never see f. ``year(ts) = 2026`` is one range of instants, exact for blocks, pages and rows alike; ``a + 5 = 10`` is the
point 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import Function, Interval, at_least, constant, key_range, points
from secateur.pruning.predicate.bound import Apply, Constant, Field, Operand
from secateur.values.conversion import keys_of
from secateur.values.key import Key, least_key, successor
from secateur.values.keys import Keys, integer_keys
from secateur.values.kinds import Kind, ordered_kind

_WITNESSES = (0, 1, -1, 20_000, 1_700_000_000, 1_700_000_000_000_000, 10_000_000_000)  # likely numbers, days, instants
_MOST_STEADY = 1_000  # thresholds that are checked one by one
_FAN_OUT = 256  # keys evaluated in one round of a search
_PROBES = 1 << 14  # keys in one round of all searches


@dataclass(frozen=True)
class PulledBack:
    """A set of keys of a column, and the keys on which a function of it fails."""

    field: Field
    ranges: RangeSet
    fails: RangeSet | None


def pull_back(operand: Operand, ranges: RangeSet) -> PulledBack | None:
    """Return the keys of the one column below an operand for which the operand is in `ranges`.

    None if a function on the way is not monotone, or not known to be at one of the thresholds.
    """
    fails = rangeset.empty(ranges.kind)
    while isinstance(operand, Apply):
        at = _moving_argument(operand)
        if at is None:
            return None
        pulled = _through(operand, at, ranges, fails)
        if pulled is None:
            return None
        (ranges, fails), operand = pulled, operand.arguments[at]
    if not isinstance(operand, Field):
        return None
    return PulledBack(operand, ranges, None if fails.is_empty else fails)


def strictly(operand: Operand) -> Operand:
    """Replace functions that wrap around or give NULL by versions that fail there; unchanged if there are none."""
    if not isinstance(operand, Apply):
        return operand
    function, arguments = operand.function, tuple(map(strictly, operand.arguments))
    same = all(map(is_, arguments, operand.arguments))
    return operand if function.strict is None and same else Apply(function.strict or function, arguments)


def _moving_argument(operand: Apply) -> int | None:
    """Return the index of the only non-constant argument, if the function can be pulled back through it."""
    moving = [i for i, argument in enumerate(operand.arguments) if not isinstance(argument, Constant)]
    function = operand.function
    if len(moving) != 1:
        return None
    is_monotone = function.directions[moving[0]] and (function.exact or function.inverse)
    if not is_monotone and not function.preimage:
        return None
    if any(isinstance(argument, Constant) and argument.key is None for argument in operand.arguments):
        return None
    if function.is_steady is not None and not isinstance(operand.arguments[moving[0]], Field):
        return None
    return moving[0]


def _through(operand: Apply, at: int, ranges: RangeSet, fails: RangeSet) -> tuple[RangeSet, RangeSet] | None:
    """Return the keys of an argument that a function maps into `ranges`, and those it maps into `fails` or fails on."""
    function, type_ = operand.function, operand.arguments[at].type
    kind = ordered_kind(type_)
    if function.preimage is not None:
        inside, failing = function.preimage(ranges), function.preimage(fails)
        return None if inside is None or failing is None else (inside, failing)
    if function.inverse is not None:
        first, second = (
            _of_crossings(kind, [function.inverse(threshold) for threshold in keys_of_one.thresholds.tolist()])
            for keys_of_one in (ranges, fails)
        )
        return first, second
    if kind is Kind.BYTES:
        return None
    search = _Search(type_, kind, _on_points(operand, at, type_), function.directions[at])
    run = search.run()
    if run is None:
        return None
    pulled = []
    for keys_of_one in (ranges, fails):
        keys = search.thresholds(keys_of_one, *run)
        if not _is_steady(function, keys, kind):
            return None
        inside = _of_crossings(kind, keys)
        falls = function.directions[at] < 0 and len(keys_of_one.thresholds) % 2
        pulled.append(rangeset.complement(inside) if falls else inside)
    return pulled[0], rangeset.union(pulled[1], search.outside(*run))


def _is_steady(function: Function, keys: Sequence[int], kind: Kind) -> bool:
    """Return whether the function is smaller before each of the keys, and not after."""
    steady = function.is_steady
    if steady is None:
        return True
    return len(keys) <= _MOST_STEADY and all(key == least_key(kind) or steady(key) for key in keys)


def _of_crossings(kind: Kind, keys: Sequence[Key | None]) -> RangeSet:
    """Build the set with these thresholds in any order: two equal ones cancel; None is above every key."""
    counts = Counter(key for key in keys if key is not None)
    return rangeset.of_thresholds(kind, sorted(key for key, count in counts.items() if count % 2))


def _on_points(operand: Apply, at: int, type_: pa.DataType) -> Callable[[Keys], Interval]:
    """Return the function of single keys of one argument, with the constants filled in."""

    def evaluate(keys: Keys) -> Interval:
        arguments = [
            constant(a.type, a.key, len(keys)) if isinstance(a, Constant) else points(type_, keys)
            for a in operand.arguments
        ]
        return operand.function.bounds(arguments)

    return evaluate


Holds = Callable[[np.ndarray, np.ndarray], np.ndarray]  # takes keys, and the search that each belongs to


@dataclass(frozen=True)
class _Search:
    """Searches over the keys of a type, for many thresholds at once."""

    type: pa.DataType
    kind: Kind
    evaluate: Callable[[Keys], Interval]
    direction: int

    def run(self) -> tuple[int, int] | None:
        """Return the first and the last key on which the function does not fail; it never fails between them."""
        least, greatest = key_range(self.type)
        candidates = [key for key in (least, greatest, *_WITNESSES) if least <= key <= greatest]
        works = ~self._fails(self._array(candidates))
        if not works.any():
            return None
        witness = candidates[int(np.argmax(works))]
        first, last = least, greatest
        if not works[0]:
            (first,) = self._search([least], [witness], lambda keys, _: ~self._fails(keys)).tolist()
        if not works[1]:
            (beyond,) = self._search([witness], [greatest], lambda keys, _: self._fails(keys)).tolist()
            last = beyond - 1
        return first, last

    def thresholds(self, ranges: RangeSet, first: int, last: int) -> list[int]:
        """Return where the function crosses each threshold within [first, last]; unreached thresholds are omitted."""
        n = len(ranges.thresholds)
        if not n:
            return []
        targets = _keys_of_thresholds(ranges)

        def crossed(keys: np.ndarray, threshold: np.ndarray) -> np.ndarray:
            reached = at_least(self.evaluate(integer_keys(self.kind, keys)).lower, targets.take(threshold))
            return reached if self.direction > 0 else ~reached

        ends = crossed(self._array([first] * n + [last] * n), np.tile(np.arange(n), 2))
        at_first, at_last = ends[:n], ends[n:]
        between = np.flatnonzero(at_last & ~at_first)
        within = [first] * len(between), [last] * len(between)
        thresholds = self._search(*within, lambda keys, search: crossed(keys, between[search]))
        return [int(least_key(self.kind))] * int(at_first.sum()) + thresholds.tolist()

    def outside(self, first: int, last: int) -> RangeSet:
        """Return the keys of the type on which the function fails."""
        least, greatest = key_range(self.type)
        below = rangeset.between(self.kind, least_key(self.kind), first) if first > least else rangeset.empty(self.kind)
        if last == greatest:
            return below
        return rangeset.union(below, rangeset.between(self.kind, successor(last, self.kind), None))

    def _search(self, low: Sequence[int], high: Sequence[int], holds: Holds) -> np.ndarray:
        """Return the first key of each (low, high] for which a monotone condition holds: not at low, but at high.

        A round tests many keys between the ends of each search at once: a call costs more than its keys.
        """
        lows, highs = self._array(low), self._array(high)
        if not len(lows):
            return lows
        searches, fan_out = np.arange(len(lows)), max(2, min(_FAN_OUT, _PROBES // len(lows)))
        steps = np.arange(1, fan_out)
        while (gaps := self._distance(lows, highs)).max() > 1:
            stride = np.maximum(gaps // fan_out, 1)
            offsets = np.minimum(np.multiply.outer(stride, steps.astype(stride.dtype)), gaps[:, None])
            keys = self._moved(lows[:, None], offsets)
            reached = holds(keys.ravel(), np.repeat(searches, len(steps))).reshape(keys.shape)
            before = (~reached).sum(axis=1)
            ends = np.concatenate([lows[:, None], keys, highs[:, None]], axis=1)
            lows, highs = ends[searches, before], ends[searches, before + 1]
        return highs

    def _distance(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return high.view(np.uint64) - low.view(np.uint64) if self.kind is Kind.WORD else high - low

    def _moved(self, low: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Add offsets to keys modulo 2**64, as distances of int64 can need all 64 bits."""
        return (low.view(np.uint64) + offsets).view(np.int64) if self.kind is Kind.WORD else low + offsets

    def _fails(self, keys: np.ndarray) -> np.ndarray:
        return self.evaluate(integer_keys(self.kind, keys)).fails

    def _array(self, keys: Sequence[int]) -> np.ndarray:
        return np.array(keys, np.int64 if self.kind is Kind.WORD else object)


def _keys_of_thresholds(ranges: RangeSet) -> Keys:
    if ranges.kind is Kind.BYTES:
        return keys_of(pa.array(ranges.thresholds.tolist(), pa.binary()))
    return integer_keys(ranges.kind, ranges.thresholds)
