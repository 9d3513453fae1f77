"""Zone maps in the form that evaluation uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.values.combination import choose, concatenate, less
from secateur.values.key import NAN_KEY, least_key
from secateur.values.keys import Keys, constant_keys, greatest_keys
from secateur.values.kinds import Kind

Gaps = tuple[np.ndarray, np.ndarray]  # low and high ends: int64 of shape (g, n), a unit's ascending; low = high: none


@dataclass(frozen=True)
class Zones:
    """The zone maps of one column over n units.

    Soundness: every non-null value of unit i has a key in [lower[i], upper[i]]; a unit that can hold a value has TRUE
    and FALSE in `value`; a unit that can hold a NULL has NULL in `null`. No value has a key strictly between the ends
    of a gap. No number has a key above `top[i]`; above it, up to upper[i], there is only NaN.
    """

    lower: Keys
    upper: Keys
    value: np.ndarray  # uint8: TRUE | FALSE where a non-null value is possible, else 0
    null: np.ndarray  # uint8: NULL where a NULL is possible, else 0
    gaps: Gaps | None = None  # for units with WORD keys, if recorded
    top: np.ndarray | None = None  # int64, for float keys: the greatest number; None: only `upper` is known

    @property
    def numbers_upper(self) -> Keys:
        """The upper bounds of all values except NaN."""
        return self.upper if self.top is None else Keys(Kind.WORD, (self.top,))

    @property
    def has_values(self) -> bool:
        """Whether one flag stands for all units and says that they can hold a value."""
        return self.value.strides == (0,) and len(self.value) > 0 and bool(self.value[0])

    def take(self, indices: np.ndarray | slice) -> Zones:
        """Select the given units."""
        gaps = None if self.gaps is None else (self.gaps[0][:, indices], self.gaps[1][:, indices])
        top = None if self.top is None else self.top[indices]
        flags = self.value[indices], self.null[indices]
        return Zones(self.lower.take(indices), self.upper.take(indices), *flags, gaps, top)

    def may_hold(self, keys: Keys) -> np.ndarray:
        """Return whether unit i may hold key i: bool of shape (n,)."""
        possible = (self.value != 0) & ~less(keys, self.lower) & ~less(self.upper, keys)
        if self.top is not None:
            possible &= (keys.words[0] <= self.top) | (keys.words[0] >= NAN_KEY)
        if self.gaps is not None:
            low, high = self.gaps
            possible &= ~((low < keys.words[0]) & (keys.words[0] < high)).any(axis=0)
        return possible

    def where(self, known: np.ndarray) -> Zones:
        """Keep the zone maps of the `known` units; make the others unknown."""
        if known.all():
            return self
        nothing = unknown_zones(self.lower.kind, len(known))
        return Zones(
            choose(known, self.lower, nothing.lower),
            choose(known, self.upper, nothing.upper),
            np.where(known, self.value, nothing.value),
            np.where(known, self.null, nothing.null),
            top=None if self.top is None else np.where(known, self.top, nothing.upper.words[0]),
        )


def unbounded(kind: Kind, n: int) -> tuple[Keys, Keys]:
    """Return unknown bounds: the least and the greatest key, n times."""
    return constant_keys(least_key(kind), kind, n), greatest_keys(kind, n)


def unknown_zones(kind: Kind, n: int) -> Zones:
    """Return zone maps in which everything is unknown."""
    return Zones(*unbounded(kind, n), np.full(n, TRUE | FALSE, np.uint8), np.full(n, NULL, np.uint8))


def concat_zones(parts: Sequence[Zones]) -> Zones:
    """Concatenate zone maps; at least one part. Gaps are dropped if a part has none."""
    if len(parts) == 1:
        return parts[0]
    return Zones(
        concatenate([part.lower for part in parts]),
        concatenate([part.upper for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.null for part in parts]),
        _concat_gaps([part.gaps for part in parts if part.gaps is not None], len(parts)),
        concat_tops([(part.top, part.upper) for part in parts]),
    )


def concat_tops(parts: Sequence[tuple[np.ndarray | None, Keys]]) -> np.ndarray | None:
    """Concatenate the greatest numbers of all parts; a part without them contributes its upper bounds."""
    if all(top is None for top, _ in parts):
        return None
    return np.concatenate([upper.words[0] if top is None else top for top, upper in parts])


def may_be_nan(upper: Keys) -> np.ndarray:
    """Return which units with float keys may hold NaN, by their upper bounds: bool of shape (n,)."""
    return np.asarray(upper.words[0] >= NAN_KEY)


def _concat_gaps(known: Sequence[Gaps], parts: int) -> Gaps | None:
    if len(known) < parts or len({len(low) for low, _ in known}) > 1:
        return None
    low, high = (np.concatenate(side, axis=1) for side in zip(*known, strict=True))
    return low, high


def occupancy(row_count: np.ndarray, null_count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the `value` and `null` of :class:`Zones` from counts of shape (n,), where -1 is unknown."""
    all_null = (null_count == row_count) & (row_count >= 0)
    value = np.where(all_null, np.uint8(0), np.uint8(TRUE | FALSE))
    null = np.where(null_count == 0, np.uint8(0), np.uint8(NULL))
    return value, null
