"""What tells a data file from another of its size and time in its place: a number that nobody puts back.

| filesystem | witness |
|---|---|
| local disks, mounts | when the file was changed (`st_ctime_ns`), which the system sets and nobody else can |
| fsspec | a checksum of what the listing tells of the object's version: ETag, generation, content hash |
| object stores through pyarrow | the time of modification itself, which the store sets |
| others that tell a time of modification (HDFS, SFTP) | that time, which can be put back there |
| those that tell nothing | a number drawn for this listing alone: no index entry is ever of such a file |

Where the witness of a local file differs and size and time of modification do not, as after a table was copied or moved
with its times, or after a link to a file was made, the file's last bytes prove it the same, or another
(:mod:`secateur.io.tables.directory.recognition`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import xxhash

from secateur.io.storage.object_file import END

_ENDING = 8  # bytes: the footer's length, then the magic

# What listings of fsspec's filesystems call an object's version: s3fs, gcsfs, adlfs, ossfs and others.
_VERSIONS = frozenset({"etag", "generation", "versionid", "version_id", "md5hash", "content_md5", "crc32c"})


def version_of(info: Mapping[str, Any]) -> int | None:
    """A checksum of the version that a filesystem of fsspec tells of a file; None where it tells none."""
    told = sorted((name.lower(), value) for name, value in info.items() if name.lower() in _VERSIONS and value)
    if "ino" in info and "created" in info:  # fsspec's own local files, of which that is the time of change
        told.append(("created", info["created"]))
    return signed(xxhash.xxh3_64_intdigest(repr(told).encode())) if told else None


def drawn(count: int) -> np.ndarray:
    """Witnesses that no other listing has: int64 of shape (count,)."""
    return secrets.randbits(62) ^ np.arange(count, dtype=np.int64)


def fsspec_of(filesystem: pafs.FileSystem) -> Any | None:
    """The filesystem of fsspec that one of pyarrow wraps; None where it wraps none."""
    if isinstance(filesystem, pafs.PyFileSystem) and type(filesystem.handler) is pafs.FSSpecHandler:
        return filesystem.handler.fs
    return None


def end_of(file: pa.NativeFile) -> int:
    """A checksum of the last bytes of a Parquet file, its whole footer among them; never 0. Raises OSError.

    These are 64 KiB, or the footer where it is longer. Of a file that is small all is in them, and else the page
    index and the statistics of all column chunks: a file with other values differs there, unless these values have the
    same bounds, counts, encodings and compressed sizes.
    """
    size = file.size()
    data = file.read_at(min(size, END), max(0, size - END))
    footer = int.from_bytes(data[-_ENDING:-4], "little") + _ENDING
    if len(data) < footer <= size:
        data = file.read_at(footer, size - footer)
    return signed(xxhash.xxh3_64_intdigest(data)) or 1


def signed(digest: int) -> int:
    """64 bits as a signed integer."""
    return digest - (1 << 64) if digest >> 63 else digest
