"""Read files in parallel, in order, a few ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


def read_ahead(read: Callable[[Wanted], Result], files: Iterable[Wanted], at_once: int) -> Iterator[Result]:
    """Yield `read` of every file, in order, with `at_once` threads; as many files more are read ahead.

    A single file is read by the caller's thread: starting one takes as long as reading a row.
    """
    rest = iter(files)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(read, first)
        return
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as threads:
        for file in chain(first, rest):
            if len(ahead) == 2 * at_once:
                yield ahead.popleft().result()
            ahead.append(threads.submit(read, file))
        while ahead:
            yield ahead.popleft().result()
