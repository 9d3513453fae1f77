"""Size classes: how a filter hashes a value, how many bits it sets of each, and its size, in one number.

Filters share a bloom matrix only if they hash alike. Those of the index have k probes, 1 to 30; those found in data
files have an encoding of :mod:`secateur.index.filters.parquet_bloom`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.index.filters import parquet_bloom
from secateur.index.filters.bloom import LEAST_SECTION, MOST_BITS, MOST_PROBES, STEPS, section_bits

NONE = -1  # of a block without a filter
_SIZES = 256  # exceeds every number of a size
_NATIVE = 32  # added to encodings of filters in data files; exceeds every number of probes


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
    return _SIZES * (_NATIVE + encoding) + log2_bits


def shape_of(size_class: int) -> FilterShape:
    """Return what a valid size class says."""
    way, size = divmod(size_class, _SIZES)
    if way <= _NATIVE:
        return FilterShape(way, way * section_bits(size))
    return FilterShape(parquet_bloom.WORDS, 1 << size, way - _NATIVE)


def are_valid(size_classes: np.ndarray) -> bool:
    """Whether these are size classes of filters: int64 of shape (n,)."""
    way, size = np.divmod(size_classes, _SIZES)
    is_native = way > _NATIVE
    native = (size >= parquet_bloom.LEAST_LOG2_BITS) & (size <= parquet_bloom.MOST_LOG2_BITS)
    native &= way <= _NATIVE + parquet_bloom.MOST_CODE
    small = np.where(size <= _LARGEST, size, 0)
    of_index = (way >= 1) & (way <= MOST_PROBES) & (size <= _LARGEST)
    of_index &= way * ((LEAST_SECTION + small % STEPS) << small // STEPS) <= MOST_BITS
    return bool(np.where(is_native, native, of_index).all())


_LARGEST = STEPS * MOST_BITS.bit_length()  # no section is larger
