"""The snapshot of a table that was looked up last, shared by threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from secateur.forks import lock_for

Found = TypeVar("Found")


class Latest(Generic[Found]):
    """The snapshot looked up last, shared by threads; if several want a new one, one thread looks it up."""

    def __init__(self) -> None:
        self._found: tuple[float, Found] | None = None
        self._one_looks = lock_for(self, "_one_looks")

    def get(self, renew: Callable[[Found | None], Found], most_seconds: float) -> Found:
        """Return a snapshot looked up less than `most_seconds` before this call, or after it."""
        called = time.monotonic()
        found = self._found
        if found is None or called - found[0] >= most_seconds:
            with self._one_looks:
                found = self._found
                if found is None or called - found[0] >= most_seconds:
                    begun = time.monotonic()
                    found = self._found = begun, renew(None if found is None else found[1])
        return found[1]

    def expire(self) -> None:
        """Expire the snapshot, because it was found wrong."""
        found = self._found
        if found is not None:
            self._found = -math.inf, found[1]
