"""Read files in parallel, in order, a few ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

READ_THREADS = 8
Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


def read_ahead(read: Callable[[Wanted], Result], files: Iterable[Wanted]) -> Iterator[Result]:
    """Yield `read` of every file, in order; a few more files than there are threads are read ahead."""
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(READ_THREADS) as threads:
        for file in files:
            if len(ahead) == 2 * READ_THREADS:
                yield ahead.popleft().result()
            ahead.append(threads.submit(read, file))
        while ahead:
            yield ahead.popleft().result()
