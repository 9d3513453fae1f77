"""Size classes: how a filter hashes a value, how many bits it sets of each, and its size, in one number.

Filters share a bloom matrix only if they hash alike. Those of the index have k probes, 1 to 30; those found in data
files have an encoding of :mod:`secateur.index.filters.parquet_bloom`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import MOST_BITS, MOST_PROBES, STEPS, section_bits

NONE = -1  # of a block without a filter
_SIZES = 512  # exceeds every number of a size
_NATIVE = 1 << 14  # the least of a filter in a data file
_NATIVE_SIZES = 32


@dataclass(frozen=True)
class FilterShape:
    """What a size class says; `encoding` is None for the filters of the index."""

    probes: int
    bits: int
    encoding: int | None = None

    def divides(self, other: FilterShape) -> bool:
        """Whether a filter of this shape can be repeated into one of the other."""
        return (self.probes, self.encoding) == (other.probes, other.encoding) and other.bits % self.bits == 0


def own_class(probes: int, size: int) -> int:
    """Return the size class of a filter of the index, given the number of its size."""
    return _SIZES * probes + size


def native_class(encoding: int, log2_bits: int) -> int:
    """Return the size class of a filter in a data file."""
    return _NATIVE + _NATIVE_SIZES * encoding + log2_bits


def shape_of(size_class: int) -> FilterShape:
    """Return what a valid size class says."""
    if size_class < _NATIVE:
        probes, size = divmod(size_class, _SIZES)
        return FilterShape(probes, probes * section_bits(size))
    encoding, log2_bits = divmod(size_class - _NATIVE, _NATIVE_SIZES)
    return FilterShape(parquet_bloom.WORDS, 1 << log2_bits, encoding)


def families_of(size_classes: np.ndarray) -> np.ndarray:
    """Return numbers that are equal for filters that hash alike and differ in size alone: int64 of shape (n,)."""
    return np.where(size_classes < _NATIVE, size_classes // _SIZES, -(size_classes // _NATIVE_SIZES))


def are_valid(size_classes: np.ndarray) -> bool:
    """Whether these are size classes of filters: int64 of shape (n,)."""
    encoding, log2_bits = np.divmod(size_classes - _NATIVE, _NATIVE_SIZES)
    native = (log2_bits >= parquet_bloom.LEAST_LOG2_BITS) & (log2_bits <= parquet_bloom.MOST_LOG2_BITS)
    native &= (encoding >= 1) & (encoding <= parquet_bloom.MOST_CODE)
    probes, size = np.divmod(size_classes, _SIZES)
    of_index = (probes >= 1) & (probes <= MOST_PROBES) & (size >= 1) & (size <= _LARGEST)
    small = np.where(size <= _LARGEST, size, 0)
    section = np.where(small < STEPS, small, (STEPS + small % STEPS) << np.maximum(small // STEPS - 1, 0))
    of_index &= np.where(of_index, probes, 0) * section <= MOST_BITS
    return bool(np.where(size_classes >= _NATIVE, native, of_index).all())


_LARGEST = STEPS * MOST_BITS.bit_length()  # no section is larger
