"""Raise the recursion limit: the predicate parser takes some forty Python frames per level of parentheses."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 20_000  # enough for some 500 levels; frames are on the heap, some 500 bytes each

_lock = threading.Lock()
_inside = 0
_limit_before = 0


def _renew() -> None:
    """Forget threads that a forked child does not have."""
    global _lock, _inside
    _lock, inside, _inside = threading.Lock(), _inside, 0
    if inside:
        sys.setrecursionlimit(_limit_before)


os.register_at_fork(after_in_child=_renew)


@contextmanager
def room_for_recursion() -> Iterator[None]:
    """Raise the interpreter's recursion limit while any thread is inside."""
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
