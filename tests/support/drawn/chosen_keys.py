"""Keys of each kind at the ends of their range, next to each other, and equal in their first bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, INT128_MAX, INT128_MIN, Key
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

WORDS: list[Key] = [INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, 2, 3, INT64_MAX - 1, INT64_MAX]
WIDE: list[Key] = [INT128_MIN, -(2**64) - 1, -(2**64), -1, 0, 1, 2**63, 2**64 - 1, 2**64, INT128_MAX]
BYTES: list[Key] = [
    b"",
    b"\0",
    b"\0\0",
    b"a",
    b"a\0",
    b"a\0\0b",
    b"abcdefgh",
    b"abcdefgh\0",
    b"abcdefghi",
    b"b",
    b"\xff" * 9,
]


def keys(kind: Kind, values: list[Key]) -> Keys:
    match kind:
        case Kind.WORD:
            return Keys(kind, (np.array(values, np.int64),))
        case Kind.WIDE:
            high = np.array([int(v) >> 64 for v in values], np.int64)  # type: ignore[arg-type]
            low = np.array([int(v) & (2**64 - 1) for v in values], np.uint64)  # type: ignore[operator]
            return Keys(kind, (high, low))
        case Kind.BYTES:
            return keys_of(pa.array(values, pa.binary()))
