"""Many integers of any size as arrays of limbs, which are added without overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.values.keys import Keys
from secateur.values.kinds import Kind

BITS = 32
MASK = (1 << BITS) - 1


@dataclass(frozen=True)
class Limbs:
    """n integers: limb i of each counts 2^(32 i), and the last one has the sign.

    No limb is beyond 2^32, so up to 2^31 of these integers are added without overflow.
    """

    limbs: np.ndarray  # int64 of shape (m, n)

    @classmethod
    def of(cls, keys: Keys) -> Limbs:
        """Return the integers that keys are. The keys are no bytes."""
        assert keys.kind is not Kind.BYTES, "bytes are no integers"
        halves = [half for word in reversed(keys.words) for half in (word & word.dtype.type(MASK), word >> BITS)]
        return cls(np.stack([half.astype(np.int64) for half in halves]))

    def times(self, counts: np.ndarray) -> Limbs:
        """Return each integer times its count, which is at least 0 and less than 2^31."""
        products, carry = [], np.zeros(self.limbs.shape[1], np.int64)
        for limb in self.limbs:
            product = limb * counts + carry
            products.append(product & MASK)
            carry = product >> BITS
        return Limbs(np.stack([*products, carry]))

    def where(self, condition: np.ndarray, other: Limbs) -> Limbs:
        """Return these integers where a condition holds, the others elsewhere."""
        size = max(len(self.limbs), len(other.limbs))
        these, others = (np.pad(limbs, ((0, size - len(limbs)), (0, 0))) for limbs in (self.limbs, other.limbs))
        return Limbs(np.where(condition, these, others))

    def take(self, indices: np.ndarray) -> Limbs:
        """Return the integers at the given positions."""
        return Limbs(self.limbs[:, indices])

    def total(self) -> int:
        """Return the sum of all."""
        return _joined(self.limbs.sum(axis=1).tolist())

    def totals(self, starts: np.ndarray) -> list[int]:
        """Return the sums over runs, which begin at `starts`; no run is empty."""
        if not len(starts):
            return []
        return [_joined(limbs) for limbs in np.add.reduceat(self.limbs, starts, axis=1).T.tolist()]


def _joined(limbs: list[int]) -> int:
    return sum(limb << (BITS * i) for i, limb in enumerate(limbs))
