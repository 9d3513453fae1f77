"""Bit-sliced bloom filters: one row per bit position, one column per block.

A probe reads k rows of n/8 bytes and ANDs them: one answer for n blocks at once. A filter has k *sections* of s bits,
and every value sets one bit in each: bit (u_i * s) >> 32 of section i, where u_i is the upper half of its hash times an
odd constant. Sections keep the bits of one probe together, so that setting them stays in a core's cache.

The places of a value follow from 64 bits, so in large filters they are not independent. Two values share a place in
every section only if the difference of their hashes is small after every one of the multiplications, which is as rare
as if the products were random (Dietzfelbinger et al. 1997): a few hundred filters of twenty keys show the designed
rate.

A place in a section of s bits is a place in one of f * s bits, divided by f. So a filter is repeated exactly into a
larger one, and folds exactly into a smaller one, where one size divides the other.

Sections are rounded up by a sixteenth at most, so that blocks with nearly as many values share a matrix; 2 % of the
bits are to spare on average. Fewer bits are set per value than the log2(1/p) that need the least space. With 0.6 times
as many, a filter is a tenth larger, but building and probing it cost 0.6 times as much. Beyond eight rows, a look-up
over many blocks costs more than the space is worth.
"""

from __future__ import annotations

from math import ceil, log, log1p, log2

import numpy as np

from secateur.index.filters.murmur3 import mix

LEAST_FPR, MOST_FPR = 1e-9, 0.01
WRONG_BLOCKS = 0.2  # kept per value: a look-up of a unique key reads 1.2 times the blocks that hold it
MOST_PROBES = 30
MOST_BITS = 1 << 27  # of a block: 16 MiB
PROBES_SHARE = 0.6  # of the number of probes that needs the least space
FEWER_SHARE, ENOUGH = 0.4, 8  # the share that is enough where the other one is more than so many probes
STEPS = 16  # sizes of sections per octave
CHUNK = 1 << 15  # values processed at once: their places stay in a core's cache
FEW_HASHES = 256  # whose places are computed for all sections at once: few calls of numpy
GROUP = 8  # blocks whose bits share a byte
MOST_PLACES_BITS = 21  # 2 MiB: four million hashes are counted in as many places

_MULTIPLIERS = mix(np.arange(1, MOST_PROBES + 1, dtype=np.uint64)) | 1


def rate_for(blocks: int, fpr: float | None) -> float:
    """Return `fpr` if given, else the rate at which five absent values cost one wrong block in the whole table."""
    rate = fpr if fpr is not None else WRONG_BLOCKS / max(blocks, 1)
    return min(max(rate, LEAST_FPR), MOST_FPR if fpr is None else 0.5)


def probes_for(fpr: float) -> int:
    """Return the number of bits set per value."""
    least = log2(1 / fpr)
    return max(1, min(ceil(PROBES_SHARE * least), max(ENOUGH, ceil(FEWER_SHARE * least))))


def bits_per_value(fpr: float) -> float:
    """Return the bits per value at which k probes have a false-positive rate: p = (1 - e^(-k/b))^k."""
    k = probes_for(fpr)
    return -k / log1p(-(fpr ** (1 / k)))


def size_for(distinct: int, fpr: float) -> int:
    """Return the number of the size of a filter of `distinct` values: the least with which it keeps its rate.

    One bit of s stays 0 with the chance (1 - 1/s)^d, which is about e^(-d / (s - 1/2)).
    """
    probes = probes_for(fpr)
    wanted = min(ceil(distinct * bits_per_value(fpr) / probes + 0.5), MOST_BITS // probes)
    octave = max(wanted.bit_length() - STEPS.bit_length(), 0)
    size = STEPS * octave + (-(-wanted >> octave))
    return size if section_bits(size) * probes <= MOST_BITS else size - 1


def section_bits(size: int) -> int:
    """Return the bits of a section, from the number of a size."""
    return size if size < STEPS else (STEPS + size % STEPS) << size // STEPS - 1


def bits_for(distinct: int, fpr: float) -> int:
    """Return the bits of a filter of `distinct` values."""
    return probes_for(fpr) * section_bits(size_for(distinct, fpr))


def rate_of(distinct: int, probes: int, bits: int) -> float:
    """Return the false-positive rate of a filter of `distinct` values."""
    return float(-np.expm1(-distinct * probes / bits)) ** probes


def least_bytes(distinct: int, fpr: float) -> float:
    """Return the least bytes that any bloom filter needs: n log2(1/p) / ln 2 bits."""
    return distinct * log2(1 / fpr) / log(2) / 8


def positions(hashes: np.ndarray, probes: int, bits: int) -> np.ndarray:
    """Return the bit positions of every value: int64 of shape (n, probes)."""
    if len(hashes) <= FEW_HASHES:
        of_size: np.ndarray = positions_by_size(hashes, probes, np.array([bits]))[0]
        return of_size
    section = bits // probes
    result = np.empty((len(hashes), probes), np.int64)
    for probe in range(probes):
        result[:, probe] = _places(hashes, probe, section)
        result[:, probe] += probe * section
    return result


def positions_by_size(hashes: np.ndarray, probes: int, bits: np.ndarray) -> np.ndarray:
    """Return the bit positions of every value in filters of several sizes: int64 of shape (sizes, n, probes)."""
    section = (bits // probes)[:, None, None]
    places = hashes[:, None] * _MULTIPLIERS[:probes]
    places >>= 32
    places = places * section.view(np.uint64)
    places >>= 32
    return places.view(np.int64) + section * np.arange(probes)


def _places(hashes: np.ndarray, probe: int, section: int, into: np.ndarray | None = None) -> np.ndarray:
    """Return the bit of every value in a section: int64 of shape (n,), which lies in `into`, uint64, if given."""
    places = np.multiply(hashes, _MULTIPLIERS[probe], out=None if into is None else into[: len(hashes)])
    places >>= 32
    places *= section
    places >>= 32
    return places.view(np.int64)


def distinct_count(hashes: np.ndarray) -> int:
    """Estimate how many different hashes there are, from the places that they take in a table of about as many.

    d of them take m (1 - e^(-d/m)) of m places; of more than 4,096, the deviation is about 1 %.
    """
    places = 1 << min(max(len(hashes), 2).bit_length(), MOST_PLACES_BITS)
    taken = np.zeros(places, np.uint8)
    for start in range(0, len(hashes), CHUNK):
        taken[(hashes[start : start + CHUNK] >> (65 - places.bit_length())).view(np.int64)] = 1
    free = max(places - int(np.count_nonzero(taken.view(bool))), 1)
    return ceil(-places * log(free / places))


class BloomColumn:
    """Up to eight filters of one size side by side, as they lie in a matrix: a byte per row, a bit per block."""

    def __init__(self, bits: int) -> None:
        self.count = 0
        self.bytes = np.zeros(bits, np.uint8)

    @property
    def is_full(self) -> bool:
        """Whether all eight places are taken."""
        return self.count == GROUP

    def add(self, bits: np.ndarray) -> None:
        """Add the filter of the next block, given its bits (0 or 1, uint8)."""
        self.bytes |= bits << np.uint8(self.count)
        self.count += 1

    def add_values(self, hashes: np.ndarray, probes: int) -> None:
        """Add the filter of the next block, given the hashes of its values, distinct or not."""
        section, bit = len(self.bytes) // probes, np.uint8(1 << self.count)
        aside, places = np.empty(section, np.uint8), np.empty(min(len(hashes), CHUNK), np.uint64)
        for probe, rows in enumerate(self.bytes.reshape(probes, section)):
            bits = aside if self.count else rows  # rows are empty before the first block
            bits.fill(0)
            for start in range(0, len(hashes), CHUNK):
                bits[_places(hashes[start : start + CHUNK], probe, section, places)] = bit
            if bits is aside:
                rows |= bits
        self.count += 1


def members(row: np.ndarray) -> np.ndarray:
    """Return the positions of the bits set in a row, ascending: the columns of the matrix that remain."""
    words = np.zeros(-(-len(row) // 8) * 8, np.uint8)
    words[: len(row)] = row
    some = np.flatnonzero(words.view(np.uint64))
    bits = np.unpackbits(words.reshape(-1, 8)[some], axis=1, bitorder="little")
    which, within = np.nonzero(bits)
    return some[which] * 64 + within
