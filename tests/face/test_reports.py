"""Reports of plans: metrics as Iceberg names them, who is told of them, and the table in what is explained."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

import secateur as sec
from secateur.index.model import BuildOptions
from secateur.pruning.report import Report
from tests.support.formats.iceberg_deletes import delete_positions
from tests.support.stores.local_build import index_here


@pytest.fixture
def numbers(tmp_path: Path) -> Table:
    """Five files of ten numbers, three of them indexed; rows of the first are deleted by two files."""
    catalog = load_catalog("reported", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    table = catalog.create_table("db.numbers", Schema(NestedField(1, "n", LongType())))
    for first in (0, 10, 20):
        table.append(pa.table({"n": range(first, first + 10)}))
    index_here(sec.open_table(table), BuildOptions())
    for first in (30, 40):
        table.append(pa.table({"n": range(first, first + 10)}))
    path = next(task.file.file_path for task in table.scan("n < 10").plan_files())
    delete_positions(table, path, [0])
    delete_positions(table, path, [1, 2])
    return table


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files of 100 rows in ten blocks, without an index."""
    root = tmp_path / "lake"
    root.mkdir()
    for i in range(3):
        rows = pa.table({"n": range(100 * i, 100 * i + 100)})
        pq.write_table(rows, root / f"{i}.parquet", row_group_size=10, write_page_index=True)
    return root


@pytest.fixture
def received() -> Iterator[list[Report]]:
    """The reports of all plans."""
    reports: list[Report] = []
    sec.add_reporter(reports.append)
    yield reports
    sec.remove_reporter(reports.append)


def values(report: Report) -> dict[str, Any]:
    """The counters of a report, once their form is that of Iceberg."""
    metrics = report.metrics()
    duration = metrics.pop("total-planning-duration")
    assert list(duration) == ["count", "time-unit", "total-duration"]
    assert (duration["count"], duration["time-unit"]) == (1, "nanoseconds")
    assert isinstance(duration["total-duration"], int) and duration["total-duration"] > report.seconds * 1e9
    for name, metric in metrics.items():
        assert metric["unit"] == ("bytes" if name.endswith("-in-bytes") else "count"), name
    return {name: metric["value"] for name, metric in metrics.items()}


# ---- counts ---------------------------------------------------------------------------------------------------------


def test_metrics_of_an_iceberg_table(numbers: Table) -> None:
    table = sec.open_table(numbers)
    counts = values(sec.prune(table, "n < 15", strict=True).report)
    planned = list(numbers.scan("n < 15").plan_files())
    deletes = [delete for task in planned for delete in task.delete_files]
    expected = {
        "total-data-files": 5,
        "result-data-files": len(planned),
        "skipped-data-files": 5 - len(planned),
        "total-file-size-in-bytes": sum(task.file.file_size_in_bytes for task in planned),
        "result-delete-files": len(deletes),
        "total-delete-file-size-in-bytes": sum(delete.file_size_in_bytes for delete in deletes),
        "total-data-manifests": 5,
        "scanned-data-manifests": 2,
        "skipped-data-manifests": 3,  # which are kept beside the index
        "total-delete-manifests": 2,
        "scanned-delete-manifests": 2,
        "skipped-delete-manifests": 0,
        "indexed-delete-files": 2,
        "skipped-delete-files": 0,
        "positional-delete-files": 2,
        "equality-delete-files": 0,
        "dvs": 0,
        "result-row-groups": 2,
        "result-rows": 20,
    }
    assert {name: counts[name] for name in expected} == expected


def test_manifests_in_memory_are_not_scanned(numbers: Table) -> None:
    table = sec.open_table(numbers)
    sec.drop_index(table)
    counts = values(sec.prune(table, "TRUE").report)
    assert (counts["scanned-data-manifests"], counts["skipped-data-manifests"]) == (5, 0)
    counts = values(sec.prune(table, "TRUE").report)
    assert (counts["scanned-data-manifests"], counts["skipped-data-manifests"]) == (0, 5)
    assert (counts["scanned-delete-manifests"], counts["skipped-delete-manifests"]) == (0, 2)
    numbers.append(pa.table({"n": [99]}))
    counts = values(sec.prune(table, "TRUE").report)
    assert (counts["scanned-data-manifests"], counts["skipped-data-manifests"]) == (1, 5)


def test_deletes_that_no_file_of_the_plan_needs_are_skipped(numbers: Table) -> None:
    counts = values(sec.prune(sec.open_table(numbers), "n >= 40").report)
    assert (counts["indexed-delete-files"], counts["result-delete-files"], counts["skipped-delete-files"]) == (2, 0, 2)
    assert counts["total-delete-file-size-in-bytes"] == 0


def test_metrics_of_a_directory(lake: Path) -> None:
    table = sec.open_table(str(lake))
    counts = values(sec.prune(table, "n < 15", strict=True).report)
    assert counts["result-data-files"] == 1
    assert counts["total-file-size-in-bytes"] == (lake / "0.parquet").stat().st_size
    assert not any(value for name, value in counts.items() if "manifest" in name or "delete" in name)
    assert "total-row-groups" not in counts  # a plan without an index does not know it before
    assert counts["result-row-groups"] == 2
    index_here(table, BuildOptions())
    counts = values(sec.prune(table, "n < 15", strict=True).report)
    names = ("total", "result", "skipped")
    assert [counts[f"{name}-row-groups"] for name in names] == [30, 2, 28]
    assert [counts[f"{name}-rows"] for name in names] == [300, 20, 280]
    assert counts["scanned-index-chunks"] > 0
    assert counts["degraded-stages"] == 0


def test_a_plan_of_nothing_has_metrics(numbers: Table) -> None:
    counts = values(sec.prune(sec.open_table(numbers), "n > 1000").report)
    assert (counts["result-data-files"], counts["total-file-size-in-bytes"], counts["result-row-groups"]) == (0, 0, 0)


def test_a_report_is_a_value(numbers: Table) -> None:
    report = sec.prune(sec.open_table(numbers), "n < 15").report
    assert json.loads(report.to_json())["metrics"] == report.metrics()
    assert json.loads(json.dumps(asdict(report)))["snapshot_id"] == report.snapshot_id
    assert pickle.loads(pickle.dumps(report)).metrics() == report.metrics()


# ---- reporters -------------------------------------------------------------------------------------------------------


def test_a_reporter_is_told_of_every_plan_once(lake: Path, received: list[Report]) -> None:
    table = sec.open_table(str(lake))
    plan = sec.prune(table, "n = 1")
    assert plan.to_arrow().num_rows == plan.count() == 1
    assert received == [plan.report]
    assert (received[0].predicate, received[0].table) == ("n = 1", str(lake))
    sec.add_reporter(received.append)
    sec.prune(table, "n = 2")
    assert [report.predicate for report in received] == ["n = 1", "n = 2"]
    sec.remove_reporter(received.append)
    sec.prune(table, "n = 3")
    assert len(received) == 2
    sec.remove_reporter(received.append)


def test_a_reporter_that_fails_fails_no_query(
    lake: Path, received: list[Report], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(report: Report) -> None:
        raise RuntimeError(f"cannot report {report.predicate}")

    sec.remove_reporter(received.append)
    sec.add_reporter(broken)
    sec.add_reporter(received.append)
    try:
        with caplog.at_level(logging.INFO, "secateur"):
            assert sec.prune(sec.open_table(str(lake)), "n = 1").count() == 1
    finally:
        sec.remove_reporter(broken)
    assert len(received) == 1
    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert "broken" in record.getMessage()
    assert record.exc_info is not None and "cannot report n = 1" in str(record.exc_info[1])
    assert any(record.getMessage().startswith("pruned by n = 1") for record in caplog.records)


# ---- explain ---------------------------------------------------------------------------------------------------------


def lines(plan: Any) -> dict[str, str]:
    """What stands before the stages of an explained plan, by its title."""
    return dict(line.split(": ", 1) for line in plan.explain().split("\n\n")[0].splitlines())


def test_an_iceberg_table_is_explained_with_its_snapshot(numbers: Table) -> None:
    table = sec.open_table(numbers)
    snapshot = numbers.current_snapshot()
    assert snapshot is not None
    heads = lines(sec.prune(table, "n < 15"))
    assert (
        heads["table"] == f"{table.location}, snapshot {snapshot.snapshot_id}, 5 files, at most 1 of them with deletes"
    )
    first, _, indexed, *_ = (snapshot.snapshot_id for snapshot in numbers.metadata.snapshots)
    index, made_of = "snapshot 1, 1 segment", f"made of table snapshot {indexed}"
    assert heads["index"] == f"{index}, covers 3 of 5 files; 3 of its 3 files live, {made_of}"
    heads = lines(sec.prune(sec.open_table(numbers, snapshot_id=first), "n < 15"))
    assert heads["table"] == f"{table.location}, snapshot {first}, 1 files"
    assert heads["index"] == f"{index}, covers 1 of 1 file; 1 of its 3 files live, {made_of}"


def test_a_directory_is_explained_by_its_location(lake: Path) -> None:
    table = sec.open_table(str(lake))
    index_here(table, BuildOptions())
    heads = lines(sec.prune(table, "n < 15"))
    assert (heads["table"], heads["index"]) == (str(lake), "snapshot 1, 1 segment, covers 3 of 3 files")
    (lake / "0.parquet").unlink()
    heads = lines(sec.prune(table, "n < 15"))
    assert heads["index"] == "snapshot 1, 1 segment, covers 2 of 2 files; 2 of its 3 files live"
