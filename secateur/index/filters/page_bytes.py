"""Pages of any size, end to end in the bytes of a matrix, whose checksums prove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from secateur.integers import sorted_distinct
from secateur.ragged import offsets_of, spread

BAND = 1024  # bytes of a row of the matrix, and the least that is read

ReadBands = Callable[[np.ndarray], np.ndarray]  # distinct, ascending rows of the matrix -> uint8 of shape (n, BAND)


def bands_of(begin: np.ndarray) -> int:
    """Return the rows of the matrix, given the byte where every page begins, then where the last one ends."""
    return -(-int(begin[-1]) // BAND)


def laid(pages: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Lay pages end to end: return where each begins, then where the last one ends, and the rows of the matrix."""
    begin = offsets_of(np.array([*map(len, pages)], np.int64))
    bands = np.zeros(bands_of(begin) * BAND, np.uint8)
    bands[: begin[-1]] = np.frombuffer(b"".join(pages), np.uint8)
    return begin, bands.reshape(-1, BAND)


def read_pages(begin: np.ndarray, pages: np.ndarray, read: ReadBands) -> Iterator[memoryview]:
    """Yield the bytes of some ascending pages, at least one, read all at once."""
    low, high = begin[pages] // BAND, -(-begin[pages + 1] // BAND)
    bands = sorted_distinct(spread(low, high - low))
    data = memoryview(read(bands).reshape(-1).data)
    at = np.searchsorted(bands, low) * BAND + begin[pages] % BAND
    for start, size in zip(at.tolist(), np.diff(begin)[pages].tolist(), strict=True):
        yield data[start : start + size]
