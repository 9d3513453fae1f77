"""How the arrays of an index file are stored: by the smallest of four encodings of integers.

docs/format.md, "Arrays". Decoding trusts nothing: whatever does not fit its description is an IndexFault.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault

PLAIN, ZSTD, DELTA, CONSTANT = range(4)
DTYPES = tuple(np.dtype(name) for name in ("<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8"))
MOST_EXPANSION = 4096  # zstd reaches this ratio only on runs of one byte
LEAST_COMPRESSED = 64  # bytes; smaller arrays are stored plain
LEAST_GAIN = 0.9  # share of the size of a simpler encoding that must not be exceeded
_ADDRESSES = np.iinfo(np.intp).max  # numpy has no array of more bytes, not even a constant one
_DELTA = struct.Struct("<QQB7x")  # first value, least difference, bytes per difference above it
_SKIPPABLE = struct.Struct("<II")  # magic number, bytes that follow
_SKIPPABLE_MAGIC = 0x184D2A50  # RFC 8878, 3.1.2
_WIDTHS = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}


def encode(array: np.ndarray) -> tuple[int, bytes]:
    """Return the smallest encoding of a vector of integers, and the stored bytes."""
    array = np.ascontiguousarray(array)
    plain = array.tobytes()
    if len(array) > 1 and (array == array[0]).all():
        return CONSTANT, array[:1].tobytes()
    if len(plain) < LEAST_COMPRESSED:
        return PLAIN, plain
    best, stored = PLAIN, plain
    for encoding, candidate, header in ((ZSTD, _zstd(array), 0), (DELTA, _delta(array), _DELTA.size)):
        padded = candidate + _padding(len(plain) // MOST_EXPANSION + 1 - (len(candidate) - header))
        if len(padded) < LEAST_GAIN * len(stored):
            best, stored = encoding, padded
    return best, stored


def _padding(least: int) -> bytes:
    """Return a skippable frame of zstd of at least so many bytes, which is nothing when decompressed; none for 0.

    What readers accept is bounded by :data:`MOST_EXPANSION`, and nearly constant arrays would be smaller.
    """
    return b"" if least <= 0 else _SKIPPABLE.pack(_SKIPPABLE_MAGIC, least) + bytes(least)


def decode(encoding: int, dtype: np.dtype, n: int, stored: bytes | memoryview) -> np.ndarray:
    """Decode a vector of n integers, read-only; a constant one takes no memory of its own. Raises IndexFault."""
    match encoding:
        case _ if encoding == PLAIN:
            return _exactly(np.frombuffer(stored, np.uint8), dtype, n)
        case _ if encoding == ZSTD:
            return _unshuffled(stored, dtype, n)
        case _ if encoding == DELTA and dtype.itemsize == 8 and n > 1:
            return _undelta(stored, dtype, n)
        case _ if encoding == CONSTANT:
            if n * dtype.itemsize > _ADDRESSES:
                raise IndexFault(f"an array claims {n} elements")
            return np.broadcast_to(_exactly(np.frombuffer(stored, np.uint8), dtype, 1), n)
        case _:
            raise IndexFault(f"an array of {n} {dtype} has the unknown encoding {encoding}")


def _exactly(raw: np.ndarray, dtype: np.dtype, n: int) -> np.ndarray:
    if len(raw) != n * dtype.itemsize:
        raise IndexFault(f"an array has {len(raw)} bytes instead of {n * dtype.itemsize}")
    return raw.view(dtype)


def _zstd(array: np.ndarray) -> bytes:
    """Compress all first bytes of the elements, then all second bytes, ...: similar bytes are adjacent."""
    shuffled = array.view(np.uint8).reshape(-1, array.dtype.itemsize).T.tobytes()
    return pa.compress(shuffled, codec="zstd", asbytes=True)


def _unshuffled(stored: bytes | memoryview, dtype: np.dtype, n: int) -> np.ndarray:
    size = n * dtype.itemsize
    if size > len(stored) * MOST_EXPANSION:
        raise IndexFault(f"an array claims {size} bytes from {len(stored)}")
    try:
        raw = pa.decompress(stored, decompressed_size=size, codec="zstd")
    except (OSError, pa.ArrowException) as error:
        raise IndexFault(f"an array cannot be decompressed: {error}") from None
    shuffled = np.frombuffer(raw, np.uint8)
    if len(shuffled) != size:
        raise IndexFault(f"an array has {len(shuffled)} bytes instead of {size}")
    return np.ascontiguousarray(shuffled.reshape(dtype.itemsize, n).T).reshape(-1).view(dtype)


def _delta(array: np.ndarray) -> bytes:
    """Encode differences of neighbours, less the least one, in as few bytes as needed; arithmetic is modulo 2^64."""
    if array.dtype.itemsize != 8:
        return array.tobytes()
    values = array.view(np.uint64)
    steps = (values[1:] - values[:-1]).view(np.int64)
    least = int(steps.min())
    above = (steps - np.int64(least)).view(np.uint64)
    width = next(w for w in _WIDTHS if int(above.max()) < 1 << (8 * w))
    header = _DELTA.pack(int(values[0]), least & (2**64 - 1), width)
    return header + _zstd(above.astype(_WIDTHS[width]))


def _undelta(stored: bytes | memoryview, dtype: np.dtype, n: int) -> np.ndarray:
    if len(stored) < _DELTA.size:
        raise IndexFault(f"an array of differences has only {len(stored)} bytes")
    first, least, width = _DELTA.unpack_from(stored)
    if width not in _WIDTHS:
        raise IndexFault(f"an array has differences of {width} bytes")
    above = _unshuffled(memoryview(stored)[_DELTA.size :], np.dtype(_WIDTHS[width]), n - 1)
    values = np.empty(n, np.uint64)
    values[0] = first
    np.add(above, np.uint64(least), out=values[1:])
    return np.cumsum(values, out=values).view(dtype)
