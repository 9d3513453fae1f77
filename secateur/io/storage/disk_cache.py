"""A cache of bytes on the local disk, for index files on object stores.

Threads and processes share one directory. The cache never returns wrong bytes (`disk_cache_entry`), is bounded by
evicting the least recently used entries (`disk_cache_eviction`), and its own failures are a miss or a value that is not
stored, never an error.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from secateur.forks import lock_for
from secateur.io.storage.disk_cache_entry import EntryName, read_entry, read_state, write_entry
from secateur.io.storage.disk_cache_eviction import SpaceLimit, occupied_bytes

DIRECTORY_VARIABLE = "SECATEUR_CACHE_DIR"
BYTES_VARIABLE = "SECATEUR_CACHE_BYTES"
DEFAULT_BYTES = 10 * 10**9

_log = logging.getLogger("secateur")


@dataclass
class DiskCacheCounters:
    """Counters of this process's use of a disk cache. Bytes are those of values."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class DiskCache:
    """Stores bytes under keys in a directory, up to `most_bytes` of disk space.

    A value is immutable under its key, so the key includes the version: a location, file name, offset and size. No lock
    is held while values are loaded: two threads or processes may load the same value, and either result is used. A
    value that would fill more than 7/8 of the cache is loaded but not stored. The first failure of a kind is logged as
    a warning. Pickles as its settings.
    """

    def __init__(self, directory: Path | str, most_bytes: int = DEFAULT_BYTES) -> None:
        self.directory = Path(directory).expanduser().absolute()
        self.most_bytes = most_bytes
        self.counters = DiskCacheCounters()
        self._root = os.fspath(self.directory)
        self._space = SpaceLimit(self._root, most_bytes)
        self._lock = lock_for(self, "_lock")
        self._warned: set[str] = set()

    def __reduce__(self) -> tuple[type[DiskCache], tuple[Path, int]]:
        return DiskCache, (self.directory, self.most_bytes)

    def get(self, key: str, load: Callable[[], bytes]) -> bytes:
        """Return the value under a key, loading it on a miss. Errors of `load` pass through, and nothing is stored
        then.
        """
        value = self.find(key)
        if value is None:
            value = load()
            self.keep(key, value)
        return value

    def clear(self) -> None:
        """Remove every entry of every process. Entries being written may stay."""
        try:
            self._space.clear()
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn("cannot be cleared", error)

    def find(self, key: str) -> bytes | None:
        """Return the complete value under a key; None if it is not here."""
        value = None
        try:
            value = read_entry(EntryName.of(self._root, key))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn("cannot be read", error)
        with self._lock:
            if value is None:
                self.counters.misses += 1
            else:
                self.counters.hits += 1
                self.counters.bytes_read += len(value)
        return value

    def state(self, key: str) -> tuple[int, int] | None:
        """Return the checksum and length of the value under a key, unchecked; None if there is none.

        It reads the start of one file, and tells whether another value was stored since.
        """
        try:
            return read_state(EntryName.of(self._root, key))
        except OSError:
            return None

    def keep(self, key: str, value: bytes) -> None:
        """Store a value under a key, if there is room and the disk accepts it."""
        if not self._space.fits(len(value)):
            return
        try:
            evicted = self._space.reserve(len(value))
            with self._lock:
                self.counters.evictions += evicted
            write_entry(EntryName.of(self._root, key), value)
        except OSError as error:
            self._warn("cannot be written", error)
        else:
            with self._lock:
                self.counters.bytes_written += len(value)

    def _warn(self, what: str, error: OSError) -> None:
        with self._lock:
            if what in self._warned:
                return
            self._warned.add(what)
        _log.warning("the disk cache %s %s; the query goes on without it (said once): %s", self._root, what, error)


def default_disk_cache() -> DiskCache | None:
    """Return the cache configured by the environment; None if it is disabled, or has no place.

    Directory: ``SECATEUR_CACHE_DIR``, else ``secateur`` under ``XDG_CACHE_HOME`` or ``~/.cache``. Size:
    ``SECATEUR_CACHE_BYTES`` (``20000000``, ``10GB``, ``1.5 GiB``; 0 = no cache), else the lesser of 10 GB and a tenth
    of what the disk has free and the cache occupies. Raises ValueError if the variable is not a number of bytes.
    """
    setting = os.environ.get(BYTES_VARIABLE, "").strip()
    directory = default_directory()
    if directory is None:
        return None
    most_bytes = parse_bytes(setting, BYTES_VARIABLE) if setting else _default_bytes(directory)
    return DiskCache(directory, most_bytes) if most_bytes else None


def default_directory() -> Path | None:
    """Return where caches lie unless it is said otherwise; None for a user without a home."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(os.path.expanduser(chosen)).absolute()
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # must be ignored then (XDG Base Directory Specification 0.8)
        home = os.path.expanduser("~/.cache")
    return Path(home, "secateur") if os.path.isabs(home) else None  # a user without a home


def _default_bytes(directory: Path) -> int:
    for place in (directory, *directory.parents):
        try:
            disk = os.statvfs(place)
        except OSError:  # does not exist yet
            continue
        free = disk.f_bavail * disk.f_frsize
        return min(DEFAULT_BYTES, (free + occupied_bytes(os.fspath(directory))) // 10)
    return 0


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_bytes(text: str, variable: str) -> int:
    """Parse a number of bytes: kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{variable} is a number of bytes such as 20000000, 10GB or 1.5GiB, not {text!r}")
    number, unit, binary = match.groups(default="")
    return int(Decimal(number) * (1024 if binary else 1000) ** _POWER[unit.lower()])
