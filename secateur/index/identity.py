"""The identity of a data file, and of a listing: which files a table has, in one number."""

from __future__ import annotations

from dataclasses import dataclass, field

import mmh3
import numpy as np
import pyarrow as pa

from secateur.arrays import text_parts


@dataclass(frozen=True, order=True)
class FileIdentity:
    """What tells a file from every other, one in its place included.

    `witness` is what nobody puts back (:mod:`secateur.io.storage.witness`). `end` is a checksum of the file's last
    bytes, 0 where it is not known; it is no part of what is compared, but proves a file the same under another witness.
    """

    path: str  # below the table
    size: int  # bytes
    modified: int  # nanoseconds since the epoch, or what the table's listing has in place of it
    witness: int
    end: int = field(default=0, compare=False)


def identities(paths: pa.Array, *parts: np.ndarray) -> list[FileIdentity]:
    """The identities of files: their paths, and arrays of shape (n_files,) of the other parts, in order."""
    return [FileIdentity(*each) for each in zip(paths.to_pylist(), *(part.tolist() for part in parts), strict=True)]


def listing_id(paths: pa.Array, size: np.ndarray, modified: np.ndarray, witness: np.ndarray) -> int:
    """What listings of the same files share, 128 bits: equal ids mean equal paths, sizes, times and witnesses.

    It is MurmurHash3 x64_128 of the number of files, the arrays of Arrow strings with 64-bit offsets, sizes, times of
    modification and witnesses.
    """
    offsets, texts = text_parts(paths.cast(pa.large_string()))
    digest = mmh3.mmh3_x64_128(len(paths).to_bytes(8, "little"))
    for array in (offsets, texts, size, modified, witness):
        digest.update(np.ascontiguousarray(array).data)
    return digest.uintdigest()
