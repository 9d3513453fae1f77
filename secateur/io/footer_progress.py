"""Report progress while a query without an index reads the footers of many files."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

QUIET_SECONDS = 2.0  # before the first line
SECONDS = 5.0  # between lines
_log = logging.getLogger("secateur")

T = TypeVar("T")


def with_progress(footers: Iterable[T], count: int, location: str) -> Iterator[T]:
    """Yield the footers, `count` in all; if they take seconds, log how many are read, and how to avoid reading them."""
    begun = time.monotonic()
    next_line, lines = begun + QUIET_SECONDS, 0
    for done, footer in enumerate(footers, 1):
        yield footer
        now = time.monotonic()
        if now >= next_line and done < count:
            left = (now - begun) / done * (count - done)
            remedy = "" if lines else f"; queries with an index read none: secateur index {location}"
            _log.warning("%d of %d footers read, about %.0f s left%s", done, count, left, remedy)
            next_line, lines = now + SECONDS, lines + 1
