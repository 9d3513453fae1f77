"""A point look-up on a slow object store: a table and its index on a loopback S3, 15 ms a request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Ratio, Result, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import Timing, once
from secateur.demo.partners import partner
from secateur.demo.s3_process import BUCKET, RemoteServer, remote_server
from secateur.demo.s3_traffic import Traffic
from secateur.demo.s3a import s3a_trouble
from secateur.index.model import BLOOM, BuildOptions, FilterOption
from secateur.io.storage.disk_cache import DiskCache
from tests.support.stores.local_build import index_here

LATENCY = 0.015  # seconds added to every request
FILES, ROW_GROUPS, ROWS = 200, 10, 2_000  # files, row groups of each, rows of these
MOST_ROUND_TRIPS = 4
DISK_BYTES = 1 << 30
FASTER = 30  # goal: times as fast as Spark's own reader
PEER_RUNS = 2
SPARK = "Spark's own reader over s3a"
PATH = f"{BUCKET}/events"
MULTIPLIER, MODULUS = 1_000_003, 2_147_483_647  # turn row numbers into distinct keys in no order

Find = Callable[[int], int]  # the rows with a key


def lookup_s3(setting: Setting) -> Result:
    """prune() and to_arrow() for a new value every time, the snapshot of the index in memory; and peers."""
    files = setting.scaled(FILES, least=2)
    keys = _keys(files)
    with remote_server() as server, tempfile.TemporaryDirectory() as folder:
        filesystem, location = pafs.FileSystem.from_uri(f"s3://{PATH}")[0], f"s3://{PATH}"
        for number in range(files):
            pq.write_table(_rows(number), f"{PATH}/{number:05d}.parquet", filesystem=filesystem, row_group_size=ROWS)
        index_here(sec.open_table(location), BuildOptions(filters=(FilterOption(BLOOM, "user_id"),)))
        table = sec.open_table(location, disk_cache=DiskCache(Path(folder), DISK_BYTES))

        def find(key: int) -> int:
            return sec.prune(table, f"user_id = {key}", strict=True).to_arrow().num_rows

        cold, _ = measured(server, find, keys, 1)
        warm, ours = measured(server, find, keys, 2 * setting.repetitions)
        peers = {"pyarrow's dataset": measured(server, _by_dataset(filesystem), keys, PEER_RUNS)}
        trouble = s3a_trouble()
        if not trouble:
            peers[SPARK] = _by_spark(server, location.replace("s3", "s3a", 1), keys)
    by_reader = {"cold": cold, "warm": warm, **{name: traffic for name, (traffic, _) in peers.items()}}
    notes = [f"{name}: {traffic}" for name, traffic in by_reader.items()]
    goals = {SPARK: 1 / FASTER}
    looked_up = (
        replace(unpaired("look-up", ours, name, timing), goal=goals.get(name)) for name, (_, timing) in peers.items()
    )
    return Result(
        {"files": files, "row_groups": files * ROW_GROUPS, "rows": files * ROW_GROUPS * ROWS, "latency": LATENCY},
        (
            *looked_up,
            Ratio("round trips in sequence", warm.round_trips, "round trips", "the most", MOST_ROUND_TRIPS, goal=1.0),
        ),
        notes=(*notes, *([f"Spark was not measured, for s3a cannot be had: {trouble}"] if trouble else [])),
    )


def _rows(file: int) -> pa.Table:
    n = ROW_GROUPS * ROWS
    ids = np.arange(file * n, (file + 1) * n)
    names = np.char.add("customer-", (ids % 99_991).astype("U"))
    return pa.table({"id": ids, "user_id": _key(ids), "amount": ids % 1_009 / 7, "name": names, "day": ids // 50_000})


def _key(row: Any) -> Any:
    return row * MULTIPLIER % MODULUS


def _keys(files: int) -> Iterator[int]:
    """Keys of rows all over the table."""
    rng = np.random.default_rng(7)
    while True:
        yield int(_key(int(rng.integers(files * ROW_GROUPS * ROWS))))


def measured(server: RemoteServer, find: Find, keys: Iterator[int], runs: int) -> tuple[Traffic, Timing]:
    """The traffic of the run with the most round trips, and the seconds of all."""
    traffics, seconds = [], []
    for key in islice(keys, runs):
        with server.traffic(LATENCY) as traffic:
            timing, rows = once(partial(find, key))
        if rows != 1:
            raise AssertionError(f"{rows} rows have the key {key} instead of one")
        traffics.append(traffic)
        seconds.append(timing.seconds)
    return max(traffics, key=lambda traffic: traffic.round_trips), Timing(tuple(seconds))


def _by_dataset(filesystem: pafs.FileSystem) -> Find:
    """Find rows with pyarrow, which prunes by the bounds of row groups."""

    def find(key: int) -> int:
        return ds.dataset(PATH, filesystem=filesystem).to_table(filter=pc.field("user_id") == key).num_rows

    return find


def _by_spark(server: RemoteServer, location: str, keys: Iterator[int]) -> tuple[Traffic, Timing]:
    """Find rows with Spark's reader and its push-down, after a run that warms it."""
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    with partner("benchmarks.spark.s3_spark", endpoint, environment=os.environ) as spark:

        def find(key: int) -> int:
            return int(spark.ask([location, f"user_id = {key}"]))

        find(next(keys))
        return measured(server, find, keys, PEER_RUNS)
