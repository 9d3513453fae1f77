"""The identity of a data file, and of a listing: the files of a table as one number."""

from __future__ import annotations

from dataclasses import dataclass, field

import mmh3
import numpy as np
import pyarrow as pa

from secateur.arrays import text_parts


@dataclass(frozen=True, order=True)
class FileIdentity:
    """What distinguishes a file from every other, including one that replaces it.

    `witness` is something that a writer cannot restore (:mod:`secateur.io.storage.witness`). `end` is a checksum of the
    file's last bytes, 0 where unknown; it is not compared, but proves a file unchanged under another witness.
    """

    path: str  # below the table
    size: int  # bytes
    stamp: int  # when the file was written: nanoseconds since the epoch, or for Iceberg the snapshot
    witness: int
    end: int = field(default=0, compare=False)


def identities(paths: pa.Array, *parts: np.ndarray) -> list[FileIdentity]:
    """Return the identities of files from their paths and arrays of shape (n_files,) of the other parts, in order."""
    return [FileIdentity(*fields) for fields in zip(paths.to_pylist(), *(part.tolist() for part in parts), strict=True)]


def listing_id(paths: pa.Array, size: np.ndarray, stamp: np.ndarray, witness: np.ndarray) -> int:
    """Return a 128-bit id of a listing: equal ids mean equal paths, sizes, stamps and witnesses.

    It is MurmurHash3 x64_128 of the number of files, the arrays of Arrow strings with 64-bit offsets, sizes,
    stamps and witnesses.
    """
    offsets, texts = text_parts(paths.cast(pa.large_string()))
    digest = mmh3.mmh3_x64_128(len(paths).to_bytes(8, "little"))
    for array in (offsets, texts, size, stamp, witness):
        digest.update(np.ascontiguousarray(array).data)
    return digest.uintdigest()
