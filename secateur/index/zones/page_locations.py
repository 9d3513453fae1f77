"""The bytes needed to read single pages of every block: page locations, and the heads that files share.

docs/format.md, "Page locations". This module only stores and finds these bytes; code that opens files interprets
them. They are the only part of an index that no query plans with.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import Place, array_begin, check
from secateur.ragged import offsets_of

UNKNOWN = -1  # number of an unknown head or place
_SIGNED, _CHECKSUM, _NUMBER = np.dtype("<i8"), np.dtype("<u4"), np.dtype("<i4")
_OF_HEADS, _OF_BLOCKS = (_SIGNED, _CHECKSUM), (_NUMBER, _SIGNED, _CHECKSUM, _SIGNED, _SIGNED)
_MOST_BYTES = 1 << 62  # limit of a sum of sizes


@dataclass(frozen=True, eq=False)
class FileLocations:
    """The encoded page locations of one file of n row groups."""

    head: bytes
    placed: np.ndarray  # int64 of shape (2, n): where split readers see each begin, and its bytes; -1 = unknown
    blocks: Sequence[bytes]  # page locations of each row group; b"" = unknown


@dataclass(frozen=True, eq=False)
class BlockLocations:
    """The page locations of n blocks, with every head of their files once."""

    heads: Sequence[bytes]
    head: np.ndarray  # int32 of shape (n,): number of the head; -1 = unknown
    placed: np.ndarray  # int64 of shape (2, n), as in FileLocations
    blocks: Sequence[bytes]  # b"" = unknown

    def __len__(self) -> int:
        return len(self.blocks)

    def take(self, chosen: np.ndarray) -> BlockLocations:
        """Return the page locations of the chosen blocks, in that order, with only the heads that they use."""
        used, head = np.unique(self.head[chosen], return_inverse=True)
        known = used[used >= 0]
        return BlockLocations(
            [self.heads[i] for i in known.tolist()],
            (head - (len(used) - len(known))).astype(np.int32),
            self.placed[:, chosen],
            [self.blocks[i] for i in chosen.tolist()],
        )


def unknown_locations(n: int) -> BlockLocations:
    """Return n unknown page locations."""
    return BlockLocations((), np.full(n, UNKNOWN, np.int32), np.full((2, n), UNKNOWN, np.int64), [b""] * n)


def of_file(file: FileLocations) -> BlockLocations:
    """Return the page locations of the blocks of one file."""
    return BlockLocations([file.head], np.zeros(len(file.blocks), np.int32), file.placed, file.blocks)


def concat_locations(parts: Sequence[BlockLocations]) -> BlockLocations:
    """Concatenate the page locations of consecutive blocks."""
    numbers: dict[bytes, int] = {}
    heads = [np.zeros(0, np.int32)]
    for part in parts:
        heads_of_part = [numbers.setdefault(head, len(numbers)) for head in part.heads]
        heads.append(np.array([*heads_of_part, UNKNOWN], np.int32)[part.head])
    placed = np.concatenate([np.zeros((2, 0), np.int64), *(part.placed for part in parts)], axis=1)
    used = BlockLocations(
        list(numbers), np.concatenate(heads), placed, [data for part in parts for data in part.blocks]
    )
    return used.take(np.arange(len(used)))


# ---- in a segment ----------------------------------------------------------------------------------------------------


def locations_array(page_locations: BlockLocations) -> np.ndarray:
    """Return the bytes of chunk `page-locations`: all heads, then the locations of every block."""
    return np.frombuffer(b"".join([*page_locations.heads, *page_locations.blocks]), np.uint8)


def table_arrays(page_locations: BlockLocations, at: int) -> list[np.ndarray]:
    """Return the arrays of chunk `location-table`, for chunk `page-locations` at byte `at` of the file."""
    begin = np.array([array_begin(at, 1)], np.int64)
    return [
        begin,
        *_described(page_locations.heads),
        page_locations.head,
        *_described(page_locations.blocks),
        *page_locations.placed,
    ]


def _described(parts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and checksums."""
    return np.array([len(part) for part in parts], np.int64), np.array([*map(zlib.crc32, parts)], np.uint32)


@dataclass(frozen=True, eq=False)
class LocationTable:
    """Where the heads and page locations of a segment of n blocks lie in its file."""

    head_at: np.ndarray  # of shape (n_heads + 1,): offset of every head, and the end of the last
    head_crc: np.ndarray
    head: np.ndarray  # number of the head of every block's file; -1 = unknown
    at: np.ndarray  # of shape (n + 1,): offset of every block's page locations, and the end of the last
    crc: np.ndarray
    placed: np.ndarray  # int64 of shape (2, n)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(array.nbytes for array in vars(self).values())

    def head_place(self, number: int) -> Place:
        """Return where a head lies."""
        return _place(self.head_at, self.head_crc, number)

    def place(self, block: int) -> Place:
        """Return where the page locations of a block lie; of size 0 if unknown."""
        return _place(self.at, self.crc, block)

    @property
    def range(self) -> tuple[int, int]:
        """Offset and size of all heads and page locations."""
        begin = int(self.head_at[0])
        return begin, int(self.at[-1]) - begin

    def page_locations(self, data: bytes, where: str) -> BlockLocations:
        """Decode all page locations from the bytes of their range. Raises IndexFault."""
        begin, _ = self.range

        def bytes_of(place: Place) -> bytes:
            at = place.at - begin
            return check(data[at : at + place.size], place, where)

        heads = [bytes_of(self.head_place(i)) for i in range(len(self.head_crc))]
        return BlockLocations(heads, self.head, self.placed, [bytes_of(self.place(i)) for i in range(len(self.crc))])


def _place(at: np.ndarray, crc: np.ndarray, number: int) -> Place:
    return Place(int(at[number]), int(at[number + 1] - at[number]), int(crc[number]))


def location_table_of(arrays: Sequence[np.ndarray], n: int, file_size: int, where: str) -> LocationTable:
    """Decode the table of a segment of n blocks, in a file of `file_size` bytes. Raises IndexFault."""
    heads = len(arrays[1]) if len(arrays) > 1 else 0
    expected = [(_SIGNED, 1), *((values, heads) for values in _OF_HEADS), *((values, n) for values in _OF_BLOCKS)]
    if [(array.dtype, len(array)) for array in arrays] != expected or heads > n:
        raise IndexFault(f"{where}: these arrays are not a table of the page locations of {n} blocks")
    begin, head_size, head_crc, head, size, crc, *placed = arrays
    sizes = (head_size, size)
    total = sum(float(values.sum(dtype=np.float64)) for values in (begin, *sizes))
    if min(values.min(initial=0) for values in (begin, *sizes)) < 0 or total > _MOST_BYTES:
        raise IndexFault(f"{where}: page locations cannot have such sizes")
    if head.min(initial=0) < UNKNOWN or head.max(initial=UNKNOWN) >= heads:
        raise IndexFault(f"{where}: a block has a head that is not there")
    if min(values.min(initial=0) for values in placed) < UNKNOWN:
        raise IndexFault(f"{where}: a row group begins before its file")
    head_at = begin[0] + offsets_of(head_size)
    at = head_at[-1] + offsets_of(size)
    if at[-1] > file_size:
        raise IndexFault(f"{where}: page locations lie outside of the file")
    return LocationTable(head_at, head_crc, head, at, crc, np.stack(placed))
