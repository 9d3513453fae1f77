"""prune() with a million join keys over a million blocks, warm, against numpy's search of the same arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.scale_shapes import searched
from benchmarks.scale_tables import BLOCKS, ScaleTable, changing, numbers, require_equal, scale_table
from benchmarks.setting import Setting
from benchmarks.synthetic import EPOCH, MINUTE, SPACE
from benchmarks.timing import race
from secateur.scan import Scan

KEYS, SECONDS = 1_000_000, 0.2
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
        ratios.append(timed(f"prune(), {name}", ours, "numpy: sort of the keys, two searchsorted", floor))
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


def _joined(table: ScaleTable, **keys: np.ndarray) -> Scan:
    columns = {name: pa.array(values, MICROS if name == "ts" else pa.int64()) for name, values in keys.items()}
    return sec.prune(table.table, "TRUE", keys=pa.table(columns), on=list(keys), strict=True, session_time_zone="UTC")
