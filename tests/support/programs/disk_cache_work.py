"""A process that uses a disk cache at the same time: ``python disk_cache_work.py WHAT DIRECTORY BYTES SEED``."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from pathlib import Path

from secateur.io.storage.disk_cache import DiskCache

KEYS = 60


def value_of(key: str) -> bytes:
    """The one value that a key can have: up to 60 kB, of a size and content by the key."""
    chance = random.Random(key)
    return chance.randbytes(chance.randrange(60_000))


def hammer(cache: DiskCache, seed: int, rounds: int = 150) -> None:
    """Random reads, one by one and several together, every value checked."""
    chance = random.Random(seed)
    for _ in range(rounds):
        keys = [f"key {chance.randrange(KEYS)}" for _ in range(chance.choice([1, 1, 5]))]
        values = [cache.get(key, lambda key=key: value_of(key)) for key in keys]
        assert values == [value_of(key) for key in keys], keys
        if chance.random() < 0.01:
            cache.clear()


def die_writing(cache: DiskCache) -> None:
    """Write half of a value, and be killed."""
    write, caller = os.write, threading.get_ident()

    def half(file: int, data: memoryview) -> int:
        if threading.get_ident() == caller and len(data) > 5000:
            write(file, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(file, data)

    os.write = half
    cache.get("never", lambda: bytes(10_000))


if __name__ == "__main__":
    what, directory, most_bytes, seed = sys.argv[1:]
    cache = DiskCache(Path(directory), int(most_bytes))
    match what:
        case "hammer":
            hammer(cache, int(seed))
            print(cache.counters.hits, cache.counters.evictions)
        case "die":
            die_writing(cache)
