"""What a workload reports: ratios of figures to their references, and how much of a table was kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.timing import Timing, quartiles


@dataclass(frozen=True)
class Ratio:
    """A figure beside its reference; see :mod:`benchmarks` for the fields."""

    subject: str
    value: float
    unit: str
    reference: str
    reference_value: float
    low: float | None = None
    high: float | None = None
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure over its reference, or None where that is 0."""
        return self.value / self.reference_value if self.reference_value else None

    def to_dict(self) -> dict[str, Any]:
        """The fields and the ratio."""
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True)
class Kept:
    """How many units of a table a predicate left, by engine."""

    table: str
    predicate: str
    unit: str
    total: int
    ideal: int | None
    kept: Mapping[str, int]
    pruned: Mapping[str, int] = field(default_factory=dict)  # by secateur's techniques, where they are counted apart


@dataclass(frozen=True)
class Result:
    """What one run of a workload found."""

    sizes: Mapping[str, int | float]
    ratios: tuple[Ratio, ...] = ()
    kept: tuple[Kept, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as an object of JSON."""
        return {
            "sizes": dict(self.sizes),
            "ratios": [ratio.to_dict() for ratio in self.ratios],
            "kept": [asdict(kept) for kept in self.kept],
            "notes": list(self.notes),
        }


def timed(subject: str, timing: Timing, reference: str, floor: Timing, goal: float | None = None) -> Ratio:
    """The ratio of two times taken in one race."""
    low, high = quartiles([a / b for a, b in zip(timing.samples, floor.samples, strict=True)])
    return Ratio(subject, timing.seconds, "s", reference, floor.seconds, low, high, goal)


def against(subject: str, timing: Timing, seconds: float) -> Ratio:
    """A time against the seconds that are its goal, on any machine: a ratio of up to 1 meets it."""
    low, high = quartiles([sample / seconds for sample in timing.samples])
    return Ratio(subject, timing.seconds, "s", "the time that is the goal", seconds, low, high, goal=1.0)


def unpaired(subject: str, timing: Timing, reference: str, peer: Timing) -> Ratio:
    """The ratio of two times that were not taken in one race, for a peer that is too slow for that."""
    return Ratio(subject, timing.seconds, "s", reference, peer.seconds)
