"""Bit-sliced bloom filters: one row per bit position, one column per block.

A probe reads k rows of n/8 bytes and ANDs them: the answer for all blocks of a segment at once. Blocks with
different numbers of distinct values have filters of different power-of-two sizes; each size is a matrix of its own.

Hashing is MurmurHash3 x64_128 with seed 0 (Appleby; ``mmh3``) of the canonical bytes of a key. Its halves h1 and h2
give the positions mix(h1 + i * h2) mod m, where mix is MurmurHash3's finaliser. Without it (Kirsch & Mitzenmacher 2006)
the positions of different values in a small filter follow few arithmetic progressions: at 20 keys and a designed rate
of one wrong block there were 16. m is a power of two, so a filter of m bits folds exactly into one of m/2 by OR of its
halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log, log2

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.values import Key, Kind, canonical_bytes, keys_of, kind_of, sorted_distinct

LEAST_LOG2_BITS, MOST_LOG2_BITS = 6, 27  # 8 bytes to 16 MiB per block and column
SLAB_BITS = 1 << 16  # rows transposed at once: bounds the unpacked bits in memory
LEAST_FPR, MOST_FPR = 1e-9, 0.01
MOST_PROBES = 30  # log2(1 / LEAST_FPR)

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


@dataclass(frozen=True)
class Hashes:
    """The two 64-bit halves of every value's hash: uint64 of shape (n,)."""

    first: np.ndarray
    second: np.ndarray


def hash_values(values: pa.Array) -> Hashes:
    """The hashes of the distinct non-null values of a column with an order."""
    kind = kind_of(values.type)
    if kind is Kind.BYTES:
        distinct = pc.unique(values.cast(pa.large_binary()).drop_null())
        return hash_canonical(distinct.to_pylist())
    keys = keys_of(values.drop_null())
    if kind is Kind.WORD:
        return _hash_word(sorted_distinct(keys.words[0]).view(np.uint64))
    high, low = (word.view(np.uint64) for word in keys.words)
    distinct = np.unique(np.stack([high, low], axis=1), axis=0)
    return _hash_wide(distinct[:, 0], distinct[:, 1])


def hash_keys(keys: Sequence[Key], kind: Kind) -> Hashes:
    """The hashes of single keys."""
    return hash_canonical([canonical_bytes(key, kind) for key in keys])


def hash_canonical(values: Sequence[bytes]) -> Hashes:
    """The hashes of canonical bytes."""
    digests = b"".join([mmh3.mmh3_x64_128_digest(value) for value in values])
    pairs = np.frombuffer(digests, "<u8").reshape(-1, 2)
    return Hashes(pairs[:, 0].copy(), pairs[:, 1].copy())


def _rotate(x: np.ndarray, bits: int) -> np.ndarray:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _finalise(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


def _finish(h1: np.ndarray, h2: np.ndarray, length: int) -> Hashes:
    h1, h2 = h1 ^ np.uint64(length), h2 ^ np.uint64(length)
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _finalise(h1), _finalise(h2)
    h1 = h1 + h2
    return Hashes(h1, h2 + h1)


def _hash_word(words: np.ndarray) -> Hashes:
    """MurmurHash3 x64_128 of 8-byte keys: they are all tail."""
    h1 = _rotate(words * _C1, 31) * _C2
    return _finish(h1, np.zeros_like(h1), 8)


def _hash_wide(high: np.ndarray, low: np.ndarray) -> Hashes:
    """MurmurHash3 x64_128 of 16-byte keys: they are one whole block, low half first."""
    h1 = _rotate(_rotate(low * _C1, 31) * _C2, 27)
    h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = _rotate(_rotate(high * _C2, 33) * _C1, 31) + h1
    h2 = h2 * np.uint64(5) + np.uint64(0x38495AB5)
    return _finish(h1, h2, 16)


def rate_for(blocks: int, fpr: float | None) -> float:
    """The false-positive rate: as asked, else such that an absent value costs one wrong block in the whole table."""
    rate = fpr if fpr is not None else 1 / max(blocks, 1)
    return min(max(rate, LEAST_FPR), MOST_FPR if fpr is None else 0.5)


def probes_for(fpr: float) -> int:
    """The number of bits per value that is best at a false-positive rate: log2(1/p)."""
    return max(1, ceil(log2(1 / fpr)))


def log2_bits_for(distinct: int, probes: int) -> int:
    """The size class of a filter of `distinct` values: n k / ln 2 bits, rounded up to a power of two."""
    bits = max(1.0, distinct * probes / log(2))
    return min(max(ceil(log2(bits)), LEAST_LOG2_BITS), MOST_LOG2_BITS)


def positions(hashes: Hashes, probes: int, log2_bits: int) -> np.ndarray:
    """The bit positions of every value: int64 of shape (n, probes)."""
    steps = np.arange(probes, dtype=np.uint64)
    found = _finalise(hashes.first[:, None] + steps * (hashes.second[:, None] | np.uint64(1)))
    return (found & np.uint64((1 << log2_bits) - 1)).astype(np.int64)


def build_filter(hashes: Hashes, probes: int, log2_bits: int) -> np.ndarray:
    """The filter of one block: its bits packed, least significant first, uint8 of shape (bits / 8,)."""
    bits = np.zeros(1 << log2_bits, bool)
    for column in positions(hashes, probes, log2_bits).T:
        bits[column] = True
    return np.packbits(bits, bitorder="little")


def transpose(filters: Sequence[np.ndarray]) -> np.ndarray:
    """Filters of n blocks as rows by bit position: uint8 of shape (bits, ceil(n / 8)), slab by slab."""
    packed = np.stack(filters)
    rows = np.empty((packed.shape[1] * 8, -(-len(filters) // 8)), np.uint8)
    for start in range(0, len(rows), SLAB_BITS):
        stop = min(start + SLAB_BITS, len(rows))
        bits = np.unpackbits(packed[:, start // 8 : stop // 8], axis=1, bitorder="little")
        rows[start:stop] = np.packbits(bits.T, axis=1, bitorder="little")
    return rows


def probe(
    hashes: Hashes, probes: int, log2_bits: int, blocks: int, read_rows: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Which of the blocks of one size class may hold any of the values: bool of shape (blocks,).

    `read_rows` gives the rows at the positions asked for, which are distinct and ascending. Sound: a value that
    a block holds has set all its bits there.
    """
    wanted = positions(hashes, probes, log2_bits)
    distinct, inverse = np.unique(wanted, return_inverse=True)
    rows = read_rows(distinct)[inverse.reshape(wanted.shape)]
    any_value = np.bitwise_or.reduce(np.bitwise_and.reduce(rows, axis=1), axis=0)
    return np.unpackbits(any_value, bitorder="little", count=blocks).astype(bool)
