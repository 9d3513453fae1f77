"""The witness: a number that distinguishes a data file from another of its size and time in its place.

| filesystem | witness |
|---|---|
| local disks, mounts | the change time (`st_ctime_ns`), which only the system can set |
| fsspec | a checksum of the object's version in the listing: ETag, generation, content hash |
| object stores through pyarrow | the modification time itself, which the store sets |
| others with a modification time (HDFS, SFTP) | that time, which can be set back there |
| those without one | a number drawn for this listing only: no index entry ever matches such a file |

If the witness of a local file differs, but size and modification time do not (after a table was copied or moved with
its times, or a link to a file was made), the file's last bytes prove it the same, or another
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

from secateur.io.storage.object_file import AFTER_FOOTER, END

# Names of an object's version in listings of fsspec's filesystems: s3fs, gcsfs, adlfs, ossfs and others.
_VERSIONS = frozenset({"etag", "generation", "versionid", "version_id", "md5hash", "content_md5", "crc32c"})


def version_of(info: Mapping[str, Any]) -> int | None:
    """Return a checksum of the version in an fsspec file's listing; None if it has none."""
    versions = sorted((name.lower(), value) for name, value in info.items() if name.lower() in _VERSIONS and value)
    if "ino" in info and "created" in info:  # fsspec's own local files: `created` is their change time
        versions.append(("created", info["created"]))
    return signed(xxhash.xxh3_64_intdigest(repr(versions).encode())) if versions else None


def drawn(count: int) -> np.ndarray:
    """Draw witnesses that no other listing has: int64 of shape (count,)."""
    return secrets.randbits(62) ^ np.arange(count, dtype=np.int64)


def fsspec_of(filesystem: pafs.FileSystem) -> Any | None:
    """Return the fsspec filesystem that a pyarrow filesystem wraps; None if it wraps none."""
    if isinstance(filesystem, pafs.PyFileSystem) and type(filesystem.handler) is pafs.FSSpecHandler:
        return filesystem.handler.fs
    return None


def end_of(file: pa.NativeFile) -> int:
    """Return a checksum of the last bytes of a Parquet file, including its whole footer; never 0. Raises OSError.

    These are 64 KiB, or the footer if it is longer. For a small file they are the whole file; otherwise they include
    the page index and the statistics of all column chunks. A file with other values differs there, unless these values
    have the same bounds, counts, encodings and compressed sizes.
    """
    size = file.size()
    data = file.read_at(min(size, END), max(0, size - END))
    footer = int.from_bytes(data[-AFTER_FOOTER:-4], "little") + AFTER_FOOTER
    if len(data) < footer <= size:
        data = file.read_at(footer, size - footer)
    return signed(xxhash.xxh3_64_intdigest(data)) or 1


def signed(digest: int) -> int:
    """Return 64 bits as a signed integer."""
    return digest - (1 << 64) if digest >> 63 else digest
