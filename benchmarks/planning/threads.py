"""prune() by several threads of one process, and by two processes, which share no lock of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import count
from multiprocessing import get_context

import numpy as np

from benchmarks.planning.scale_tables import (
    BLOCKS,
    ScaleTable,
    by_numpy,
    in_sql,
    numbers,
    ranges,
    require_equal,
    scale_table,
)
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import Timing, race

FEW_BLOCKS = 2_000
THREADS = (1, 2, 4)
PROCESSES = 2
PLANS = 32  # per sample
THROUGHPUT_GOAL = 1 / 1.6  # seconds per plan of two threads, beside one

_tables: list[ScaleTable] = []  # of a forked process


def plan_threads(setting: Setting) -> Result:
    """Plans of one table at once, each by other literals; the last ones are compared with numpy's."""
    ratios: list[Ratio] = []
    notes: list[str] = []
    for blocks in (BLOCKS, FEW_BLOCKS):
        measured, note = _at_once(scale_table(setting, blocks), setting)
        ratios, notes = ratios + measured, [*notes, note]
    return Result({"blocks": BLOCKS, "few_blocks": FEW_BLOCKS, "plans": PLANS}, tuple(ratios), notes=tuple(notes))


def _at_once(table: ScaleTable, setting: Setting) -> tuple[list[Ratio], str]:
    bounds, calls = table.bounds(), count()
    threads: dict[str, Executor] = {_named(n, "thread"): ThreadPoolExecutor(n) for n in THREADS}
    forked = ProcessPoolExecutor(PROCESSES, get_context("fork"), _tables.append, (table,))
    answers: dict[str, list[tuple[int, np.ndarray]]] = {}

    def plan(call: int) -> tuple[int, np.ndarray]:
        return call, numbers(table.prune(in_sql(ranges(call))))

    def asked() -> Iterator[int]:
        return (next(calls) for _ in range(PLANS))

    def by_threads(name: str) -> None:
        answers[name] = list(threads[name].map(plan, asked()))

    def by_processes(name: str) -> None:
        answers[name] = list(forked.map(_planned, asked(), chunksize=PLANS // PROCESSES))

    def alone() -> None:
        for call in asked():
            by_numpy(bounds, ranges(call))

    def in_two() -> None:
        list(threads[_named(2, "thread")].map(lambda call: by_numpy(bounds, ranges(call)), asked()))

    names = [*threads, _named(PROCESSES, "process")]
    asks = [*(partial(by_threads, name) for name in threads), partial(by_processes, names[-1])]
    *plans, numpy_alone, numpy_in_two = race([*asks, alone, in_two], setting.repetitions)
    for pool in (*threads.values(), forked):
        pool.shutdown()
    for name, said in answers.items():
        for call, kept in said:
            require_equal(kept, by_numpy(bounds, ranges(call)), name)
    size, (one, *more) = f"{len(table):,} blocks", map(_per_plan, plans)
    ratios = [
        timed(
            f"seconds per plan, {name}, {size}", timing, "one thread", one, THROUGHPUT_GOAL if "2 t" in name else None
        )
        for name, timing in zip(names[1:], more, strict=True)
    ]
    floor = timed(
        f"numpy's six comparisons, 2 threads, {size}", _per_plan(numpy_in_two), "one thread", _per_plan(numpy_alone)
    )
    rates = ", ".join(f"{name} {1 / t.seconds:,.0f}" for name, t in zip(names, (one, *more), strict=True))
    return [*ratios, floor], f"plans per second, {size}: {rates}"


def _named(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"


def _planned(call: int) -> tuple[int, np.ndarray]:
    """Plan in a forked process."""
    return call, numbers(_tables[0].prune(in_sql(ranges(call))))


def _per_plan(timing: Timing) -> Timing:
    return Timing(tuple(sample / PLANS for sample in timing.samples))
