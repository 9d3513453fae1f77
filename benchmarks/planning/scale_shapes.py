"""prune() over a million blocks, warm: a range on the sort key, a long IN list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.planning.scale_tables import (
    BLOCKS,
    MANY_BLOCKS,
    ScaleTable,
    changing,
    numbers,
    require_equal,
    scale_table,
)
from benchmarks.planning.synthetic import EPOCH, MINUTE, SPACE
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import Contender, race

CLUSTERED_SECONDS = {BLOCKS: 0.001, MANY_BLOCKS: 0.002}
GROWTH_GOAL = 2.0  # of the time, from a million blocks to twenty
MINUTES = 10  # of the range on the sort key
KEYS, KEYS_SECONDS = 100_000, 0.05  # of the IN list


def plan_clustered(setting: Setting) -> Result:
    """Ten minutes of a table sorted by time; the first microsecond changes from call to call."""
    tables = {blocks: scale_table(setting, blocks) for blocks in (BLOCKS, MANY_BLOCKS)}
    kept = []
    for table in tables.values():
        lower, upper = table.bounds("ts")["ts"]
        start, stop = _minutes(table, 0)
        expected = np.flatnonzero((upper >= start) & (lower < stop))
        require_equal(numbers(table.prune(_during(start, stop))), expected, "ten minutes")
        name = f"ten minutes, {len(table):,} blocks"
        kept.append(Kept("scale", name, "blocks", len(table), len(expected), {"secateur": len(expected)}))
    few, many = race([_clustered(table) for table in tables.values()], setting.repetitions)
    ratios: list[Ratio] = []
    for (blocks, table), timing in zip(tables.items(), (few, many), strict=True):
        ratios.append(against(f"prune(), ten minutes, {len(table):,} blocks", timing, CLUSTERED_SECONDS[blocks]))
    n, most = map(len, tables.values())
    ratios.append(timed(f"prune(), ten minutes, {most:,} blocks", many, f"the same, {n:,} blocks", few, GROWTH_GOAL))
    return Result({"blocks": n, "many_blocks": most}, tuple(ratios), tuple(kept))


def _clustered(table: ScaleTable) -> Contender:
    return changing(lambda call: table.prune(_during(*_minutes(table, call))))


def _minutes(table: ScaleTable, call: int) -> tuple[int, int]:
    """The range in the middle of the table, in microseconds."""
    start = EPOCH + len(table) // 2 * MINUTE + call
    return start, start + MINUTES * MINUTE


def _during(start: int, stop: int) -> str:
    return f"ts >= TIMESTAMP '{_clock(start)}' AND ts < TIMESTAMP '{_clock(stop)}'"


def _clock(micros: int) -> str:
    return pa.scalar(micros, pa.timestamp("us", "UTC")).as_py().strftime("%Y-%m-%d %H:%M:%S.%f")


def plan_in_100k(setting: Setting) -> Result:
    """An IN list given as a numpy array, shifted by one per call within the time measured."""
    table, length = scale_table(setting, BLOCKS), setting.scaled(KEYS, least=10)
    lower, upper = table.bounds("distance")["distance"]
    lists = {
        "within a fifth of the values": SPACE * 2 // 5 + np.arange(length) * (SPACE // 5) // length,
        "anywhere, so that all blocks are kept": np.random.default_rng(5).choice(SPACE, length, replace=False),
    }
    ratios, kept = [], []
    for where, keys in lists.items():
        name = f"IN list of {length:,} keys {where}"
        expected = searched(lower, upper, np.sort(keys))
        require_equal(numbers(table.prune(sec.col("distance").isin(keys))), expected, name)
        ours, floor = race(
            [
                changing(lambda call, keys=keys: table.prune(sec.col("distance").isin(keys + call))),  # type: ignore[misc]
                changing(lambda call, keys=keys: searched(lower, upper, np.sort(keys + call))),  # type: ignore[misc]
            ],
            setting.repetitions,
        )
        ratios.append(against(f"prune(), {name}", ours, KEYS_SECONDS))
        ratios.append(timed(f"prune(), {name}", ours, "numpy: sort of the keys, two searchsorted", floor))
        kept.append(Kept("scale", name, "blocks", len(table), len(expected), {"secateur": len(expected)}))
    return Result({"blocks": len(table), "keys": length}, tuple(ratios), tuple(kept))


def searched(lower: np.ndarray, upper: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The blocks between whose bounds a key lies."""
    return np.flatnonzero(np.searchsorted(keys, upper, side="right") > np.searchsorted(keys, lower, side="left"))
