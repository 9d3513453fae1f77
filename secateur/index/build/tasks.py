"""Work on the parts of a build, whose results are bytes: run by threads of this process, or as a Spark job."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from secateur.index.container import index_file
from secateur.index.container.index_file import read_contents

TASKS_PER_CORE = 4  # so that a core that finishes early finds more to do

Work: TypeAlias = Callable[[Sequence[int]], Iterator[bytes]]  # of some numbers
RunTasks: TypeAlias = Callable[[Work, int], Iterator[bytes]]  # over the numbers below n


def run_in_process(work: Work, n: int) -> Iterator[bytes]:
    """Run `work` over the numbers below n in threads of this process; yield its results in order.

    Each call gets one number, and at most two calls per thread run ahead of the reader, which bounds memory. If one
    fails, or the reader stops, calls not begun are dropped and running ones are awaited: no thread writes after this
    has returned.
    """

    def part(number: int) -> list[bytes]:
        return list(work([number]))

    threads = os.cpu_count() or 1
    ahead: deque[Future[list[bytes]]] = deque()
    with ThreadPoolExecutor(threads, "secateur-build") as pool:
        try:
            for i in range(n):
                if len(ahead) == 2 * threads:
                    yield from ahead.popleft().result()
                ahead.append(pool.submit(part, i))
            while ahead:
                yield from ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def shares(n: int, tasks: int) -> list[list[int]]:
    """Split the numbers below n into ranges of about equal length, one per task."""
    return [share.tolist() for share in np.array_split(np.arange(n), tasks)]


def read_result(data: bytes) -> tuple[index_file.Contents, index_file.ReadRange]:
    """Open a result written by :class:`secateur.index.container.index_file.Writer`; also return the reader of its
    chunks.
    """

    def read(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    return read_contents("task result", index_file.SUMMARY, len(data), read), read
