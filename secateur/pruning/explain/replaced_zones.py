"""Statistics with some zone maps replaced, to measure what one structure contributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from secateur.pruning.bounds.zones import Gaps, Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.statistics import Numbered


@dataclass(frozen=True)
class ReplacedZones:
    """Units with altered zone maps, column by column; everything else is unchanged."""

    units: Numbered
    alter: Callable[[Field, Zones], Zones | None]

    def __len__(self) -> int:
        return len(self.units)

    @property
    def row_count(self) -> np.ndarray:
        return self.units.row_count

    def zones(self, column: Field) -> Zones | None:
        """Return the altered zone maps of a column; None if there are none to alter."""
        zones = self.units.zones(column)
        return None if zones is None else self.alter(column, zones)

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Return which units have one of the numbers, or an unknown one."""
        return self.units.among(numbers)


def without_zones(units: Numbered) -> ReplacedZones:
    """Remove all zone maps, so that only filters can prune."""
    return ReplacedZones(units, lambda column, zones: None)


def without_gaps(units: Numbered) -> ReplacedZones:
    """Remove gaps, so that only bounds and null counts can prune."""
    return ReplacedZones(units, lambda column, zones: replace(zones, gaps=None))


def with_gaps(units: Numbered, gaps: Mapping[Field, Gaps | None]) -> ReplacedZones:
    """Replace the gaps of some columns; None: they have none."""
    return ReplacedZones(units, lambda column, zones: replace(zones, gaps=gaps.get(column, zones.gaps)))
