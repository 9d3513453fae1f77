"""What the ready-made reporters send to OpenTelemetry and Prometheus, read back through their own libraries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, generate_latest

import secateur as sec
from secateur.errors import PackageMissing
from secateur.exporters import opentelemetry_reporter, prometheus_reporter
from secateur.pruning.reporters import Reporter

ROWS, ROWS_PER_BLOCK, FILES = 100, 10, 3
BLOCKS = FILES * ROWS // ROWS_PER_BLOCK


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Three files of 100 numbers in ten blocks, with an index."""
    root = tmp_path / "lake"
    root.mkdir()
    for i in range(FILES):
        rows = pa.table({"n": range(ROWS * i, ROWS * (i + 1))})
        pq.write_table(rows, root / f"{i}.parquet", row_group_size=ROWS_PER_BLOCK)
    sec.build_index(str(root))
    return str(root)


def bytes_of(lake: str, blocks: range) -> int:
    """The compressed bytes of some blocks, by the footers of the files."""
    metadata = [pq.read_metadata(file) for file in sorted(Path(lake).glob("*.parquet"))]
    groups = [data.row_group(i) for data in metadata for i in range(data.num_row_groups)]
    return sum(groups[i].column(0).total_compressed_size for i in blocks)


def damage(lake: str) -> None:
    (snapshot,) = (Path(lake) / "_secateur" / "snapshots").iterdir()
    snapshot.write_bytes(snapshot.read_bytes()[:-1])


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    sec.add_reporter(reporter)
    try:
        yield
    finally:
        sec.remove_reporter(reporter)


# ---- Prometheus ------------------------------------------------------------------------------------------------------


def test_prometheus_counts_plans(lake: str) -> None:
    registry = CollectorRegistry()
    with reporting(prometheus_reporter(registry)):
        sec.prune(lake, "n = 1")
        sec.prune(lake, "n < 50")

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"secateur_{name}", {"table": lake})

    assert value("plans_total") == 2
    assert (value("blocks_before_total"), value("blocks_kept_total")) == (2 * BLOCKS, 1 + 5)
    assert value("bytes_before_total") == 2 * bytes_of(lake, range(BLOCKS))
    assert value("bytes_kept_total") == bytes_of(lake, range(1)) + bytes_of(lake, range(5))
    assert value("degraded_stages_total") == 0
    assert value("planning_seconds_count") == 2
    assert (value("planning_seconds_sum") or 0) > 0
    damage(lake)
    with reporting(prometheus_reporter(registry)):
        assert sec.prune(lake, "n = 1").report.degraded
    assert (value("plans_total"), value("degraded_stages_total")) == (3, 1)
    assert f'secateur_plans_total{{table="{lake}"}} 3.0' in generate_latest(registry).decode()


def test_a_second_call_for_a_registry_counts_nothing_twice(lake: str) -> None:
    registry = CollectorRegistry()
    with reporting(prometheus_reporter(registry)), reporting(prometheus_reporter(registry)):
        sec.prune(lake, "n = 1")
    assert registry.get_sample_value("secateur_plans_total", {"table": lake}) == 1
    assert prometheus_reporter() is prometheus_reporter()
    assert prometheus_reporter() is not prometheus_reporter(registry)


def test_what_is_unknown_is_not_counted(lake: str) -> None:
    registry = CollectorRegistry()
    report = sec.prune(lake, "n = 1").report
    first, *rest = report.stages
    first = replace(first, before=replace(first.before, bytes=None))
    prometheus_reporter(registry)(replace(report, stages=(first, *rest)))
    assert registry.get_sample_value("secateur_blocks_before_total", {"table": lake}) == BLOCKS
    assert registry.get_sample_value("secateur_bytes_before_total", {"table": lake}) is None
    assert registry.get_sample_value("secateur_bytes_kept_total", {"table": lake}) is None


# ---- OpenTelemetry ---------------------------------------------------------------------------------------------------


def test_a_plan_is_a_span_below_the_current_one(lake: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with reporting(opentelemetry_reporter(provider)):
        with provider.get_tracer("app").start_as_current_span("request"):
            plan = sec.prune(lake, "n = 1234567 OR n < 50")
        damage(lake)
        degraded = sec.prune(lake, "n = 2").report.degraded
    planned, request, second = exporter.get_finished_spans()
    assert (planned.name, request.name, planned.parent) == ("secateur.prune", "request", request.context)
    assert second.parent is None
    assert planned.start_time is not None and planned.end_time is not None
    assert abs((planned.end_time - planned.start_time) / 1e9 - plan.report.planning_seconds) < 1e-6  # as measured
    attributes = dict(planned.attributes or {})
    assert attributes["secateur.table"] == lake
    assert attributes["secateur.predicate"] == plan.report.shape.text
    assert "1234567" not in str(attributes)
    assert (attributes["secateur.blocks.before"], attributes["secateur.blocks.kept"]) == (BLOCKS, 5)
    assert attributes["secateur.bytes.before"] == bytes_of(lake, range(BLOCKS))
    assert attributes["secateur.bytes.kept"] == bytes_of(lake, range(5))
    assert attributes["secateur.stage.zone_maps.blocks"] == 5
    seconds = [attributes[f"secateur.stage.{stage.name.replace(' ', '_')}.seconds"] for stage in plan.report.stages]
    assert seconds == [stage.seconds for stage in plan.report.stages]
    assert "secateur.degraded" not in attributes
    assert degraded and dict(second.attributes or {})["secateur.degraded"] == degraded


def test_opentelemetry_counts_plans(lake: str) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    reporter = opentelemetry_reporter(meter_provider=provider)
    assert opentelemetry_reporter(meter_provider=provider) is reporter
    with reporting(reporter):
        sec.prune(lake, "n = 1")
        sec.prune(lake, "n < 50")
        damage(lake)
        sec.prune(lake, "n = 1")  # without an index, blocks are unknown before footers are read, and bytes are of files
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    points: dict[str, Any] = {}
    for name, metric in metrics.items():
        (points[name],) = metric.data.data_points
        assert points[name].attributes == {"secateur.table": lake}
    duration = points.pop("secateur.planning.duration")
    assert (duration.count, metrics["secateur.planning.duration"].unit, duration.explicit_bounds[0]) == (3, "s", 0.0005)
    files = sum(file.stat().st_size for file in Path(lake).glob("*.parquet"))
    assert {name: point.value for name, point in points.items()} == {
        "secateur.plans": 3,
        "secateur.blocks.before": 2 * BLOCKS,
        "secateur.blocks.kept": 1 + 5,
        "secateur.bytes.before": 2 * bytes_of(lake, range(BLOCKS)) + files,
        "secateur.bytes.kept": 2 * bytes_of(lake, range(1)) + bytes_of(lake, range(5)),
        "secateur.stages.degraded": 1,
    }
    assert metrics["secateur.bytes.kept"].unit == "By"


def test_without_providers_nothing_fails(lake: str, caplog: pytest.LogCaptureFixture) -> None:
    with reporting(opentelemetry_reporter()):
        assert sec.prune(lake, "n = 1").count() == 1
    assert "failed" not in caplog.text


# ---- both ------------------------------------------------------------------------------------------------------------


def test_no_credentials_are_sent(lake: str) -> None:
    registry = CollectorRegistry()
    report = replace(sec.prune(lake, "n = 1").report, table="s3://KEY:SECRET@bucket/events")
    prometheus_reporter(registry)(report)
    assert registry.get_sample_value("secateur_plans_total", {"table": "s3://bucket/events"}) == 1


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [
        (prometheus_reporter, "prometheus_client", "secateur[prometheus]"),
        (opentelemetry_reporter, "opentelemetry.metrics", "secateur[opentelemetry]"),
    ],
)
def test_a_missing_library_is_named(
    make: Callable[[], Reporter], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(PackageMissing) as missing:
        make()
    assert str(missing.value).endswith(f"pip install '{extra}'")


def test_libraries_are_imported_on_demand() -> None:
    code = "import sys, secateur.exporters; sys.exit(bool({'opentelemetry', 'prometheus_client'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
