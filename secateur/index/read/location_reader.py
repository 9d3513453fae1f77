"""Read the page locations of chosen blocks: first their locations, which stay in memory, then their bytes, at once."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import Place
from secateur.index.read.chunk_reader import IndexChunk
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.segment_file import PAGE_LOCATIONS
from secateur.index.zones.page_locations import (
    UNKNOWN,
    BlockLocations,
    LocationTable,
    concat_locations,
    unknown_locations,
)
from secateur.integers import sorted_distinct

Wanted = Sequence[tuple[int, np.ndarray]]  # segments, ascending, and block positions in each


def placed_at(memory: IndexMemory, wanted: Wanted) -> np.ndarray:
    """Return where split readers see the blocks begin, and their bytes: int64 of shape (2, n); -1 = unknown.

    Reads no page locations, only the tables of their locations.
    """
    parts = [
        unknown_locations(len(within)).placed if table is None else table.placed[:, within]
        for table, (_, within) in zip(_tables(memory, wanted), wanted, strict=True)
    ]
    return np.concatenate([unknown_locations(0).placed, *parts], axis=1)


def locations_at(memory: IndexMemory, wanted: Wanted) -> BlockLocations:
    """Read the page locations and heads of the blocks by exact ranges; unreadable ones are unknown and noted as faults.

    Creates a Python object per block: use it for blocks that are read by pages.
    """
    tables = _tables(memory, wanted)
    chunks: dict[IndexChunk, bytes | None] = {}
    for table, (segment, within) in zip(tables, wanted, strict=True):
        chunks |= {} if table is None else _nearby(memory, segment, _places(table, within))
    _load(memory, chunks)
    parts = [
        unknown_locations(len(within)) if table is None else _locations(memory, segment, table, within, chunks)
        for table, (segment, within) in zip(tables, wanted, strict=True)
    ]
    return concat_locations(parts)


def _tables(memory: IndexMemory, wanted: Wanted) -> list[LocationTable | None]:
    return memory.location_tables(np.array([segment for segment, _ in wanted], np.int64))


def _places(table: LocationTable, within: np.ndarray) -> list[Place]:
    """Return where the heads and the page locations of blocks lie."""
    heads = sorted_distinct(table.head[within])
    places = [table.head_place(number) for number in heads[heads >= 0].tolist()]
    return [place for place in [*places, *map(table.place, within.tolist())] if place.size]


def _chunk_at(memory: IndexMemory, segment: int, place: Place) -> IndexChunk:
    return IndexChunk(memory.snapshot.segments.name[segment], PAGE_LOCATIONS, place)


def _nearby(memory: IndexMemory, segment: int, places: Sequence[Place]) -> dict[IndexChunk, bytes | None]:
    """Return the bytes of places of a segment that are in memory or were prefetched; None for the others."""
    contents = {(chunk := _chunk_at(memory, segment, place)): _in_memory(memory, chunk) for place in places}
    along = memory.near_locations(segment) if None in contents.values() else None
    if along is None:
        return contents
    return {chunk: _part(*along, chunk.place) if data is None else data for chunk, data in contents.items()}


def _in_memory(memory: IndexMemory, chunk: IndexChunk) -> bytes | None:
    cached: bytes | None = memory.cache.peek((memory.store.location, chunk))
    return cached


def _part(begin: int, data: np.ndarray, place: Place) -> bytes | None:
    """Return the bytes of a place; None if they fail the checksum: they are then read again, and that reports the
    fault.
    """
    at = place.at - begin
    part = data[at : at + place.size].tobytes() if at >= 0 else b""
    return part if zlib.crc32(part) == place.crc and len(part) == place.size else None


def _load(memory: IndexMemory, chunks: dict[IndexChunk, bytes | None]) -> None:
    """Read all missing chunks at once; None stays for those that cannot be read."""
    location = memory.store.location
    missing = [chunk for chunk, data in chunks.items() if data is None]
    for chunk, data in zip(missing, memory.chunks.read_bytes(missing), strict=True):
        with memory.faults.tolerated():
            chunks[chunk] = memory.cache.get((location, chunk), lambda data=data: _sound(data))  # type: ignore[misc]


def _sound(data: bytes | IndexFault) -> bytes:
    if isinstance(data, IndexFault):
        raise data
    return data


def _locations(
    memory: IndexMemory, segment: int, table: LocationTable, within: np.ndarray, chunks: dict[IndexChunk, bytes | None]
) -> BlockLocations:
    """Return the page locations of blocks of one segment; unknown where their bytes or the head's are missing."""

    def bytes_of(place: Place) -> bytes:
        return chunks.get(_chunk_at(memory, segment, place)) or b""

    head = table.head[within]
    numbers = sorted_distinct(head[head >= 0])
    heads = [bytes_of(table.head_place(number)) for number in numbers.tolist()]
    read = np.array([*map(len, heads), 0], bool)
    at = np.searchsorted(numbers, head)
    known = (head >= 0) & read[at]
    blocks = [bytes_of(table.place(block)) if k else b"" for block, k in zip(within.tolist(), known, strict=True)]
    known_head = np.where(known, at, UNKNOWN).astype(np.int32)
    return BlockLocations(heads, known_head, table.placed[:, within], blocks)
