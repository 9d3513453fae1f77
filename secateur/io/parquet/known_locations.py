"""Decoded page locations of the blocks read last: a look-up by key reads one row of a block, and then another."""

from __future__ import annotations

from secateur.index.read.memory_cache import ByteCache
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.location_codec import decode_locations

MOST_BYTES = 64 << 20  # 2 MB each for row groups of 60,000 pages, 32 kB for those of 1,000
_DECODED = ByteCache(MOST_BYTES)


def known_locations(data: bytes, file_size: int) -> ChunkLocations:
    """Decode the page locations of a block in a file of `file_size` bytes, or return them as decoded before.

    Raises IndexFault if the bytes are not page locations of such a file.
    """
    return _DECODED.get((data, file_size), lambda: decode_locations(data, file_size, "page locations"))
