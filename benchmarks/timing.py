"""Timing side by side: contenders take turns, so that what disturbs one disturbs the other."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TypeVar

LEAST_SAMPLE = 0.002  # seconds; a faster call is repeated within a sample
ENOUGH = 0.2  # seconds per asked repetition; while there is time left, more repetitions are made
MOST_TIMES = 5  # as many repetitions as asked for

Contender = Callable[[], object]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, repetition by repetition."""

    samples: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.samples)


def race(
    contenders: Sequence[Contender],
    repetitions: int,
    warming: float = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """The times of the contenders, called in turn `repetitions` times or, where they are quick, up to five times more.

    Every contender is called before, at least once and for `warming` seconds, which warms what it uses. The garbage
    collector is off while the clock runs. With `time.process_time` for a clock: the processor time of all threads.
    """
    with garbage_kept():
        first = [_warmed(contender, warming) for contender in contenders]
        calls = [max(1, ceil(LEAST_SAMPLE / max(seconds, 1e-9))) for seconds in first]
        once = sum(n * seconds for n, seconds in zip(calls, first, strict=True))
        affordable = int(repetitions * ENOUGH / once)
        rounds = min(max(repetitions, affordable), repetitions * MOST_TIMES)
        samples = [
            [_sample(contender, n, clock) for contender, n in zip(contenders, calls, strict=True)]
            for _ in range(rounds)
        ]
    return [Timing(times) for times in zip(*samples, strict=True)]


def _warmed(contender: Contender, seconds: float) -> float:
    """The seconds of the last of some calls."""
    end = time.perf_counter() + seconds
    while True:
        last = _sample(contender, 1)
        if time.perf_counter() >= end:
            return last


def _sample(contender: Contender, calls: int, clock: Callable[[], float] = time.perf_counter) -> float:
    gc.collect()
    started = clock()
    for _ in range(calls):
        contender()
    return (clock() - started) / calls


def once(contender: Callable[[], Answer]) -> tuple[Timing, Answer]:
    """The time of a single call, for what is too slow to repeat, and its answer."""
    with garbage_kept():
        gc.collect()
        started = time.perf_counter()
        answer = contender()
        return Timing((time.perf_counter() - started,)), answer


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Switch the collector off, and leave what lives already out of the collections between samples."""
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


def quartiles(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The lower and upper quartile; None of a single value."""
    ordered = sorted(values)
    if len(ordered) < 2:
        return None, None
    return ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
