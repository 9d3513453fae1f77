"""prune() with join keys, warm, against numpy's search of the same arrays: as many as blocks, and far fewer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.planning.scale_shapes import searched
from benchmarks.planning.scale_tables import (
    BLOCKS,
    MANY_BLOCKS,
    ScaleTable,
    changing,
    numbers,
    require_equal,
    scale_table,
)
from benchmarks.planning.synthetic import EPOCH, MINUTE, SPACE, Bounds
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import Timing, race
from secateur.scan import Scan

KEYS, SECONDS = 1_000_000, 0.2
MERGE_KEYS = 100_000
SEARCHED = 1.0  # goal: of the time of numpy's search, which looks at every block
NUMPY = "numpy: sort of the keys, two searchsorted"
MICROS = pa.timestamp("us", "UTC")


def keys_1m(setting: Setting) -> Result:
    """Join keys that are instants, shifted by a microsecond per call within the time measured; then pairs."""
    table, length = scale_table(setting, BLOCKS), setting.scaled(KEYS, least=10)
    rng = np.random.default_rng(6)
    (lower, upper), (near, far) = table.bounds("ts", "distance").values()
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    for where, span in {"within a fifth of the table": len(table) // 5, "anywhere in the table": len(table)}.items():
        times = EPOCH + rng.integers(0, span * MINUTE, length)
        name = f"{length:,} keys {where}"
        expected = searched(lower, upper, np.sort(times))
        require_equal(numbers(_joined(table, ts=times)), expected, name)
        ours, floor = race(
            [
                changing(lambda call, times=times: _joined(table, ts=times + call)),  # type: ignore[misc]
                changing(lambda call, times=times: searched(lower, upper, np.sort(times + call))),  # type: ignore[misc]
            ],
            setting.repetitions,
        )
        ratios.append(against(f"prune(), {name}", ours, SECONDS))
        ratios.append(timed(f"prune(), {name}", ours, NUMPY, floor))
        kept.append(Kept("scale", name, "blocks", len(table), len(expected), {"secateur": len(expected)}))
    pairs, distances = EPOCH + rng.integers(0, len(table) * MINUTE, length), rng.integers(0, SPACE, length)
    plan = _joined(table, ts=pairs, distance=distances)
    first, last = (np.searchsorted(np.sort(pairs), ends) for ends in (lower, upper + 1))
    order = np.argsort(pairs)
    alone = np.flatnonzero(last - first == 1)
    beside = distances[order][first[alone]]
    wanted = alone[(beside >= near[alone]) & (beside <= far[alone])]
    if len(np.setdiff1d(wanted, numbers(plan))):
        raise AssertionError("a block is lost whose one key in ts has a distance that it may hold")
    name = f"{length:,} pairs"
    sides = ((np.sort(pairs), lower, upper), (np.sort(distances), near, far))
    ours, floor = race(
        [
            changing(lambda call: _joined(table, ts=pairs, distance=distances + call)),
            lambda: [np.searchsorted(keys, bounds) for keys, *both in sides for bounds in both],
        ],
        setting.repetitions,
    )
    ratios.append(timed(f"prune(), {name}", ours, "numpy: the four searchsorted alone", floor))
    kept.append(Kept("scale", name, "blocks", len(table), None, {"secateur": len(numbers(plan))}))
    return Result({"blocks": len(table), "keys": length}, tuple(ratios), tuple(kept))


def keys_merge(setting: Setting) -> Result:
    """The keys of a MERGE, fewer than blocks: on the sort key, close together and anywhere, and on another column."""
    table, length = scale_table(setting, MANY_BLOCKS), setting.scaled(MERGE_KEYS, least=10)
    rng = np.random.default_rng(8)
    bounds = table.bounds("ts", "distance")
    part = SPACE // 50
    sources = {
        "of the sort key, within a fifth of the table": (
            "ts",
            EPOCH + rng.integers(0, len(table) // 5 * MINUTE, length),
        ),
        "of the sort key, anywhere": ("ts", EPOCH + rng.integers(0, len(table) * MINUTE, length)),
        "of another column, within a 50th of its values": ("distance", SPACE // 2 + rng.integers(0, part, length)),
        "of another column, anywhere: all blocks are kept": ("distance", rng.integers(0, SPACE, length)),
    }
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    for where, (column, keys) in sources.items():
        name = f"{length:,} keys {where}"
        measured, left = _merged(table, column, keys, bounds[column], setting)
        ratios.append(timed(f"prune(), {name}", *measured, SEARCHED))
        kept.append(Kept("scale", name, "blocks", len(table), left, {"secateur": left}))
    return Result({"blocks": len(table), "keys": length}, tuple(ratios), tuple(kept))


def _merged(
    table: ScaleTable, column: str, keys: np.ndarray, bounds: Bounds, setting: Setting
) -> tuple[tuple[Timing, str, Timing], int]:
    """The times of a plan and of numpy, for keys that shift by one per call, and how many blocks are left."""
    expected = searched(*bounds, np.sort(keys))
    require_equal(numbers(_joined(table, **{column: keys})), expected, f"{len(keys):,} keys of {column}")
    ours, floor = race(
        [
            changing(lambda call: _joined(table, **{column: keys + call})),
            changing(lambda call: searched(*bounds, np.sort(keys + call))),
        ],
        setting.repetitions,
    )
    return (ours, NUMPY, floor), len(expected)


def _joined(table: ScaleTable, **keys: np.ndarray) -> Scan:
    columns = {name: pa.array(values, MICROS if name == "ts" else pa.int64()) for name, values in keys.items()}
    return sec.prune(table.table, "TRUE", keys=pa.table(columns), on=list(keys), strict=True, session_time_zone="UTC")
