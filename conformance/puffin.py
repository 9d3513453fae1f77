"""Deletion vectors, in Puffin files.

Source: Iceberg's "Puffin file format", version 1; "Roaring bitmap serialization", 64 bits.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence

from pyroaring import BitMap


def deletion_vector(positions: Sequence[int]) -> bytes:
    """A blob of deleted positions below 2**32: a length, a magic number, a 64-bit Roaring bitmap, a checksum."""
    body = b"\xd1\xd3\x39\x64" + (1).to_bytes(8, "little") + bytes(4) + BitMap(positions).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def puffin(blob: bytes, about: Mapping[str, str]) -> bytes:
    """A Puffin file of one deletion vector, which lies at byte 4."""
    kind = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
    entry = {**kind, "offset": 4, "length": len(blob), "properties": dict(about)}
    footer = json.dumps({"blobs": [entry]}).encode()
    return b"PFA1" + blob + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
