"""Pack blocks into tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

TASK_BYTES = 32 << 20  # a Python task takes tens of milliseconds to start: prefer few, large ones
MOST_TASKS = 10_000  # Spark's driver keeps state per task; above it, tasks grow


def pack(first: np.ndarray, byte_count: np.ndarray) -> np.ndarray:
    """Return the bounds of tasks among blocks: int64 of shape (n_tasks + 1,), from 0 to the number of blocks,
    ascending.

    File f has the blocks [first[f], first[f + 1]). A task has up to TASK_BYTES, or as many as keep the number of tasks
    at MOST_TASKS; more only if it is a single block. It is cut at the end of a file, unless a single file is larger.
    """
    ends = np.cumsum(byte_count)
    room = max(TASK_BYTES, -(-int(ends[-1]) // MOST_TASKS)) if len(ends) else TASK_BYTES
    # Two consecutive tasks have more than `room` bytes together, so this ends before room has doubled and grown once
    # more.
    while len(cuts := list(_cuts(first, ends, room))) > MOST_TASKS:
        room = room * 5 // 4
    return np.array([0, *cuts], np.int64)


def _cuts(first: np.ndarray, ends: np.ndarray, room: int) -> Iterator[int]:
    """Yield the ends of tasks: as many blocks as fit, but no part of a file that fits in the next task."""
    start, n = 0, len(ends)
    while start < n:
        used = int(ends[start - 1]) if start else 0
        stop = max(int(ends.searchsorted(used + room, "right")), start + 1)
        after = int(first.searchsorted(stop, "right"))  # the first file that begins after stop
        if stop < n and start < (begin := int(first[after - 1])) < stop:
            whole = int(ends[first[after] - 1] - ends[begin - 1])
            stop = begin if whole <= room else stop
        yield stop
        start = stop
