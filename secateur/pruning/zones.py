"""Zone maps as the algebra reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.pruning.outcomes import FALSE, NULL, TRUE
from secateur.values import Keys


@dataclass(frozen=True)
class Zones:
    """The zone maps of one column over n units.

    Soundness: every non-null value of unit i has a key in [lower[i], upper[i]]; a unit that can hold a value has
    TRUE and FALSE in `value`; a unit that can hold a NULL has NULL in `null`.
    """

    lower: Keys
    upper: Keys
    value: np.ndarray  # uint8: TRUE | FALSE where a non-null value is possible, else 0
    null: np.ndarray  # uint8: NULL where a NULL is possible, else 0

    def take(self, indices: np.ndarray | slice) -> Zones:
        """The zone maps of the given units."""
        return Zones(self.lower.take(indices), self.upper.take(indices), self.value[indices], self.null[indices])


def occupancy(row_count: np.ndarray, null_count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The `value` and `null` of :class:`Zones` from counts of shape (n,), where -1 is unknown."""
    all_null = (null_count == row_count) & (row_count >= 0)
    value = np.where(all_null, np.uint8(0), np.uint8(TRUE | FALSE))
    null = np.where(null_count == 0, np.uint8(0), np.uint8(NULL))
    return value, null
