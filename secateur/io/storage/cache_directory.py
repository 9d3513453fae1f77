"""Size limits of the caches of an index, in bytes, from the environment unless the caller sets them."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from secateur.index.read.memory_cache import ByteCache

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache

MEMORY_VARIABLE = "SECATEUR_MEMORY_BYTES"
MEMORY_SHARE = 4  # one part in so many of the machine's memory, and no more than:
MOST_MEMORY = 4 << 30


def memory_cache() -> ByteCache:
    """Return a memory cache for one table: ``SECATEUR_MEMORY_BYTES``, else a quarter of the memory, up to 4 GiB.

    Raises ValueError if the variable is not a number of bytes.
    """
    return ByteCache(bytes_set(MEMORY_VARIABLE, min(_physical() // MEMORY_SHARE, MOST_MEMORY)))


def bytes_set(variable: str, default: int) -> int:
    """Return the number of bytes in a variable of the environment, or the default if it is not set.

    Raises ValueError if it is not a number of bytes.
    """
    setting = os.environ.get(variable, "").strip()
    if not setting:
        return default
    from secateur.io.storage.disk_cache import parse_bytes

    return parse_bytes(setting, variable)


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # not available on every system
        return MOST_MEMORY


def disk_cache_for(filesystem: pafs.FileSystem) -> DiskCache | None:
    """Return the disk cache for an index on a filesystem; None if that is a local disk itself."""
    return None if isinstance(filesystem, pafs.LocalFileSystem) else _shared_disk_cache()


@cache
def _shared_disk_cache() -> DiskCache | None:
    from secateur.io.storage.disk_cache import default_disk_cache  # not needed by tables on local disks

    return default_disk_cache()
