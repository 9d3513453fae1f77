"""Outliers and distant clusters: blocks ruled out by the widest gaps between values, where bounds span everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.zones.gaps import MOST_GAPS, GapTable, gap_table, pays, widest_gaps
from secateur.pruning.bounds.gaps import reaches
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.kinds import Kind

BLOCKS = 10_000
VALUES = 200  # of a block
SPACE = 1_000_000_000
WIDTH = SPACE // 1_000  # of a cluster of values
RANGES, REACH = 200, SPACE // 10_000  # of a predicate
FEWER = 5  # goal: times fewer blocks
BYTES = 16  # of a gap

Draw = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Sort:
    """How the values of a block are spread, and how many gaps show it."""

    name: str
    draw: Draw
    gaps: int


def _around(rng: np.random.Generator, center: int, count: int) -> np.ndarray:
    return np.clip(center + rng.integers(-WIDTH // 2, WIDTH // 2, count), 0, SPACE)


def _outliers(rng: np.random.Generator, count: int) -> np.ndarray:
    clustered = _around(rng, int(rng.integers(0, SPACE)), VALUES - count)
    return np.append(clustered, rng.integers(0, SPACE, count))


def _modes(rng: np.random.Generator, count: int) -> np.ndarray:
    centers = rng.integers(0, SPACE, count).tolist()
    return np.concatenate([_around(rng, center, VALUES // count) for center in centers])


def _sentinels(rng: np.random.Generator) -> np.ndarray:
    """Values with two sentinels: zero for unknown, and the greatest value for no end."""
    return np.append(_around(rng, int(rng.integers(0, SPACE)), VALUES - 2), [0, SPACE])


SORTS = (
    Sort("one outlier", lambda rng: _outliers(rng, 1), 1),
    Sort("two sentinels", _sentinels, 2),
    Sort("two modes", lambda rng: _modes(rng, 2), 1),
    Sort("four modes", lambda rng: _modes(rng, 4), 3),
    Sort("four outliers", lambda rng: _outliers(rng, 4), 4),
    Sort("evenly spread", lambda rng: rng.integers(0, SPACE, VALUES), MOST_GAPS),
)


def outliers(setting: Setting) -> Result:
    """Random ranges over blocks with wide bounds: the blocks left with 16 to 64 bytes more per block."""
    n = setting.scaled(BLOCKS, least=100)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    notes = []
    for sort in SORTS:
        rng = np.random.default_rng(9)
        blocks = [sort.draw(rng) for _ in range(n)]
        measured, left, table = _left(sort, blocks)
        ratios, kept = [*ratios, *measured], [*kept, left]
        lower, upper = _bounds(blocks)
        notes.append(f"{sort.name}: {MOST_GAPS} gaps are {'' if pays(table, lower, upper) else 'not '}worth keeping")
    ratios += _speed(blocks, table, setting)
    return Result({"blocks": n, "values_per_block": VALUES, "ranges": RANGES}, tuple(ratios), tuple(kept), tuple(notes))


def _left(sort: Sort, blocks: list[np.ndarray]) -> tuple[list[Ratio], Kept, GapTable]:
    """Blocks left by bounds and by up to four gaps, over all ranges; those of the first ranges that hold a match."""
    lower, upper = _bounds(blocks)
    tables = [gap_table([widest_gaps(pa.array(block), g) for block in blocks], g) for g in range(1, MOST_GAPS + 1)]
    rng = np.random.default_rng(10)
    by_bounds = holding = 0
    by_gaps = np.zeros(MOST_GAPS, np.int64)
    whole = np.sort(np.stack(blocks), axis=1)
    for start in rng.integers(0, SPACE - REACH, RANGES).tolist():
        asked = _range(start)
        by_bounds += int(((upper >= start) & (lower < start + REACH)).sum())
        holding += int(((whole >= start) & (whole < start + REACH)).any(axis=1).sum())
        for g, table in enumerate(tables):
            by_gaps[g] += int(reaches(asked, lower, upper, table.low, table.high).sum())
    if by_gaps.min() < holding:
        raise AssertionError(f"{sort.name}: gaps lose blocks that hold a match")
    ratios = []
    for g, left in enumerate(by_gaps.tolist(), 1):
        goal = 1.0 if g == sort.gaps and sort.gaps < MOST_GAPS else None
        subject = f"{sort.name}: blocks left by {g * BYTES} bytes of gaps"
        ratios.append(
            Ratio(subject, left / RANGES, "blocks", "a fifth of those that bounds leave", _fifth(by_bounds), goal=goal)
        )
    left_by = {"bounds": by_bounds} | {f"{g} gaps": int(left) for g, left in enumerate(by_gaps, 1)}
    kept = Kept(
        "outliers", sort.name, "blocks", RANGES * len(blocks), holding, {"secateur": int(by_gaps[-1]), **left_by}
    )
    return ratios, kept, tables[-1]


def _fifth(by_bounds: int) -> float:
    return by_bounds / RANGES / FEWER


def _bounds(blocks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([block.min() for block in blocks]), np.array([block.max() for block in blocks])


def _range(start: int) -> RangeSet:
    return RangeSet(Kind.WORD, np.array([start, start + REACH]))


def _speed(blocks: list[np.ndarray], table: GapTable, setting: Setting) -> list[Ratio]:
    lower, upper = _bounds(blocks)
    asked = _range(SPACE // 2)
    start, stop = SPACE // 2, SPACE // 2 + REACH
    with_gaps, floor, gaps, least = race(
        [
            lambda: reaches(asked, lower, upper, table.low, table.high),
            lambda: (upper >= start) & (lower < stop),
            lambda: [widest_gaps(pa.array(block), MOST_GAPS) for block in blocks[:100]],
            lambda: [np.sort(block) for block in blocks[:100]],
        ],
        setting.repetitions,
    )
    return [
        timed(f"reaches() with {MOST_GAPS} gaps, one range", with_gaps, "numpy: two comparisons of bounds", floor),
        timed(f"widest_gaps() of 100 blocks of {VALUES} values", gaps, "numpy: sort of the same", least),
    ]
