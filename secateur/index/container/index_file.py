"""Index files: named, checksummed chunks of arrays before a table of contents. docs/format.md describes every byte.

A chunk is what is read at once, such as all arrays of one column's zone maps. It describes itself, so whoever knows its
place (a snapshot knows those of all its segments) can read it without the rest of the file, and its checksum proves
that it is the right one.

Reading trusts nothing: every length, offset, count and checksum is tested before use, and whatever is wrong is an
IndexFault. No value read from a file sizes an allocation beyond the file's own size, except the declared size of a
compressed array, which is bounded (:mod:`secateur.index.container.array_codec`).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container.array_codec import CONSTANT, DTYPES, MOST_EXPANSION, PLAIN, decode, encode
from secateur.index.container.checked_matrix import Matrix, Range, encode_rows, read_rows

MAGIC = b"SECATEUR"
VERSION = 1
HEADER = struct.Struct("<8sHHI")  # magic, version, kind, zero
TRAILER = struct.Struct("<QIIIHH8s")  # contents offset, stored size, raw size, crc, version, kind, magic
COUNT = struct.Struct("<Q")  # arrays of a chunk
ARRAY = struct.Struct("<BB6xQQ")  # encoding, number of the dtype, elements, stored bytes
ALIGNMENT = 8
MOST_ARRAYS = 1 << 12  # of a chunk
MOST_WIDTH = 1 << 32  # bytes of a row

# Kinds of files. A summary is what a task returns; it is never stored.
SNAPSHOT, SEGMENT, SUMMARY, FILTERS, FRAGMENT, MANIFESTS, BASE = range(1, 8)

ReadRange = Callable[[int, int], bytes]  # (offset, size) -> exactly size bytes, or an IndexFault


class Place(NamedTuple):
    """Where a chunk lies in its file, and the CRC-32 of its bytes."""

    at: int
    size: int
    crc: int


@dataclass
class Writer:
    """Collects chunks and encodes them as one index file."""

    kind: int
    meta: Mapping[str, Any]
    chunks: dict[str, Place] = field(default_factory=dict)
    matrices: dict[str, Matrix] = field(default_factory=dict)
    _parts: list[bytes | memoryview] = field(default_factory=list)
    _size: int = HEADER.size

    def add(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        """Add a chunk of vectors of integers."""
        self._add(name, encode_chunk(arrays))

    def add_bytes(self, name: str, array: np.ndarray) -> None:
        """Add a chunk of one array that is read in parts: unencoded, after its description."""
        self._add(name, encode_chunk([array], as_it_lies))

    def _add(self, name: str, data: bytes) -> None:
        self.chunks[name] = Place(self._append(data), len(data), zlib.crc32(data))

    def add_rows(self, name: str, rows: np.ndarray) -> Matrix:
        """Add a uint8 matrix whose rows are read one by one, and which nobody changes until the file is encoded."""
        salt, parts = encode_rows(rows)
        n, width = rows.shape
        self.matrices[name] = Matrix(self._append(*parts), n, width, salt)
        return self.matrices[name]

    def go_on(self, contents: Contents, data: bytes) -> None:
        """Start from an existing file; its chunks and matrices keep their names and places and are not read.

        `data` are the file's bytes before its table of contents.
        """
        self.chunks |= contents.chunks
        self.matrices |= contents.matrices
        self._parts, self._size = [data[HEADER.size :]], len(data)

    def _append(self, *parts: bytes | memoryview) -> int:
        at, size = self._size, sum(map(len, parts))
        padding = -size % ALIGNMENT
        self._parts += [*parts, b"\0" * padding]
        self._size += size + padding
        return at

    def finish(self) -> bytes:
        """Return the bytes of the whole file."""
        described = {"meta": self.meta, "chunks": self.chunks, "matrices": self.matrices}
        contents = json.dumps(described, separators=(",", ":")).encode()
        packed = pa.compress(contents, codec="zstd", asbytes=True)
        trailer = TRAILER.pack(self._size, len(packed), len(contents), zlib.crc32(packed), VERSION, self.kind, MAGIC)
        return b"".join([HEADER.pack(MAGIC, VERSION, self.kind, 0), *self._parts, packed, trailer])


def encode_chunk(arrays: Sequence[np.ndarray], encoding: Callable[[np.ndarray], tuple[int, bytes]] = encode) -> bytes:
    """Encode a chunk."""
    described, parts = [COUNT.pack(len(arrays))], []
    for array in arrays:
        code, stored = encoding(array)
        dtype = DTYPES.index(array.dtype.newbyteorder("<"))
        described.append(ARRAY.pack(code, dtype, len(array), len(stored)))
        parts += [stored, b"\0" * (-len(stored) % ALIGNMENT)]
    return b"".join(described + parts)


def array_begin(at: int, arrays: int) -> int:
    """Return where the first array begins in a chunk of `arrays` arrays that lies at byte `at`."""
    return at + COUNT.size + arrays * ARRAY.size


def as_it_lies(array: np.ndarray) -> tuple[int, bytes]:
    """Store an array without encoding: its bytes, or its only value."""
    if array.strides == (0,) and len(array):
        return CONSTANT, array[:1].tobytes()
    return PLAIN, array.tobytes()


def is_repeated(array: np.ndarray) -> bool:
    """Whether an array repeats one element by zero strides; it may then claim more elements than any memory holds."""
    return array.strides == (0,) and len(array) > 1


def decode_chunk(data: bytes | memoryview, where: str) -> list[np.ndarray]:
    """Decode the arrays of a chunk, read-only. Raises IndexFault, prefixed by `where`."""
    try:
        return _decode_chunk(memoryview(data))
    except IndexFault as fault:
        raise IndexFault(f"{where}: {fault}") from None
    except struct.error:
        raise IndexFault(f"{where}: the chunk of {len(data)} bytes ends within its description") from None


def _decode_chunk(data: memoryview) -> list[np.ndarray]:
    (count,) = COUNT.unpack_from(data)
    if count > MOST_ARRAYS:
        raise IndexFault(f"the chunk claims {count} arrays")
    at = array_begin(0, count)
    arrays = []
    for i in range(count):
        encoding, dtype, n, size = ARRAY.unpack_from(data, COUNT.size + i * ARRAY.size)
        if dtype >= len(DTYPES) or at + size > len(data):
            raise IndexFault(f"array {i} lies outside its chunk")
        arrays.append(decode(encoding, DTYPES[dtype], n, data[at : at + size]))
        at += size + -size % ALIGNMENT
    return arrays


def check(data: bytes, place: Place, where: str) -> bytes:
    """Return the bytes of a chunk if they match its checksum. Raises IndexFault, prefixed by `where`."""
    if zlib.crc32(data) != place.crc:
        raise IndexFault(f"{where} does not match its checksum")
    return data


@dataclass(frozen=True)
class Contents:
    """The table of contents of one index file."""

    name: str
    meta: Mapping[str, Any]
    chunks: Mapping[str, Place]
    matrices: Mapping[str, Matrix]
    at: int  # where it begins, after all chunks and matrices

    def arrays(self, chunk: str, read: ReadRange) -> list[np.ndarray]:
        """Read the arrays of one chunk by an exact range. Raises IndexFault."""
        where = f"{self.name}: chunk {chunk}"
        if chunk not in self.chunks:
            raise IndexFault(f"{where} is missing")
        place = self.chunks[chunk]
        return decode_chunk(check(read(place.at, place.size), place, where), where)

    def verify(self, read: ReadRange) -> list[str]:
        """Read every chunk and every row of every matrix, and return the faults found."""
        faults = []

        def read_all(ranges: Sequence[Range]) -> list[bytes]:
            return [read(offset, size) for offset, size in ranges]

        for chunk in self.chunks:
            try:
                self.arrays(chunk, read)
            except IndexFault as fault:
                faults.append(str(fault))
        for name, matrix in self.matrices.items():
            try:
                read_rows(matrix, np.arange(matrix.rows), read_all, f"{self.name}: matrix {name}")
            except IndexFault as fault:
                faults.append(str(fault))
        return faults


def read_contents(name: str, kind: int, size: int, read: ReadRange) -> Contents:
    """Read the table of contents of an index file of `size` bytes. Raises IndexFault."""
    if size < HEADER.size + TRAILER.size:
        raise IndexFault(f"{name}: {size} bytes are too few for an index file")
    trailer = read(size - TRAILER.size, TRAILER.size)
    at, stored_size, raw_size, crc, version, found_kind, magic = TRAILER.unpack(trailer)
    if magic != MAGIC:
        raise IndexFault(f"{name}: ends with {magic!r} instead of {MAGIC!r}, so it is truncated or no index file")
    if version > VERSION:
        raise IndexFault(
            f"{name}: format version {version} is newer than {VERSION}, the newest known here: upgrade secateur"
        )
    if version < 1:
        raise IndexFault(f"{name}: there is no format version {version}")
    if found_kind != kind:
        raise IndexFault(f"{name}: is an index file of kind {found_kind} instead of {kind}")
    if at + stored_size + TRAILER.size != size or raw_size > stored_size * MOST_EXPANSION:
        raise IndexFault(f"{name}: the table of contents lies outside the file")
    stored = read(at, stored_size)
    if zlib.crc32(stored) != crc:
        raise IndexFault(f"{name}: the table of contents does not match its checksum")
    try:
        return _contents(name, json.loads(_decompress(stored, raw_size, name)), at)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexFault(f"{name}: the table of contents is malformed: {error}") from None


def _contents(name: str, described: dict[str, Any], end: int) -> Contents:
    chunks = {chunk: Place(*map(_natural, place)) for chunk, place in described["chunks"].items()}
    matrices = {matrix_name: Matrix(*map(_natural, matrix)) for matrix_name, matrix in described["matrices"].items()}
    if not isinstance(described["meta"], dict):
        raise TypeError("meta is not an object")
    ends = [place.at + place.size for place in chunks.values()]
    ends += [matrix.at + matrix.nbytes for matrix in matrices.values()]
    if any(matrix.width > MOST_WIDTH or matrix.rows > end for matrix in matrices.values()):  # they take no bytes
        raise IndexFault(f"{name}: a matrix has rows that no file holds")
    if max(ends, default=0) > end:
        raise IndexFault(f"{name}: a chunk lies outside the file")
    return Contents(name, described["meta"], chunks, matrices, end)


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not an offset")
    return value


def _decompress(stored: bytes, size: int, name: str) -> bytes:
    try:
        return pa.decompress(stored, decompressed_size=size, codec="zstd", asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise IndexFault(f"{name}: cannot decompress: {error}") from None
