"""How much of an index is kept near: bounds in bytes, from the environment where the caller names none."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from secateur.index.read.memory_cache import ByteCache

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache

MEMORY_VARIABLE = "SECATEUR_MEMORY_BYTES"
MEMORY_SHARE = 4  # of the machine's memory one part in so many, and no more than:
MOST_MEMORY = 4 << 30


def memory_cache() -> ByteCache:
    """A cache in memory for one table: as ``SECATEUR_MEMORY_BYTES`` says, else a quarter of the machine up to 4 GiB.

    Raises ValueError where the variable is no number of bytes.
    """
    setting = os.environ.get(MEMORY_VARIABLE, "").strip()
    if not setting:
        return ByteCache(min(_physical() // MEMORY_SHARE, MOST_MEMORY))
    from secateur.io.storage.disk_cache import parse_bytes

    return ByteCache(parse_bytes(setting, MEMORY_VARIABLE))


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # not known on every system
        return MOST_MEMORY


def disk_cache_for(filesystem: pafs.FileSystem) -> DiskCache | None:
    """The cache on local disk for an index on a filesystem: none where that is a local disk itself."""
    return None if isinstance(filesystem, pafs.LocalFileSystem) else _shared_disk_cache()


@cache
def _shared_disk_cache() -> DiskCache | None:
    from secateur.io.storage.disk_cache import default_disk_cache  # which tables on local disks do without

    return default_disk_cache()
