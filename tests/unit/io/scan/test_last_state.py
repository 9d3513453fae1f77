"""Plans over the last state of a table on S3: rows of the state that the store names, whatever has changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import TableNotFound, UnknownColumn
from secateur.io.scan import last_state
from secateur.io.tables.table import Table
from tests.support.profiles import takes_seconds
from tests.support.s3_server import REGION, S3Server

LATENCY = 0.15  # seconds: requests that are sent together overlap whatever else the machine does
ROWS, MANY = 3000, 40_000
KEY = 7919 * 5 % ROWS


@pytest.fixture
def filesystem(s3: S3Server) -> pafs.S3FileSystem:
    return pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION)


@pytest.fixture
def folder(s3: S3Server, tmp_path: Path) -> Iterator[str]:
    yield f"{s3.bucket}/{tmp_path.name}"
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


def write(filesystem: pafs.FileSystem, path: str, first: int, rows: int = ROWS) -> None:
    """A file in which every key is once."""
    keys = np.arange(rows) * 7919 % rows
    pq.write_table(pa.table({"id": np.arange(first, first + rows), "key": keys}), path, filesystem=filesystem)


def ids(table: Table, key: int = KEY) -> list[int]:
    return sorted(sec.prune(table, f"key = {key}").to_arrow()["id"].to_pylist())


@takes_seconds
def test_rows_are_those_of_the_state_that_the_store_names(filesystem: pafs.S3FileSystem, folder: str) -> None:
    """One handle sees files and an index come, change and go."""
    write(filesystem, f"{folder}/t/0.parquet", 0)
    table = sec.open_table(f"s3://{folder}/t")
    steps: dict[str, tuple[Callable[[], object], list[int]]] = {
        "no index yet": (lambda: None, [5]),
        "its index": (lambda: sec.build_index(table, postings={"key": "rows"}), [5]),
        "another file": (lambda: write(filesystem, f"{folder}/t/1.parquet", 10_000), [5, 10_005]),
        "its index, too": (lambda: sec.refresh_index(table), [5, 10_005]),
        "other rows under the same name": (
            lambda: write(filesystem, f"{folder}/t/0.parquet", 50_000),
            [10_005, 50_005],
        ),
        "one file less": (lambda: filesystem.delete_file(f"{folder}/t/1.parquet"), [50_005]),
        "another index": (lambda: sec.build_index(table, bloom=["key"]), [50_005]),
        "no index": (lambda: sec.drop_index(table), [50_005]),
    }
    for step, (change, expected) in steps.items():
        change()
        for _ in range(3):
            assert ids(table) == expected, step
        assert ids(table, ROWS) == [], step
    with pytest.raises(UnknownColumn):
        sec.prune(table, "nothing = 1")
    filesystem.delete_file(f"{folder}/t/0.parquet")
    with pytest.raises(TableNotFound):
        ids(table)


@takes_seconds
def test_a_state_whose_index_files_are_gone_is_asked_for_again(filesystem: pafs.S3FileSystem, folder: str) -> None:
    """Here strict: the plan over the last state fails, the one over the current state does not."""
    write(filesystem, f"{folder}/t/0.parquet", 0)
    table = sec.open_table(f"s3://{folder}/t")
    sec.build_index(table, postings={"key": "rows"})
    assert ids(table) == [5]
    others = sec.open_table(f"s3://{folder}/t")
    sec.drop_index(others)
    sec.build_index(others, postings={"key": "rows"}, gaps=["key"])  # of another size: S3 tells times in seconds
    plan = sec.prune(table, f"key = {KEY + 1}", strict=True)
    assert plan.to_arrow()["key"].to_pylist() == [KEY + 1]
    assert not any(stage.degraded for stage in plan.report.stages)


@takes_seconds
def test_a_look_up_takes_three_round_trips(
    filesystem: pafs.S3FileSystem, folder: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listings and postings at once, then row lists, then pages; one more for whoever waits for the listings."""
    write(filesystem, f"{folder}/t/0.parquet", 0, MANY)
    sec.build_index(sec.open_table(f"s3://{folder}/t"), postings={"key": "rows"})

    def round_trips() -> int:
        table = sec.open_table(f"s3://{folder}/t")
        assert len(ids(table, 17)) == 1
        with s3.traffic(LATENCY) as traffic:
            assert len(ids(table, MANY // 2)) == 1
        assert traffic.counts["LIST"] == 2
        return traffic.round_trips

    with_state = round_trips()
    monkeypatch.setattr(last_state._LastState, "get", lambda self: None)
    assert with_state == round_trips() - 1 == 3
