"""Puffin files: consecutive blobs and a JSON footer. Source: Iceberg's "Puffin file format", version 1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAGIC = b"PFA1"
_TAIL = 12  # bytes after the footer's JSON: its size, flags, magic
MOST_FOOTER = 1 << 26


@dataclass(frozen=True)
class Blob:
    """One blob: its stored bytes, and its footer entry without the offset."""

    data: bytes
    about: Mapping[str, Any]


def encode_puffin(blobs: Sequence[Blob]) -> tuple[bytes, int]:
    """Encode a file; return its bytes and the size of its footer."""
    parts, entries, at = [MAGIC], [], len(MAGIC)
    for blob in blobs:
        entries.append({**blob.about, "offset": at, "length": len(blob.data)})
        parts.append(blob.data)
        at += len(blob.data)
    payload = json.dumps({"blobs": entries, "properties": {"created-by": "secateur"}}).encode()
    footer = b"".join([MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), MAGIC])
    return b"".join([*parts, footer]), len(footer)


def decode_puffin(data: bytes) -> list[Blob]:
    """Decode the blobs of a file. Raises ValueError if it is not a Puffin file, or its footer is compressed."""
    if len(data) < 3 * len(MAGIC) + _TAIL - 4 or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError("this is no Puffin file")
    if any(data[-8:-4]):
        raise ValueError("the footer is compressed, or has flags that are not known here")
    size = int.from_bytes(data[-_TAIL:-8], "little")
    start = len(data) - _TAIL - size
    if not 0 < size <= MOST_FOOTER or start < 2 * len(MAGIC) or data[start - 4 : start] != MAGIC:
        raise ValueError("the footer is not where it should be")
    body = data[:start]
    try:
        return [_blob(body, entry) for entry in json.loads(data[start:-_TAIL])["blobs"]]
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"the footer is malformed: {error!r}") from None


def _blob(data: bytes, entry: Mapping[str, Any]) -> Blob:
    at, length = int(entry["offset"]), int(entry["length"])
    if at < len(MAGIC) or length < 0 or at + length > len(data):
        raise ValueError("a blob lies outside of the file")
    about = {key: value for key, value in entry.items() if key not in ("offset", "length")}
    return Blob(data[at : at + length], about)
