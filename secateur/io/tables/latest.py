"""The snapshot of a table that was looked up last, shared by threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from secateur.forks import lock_for

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """The snapshot looked up last, shared by threads; if several want a new one, one thread looks it up."""

    def __init__(self) -> None:
        self._latest: tuple[float, Value] | None = None
        self._one_looks = lock_for(self, "_one_looks")

    def get(self, renew: Callable[[Value | None], Value], most_seconds: float) -> Value:
        """Return a snapshot looked up less than `most_seconds` before this call, or after it."""
        called = time.monotonic()
        latest = self._latest
        if latest is None or called - latest[0] >= most_seconds:
            with self._one_looks:
                latest = self._latest
                if latest is None or called - latest[0] >= most_seconds:
                    begun = time.monotonic()
                    latest = self._latest = begun, renew(None if latest is None else latest[1])
        return latest[1]

    def expire(self) -> None:
        """Expire the snapshot, because it turned out wrong."""
        latest = self._latest
        if latest is not None:
            self._latest = -math.inf, latest[1]
