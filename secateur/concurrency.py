"""Call a function for each of several things: one after the other, or in threads that wait at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


def in_turn(read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
    """Return `read` of everything wanted, in order."""
    return [read(one) for one in wanted]


def at_once(read: Callable[[Wanted], Result], wanted: Sequence[Wanted], threads: int) -> list[Result]:
    """Return `read` of everything wanted, in order, with at most so many threads. The first error propagates."""
    if len(wanted) < 2:
        return in_turn(read, wanted)
    with ThreadPoolExecutor(min(threads, len(wanted))) as pool:
        return list(pool.map(read, wanted))
