"""A thread-safe LRU cache, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from secateur.forks import lock_for
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap

Value = TypeVar("Value")


@dataclass
class CacheCounters:
    """Counters of a cache since its creation."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    bytes: int = 0


class ByteCache:
    """Keeps loaded values up to `most_bytes`; a larger single value is loaded but not kept.

    No lock is held during a load: two threads may load the same value, and the first result serves both.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.counters = CacheCounters()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = lock_for(self, "_lock")

    def get(self, key: Hashable, load: Callable[[], Value]) -> Value:
        """Return the value under a key, loading it if absent. Errors of `load` propagate; nothing is kept then."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                self.counters.hits += 1
                return self._entries[key][0]
            self.counters.misses += 1
        value = load()
        return self._keep(key, value, size_of(value))

    def peek(self, key: Hashable) -> Any:
        """Return the value under a key, or None; this does not count as a use."""
        with self._lock:
            return self._entries.get(key, (None, 0))[0]

    def holds(self, key: Hashable) -> bool:
        """Whether a value is kept under a key."""
        with self._lock:
            return key in self._entries

    def _keep(self, key: Hashable, value: Value, size: int) -> Value:
        """Keep a value unless the key is present, and return the kept one."""
        if size > self.most_bytes:
            return value
        with self._lock:
            if key in self._entries:
                return self._entries[key][0]
            self._entries[key] = (value, size)
            self.counters.bytes += size
            self._make_room()
        return value

    def measure(self, key: Hashable) -> None:
        """Update the size of a kept value that has grown."""
        with self._lock:
            if key not in self._entries:
                return
            value, before = self._entries[key]
            size = size_of(value)
            self._entries[key] = (value, size)
            self.counters.bytes += size - before
            self._make_room()

    def _make_room(self) -> None:
        while self.counters.bytes > self.most_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.counters.bytes -= freed
            self.counters.evictions += 1

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.counters.bytes = 0


_LEAST_SIZE = 512  # a Python object with a few fields


def size_of(value: object) -> int:
    """Estimate the bytes of a cached value, accurately enough to bound memory."""
    match value:
        case np.ndarray():
            return value.nbytes + _LEAST_SIZE
        case bytes():
            return len(value) + _LEAST_SIZE
        case ZoneMap(lower, upper, null_count, nan_count):
            words = (*lower.words, *upper.words, null_count, nan_count)
            return sum(word.nbytes for word in words) + _LEAST_SIZE
        case PageTable(offsets, first_row, zone_map):
            return offsets.nbytes + first_row.nbytes + size_of(zone_map)
        case _ if hasattr(value, "nbytes"):
            return int(value.nbytes) + _LEAST_SIZE
        case _:
            return _LEAST_SIZE
