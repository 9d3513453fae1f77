"""Room for recursion: the parser of predicates takes some forty of Python's frames per level of parentheses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 20_000  # for some 500 levels; they lie on the heap, and take some 500 bytes each

_lock = threading.Lock()
_inside = 0
_limit_before = 0


@contextmanager
def room_for_recursion() -> Iterator[None]:
    """Raises the interpreter's limit of recursion while any thread is inside."""
    global _inside, _limit_before
    with _lock:
        if not _inside:
            _limit_before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit_before, FRAMES))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_limit_before)
