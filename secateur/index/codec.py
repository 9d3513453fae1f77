"""Index files: named, checksummed arrays behind a table of contents. docs/format.md describes every byte.

Reading trusts nothing: every length, offset, count and checksum is tested before it is used, and whatever is wrong
is an IndexFault. No value read from a file sizes an allocation beyond the file's own size, but for the declared
size of a compressed array, which is bounded by :data:`MOST_EXPANSION`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault

MAGIC = b"SECATEUR"
VERSION = 1
HEADER = struct.Struct("<8sHHI")  # magic, version, kind, zero
TRAILER = struct.Struct("<QIIIHH8s")  # contents offset, stored size, raw size, crc, version, kind, magic
ALIGNMENT = 8
MOST_EXPANSION = 4096  # zstd reaches this ratio only on runs of one byte
LEAST_COMPRESSED = 512  # arrays below this many bytes are stored as they lie
ROW_CHECKSUM = 4  # bytes behind every row of a row-checksummed matrix

SNAPSHOT, SEGMENT, SUMMARY = 1, 2, 3  # a summary is what a build task returns; it is never stored

Range = tuple[int, int]  # offset, size
ReadRange = Callable[[int, int], bytes]  # (offset, size) -> exactly size bytes, or an IndexFault
ReadRanges = Callable[[Sequence[Range]], list[bytes]]  # many at once
WHOLE_SECTION_SHARE = 1 / 64  # of its rows; above it one read of all is cheaper than one of each


@dataclass
class Writer:
    """Collects arrays and gives the bytes of one index file."""

    kind: int
    meta: Mapping[str, Any]
    _parts: list[bytes] = field(default_factory=list)
    _sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    _size: int = HEADER.size

    def add(self, name: str, array: np.ndarray) -> None:
        """Add an array, compressed where that pays: bytes of equal significance together, then zstd."""
        array = np.ascontiguousarray(array)
        raw = array.tobytes()
        stored, codec = raw, "none"
        if len(raw) >= LEAST_COMPRESSED:
            packed = pa.compress(_shuffle(array), codec="zstd", asbytes=True)
            if len(packed) * MOST_EXPANSION > len(raw) and len(packed) < len(raw) * 0.9:
                stored, codec = packed, "zstd"
        self._append(name, stored, array, {"codec": codec, "crc": zlib.crc32(stored)})

    def add_rows(self, name: str, matrix: np.ndarray) -> None:
        """Add a uint8 matrix whose rows are read one by one: each is followed by its CRC-32."""
        checksums = np.array([zlib.crc32(row.tobytes()) for row in matrix], "<u4")
        rows = np.concatenate([matrix, checksums.view(np.uint8).reshape(-1, ROW_CHECKSUM)], axis=1)
        self._append(name, rows.tobytes(), matrix, {"codec": "rows"})

    def _append(self, name: str, stored: bytes, array: np.ndarray, extra: dict[str, Any]) -> None:
        dtype = array.dtype.newbyteorder("<").str
        self._sections[name] = {
            "at": self._size,
            "size": len(stored),
            "dtype": dtype,
            "shape": array.shape,
            **extra,
        }
        padding = -len(stored) % ALIGNMENT
        self._parts += [stored, b"\0" * padding]
        self._size += len(stored) + padding

    def finish(self) -> bytes:
        """The bytes of the whole file."""
        contents = json.dumps({"meta": self.meta, "sections": self._sections}, separators=(",", ":")).encode()
        packed = pa.compress(contents, codec="zstd", asbytes=True)
        trailer = TRAILER.pack(self._size, len(packed), len(contents), zlib.crc32(packed), VERSION, self.kind, MAGIC)
        return b"".join([HEADER.pack(MAGIC, VERSION, self.kind, 0), *self._parts, packed, trailer])


@dataclass(frozen=True)
class Contents:
    """The table of contents of one index file."""

    meta: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    name: str

    def __contains__(self, section: str) -> bool:
        return section in self.sections

    def array(self, section: str, read: ReadRange) -> np.ndarray:
        """One array, read by an exact range. Raises IndexFault where it is absent or its checksum differs."""
        entry = self._entry(section)
        stored = read(entry["at"], entry["size"])
        if zlib.crc32(stored) != entry.get("crc"):
            raise IndexFault(f"{self.name}: section {section} does not match its checksum")
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if entry["codec"] == "none":
            raw = stored
        elif size <= len(stored) * MOST_EXPANSION:
            raw = _unshuffle(_decompress(stored, size, self.name), dtype)
        else:
            raise IndexFault(f"{self.name}: section {section} claims {size} bytes from {len(stored)}")
        if len(raw) != size:
            raise IndexFault(f"{self.name}: section {section} holds {len(raw)} bytes instead of {size}")
        return np.frombuffer(raw, dtype).reshape(shape)

    def rows(self, section: str, indices: np.ndarray, read: ReadRanges) -> np.ndarray:
        """Chosen rows of a row-checksummed matrix: uint8 of shape (len(indices), row bytes)."""
        entry = self._entry(section)
        if entry["codec"] != "rows" or len(entry["shape"]) != 2:
            raise IndexFault(f"{self.name}: section {section} is no matrix of rows")
        count, width = entry["shape"]
        stride = width + ROW_CHECKSUM
        if entry["size"] != count * stride:
            raise IndexFault(f"{self.name}: section {section} is no matrix of {count} rows of {width} bytes")
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
            raise IndexFault(f"{self.name}: section {section} has no row {int(indices.max())}")
        if len(indices) > count * WHOLE_SECTION_SHARE:
            (whole,) = read([(entry["at"], entry["size"])])
            rows = [whole[i * stride : (i + 1) * stride] for i in indices.tolist()]
        else:
            rows = read([(entry["at"] + i * stride, stride) for i in indices.tolist()])
        for index, row in zip(indices.tolist(), rows, strict=True):
            if zlib.crc32(row[:width]) != int.from_bytes(row[width:], "little"):
                raise IndexFault(f"{self.name}: row {index} of section {section} does not match its checksum")
        return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, stride)[:, :width]

    def verify(self, read: ReadRange) -> list[str]:
        """Every fault found by reading every array, and every row of row-checksummed matrices."""
        faults = []

        def read_all(ranges: Sequence[Range]) -> list[bytes]:
            return [read(offset, size) for offset, size in ranges]

        for section, entry in self.sections.items():
            try:
                if entry["codec"] == "rows":
                    self.rows(section, np.arange(entry["shape"][0]), read_all)
                else:
                    self.array(section, read)
            except IndexFault as fault:
                faults.append(str(fault))
        return faults

    def _entry(self, section: str) -> dict[str, Any]:
        if section not in self.sections:
            raise IndexFault(f"{self.name}: no section {section}")
        return self.sections[section]


def read_contents(name: str, kind: int, size: int, read: ReadRange) -> Contents:
    """The table of contents of an index file of `size` bytes. Raises IndexFault."""
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
    if found_kind != kind:
        raise IndexFault(f"{name}: is an index file of kind {found_kind} instead of {kind}")
    if at + stored_size + TRAILER.size != size or raw_size > stored_size * MOST_EXPANSION:
        raise IndexFault(f"{name}: the table of contents lies outside the file")
    stored = read(at, stored_size)
    if zlib.crc32(stored) != crc:
        raise IndexFault(f"{name}: the table of contents does not match its checksum")
    try:
        contents = json.loads(_decompress(stored, raw_size, name))
        result = Contents(contents["meta"], contents["sections"], name)
        if not (isinstance(result.meta, dict) and isinstance(result.sections, dict)):
            raise TypeError("meta and sections are objects")
    except (ValueError, KeyError, TypeError) as error:
        raise IndexFault(f"{name}: the table of contents is malformed: {error}") from None
    for section, entry in result.sections.items():
        _check(name, section, entry, at)
    return result


def _check(name: str, section: str, entry: Any, end: int) -> None:
    try:
        inside = entry["at"] >= HEADER.size and entry["size"] >= 0 and entry["at"] + entry["size"] <= end
        plausible = entry["codec"] in ("none", "zstd", "rows") and all(
            type(n) is int and n >= 0 for n in entry["shape"]
        )
        plausible = plausible and np.dtype(entry["dtype"]).kind in "iub"
    except (KeyError, TypeError, ValueError):
        inside = plausible = False
    if not (inside and plausible):
        raise IndexFault(f"{name}: section {section} is described wrongly")


def _decompress(stored: bytes, size: int, name: str) -> bytes:
    try:
        return pa.decompress(stored, decompressed_size=size, codec="zstd", asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise IndexFault(f"{name}: cannot decompress: {error}") from None


def _shuffle(array: np.ndarray) -> bytes:
    """All first bytes of the elements, then all second bytes, ...: like bytes compress well together."""
    return array.view(np.uint8).reshape(-1, array.dtype.itemsize).T.tobytes()


def _unshuffle(raw: bytes, dtype: np.dtype) -> bytes:
    return np.frombuffer(raw, np.uint8).reshape(dtype.itemsize, -1).T.tobytes()
