"""A cache of bytes on the local disk, for pieces of index files that live on object stores.

Threads and processes share one directory. The cache never gives wrong bytes (`disk_piece`), is bounded with the least
recently used first out (`disk_room`), and its own trouble is a miss or a value that is not kept, never an error.
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
from secateur.io.storage.disk_cache_entry import PieceName, read_piece, write_piece
from secateur.io.storage.disk_cache_eviction import Room, occupied_bytes

DIRECTORY_VARIABLE = "SECATEUR_CACHE_DIR"
BYTES_VARIABLE = "SECATEUR_CACHE_BYTES"
DEFAULT_BYTES = 10 * 10**9

_log = logging.getLogger("secateur")


@dataclass
class DiskCacheCounters:
    """What this process did with a disk cache so far. Bytes are those of values."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class DiskCache:
    """Keeps bytes under keys in a directory, up to `most_bytes` as files occupy them.

    A value is immutable under its key, so a key names the version too: a location, file name, offset and size.
    No lock is held while values are loaded: two threads or processes may load the same one, and either result serves.
    A value that would fill more than 7/8 of the cache is loaded and not kept. The first trouble of a kind is logged as
    a warning. Pickles as its settings.
    """

    def __init__(self, directory: Path | str, most_bytes: int = DEFAULT_BYTES) -> None:
        self.directory = Path(directory).expanduser().absolute()
        self.most_bytes = most_bytes
        self.counters = DiskCacheCounters()
        self._root = os.fspath(self.directory)
        self._room = Room(self._root, most_bytes)
        self._lock = lock_for(self, "_lock")
        self._warned: set[str] = set()

    def __reduce__(self) -> tuple[type[DiskCache], tuple[Path, int]]:
        return DiskCache, (self.directory, self.most_bytes)

    def get(self, key: str, load: Callable[[], bytes]) -> bytes:
        """The value under a key, loaded where it is not here. Errors of `load` pass through; nothing is kept then."""
        value = self.find(key)
        if value is None:
            value = load()
            self.keep(key, value)
        return value

    def clear(self) -> None:
        """Remove every piece of every process. Pieces being written may stay."""
        try:
            self._room.clear()
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn("cannot be cleared", error)

    def find(self, key: str) -> bytes | None:
        """The value under a key, if it is here, whole."""
        value = None
        try:
            value = read_piece(PieceName.of(self._root, key))
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

    def keep(self, key: str, value: bytes) -> None:
        """Keep a value under a key, if there is room and the disk takes it."""
        if not self._room.fits(len(value)):
            return
        try:
            evicted = self._room.reserve(len(value))
            with self._lock:
                self.counters.evictions += evicted
            write_piece(PieceName.of(self._root, key), value)
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
    """The cache that the environment asks for; None where it asks for none, or there is no place for one.

    In ``SECATEUR_CACHE_DIR``, else ``secateur`` under ``XDG_CACHE_HOME`` or ``~/.cache``. Of ``SECATEUR_CACHE_BYTES``
    (``20000000``, ``10GB``, ``1.5 GiB``; 0 = no cache), else 10 GB or a tenth of what the disk has free and the cache
    occupies, whichever is less. Raises ValueError where the variable is no number of bytes.
    """
    setting = os.environ.get(BYTES_VARIABLE, "").strip()
    directory = _default_directory()
    if directory is None:
        return None
    most_bytes = parse_bytes(setting, BYTES_VARIABLE) if setting else _default_bytes(directory)
    return DiskCache(directory, most_bytes) if most_bytes else None


def _default_directory() -> Path | None:
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(os.path.expanduser(chosen)).absolute()
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # to be ignored then (XDG Base Directory Specification 0.8)
        home = os.path.expanduser("~/.cache")
    return Path(home, "secateur") if os.path.isabs(home) else None  # a user without a home


def _default_bytes(directory: Path) -> int:
    for place in (directory, *directory.parents):
        try:
            disk = os.statvfs(place)
        except OSError:  # not there yet
            continue
        free = disk.f_bavail * disk.f_frsize
        return min(DEFAULT_BYTES, (free + occupied_bytes(os.fspath(directory))) // 10)
    return 0


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_bytes(text: str, variable: str) -> int:
    """A number of bytes as people write it: kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{variable} is a number of bytes such as 20000000, 10GB or 1.5GiB, not {text!r}")
    number, unit, binary = match.groups(default="")
    return int(Decimal(number) * (1024 if binary else 1000) ** _POWER[unit.lower()])
