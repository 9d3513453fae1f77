"""The file of one entry in the disk cache: a header that verifies the key and the bytes, then the bytes.

    magic 4 | CRC-32 of the value 4 | length of the value 8 | SHA-256 of the key 32 | value

Little-endian. A file appears under its name complete: it is written to a temporary file and renamed, and never changed
afterwards, so a reader that has it open reads all of it even if it is evicted meanwhile. Nothing is synced: what a
power loss leaves behind fails the check. A CRC-32 detects every change within 32 successive bits, hence of any one
byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import time
import zlib
from typing import NamedTuple

HEADER = struct.Struct("<4sIQ32s")
SUFFIX = ".entry"
MOST_VALUE_BYTES = 0x7FFF_F000  # maximum of one pread on Linux (read(2)); longer values are not stored

_MAGIC = b"SCP1"
_TOUCH_SECONDS = 60  # a hit writes at most this often; also the resolution of recency


class DamagedEntry(OSError):
    """A file of the cache is not what was written under this key."""


class EntryName(NamedTuple):
    """The file of a key's entry, named by a hash, because keys are long and may hold secrets."""

    digest: bytes
    path: str

    @classmethod
    def of(cls, root: str, key: str) -> EntryName:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        name = digest[:16].hex()
        return cls(digest, f"{root}/{name[:2]}/{name[2:]}{SUFFIX}")


def read_entry(name: EntryName) -> bytes:
    """Read and check the bytes of an entry, and mark it as used.

    Raises FileNotFoundError if there is none, DamagedEntry if the file is not as written, other OSErrors.
    """
    file = os.open(name.path, os.O_RDONLY | os.O_NONBLOCK)  # so as not to block on a pipe in its place
    try:
        status = os.fstat(file)
        header = os.pread(file, HEADER.size, 0)
        if len(header) != HEADER.size:
            raise DamagedEntry(f"{name.path} is cut short")
        magic, checksum, length, digest = HEADER.unpack(header)
        if magic != _MAGIC or digest != name.digest or length != status.st_size - HEADER.size:
            raise DamagedEntry(f"{name.path} has another header than was written")
        value = os.pread(file, length, HEADER.size)
        if len(value) != length or zlib.crc32(value) != checksum:
            raise DamagedEntry(f"{name.path} has other bytes than were written")
        _mark_as_used(file, status)
        return value
    finally:
        os.close(file)


def read_state(name: EntryName) -> tuple[int, int]:
    """Read the checksum and the length of an entry's value, check nothing else, and mark it as used. Raises OSError."""
    file = os.open(name.path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        header = os.pread(file, HEADER.size, 0)
        _mark_as_used(file, os.fstat(file))
    finally:
        os.close(file)
    if len(header) != HEADER.size:
        raise DamagedEntry(f"{name.path} is cut short")
    _, checksum, length, _ = HEADER.unpack(header)
    return checksum, length


def _mark_as_used(file: int, status: os.stat_result) -> None:
    if abs(time.time() - status.st_mtime) > _TOUCH_SECONDS:
        with contextlib.suppress(OSError):  # a read-only cache
            os.utime(file)


def write_entry(name: EntryName, value: bytes) -> None:
    """Write to a temporary file and rename it. Raises OSError and leaves nothing behind; a crash leaves the temporary
    file.
    """
    aside = f"{name.path}.{os.urandom(8).hex()}"
    file = _create(aside)
    try:
        try:
            _write(file, HEADER.pack(_MAGIC, zlib.crc32(value), len(value), name.digest))
            _write(file, value)
        finally:
            os.close(file)
        os.replace(aside, name.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path))
        return os.open(path, flags, 0o666)


def _write(file: int, value: bytes) -> None:
    rest = memoryview(value)
    while rest:
        rest = rest[os.write(file, rest) :]
