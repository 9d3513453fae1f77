"""Matrices of bytes of which single rows are read, each proven by checksums of its own.

docs/format.md, "Matrices". Rows narrower than :data:`BAND` share a band, which is the least that is read; bands are cut
into strips, each followed by its checksum, so of a row over a million blocks a part can be read and proven too.

The checksum is XXH3 of 64 bits (Collet; ``xxhash``), eight times as fast on strips as zlib's CRC-32: it takes a third
of the time that reading them from memory takes. Its seed is a strip's number above the salt, which is the checksum of
the whole matrix: neither a strip of another matrix nor another of the same passes for the one that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from secateur.errors import IndexFault

BAND = 512  # bytes: rows narrower than half of this are read several at once
STRIP = 8192  # bytes at most between two checksums
CHECKSUM = 8  # bytes behind every strip
WHOLE_SHARE = 1 / 16  # of the bands; above it one read of all is cheaper than one of each
MOST_WASTED = 1 << 18  # bytes that such a read may hold besides what is asked for
MOST_AT_ONCE = 1 << 26  # bytes of such a read
_MASK = 2**64 - 1

Range = tuple[int, int]  # offset, size
ReadRanges = Callable[[Sequence[Range]], Sequence[bytes]]  # many at once


class Matrix(NamedTuple):
    """Where a matrix of bytes lies in its file."""

    at: int
    rows: int
    width: int  # bytes of a row
    salt: int

    @property
    def band_rows(self) -> int:
        """Rows of a band."""
        return max(1, min(BAND // max(self.width, 1), self.rows))

    @property
    def band_width(self) -> int:
        """Bytes of a band without checksums."""
        return self.band_rows * self.width

    @property
    def bands(self) -> int:
        """The number of bands; the last is filled up with zeros."""
        return -(-self.rows // self.band_rows)

    @property
    def strips(self) -> int:
        """Strips of a band: all of :data:`STRIP` bytes but the last."""
        return -(-self.band_width // STRIP)

    @property
    def stride(self) -> int:
        """Bytes of a band with its checksums."""
        return self.band_width + CHECKSUM * self.strips

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self.bands * self.stride


def encode_rows(rows: np.ndarray) -> tuple[int, bytes]:
    """The salt and the stored bytes of a uint8 matrix."""
    n, width = rows.shape
    salt = xxhash.xxh3_64_intdigest(np.ascontiguousarray(rows).data)
    matrix = Matrix(0, n, width, salt)
    whole = np.zeros((matrix.bands, matrix.band_width), np.uint8)
    whole.reshape(-1)[: rows.size] = rows.reshape(-1)
    parts: list[bytes | memoryview] = []
    for b, band in enumerate(whole):
        data = band.data
        for s in range(matrix.strips):
            strip = data[s * STRIP : (s + 1) * STRIP]
            parts += [strip, _digest(strip, salt + b * matrix.strips + s)]
    return salt, b"".join(parts)


def _digest(strip: memoryview | bytes, seed: int) -> bytes:
    return xxhash.xxh3_64_digest(strip, seed=seed & _MASK)[::-1]  # little-endian, as all integers here


def read_rows(
    matrix: Matrix, indices: np.ndarray, read: ReadRanges, where: str, strips: range | None = None
) -> np.ndarray:
    """Chosen rows of a matrix: uint8 of shape (len(indices), width), or of the given strips of every row.

    Rows of one band have all their strips read. Raises IndexFault, which says `where`.
    """
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < matrix.rows:
        raise IndexFault(f"{where} has no row {int(indices.max())}")
    chosen = range(matrix.strips) if strips is None else strips
    bands, of_band = np.unique(indices // matrix.band_rows, return_inverse=True)
    found = _read_bands(matrix, bands, chosen, read, where)
    if matrix.band_rows == 1:
        return found if len(bands) == len(indices) and (np.diff(indices) > 0).all() else found[of_band]
    return found.reshape(len(bands), matrix.band_rows, matrix.width)[of_band, indices % matrix.band_rows]


def _read_bands(matrix: Matrix, bands: np.ndarray, strips: range, read: ReadRanges, where: str) -> np.ndarray:
    """Strips of bands, ascending, without checksums once these are found right: uint8 of shape (len(bands), bytes)."""
    first = strips.start * (STRIP + CHECKSUM)
    size = min(strips.stop * (STRIP + CHECKSUM), matrix.stride) - first
    low, high = (int(bands[0]), int(bands[-1]) + 1) if len(bands) else (0, 0)
    wasted = (high - low - len(bands)) * matrix.stride
    is_whole = len(bands) > (high - low) * WHOLE_SHARE and len(strips) == matrix.strips and wasted <= MOST_WASTED
    if is_whole and (high - low) * matrix.stride <= MOST_AT_ONCE:
        (whole,) = read([(matrix.at + low * matrix.stride, (high - low) * matrix.stride)])
        view = memoryview(whole)
        pieces = [view[(b - low) * size : (b - low + 1) * size] for b in bands.tolist()]
    else:
        pieces = [
            memoryview(each) for each in read([(matrix.at + b * matrix.stride + first, size) for b in bands.tolist()])
        ]
    cuts = [(i * (STRIP + CHECKSUM), min((i + 1) * (STRIP + CHECKSUM), size)) for i in range(len(strips))]
    first_seed, seeds = matrix.salt + strips.start, matrix.strips
    for band, piece in zip(bands.tolist(), pieces, strict=True):
        for i, (begin, end) in enumerate(cuts):
            strip, checksum = piece[begin : end - CHECKSUM], piece[end - CHECKSUM : end]
            if _digest(strip, first_seed + band * seeds + i) != checksum:
                raise IndexFault(f"band {band} of {where} does not match its checksum")
    return _without_checksums(pieces, size, len(strips))


def _without_checksums(pieces: Sequence[memoryview], size: int, strips: int) -> np.ndarray:
    """The bytes of pieces of `size` bytes each, the checksums behind their strips left out."""
    found = np.empty((len(pieces), size - CHECKSUM * strips), np.uint8)
    full = size // (STRIP + CHECKSUM)
    rest = size - full * (STRIP + CHECKSUM)
    for row, piece in zip(found, pieces, strict=True):
        raw = np.frombuffer(piece, np.uint8)
        whole = raw[: full * (STRIP + CHECKSUM)].reshape(full, STRIP + CHECKSUM)
        row[: full * STRIP].reshape(full, STRIP)[...] = whole[:, :STRIP]
        if rest:
            row[full * STRIP :] = raw[full * (STRIP + CHECKSUM) : -CHECKSUM]
    return found
