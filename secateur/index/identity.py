"""The identity of a listing: which files a table has, in one number."""

from __future__ import annotations

import mmh3
import numpy as np
import pyarrow as pa

from secateur.arrays import text_parts


def listing_id(paths: pa.Array, size: np.ndarray, modified: np.ndarray) -> int:
    """What listings of the same files share, 128 bits: equal ids mean equal paths, sizes and times of modification.

    It is MurmurHash3 x64_128 of the number of files, the arrays of Arrow strings with 64-bit offsets, sizes and times.
    """
    offsets, texts = text_parts(paths.cast(pa.large_string()))
    digest = mmh3.mmh3_x64_128(len(paths).to_bytes(8, "little"))
    for array in (offsets, texts, size, modified):
        digest.update(np.ascontiguousarray(array).data)
    return digest.uintdigest()
