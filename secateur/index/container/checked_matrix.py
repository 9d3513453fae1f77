"""Matrices of bytes whose rows are read singly, each verified by its own checksums.

docs/format.md, "Matrices". Rows narrower than :data:`BAND` share a band, which is the least that is read; bands are cut
into strips, each followed by its checksum, so part of a row over a million blocks can be read and verified too.

The checksum is XXH3 of 64 bits (Collet; ``xxhash``), eight times as fast on strips as zlib's CRC-32: it takes a third
of the time needed to read them from memory. Its seed is a strip's number plus the salt, which is the checksum of the
whole matrix: neither a strip of another matrix nor another strip of the same one passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from secateur.errors import IndexFault
from secateur.integers import distinct_and_places

BAND = 512  # bytes; rows narrower than half of this are read several at once
STRIP = 1 << 15  # bytes at most between two checksums
CHECKSUM = 8  # bytes after every strip
WHOLE_SHARE = 1 / 16  # of the bands; above it one read of everything is cheaper than one per band
MOST_WASTED = 1 << 18  # unneeded bytes that such a read may include
MOST_AT_ONCE = 1 << 26  # bytes of such a read
_MASK = 2**64 - 1

Range = tuple[int, int]  # offset, size
ReadRanges = Callable[[Sequence[Range]], Sequence[bytes]]  # many ranges at once


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
        """The number of bands; the last has the rows that are left."""
        return -(-self.rows // self.band_rows)

    @property
    def strips(self) -> int:
        """Strips of a band: all of :data:`STRIP` bytes except the last."""
        return -(-self.band_width // STRIP)

    @property
    def stride(self) -> int:
        """Bytes of a band with its checksums."""
        return self.band_width + CHECKSUM * self.strips

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self.rows * self.width + CHECKSUM * self.strips * self.bands


def encode_rows(rows: np.ndarray) -> tuple[int, list[bytes | memoryview]]:
    """Return the salt and the stored bytes of a uint8 matrix, in parts, which share the memory of the rows."""
    n, width = rows.shape
    rows = np.ascontiguousarray(rows)
    salt = xxhash.xxh3_64_intdigest(rows.data)
    matrix = Matrix(0, n, width, salt)
    whole = rows.reshape(-1).data
    parts: list[bytes | memoryview] = []
    for b in range(matrix.bands):
        data = whole[b * matrix.band_width : (b + 1) * matrix.band_width]
        for s in range(matrix.strips):
            strip = data[s * STRIP : (s + 1) * STRIP]
            parts += [strip, _digest(strip, salt + b * matrix.strips + s)]
    return salt, parts


def signed_salt(salt: int) -> int:
    """Return a salt as an element of an int64 array."""
    return salt - (1 << 64) if salt >> 63 else salt


def salt_of(signed: int) -> int:
    """Return the salt from an element of an int64 array."""
    return signed & _MASK


def _digest(strip: memoryview | bytes, seed: int) -> bytes:
    return xxhash.xxh3_64_digest(strip, seed=seed & _MASK)[::-1]  # little-endian, like all integers here


def read_rows(
    matrix: Matrix,
    indices: np.ndarray,
    read: ReadRanges,
    where: str,
    strips: range | None = None,
    into: np.ndarray | None = None,
) -> np.ndarray:
    """Read rows of a matrix: uint8 of shape (len(indices), width), or the given strips of every row.

    Rows that share a band are read with all strips. The result is written to `into` if given. Raises IndexFault,
    prefixed by `where`.
    """
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < matrix.rows:
        raise IndexFault(f"{where} has no row {int(indices.max())}")
    chosen = range(matrix.strips) if strips is None else strips
    is_direct = matrix.band_rows == 1 and (len(indices) < 2 or bool((indices[1:] > indices[:-1]).all()))
    if is_direct:
        return _read_bands(matrix, indices, chosen, read, where, into)
    bands, of_band = distinct_and_places(indices // matrix.band_rows)
    bytes_ = _read_bands(matrix, bands, chosen, read, where, None)
    rows = bytes_.reshape(len(bands) * matrix.band_rows, bytes_.shape[1] // matrix.band_rows)
    return rows.take(of_band * matrix.band_rows + indices % matrix.band_rows, axis=0, out=into)


def _read_bands(
    matrix: Matrix, bands: np.ndarray, strips: range, read: ReadRanges, where: str, into: np.ndarray | None
) -> np.ndarray:
    """Read strips of ascending bands and verify and drop their checksums: uint8 of shape (len(bands), bytes)."""
    stride, first, numbers = matrix.stride, strips.start * (STRIP + CHECKSUM), bands.tolist()
    size = min(strips.stop * (STRIP + CHECKSUM), stride) - first
    low, high = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    end = matrix.at + matrix.nbytes  # the last band may be smaller than the others
    wasted = (high - low - len(numbers)) * stride
    is_whole = len(numbers) > (high - low) * WHOLE_SHARE and len(strips) == matrix.strips and wasted <= MOST_WASTED
    if is_whole and (high - low) * stride <= MOST_AT_ONCE:
        begin = matrix.at + low * stride
        (whole,) = read([(begin, min((high - low) * stride, end - begin))])
        view = memoryview(whole)
        contents = [view[(b - low) * size : (b - low + 1) * size] for b in numbers]
    else:
        begins = [matrix.at + b * stride + first for b in numbers]
        contents = [memoryview(data) for data in read([(begin, min(size, end - begin)) for begin in begins])]
    cuts = [(i * (STRIP + CHECKSUM), min((i + 1) * (STRIP + CHECKSUM), size)) for i in range(len(strips))]
    first_seed, seeds = matrix.salt + strips.start, matrix.strips
    for band, content in zip(numbers, contents, strict=True):
        for i, (begin, stop) in enumerate(cuts):
            stop = min(stop, len(content))
            strip, checksum = content[begin : stop - CHECKSUM], content[stop - CHECKSUM : stop]
            if _digest(strip, first_seed + band * seeds + i) != checksum:
                raise IndexFault(f"band {band} of {where} does not match its checksum")
    bytes_ = np.empty((len(contents), size - CHECKSUM * len(strips)), np.uint8) if into is None else into
    _copy_without_checksums(contents, size, bytes_)
    return bytes_


def _copy_without_checksums(contents: Sequence[memoryview], size: int, into: np.ndarray) -> None:
    """Copy bands of up to `size` bytes each into rows, without the checksums after their strips."""
    if CHECKSUM < size <= BAND + CHECKSUM and all(len(content) == size for content in contents):
        into[...] = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, size)[:, :-CHECKSUM]
        return
    full = size // (STRIP + CHECKSUM)
    rest = size - full * (STRIP + CHECKSUM)
    for row, content in zip(into, contents, strict=True):
        raw = np.frombuffer(content, np.uint8)
        whole = raw[: full * (STRIP + CHECKSUM)].reshape(full, STRIP + CHECKSUM)
        row[: full * STRIP].reshape(full, STRIP)[...] = whole[:, :STRIP]
        if rest:
            last = raw[full * (STRIP + CHECKSUM) : -CHECKSUM]
            row[full * STRIP : full * STRIP + len(last)] = last
