"""Send plans to OpenTelemetry: a span for every plan, and metrics of all. Only its API is needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from secateur.errors import PackageMissing
from secateur.exporters.totals import SECONDS, UNITS, degraded_stages, planning_seconds, table_of, totals_of
from secateur.pruning.report import Report
from secateur.pruning.reporters import Reporter

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SCOPE = "secateur"  # the name of the tracer and of the meter
UNIT_CODES = {"blocks": "{block}", "bytes": "By"}  # in UCUM, as OpenTelemetry asks


def opentelemetry_reporter(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Reporter:
    """Return a reporter that sends plans to OpenTelemetry, by default to the providers of the process.

    A plan is a span ``secateur.prune`` below the current span of the thread that plans. Its attributes are the table,
    the predicate without literals, blocks and bytes before and kept, the seconds of every stage and the blocks that it
    left, and why stages could not use the index. Metrics have the attribute ``secateur.table``: the counters
    ``secateur.plans``, ``secateur.blocks.before``, ``secateur.blocks.kept``, ``secateur.bytes.before``,
    ``secateur.bytes.kept`` and ``secateur.stages.degraded``, and the histogram ``secateur.planning.duration`` in
    seconds. Blocks and bytes of a plan are there if both their numbers are known. A second call for the same providers
    returns the same reporter, so that nothing is counted twice. Raises PackageMissing without `opentelemetry-api`.
    """
    try:
        import opentelemetry.metrics
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        raise PackageMissing(
            "opentelemetry_reporter() needs opentelemetry-api: pip install 'secateur[opentelemetry]'"
        ) from None
    return _reporter_of(tracer_provider, meter_provider)


@cache
def _reporter_of(tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> Reporter:
    send, count = _sender(tracer_provider), _counter(meter_provider)

    def report_to_opentelemetry(report: Report) -> None:
        send(report)
        count(report)

    return report_to_opentelemetry


def _sender(provider: TracerProvider | None) -> Reporter:
    """Return what makes a span of a plan that has just been made."""
    from opentelemetry import trace

    tracer = trace.get_tracer(SCOPE, tracer_provider=provider)

    def send(report: Report) -> None:
        end = time.time_ns()
        start = end - round(planning_seconds(report) * 1e9)
        span = tracer.start_span("secateur.prune", start_time=start)
        if span.is_recording():  # the shape of a predicate is printed on demand
            span.set_attributes(dict(_attributes(report)))
        span.end(end)

    return send


def _attributes(report: Report) -> Iterator[tuple[str, str | int | float | tuple[str, ...]]]:
    yield "secateur.table", table_of(report)
    yield "secateur.predicate", report.shape.text
    for unit, (there, left) in totals_of(report).items():
        yield f"secateur.{unit}.before", there
        yield f"secateur.{unit}.kept", left
    for stage in report.stages:
        name = stage.name.replace(" ", "_")
        yield f"secateur.stage.{name}.seconds", stage.seconds
        if stage.after.blocks is not None:
            yield f"secateur.stage.{name}.blocks", stage.after.blocks
    if report.degraded:
        yield "secateur.degraded", report.degraded


def _counter(provider: MeterProvider | None) -> Reporter:
    """Return what adds a plan to the metrics."""
    from opentelemetry import metrics

    meter = metrics.get_meter(SCOPE, meter_provider=provider)
    plans = meter.create_counter("secateur.plans", "{plan}", "Plans made")
    before, kept = (
        {unit: meter.create_counter(f"secateur.{unit}.{which}", UNIT_CODES[unit], meaning) for unit in UNITS}
        for which, meaning in (("before", "In the tables of plans"), ("kept", "Kept by plans"))
    )
    degraded = meter.create_counter("secateur.stages.degraded", "{stage}", "Stages that could not use the index")
    seconds = meter.create_histogram(
        "secateur.planning.duration", "s", "Time of planning", explicit_bucket_boundaries_advisory=SECONDS
    )

    def count(report: Report) -> None:
        attributes = {"secateur.table": table_of(report)}
        plans.add(1, attributes)
        for unit, (there, left) in totals_of(report).items():
            before[unit].add(there, attributes)
            kept[unit].add(left, attributes)
        degraded.add(degraded_stages(report), attributes)
        seconds.record(planning_seconds(report), attributes)

    return count
