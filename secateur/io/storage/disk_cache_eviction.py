"""Track the space occupied by a disk cache, and evict the least recently used entries.

All processes that write to a directory share one counter file there, `occupied`, which grows by one byte for every 4 kB
about to be written. Appending is atomic, so the length of that file is the size of the cache, without a lock and
without listing it. The directory is listed only when the count passes the bound: then the oldest entries are removed
until 7/8 of the bound are left, and the count is corrected. Before that the count may be too high (entries written
twice, failed writes). After it the count is too low by what others were about to write, until the next correction.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from secateur.forks import lock_for
from secateur.io.storage.disk_cache_entry import HEADER, MOST_VALUE_BYTES, SUFFIX

_UNIT = 4096  # bytes; the usual filesystem block: files occupy multiples of it
_COUNT = "occupied"
_FOLDER = re.compile("[0-9a-f]{2}")
_FILE = re.compile(
    rf"[0-9a-f]{{30}}{re.escape(SUFFIX)}(?P<aside>\.[0-9a-f]{{16}})?"
)  # only these files are ever removed
_ABANDONED_SECONDS = 3600  # a temporary file of this age has no writer any more
_PAUSE_SECONDS = 60  # without writes after a listing that freed nothing, so as not to list for every write


@dataclass
class CacheListing:
    """The size of a directory's entries in units, and the entries that can be evicted, in any order."""

    units: int = 0
    evictable: list[tuple[int, int, str]] = field(default_factory=list)  # last use in ns, units, path


class SpaceLimit:
    """The space limit of one directory. Every method raises OSError if the directory is unusable."""

    def __init__(self, root: str, most_bytes: int) -> None:
        self._root = root
        self._count = os.path.join(root, _COUNT)
        self._most = most_bytes // _UNIT
        self._low = self._most - self._most // 8
        self._evicting = lock_for(self, "_evicting")
        self._paused_until = 0.0

    def fits(self, length: int) -> bool:
        """Return whether a value of this length can be stored at all."""
        return length <= MOST_VALUE_BYTES and _units(HEADER.size + length) <= self._low

    def reserve(self, length: int) -> int:
        """Count a value about to be written, evict if it does not fit, and return the number of evicted entries.

        One thread evicts at a time; the others continue, and so may exceed the bound by what they are writing.
        """
        if time.monotonic() < self._paused_until:
            raise _no_space(self._root)
        units = _units(HEADER.size + length)
        if self._add(units) <= self._most or not self._evicting.acquire(blocking=False):
            return 0
        try:
            return self._evict(units, self._most, self._low)
        except OSError:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            raise
        finally:
            self._evicting.release()

    def clear(self) -> int:
        """Evict everything and return the number of evicted entries."""
        return self._evict(0, 0, 0)

    def _add(self, units: int) -> int:
        """Add to the count and return it. A missing count exceeds any bound, so that the entries are listed."""
        try:
            file = os.open(self._count, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            os.makedirs(self._root, mode=0o700, exist_ok=True)  # entries are as private as their source
            return self._most + 1
        try:
            os.write(file, bytes(units))
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def _evict(self, coming: int, most: int, low: int) -> int:
        counted = _length(self._count)
        listing = _list(self._root)
        left, removed = listing.units + coming, 0
        if left > most:
            for _, units, path in sorted(listing.evictable):
                if left <= low:
                    break
                if (gone := _remove(path)) is not None:
                    removed += gone
                    left -= units
        if left > most and coming:
            raise _no_space(self._root)
        self._set_count(left, counted)
        return removed

    def _set_count(self, units: int, counted: int) -> None:
        """Set the count, and keep what others added since it was `counted`."""
        file = os.open(self._count, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.ftruncate(file, units + max(0, os.fstat(file).st_size - counted))
        finally:
            os.close(file)


def occupied_bytes(root: str) -> int:
    """Return the counted size of the entries in a directory, in bytes."""
    return _length(os.path.join(root, _COUNT)) * _UNIT


def _length(path: str) -> int:
    """Return the length of a file, 0 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _units(size: int) -> int:
    return -(-size // _UNIT)


def _list(root: str) -> CacheListing:
    """List a directory, and remove what crashed writers left."""
    listing, now = CacheListing(), time.time()
    for entry, aside in _files(root):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # evicted by another process
            continue
        if aside and abs(now - status.st_mtime) > _ABANDONED_SECONDS and _remove(entry.path) is not None:
            continue
        units = _units(status.st_size)
        listing.units += units
        if not aside:
            listing.evictable.append((status.st_mtime_ns, units, entry.path))
    return listing


def _files(root: str) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Yield (file, whether it is still being written) for every file named like an entry."""
    with os.scandir(root) as entries:
        folders = [entry.path for entry in entries if _FOLDER.fullmatch(entry.name)]
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if name := _FILE.fullmatch(entry.name):
                    yield entry, name["aside"] is not None


def _remove(path: str) -> int | None:
    """Remove a file and return the number removed: 0 if it was already gone, None if it cannot be removed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    return 1


def _no_space(root: str) -> OSError:
    return OSError(errno.ENOSPC, "the cache is full, and what is in it cannot be removed", root)
