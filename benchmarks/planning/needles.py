"""Look-ups of rare values, where bounds rule out nothing: prune() over a million blocks by filters."""

from __future__ import annotations

import time

import numpy as np

import secateur as sec
from benchmarks.planning.needle_table import NeedleTable, and_of_rows, needle_table, rows_of
from benchmarks.planning.scale_cold import drop_cached
from benchmarks.planning.scale_tables import changing, numbers
from benchmarks.planning.synthetic import KEYS
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import Timing, garbage_kept, race
from secateur.index.filters.bloom import rate_for, rate_of
from secateur.index.filters.size_class import shape_of
from secateur.scan import Scan

WARM_SECONDS, COLD_SECONDS, LIST_SECONDS = 0.001, 0.01, 0.1
COLD_BYTES = 3_000_000
LIST = 1_000  # values of an IN list
ABSENT = 1_000  # values looked for that no block holds
COLD = 10  # plans at most with nothing in memory
ROWS = "os.pread of the same rows, ANDed by numpy"


def needle_warm(setting: Setting) -> Result:
    """One value that one block holds, another in every call: the whole plan, and the look-up in filters alone."""
    needles = needle_table(setting)
    scan = _checked(needles, 0)
    read = _bytes(scan)  # before look-ups in its catalog add to it
    needles.warm()
    floors = list(rows_of(needles.bloom_matrices(), needles.value))
    n = len(needles.value)
    whole, probe, floor = race(
        [
            changing(lambda call: needles.find(int(needles.value[call % n]))),
            changing(lambda call: needles.probe(scan, needles.value[call % n : call % n + 1])),
            changing(lambda call: and_of_rows(needles.directory, floors[call % n])),
        ],
        setting.repetitions,
    )
    stages = _stages(needles.find(int(needles.value[1])))
    ratios = (
        timed("prune(), one value", whole, ROWS, floor),
        against("prune(), one value", whole, WARM_SECONDS),
        timed("look-up in filters alone", probe, ROWS, floor),
        against("look-up in filters alone", probe, WARM_SECONDS),
        Ratio("bytes read of the index", read, "B", "rows of that value", _row_bytes(needles, 0)),
    )
    kept = Kept("needles", "one value", "blocks", len(needles), 1, {"secateur": len(numbers(scan))})
    return Result(_sizes(needles), ratios, (kept,), (stages,))


def needle_cold(setting: Setting) -> Result:
    """One value with nothing of the index in memory but its snapshot, nor in the system's file cache."""
    needles = needle_table(setting)
    samples, scans = [], []
    with garbage_kept():
        for call in range(min(COLD, 2 * setting.repetitions)):
            _forget(needles)
            started = time.perf_counter()
            scan = needles.find(int(needles.value[call]))
            samples.append(time.perf_counter() - started)
            scans.append(scan)
    for call, scan in enumerate(scans):
        _require(needles, call, scan)
    read = [_bytes(scan) for scan in scans]
    ratios = (
        against("prune(), one value, cold", Timing(tuple(samples)), COLD_SECONDS),
        Ratio("bytes read of the index", max(read), "B", "the bytes that are the goal", COLD_BYTES, goal=1.0),
        Ratio("bytes read of the index", max(read), "B", "rows of one value", _row_bytes(needles, 0)),
    )
    pieces = f"{max(scan.report.reads.stored for scan in scans)} pieces are read"
    return Result(_sizes(needles), ratios, (), (pieces, *map(_stages, scans[:2])))


def _forget(needles: NeedleTable) -> None:
    """Empty the caches, but for the snapshot's table of contents, segments and files, which any query opens."""
    needles.table.cache.clear()
    drop_cached(needles.directory)
    needles.prune("ts IS NULL")


def needle_in_1000(setting: Setting) -> Result:
    """A list of values, each in one block; other values in every call."""
    needles, length = needle_table(setting), setting.scaled(LIST, least=20)
    rolled = np.concatenate([needles.value, needles.value])

    def values(call: int) -> np.ndarray:
        start = call * length % len(needles.value)
        return rolled[start : start + length]

    scan = needles.prune(sec.col("user_id").isin(values(0)))
    blocks = np.unique(np.concatenate([needles.block, needles.block])[:length])
    lost = np.setdiff1d(blocks, numbers(scan))
    if len(lost):
        raise AssertionError(f"{len(lost):,} of {len(blocks):,} blocks are lost")
    needles.warm()
    bloom_matrices = needles.bloom_matrices()
    whole, probe, one_by_one, floor = race(
        [
            changing(lambda call: needles.prune(sec.col("user_id").isin(values(call)))),
            changing(lambda call: needles.probe(scan, values(call))),
            changing(lambda call: [needles.probe(scan, value[None]) for value in values(call)[: length // 10]]),
            changing(
                lambda call: [and_of_rows(needles.directory, rows) for rows in rows_of(bloom_matrices, values(call))]
            ),
        ],
        setting.repetitions,
    )
    by_value = Timing(tuple(10 * sample for sample in one_by_one.samples))
    name = f"IN list of {length:,} values"
    ratios = (
        against(f"prune(), {name}", whole, LIST_SECONDS),
        timed(f"prune(), {name}", whole, "value by value: os.pread of its rows, ANDed by numpy", floor),
        timed(f"look-up in filters alone, {name}", probe, "the same value by value, by a tenth of them", by_value),
    )
    kept = Kept("needles", name, "blocks", len(needles), len(blocks), {"secateur": len(numbers(scan))})
    return Result({**_sizes(needles), "values": length}, ratios, (kept,), (_stages(scan),))


def false_blocks(setting: Setting) -> Result:
    """Blocks that filters leave for values which no block holds."""
    needles = needle_table(setting)
    scan = _checked(needles, 0)
    absent = needles.absent[: setting.scaled(ABSENT, least=100)]
    wrong = sum(len(needles.probe(scan, value[None])) for value in absent) / len(absent)
    bloom_matrices, n = needles.bloom_matrices(), len(needles)
    shape = shape_of(int(bloom_matrices.size_class[0]))
    theory = n * rate_of(KEYS, shape.probes, shape.bits)
    subject = f"blocks wrongly kept per absent value, {KEYS} keys in {shape.bits:,} bits"
    ratios = (
        Ratio(subject, wrong, "blocks", "n times the rate asked for", n * rate_for(n, None), goal=1.0),
        Ratio(subject, wrong, "blocks", "n (1 - e^(-kd/m))^k, independent bits", theory),
    )
    return Result({**_sizes(needles), "absent_values": len(absent)}, ratios)


def _checked(needles: NeedleTable, call: int) -> Scan:
    """The plan for a value, once it is known to keep the block that holds it."""
    scan = needles.find(int(needles.value[call]))
    _require(needles, call, scan)
    return scan


def _require(needles: NeedleTable, call: int, scan: Scan) -> None:
    if needles.block[call] not in numbers(scan):
        raise AssertionError(f"block {needles.block[call]}, which holds {needles.value[call]}, is lost")


def _sizes(needles: NeedleTable) -> dict[str, int | float]:
    bloom_matrices = needles.bloom_matrices()
    return {"blocks": len(needles), "keys_per_block": KEYS, "filter_bytes": int(bloom_matrices.file_size.sum())}


def _bytes(scan: Scan) -> float:
    return float(scan.report.reads.stored_bytes)


def _row_bytes(needles: NeedleTable, call: int) -> float:
    (ranges,) = rows_of(needles.bloom_matrices(), needles.value[call : call + 1])
    return float(sum(size for _, _, size in ranges))


def _stages(scan: Scan) -> str:
    """The time of each stage of one plan."""
    return ", ".join(f"{stage.name} {stage.seconds * 1000:.2f} ms" for stage in scan.report.stages)
