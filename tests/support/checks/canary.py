"""A marker that stands for every secret, and a search for it in bytes, compressed bytes included."""

from __future__ import annotations

import zlib

import pyarrow as pa

CANARY = "canary"


def leaks(data: bytes) -> list[bytes]:
    """The canaries in some bytes, as they are or compressed with zlib or zstd anywhere within."""
    leaking = [data] if CANARY.encode() in data else []
    for magic, inflate in ((b"\x78", zlib_of), (b"\x28\xb5\x2f\xfd", zstd_of)):
        at = data.find(magic)
        while at >= 0:
            leaking += leaks(inner) if (inner := inflate(data[at:])) else []
            at = data.find(magic, at + 1)
    return leaking


def zlib_of(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data)
    except zlib.error:
        return b""


def zstd_of(data: bytes) -> bytes:
    try:
        return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(1 << 24))
    except OSError:
        return b""
