"""Index files made of any bytes: their checksums are right, so that the decoders behind them are reached.

An input is the JSON of a table of contents, and chunks by name, each behind its length.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping

import pyarrow as pa

from secateur.index.container.index_file import ALIGNMENT, HEADER, MAGIC, TRAILER, VERSION, Contents
from secateur.io.storage.index_store import FileStore

_JSON = struct.Struct("<I")
_CHUNK = struct.Struct("<BI")  # lengths of a name and of the bytes behind it


def packed(meta: object, chunks: Mapping[str, bytes]) -> bytes:
    """The input that stands for a file."""
    text = json.dumps(meta).encode()
    parts = [_JSON.pack(len(text)), text]
    for name, data in chunks.items():
        parts += [_CHUNK.pack(len(name), len(data)), name.encode(), data]
    return b"".join(parts)


def unpacked(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The JSON and the chunks of an input; what does not fit is cut off."""
    (length,) = _JSON.unpack_from(data.ljust(_JSON.size, b"\0"))
    at, chunks = _JSON.size + length, {}
    while at + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        chunks[data[at : at + name].decode("latin-1")] = data[at + name : at + name + size]
        at += name + size
    return data[_JSON.size : _JSON.size + length], chunks


def file_of(kind: int, text: bytes, chunks: Mapping[str, bytes]) -> bytes:
    """An index file whose checksums are right."""
    body, places = HEADER.pack(MAGIC, VERSION, kind, 0), {}
    for name, data in chunks.items():
        places[name] = (len(body), len(data), zlib.crc32(data))
        body += data + b"\0" * (-len(data) % ALIGNMENT)
    head = b'{"chunks":' + json.dumps(places).encode() + b',"matrices":{},"meta":'
    contents = head + text + b"}"
    stored = pa.compress(contents, codec="zstd", asbytes=True)
    return body + stored + TRAILER.pack(len(body), len(stored), len(contents), zlib.crc32(stored), VERSION, kind, MAGIC)


def chunks_of(contents: Contents, store: FileStore, name: str) -> dict[str, bytes]:
    """The stored chunks of a file."""
    return {chunk: store.read(name, place.at, place.size) for chunk, place in contents.chunks.items()}
