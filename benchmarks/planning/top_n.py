"""The first ten rows of an order: by bounds alone over millions of blocks, and with a filter from files of logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.logs.logs import UNIT, log_lines
from benchmarks.planning.scale_tables import BLOCKS, MANY_BLOCKS, ScaleTable, numbers, require_equal, scale_table
from benchmarks.planning.synthetic import SCATTERED, Bounds
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting, index_code
from benchmarks.spark.enabled_sql import SWITCH, enabled
from benchmarks.spark.sessions import spark_session
from benchmarks.timing import race
from secateur.io.scan.first_rows import FirstRows
from secateur.io.tables.table import Table
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = 10  # first rows of an order
CLUSTERED_SECONDS = 0.003  # goal for a plan by the sort key
LOG_BLOCKS, LOG_FILES = 2_000, 50
USERS = 20_000  # so that a user has a line in every twentieth row group
FILTERS = {
    "a rare text": "message LIKE '%rejected%' AND level = 'ERROR'",
    "an equality": "level = 'ERROR'",
    "a user": "user_id = 42",
}
SPARK = "Spark alone"
WARMING = 5  # seconds for each contender
MICROS = pa.timestamp("us", "UTC")


def topn_clustered(setting: Setting) -> Result:
    """The newest rows of a table sorted by time."""
    table = scale_table(setting, MANY_BLOCKS)
    expected, kept = _by_bounds(table, "ts")
    (ours,) = race([partial(_plan, table, "ts")], setting.repetitions)
    ratio = against(f"prune(), the newest {N} rows, {len(table):,} blocks", ours, CLUSTERED_SECONDS)
    return Result({"blocks": len(table), "ideal": len(expected)}, (ratio,), (kept,))


def topn_unclustered(setting: Setting) -> Result:
    """The greatest values of a column whose values lie all over the table."""
    table, column = scale_table(setting, BLOCKS), SCATTERED[0]
    _, kept = _by_bounds(table, column)
    bounds, rows = table.bounds(column)[column], _plan(table, column).blocks["row_count"][0].as_py()
    ours, floor = race([partial(_plan, table, column), partial(_needed, bounds, rows)], setting.repetitions)
    ratio = timed(f"prune(), the greatest {N} rows, {len(table):,} blocks", ours, "a partition by numpy", floor)
    return Result({"blocks": len(table)}, (ratio,), (kept,))


def _plan(table: ScaleTable, column: str) -> Scan:
    return sec.prune(table.table, "TRUE", order_by=f"{column} DESC", limit=N, strict=True, session_time_zone="UTC")


def _by_bounds(table: ScaleTable, column: str) -> tuple[np.ndarray, Kept]:
    """The blocks that bounds alone cannot rule out, by numpy, and those that a plan keeps."""
    plan = _plan(table, column)
    expected = _needed(table.bounds(column)[column], plan.blocks["row_count"][0].as_py())
    require_equal(numbers(plan), expected, f"the greatest of {column}")
    kept = {"secateur": len(plan.blocks)}
    return expected, Kept("scale", f"ORDER BY {column} DESC LIMIT {N}", "blocks", len(table), len(expected), kept)


def _needed(bounds: Bounds, rows: int) -> np.ndarray:
    """The blocks that may hold one of the greatest rows: each has so many rows, one of them at each bound."""
    lower, upper = bounds
    boundaries = [_greatest(lower, -(-N // rows)), _greatest(upper, N)]
    return np.flatnonzero(upper >= max(boundaries))


def _greatest(values: np.ndarray, n: int) -> int:
    """The n-th greatest value, or the least if there are fewer."""
    return int(np.partition(values, len(values) - n)[len(values) - n]) if n <= len(values) else int(values.min())


def topn_filtered(setting: Setting) -> Result:
    """The newest log lines of a kind, planned and read, beside engines over the same files; and by SQL."""
    blocks = setting.scaled(LOG_BLOCKS, least=50)
    data = setting.prepared(f"logs-of-users-{blocks}", partial(_write, blocks=blocks))
    table = _indexed(data)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    with spark_session() as spark, enabled(spark, [table]):
        spark.read.parquet(str(data / "data")).createOrReplaceTempView("logs")
        peers = {"DuckDB": _in_duckdb(data / "data"), "DataFusion": _in_datafusion(data / "data")}
        peers[SPARK] = partial(_in_spark, spark, pruned=False)
        for name, where in FILTERS.items():
            sql = f"SELECT * FROM logs WHERE {where} ORDER BY ts DESC LIMIT {N}"
            asked = [partial(_ours, table, where), partial(_in_spark, spark, sql, pruned=True)]
            asked += [partial(ask, sql) for ask in peers.values()]
            wanted, *others = (ask()["ts"].cast(MICROS).cast(pa.int64()).to_pylist() for ask in asked)
            assert all(other == wanted for other in others), f"{['SQL', *peers]} give {others} for {wanted} of {name}"
            ours, in_sql, *times = race(asked, setting.repetitions, WARMING * min(1, setting.scale))
            subject = f"plan and read the newest {N} of {name}"
            ratios += [timed(subject, ours, peer, time) for peer, time in zip(peers, times, strict=True)]
            ratios.append(timed(f"SQL with enable(), the newest {N} of {name}", in_sql, SPARK, times[-1]))
            plan = sec.prune(table, where, order_by="ts DESC", limit=N)
            search = FirstRows(plan, plan.fields())
            search.run()
            read = int(np.count_nonzero(~search.unread))
            kept.append(Kept("logs", f"{where} ORDER BY ts DESC LIMIT {N}", "blocks", blocks, None, {"secateur": read}))
    return Result({"blocks": blocks, "files": LOG_FILES}, tuple(ratios), tuple(kept))


def _write(directory: Path, blocks: int) -> None:
    """Log lines, each of some user, in files of row groups of :data:`UNIT` lines."""
    (directory / "data").mkdir()
    per_file = -(-blocks // LOG_FILES) * UNIT
    for number, start in enumerate(range(0, blocks * UNIT, per_file)):
        lines = log_lines(start, min(start + per_file, blocks * UNIT))
        users = np.random.default_rng((23, number)).integers(0, USERS, len(lines))
        path = directory / "data" / f"part-{number:03d}.parquet"
        pq.write_table(lines.append_column("user_id", pa.array(users)), path, row_group_size=UNIT, compression="zstd")


def _indexed(directory: Path) -> Table:
    """The log table with an index of bounds and, of users, a bloom filter."""
    index = directory / f"by-time-{index_code()}"
    table = sec.open_table(str(directory / "data"), index_location=str(index))
    if not index.exists():
        sec.build_index(table, sort_key=["ts"], bloom=["user_id"])
    return table


def _in_spark(spark: SparkSession, sql: str, *, pruned: bool) -> pa.Table:
    spark.conf.set(SWITCH, str(pruned).lower())
    return spark.sql(sql).toArrow()


def _ours(table: Table, where: str) -> pa.Table:
    return sec.prune(table, where, order_by="ts DESC", limit=N).to_arrow()


def _in_duckdb(data: Path) -> Callable[[str], pa.Table]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"CREATE VIEW logs AS SELECT * FROM read_parquet('{data}/*.parquet')")
    return lambda sql: connection.sql(sql).to_arrow_table()


def _in_datafusion(data: Path) -> Callable[[str], pa.Table]:
    context = datafusion.SessionContext()
    context.register_parquet("logs", str(data))
    return lambda sql: context.sql(sql).to_arrow_table()
