"""Bit-sliced bloom filters: one row per bit position, one column per block.

A probe reads k rows of n/8 bytes and ANDs them: one answer for n blocks at once. Blocks with different numbers of
distinct values have filters of different power-of-two sizes; each size has its own matrix.

The 128 bits of a value's hash (:mod:`secateur.index.filters.hashing`) give its first four positions, 32 bits each;
further positions come from mix(h1 + j * h2), where mix is MurmurHash3's finaliser. Without mixing (Kirsch &
Mitzenmacher 2006) the positions of different values in a small filter follow few arithmetic progressions: at 20 keys
and a designed rate of one wrong block there were 16. m is a power of two, so a filter of m bits is repeated exactly
into one of 2m bits, and folds exactly into one of m/2 by OR of its halves.

Fewer bits are set per value than the log2(1/p) that need the least space. With 0.6 times as many, a filter is a tenth
larger, but building and probing it cost 0.6 times as much. Where rounding up to a power of two leaves a third of the
bits to spare, 0.4 times as many are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log, log1p, log2

import numpy as np

from secateur.index.filters.hashing import Hashes
from secateur.index.filters.murmur3 import mix

LEAST_LOG2_BITS, MOST_LOG2_BITS = 6, 27  # 8 bytes to 16 MiB per block
LEAST_FPR, MOST_FPR = 1e-9, 0.01
MOST_PROBES = 30
PROBES_SHARE = 0.6  # of the number of probes that needs the least space
FEWER_SHARE = 2 / 3  # of these probes, in a filter with a third more bits than it needs
CHUNK = 1 << 14  # values hashed at once: their positions stay in a core's cache
GROUP = 8  # blocks whose bits share a byte


def rate_for(blocks: int, fpr: float | None) -> float:
    """Return `fpr` if given, else the rate at which an absent value costs one wrong block in the whole table."""
    rate = fpr if fpr is not None else 1 / max(blocks, 1)
    return min(max(rate, LEAST_FPR), MOST_FPR if fpr is None else 0.5)


def probes_for(fpr: float) -> int:
    """Return the number of bits set per value in a filter with no bits to spare."""
    return max(1, ceil(PROBES_SHARE * log2(1 / fpr)))


def fewer_probes_for(fpr: float) -> int:
    """Return the number of bits set per value in a filter with bits to spare, as most have after rounding up."""
    return ceil(FEWER_SHARE * probes_for(fpr))


def bits_per_value(fpr: float, probes: int | None = None) -> float:
    """Return the bits per value at which k probes have a false-positive rate: p = (1 - e^(-k/b))^k."""
    k = probes or probes_for(fpr)
    return -k / log1p(-(fpr ** (1 / k)))


def log2_bits_for(distinct: int, fpr: float, probes: int | None = None) -> int:
    """Return log2 of the bits of a filter of `distinct` values, rounded up to a power of two."""
    bits = max(1.0, distinct * bits_per_value(fpr, probes))
    return min(max(ceil(log2(bits)), LEAST_LOG2_BITS), MOST_LOG2_BITS)


def shape_for(distinct: int, fpr: float) -> tuple[int, int]:
    """Return the probes and the log2 of the bits for `distinct` values; fewer probes where the size allows it."""
    log2_bits, fewer = log2_bits_for(distinct, fpr), fewer_probes_for(fpr)
    return (fewer if log2_bits_for(distinct, fpr, fewer) <= log2_bits else probes_for(fpr)), log2_bits


def rate_of(distinct: int, probes: int, log2_bits: int) -> float:
    """Return the false-positive rate of a filter of `distinct` values."""
    return float(-np.expm1(-distinct * probes / (1 << log2_bits))) ** probes


def least_bytes(distinct: int, fpr: float) -> float:
    """Return the least bytes that any bloom filter needs: n log2(1/p) / ln 2 bits."""
    return distinct * log2(1 / fpr) / log(2) / 8


def positions(hashes: Hashes, probes: int, log2_bits: int) -> np.ndarray:
    """Return the bit positions of every value: int64 of shape (n, probes)."""
    result = np.empty((len(hashes), probes), np.int64)
    for probe, at in enumerate(_by_probe(hashes, probes, log2_bits)):
        result[:, probe] = at
    return result


def _by_probe(hashes: Hashes, probes: int, log2_bits: int) -> Iterator[np.ndarray]:
    """Yield the positions of every value, probe by probe: int64 of shape (n,)."""
    mask = np.uint64((1 << log2_bits) - 1)
    for probe in range(0, probes, 2):
        word = _word(hashes, probe // 2)
        yield (word & mask).view(np.int64)
        if probe + 1 < probes:
            yield (word >> np.uint64(32) & mask).view(np.int64)


def _word(hashes: Hashes, number: int) -> np.ndarray:
    """Return the 64 bits that supply two positions."""
    match number:
        case 0:
            return hashes.first
        case 1:
            return hashes.second
        case _:
            return mix(hashes.first + np.uint64(number) * (hashes.second | np.uint64(1)))


def bits_of(hashes: Hashes, probes: int, log2_bits: int) -> np.ndarray:
    """Build the filter of some values, distinct or not: one byte (0 or 1) per bit, uint8 of shape (2^log2_bits,)."""
    bits = np.zeros(1 << log2_bits, np.uint8)
    for start in range(0, len(hashes), CHUNK):
        chunk = slice(start, start + CHUNK)
        for at in _by_probe(Hashes(hashes.first[chunk], hashes.second[chunk]), probes, log2_bits):
            bits[at] = 1
    return bits


def fitted(bits: np.ndarray, fpr: float, probes: int) -> np.ndarray:
    """Fold a filter to the size for its distinct values, whose number is estimated from its bits.

    d values set m (1 - e^(-kd/m)) of m bits; the deviation is smaller than the step between two sizes.
    """
    log2_bits = len(bits).bit_length() - 1
    unset = max(1 - np.count_nonzero(bits.view(bool)) / len(bits), 1 / len(bits))
    distinct = -len(bits) / probes * log(unset)
    for _ in range(log2_bits - log2_bits_for(ceil(distinct), fpr, probes)):
        half = len(bits) // 2
        bits = bits[:half] | bits[half:]
    return bits


class BloomColumn:
    """Up to eight filters of 2^x bits side by side, as they lie in a matrix: a byte per row, a bit per block."""

    def __init__(self, log2_bits: int) -> None:
        self.count = 0
        self.bytes = np.zeros(1 << log2_bits, np.uint8)

    @property
    def is_full(self) -> bool:
        """Whether all eight places are taken."""
        return self.count == GROUP

    def add(self, bits: np.ndarray) -> None:
        """Add the filter of the next block, given its bits from :func:`bits_of`, which are overwritten."""
        bits <<= np.uint8(self.count)
        self.bytes |= bits
        self.count += 1


def members(row: np.ndarray) -> np.ndarray:
    """Return the positions of the bits set in a row, ascending: the columns of the matrix that remain."""
    words = np.zeros(-(-len(row) // 8) * 8, np.uint8)
    words[: len(row)] = row
    some = np.flatnonzero(words.view(np.uint64))
    bits = np.unpackbits(words.reshape(-1, 8)[some], axis=1, bitorder="little")
    which, within = np.nonzero(bits)
    return some[which] * 64 + within
