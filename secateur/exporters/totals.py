"""What exporters count of a plan. Nothing here looks at every file, as ``Report.metrics`` does."""

from __future__ import annotations

from secateur.io.storage.redaction import redacted_location, without_secrets
from secateur.pruning.report import Report

UNITS = ("blocks", "bytes")
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # buckets


def table_of(report: Report) -> str:
    """Return the table's location without credentials."""
    return without_secrets(redacted_location(report.table))


def totals_of(report: Report) -> dict[str, tuple[int, int]]:
    """Return how many blocks and bytes there were and are kept; a unit of which either is unknown has no entry."""
    first, last = report.stages[0].before, report.stages[-1].after
    totals = {unit: (getattr(first, unit), getattr(last, unit)) for unit in UNITS}
    return {unit: both for unit, both in totals.items() if None not in both}


def degraded_stages(report: Report) -> int:
    """Return how many stages could not use the index."""
    return sum(bool(stage.degraded) for stage in report.stages)


def planning_seconds(report: Report) -> float:
    """Return how long the plan took, listing files and opening the index included."""
    return report.planning_seconds or report.seconds
