"""Statistics with other zone maps than there are, to tell what a structure does by itself, or would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from secateur.pruning.predicate.bound import Field
from secateur.pruning.statistics import Numbered
from secateur.pruning.zones import Gaps, Zones


@dataclass(frozen=True)
class Altered:
    """Units whose zone maps are altered, column by column; all else is as it is."""

    units: Numbered
    alter: Callable[[Field, Zones], Zones | None]

    def __len__(self) -> int:
        return len(self.units)

    @property
    def row_count(self) -> np.ndarray:
        return self.units.row_count

    def zones(self, column: Field) -> Zones | None:
        """The altered zone maps of a column; None where there are none to alter."""
        zones = self.units.zones(column)
        return None if zones is None else self.alter(column, zones)

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Which units have one of the numbers, or one that is not known."""
        return self.units.among(numbers)


def without_zones(units: Numbered) -> Altered:
    """Units of which only filters tell."""
    return Altered(units, lambda column, zones: None)


def without_gaps(units: Numbered) -> Altered:
    """Units of which bounds and null counts tell, and gaps do not."""
    return Altered(units, lambda column, zones: replace(zones, gaps=None))


def with_gaps(units: Numbered, gaps: Mapping[Field, Gaps]) -> Altered:
    """Units with gaps of some columns in place of their own."""
    return Altered(units, lambda column, zones: replace(zones, gaps=gaps.get(column, zones.gaps)))
