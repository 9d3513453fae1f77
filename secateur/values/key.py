"""One key: its limits, what follows it, and the bytes by which it is hashed."""

from __future__ import annotations

import struct
from typing import TypeAlias

from secateur.values.kinds import Kind

Key: TypeAlias = int | bytes
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT128_MIN, INT128_MAX = -(2**127), 2**127 - 1


def float_key(value: float) -> int:
    """Return the key of a double: monotone in IEEE order, with -0.0 as 0.0 and every NaN as the greatest."""
    if value != value:
        return NAN_KEY
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return bits if bits >= 0 else bits ^ INT64_MAX


NAN_KEY = 0x7FF8_0000_0000_0000


def least_key(kind: Kind) -> Key:
    """Return the least key of a kind."""
    match kind:
        case Kind.WORD:
            return INT64_MIN
        case Kind.WIDE:
            return INT128_MIN
        case Kind.BYTES:
            return b""


def successor(key: Key, kind: Kind) -> Key | None:
    """Return the least key greater than `key`, or None if `key` is the greatest."""
    match kind:
        case Kind.BYTES:
            assert isinstance(key, bytes), "keys of BYTES are bytes"
            return key + b"\0"
        case Kind.WORD:
            return None if key == INT64_MAX else key + 1  # type: ignore[operator]
        case Kind.WIDE:
            return None if key == INT128_MAX else key + 1  # type: ignore[operator]


def prefix_successor(prefix: bytes) -> bytes | None:
    """Return the least byte string greater than every string that starts with `prefix`, or None.

    None if all bytes are 0xFF: no byte string is greater than all such strings, so the range is unbounded.
    """
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


def canonical_bytes(key: Key, kind: Kind) -> bytes:
    """Return the bytes to hash for a key: 8 or 16 little-endian bytes of an integer, or the bytes themselves."""
    match key:
        case bytes():
            return key
        case int():
            return key.to_bytes(8 if kind is Kind.WORD else 16, "little", signed=True)
