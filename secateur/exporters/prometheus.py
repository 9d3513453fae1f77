"""Count plans for Prometheus."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from secateur.errors import PackageMissing
from secateur.exporters.totals import SECONDS, UNITS, degraded_stages, planning_seconds, table_of, totals_of
from secateur.pruning.report import Report
from secateur.pruning.reporters import Reporter

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def prometheus_reporter(registry: CollectorRegistry | None = None) -> Reporter:
    """Return a reporter that counts plans in a registry of `prometheus_client`, by default in its own.

    All metrics have the label `table`, its location: ``secateur_plans_total``, ``secateur_blocks_before_total``,
    ``secateur_blocks_kept_total``, ``secateur_bytes_before_total``, ``secateur_bytes_kept_total``,
    ``secateur_degraded_stages_total``, and the histogram ``secateur_planning_seconds``. Blocks and bytes of a plan are
    counted if both their numbers are known. A second call for a registry returns the same reporter, so that nothing is
    counted twice. Raises PackageMissing without `prometheus_client`.
    """
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        raise PackageMissing(
            "prometheus_reporter() needs prometheus_client: pip install 'secateur[prometheus]'"
        ) from None
    return _reporter_of(REGISTRY if registry is None else registry)


@cache
def _reporter_of(registry: CollectorRegistry) -> Reporter:
    from prometheus_client import Counter, Histogram

    def counter(name: str, meaning: str) -> Counter:
        return Counter(f"secateur_{name}", meaning, ("table",), registry=registry)

    plans = counter("plans", "Plans made")
    before = {unit: counter(f"{unit}_before", f"{unit.capitalize()} of the tables of plans") for unit in UNITS}
    kept = {unit: counter(f"{unit}_kept", f"{unit.capitalize()} that plans keep") for unit in UNITS}
    degraded = counter("degraded_stages", "Stages that could not use the index")
    seconds = Histogram("secateur_planning_seconds", "Time of planning", ("table",), registry=registry, buckets=SECONDS)

    def report_to_prometheus(report: Report) -> None:
        table = table_of(report)
        plans.labels(table).inc()
        for unit, (there, left) in totals_of(report).items():
            before[unit].labels(table).inc(there)
            kept[unit].labels(table).inc(left)
        degraded.labels(table).inc(degraded_stages(report))
        seconds.labels(table).observe(planning_seconds(report))

    return report_to_prometheus
