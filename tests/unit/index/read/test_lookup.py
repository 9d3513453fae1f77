"""Look-ups on an object store wait for the files of all segments at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.demo.s3_traffic import Traffic
from secateur.index.filters import transpose
from secateur.io.tables.table import Table
from tests.support.profiles import takes_seconds
from tests.support.s3_server import REGION, S3Server

LATENCY = 0.15  # seconds: requests that are sent together overlap whatever else the machine does
FILES, ROWS, GROUP = 6, 8_000, 2_000


@pytest.fixture
def folder(s3: S3Server, tmp_path: Path) -> Iterator[str]:
    yield f"{s3.bucket}/{tmp_path.name}"
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


def write(s3: S3Server, folder: str) -> None:
    """Files of a segment each; every key is once in each."""
    filesystem = pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION)
    for i in range(FILES):
        keys = np.arange(ROWS) * 7919 % ROWS
        table = pa.table({"id": np.arange(i * ROWS, (i + 1) * ROWS), "key": keys})
        pq.write_table(table, f"{folder}/t/{i}.parquet", row_group_size=GROUP, filesystem=filesystem)


def indexed(s3: S3Server, folder: str, **structures: Any) -> Table:
    """The files with an index, parts of whose bloom matrix lie in many files."""
    write(s3, folder)
    table = sec.open_table(f"s3://{folder}/t")
    with patch.object(transpose, "PART_BYTES", 1 << 12):
        sec.build_index(table, sort_key=["id"], segment_blocks=ROWS // GROUP, **structures)
    return sec.open_table(f"s3://{folder}/t")


def files_and_round_trips(traffic: Traffic) -> tuple[int, int]:
    """Of the index."""
    of_index = Traffic([request for request in traffic.requests if "/_secateur/" in request.name])
    return len({request.name for request in of_index.requests if request.kind == "GET"}), of_index.round_trips


@takes_seconds
@pytest.mark.parametrize(
    ("structures", "condition"),
    [
        ({"postings": ["key"]}, "key = {}"),
        ({"postings": {"key": "rows"}}, "key = {}"),
        ({"postings": {"key": "ordered"}}, "key BETWEEN {0} AND {0} + 1"),
        ({"bloom": ["key"]}, "key = {}"),
    ],
    ids=["postings", "row lists", "ordered postings", "bloom filters"],
)
def test_all_segments_are_waited_for_at_once(
    s3: S3Server, folder: str, structures: dict[str, Any], condition: str
) -> None:
    table = indexed(s3, folder, **structures)
    for key in (17, 18):  # what later plans find in memory
        sec.prune(table, condition.format(key))
    with s3.traffic(LATENCY) as traffic:
        plan = sec.prune(table, condition.format(ROWS // 2))
    files, round_trips = files_and_round_trips(traffic)
    assert files >= 4
    assert round_trips <= 3
    assert plan.count() >= FILES


@takes_seconds
@pytest.mark.parametrize("wanted", ["count(*)", "count(DISTINCT key)", "the first"])
def test_ordered_values_of_all_segments_are_waited_for_at_once(s3: S3Server, folder: str, wanted: str) -> None:
    table = indexed(s3, folder, postings={"key": "ordered"})

    def ask(key: int) -> Any:
        if wanted == "the first":
            plan = sec.prune(table, f"key > {key}", order_by=["key"], limit=FILES)
            return plan.to_arrow()["key"].to_pylist()
        (row,) = sec.aggregate(table, wanted, f"key BETWEEN {key} AND {key} + 4").to_pylist()
        return [*row.values()]

    ask(17)
    with s3.traffic(LATENCY) as traffic:
        answer = ask(ROWS // 2)
    expected = {"count(*)": [5 * FILES], "count(DISTINCT key)": [5], "the first": [ROWS // 2 + 1] * FILES}
    assert answer == expected[wanted]
    files, round_trips = files_and_round_trips(traffic)
    assert files >= 4
    assert round_trips <= 4
