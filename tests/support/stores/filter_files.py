"""Filters in a store as a build leaves them, and their expected contents, value by value in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import mmh3
import numpy as np
import pyarrow as pa
import xxhash
from bitarray import bitarray

from secateur.index.container.index_file import FILTERS, read_contents
from secateur.index.filters import bloom_fragment, transpose
from secateur.index.filters.bloom_fragment import BloomFragment
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.hashing import distinct, hash_present
from secateur.index.filters.transpose import (
    PartPlan,
    interleaved,
    plan_files,
    plan_matrices,
    write_file,
    written_matrices,
)
from secateur.index.model import Store

MASK = 2**64 - 1
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)

# ---- what is hashed, bit by bit --------------------------------------------------------------------------------------


def hash_values(values: pa.Array) -> np.ndarray:
    """The distinct hashes of the non-null values of a column."""
    return distinct(hash_present(values))


def mixed(x: int) -> int:
    """The finaliser of MurmurHash3, in Python's integers."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def text_hash(data: bytes) -> int:
    """The hash of a text."""
    return mmh3.hash64(data, signed=False)[0]


def number_hash(data: bytes) -> int:
    """The hash of a key in its canonical bytes, or of a gram."""
    low, high = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
    return mixed(low ^ mixed(high)) if len(data) > 8 else mixed(low)


def positions_of(hashed: int, probes: int, bits: int) -> list[int]:
    """The bits of one value: one in every section, by the upper half of its hash times an odd number."""
    section = bits // probes
    halves = [hashed * (mixed(i + 1) | 1) % 2**64 >> 32 for i in range(probes)]
    return [i * section + (half * section >> 32) for i, half in enumerate(halves)]


def native_positions_of(data: bytes, bits: int) -> list[int]:
    """The bits of one value in a filter as Parquet files have them: eight words of one block of 256 bits."""
    hashed = xxhash.xxh64_intdigest(data)
    block = (hashed >> 32) * (bits // 256) >> 32
    places = [((hashed & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27 for salt in SALT]
    return [block * 256 + word * 32 + place for word, place in enumerate(places)]


def bits_of(positions: Iterable[Sequence[int]], bits: int) -> bitarray:
    """A filter with the bits of some values."""
    filled = bitarray(bits, endian="little")
    for probes in positions:
        for position in probes:
            filled[position] = True
    return filled


# ---- fragments laid side by side -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cuts:
    """How much of filters comes into a fragment, part or matrix, and how much larger joining sizes may make it."""

    matrix_blocks: int = transpose.MATRIX_BLOCKS
    part_bytes: int = transpose.PART_BYTES
    fragment_bytes: int = bloom_fragment.FRAGMENT_BYTES
    joined_bytes: int = transpose.JOINED_BYTES

    @contextmanager
    def prevailing(self) -> Iterator[None]:
        changes = {
            "MATRIX_BLOCKS": self.matrix_blocks,
            "PART_BYTES": self.part_bytes,
            "JOINED_BYTES": self.joined_bytes,
        }
        with patch.multiple(transpose, **changes), patch.object(bloom_fragment, "FRAGMENT_BYTES", self.fragment_bytes):
            yield


MATRIX_BLOCKS = (1, 9, 40, transpose.MATRIX_BLOCKS)
PART_BYTES = (1_000, 5_000, transpose.PART_BYTES)
FRAGMENT_BYTES = (1, 700, bloom_fragment.FRAGMENT_BYTES)
JOINED_BYTES = (0, transpose.JOINED_BYTES, 1 << 16)


@dataclass
class OwnShapes:
    """The size classes, probes and bits of the filters of one segment: a size that there is already is taken again."""

    fpr: float
    used: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def of(self, distinct: int) -> tuple[int, int, int]:
        least, probes, bits = own_shape(distinct, self.fpr)
        if least not in self.used and least + 1 in self.used:
            return self.used[least + 1]
        self.used[least] = (least, probes, bits)
        return self.used[least]


def own_shape(distinct: int, fpr: float) -> tuple[int, int, int]:
    """The size class, the probes and the bits of a filter: docs/format.md."""
    least = math.log2(1 / fpr)
    probes = max(1, min(math.ceil(0.6 * least), max(8, math.ceil(0.4 * least))))
    section = math.ceil(0.5 - distinct / math.log(1 - fpr ** (1 / probes)))
    sizes = [*range(16), *((16 + z % 16) * 2 ** (z // 16 - 1) for z in range(16, 400))]
    z = next(z for z, size in enumerate(sizes) if size >= section)
    return 512 * probes + z, probes, probes * sizes[z]


def bloom_matrices_in(store: Store, name: str, segments: Sequence[Sequence[BloomFragment]]) -> BloomMatrices | None:
    """The fragments of all segments laid side by side in files of this name; None where there are none."""
    matrices = plan_matrices(segments)
    parts = plan_files(matrices)

    def rows_of(part: PartPlan) -> np.ndarray:
        return interleaved(store, matrices[part.matrix], part)

    files = [write_file(store, f"filters/{name}-{i:06d}.filter", part, rows_of) for i, part in enumerate(parts)]
    for fragment in (fragment for fragments in segments for fragment in fragments):
        store.delete(fragment.name)
    return written_matrices(matrices, list(zip(parts, files, strict=True))) if matrices else None


def without_bands(name: str, data: bytes, kind: int = FILTERS, matrix: str | None = None) -> bytes:
    """A file in which a bit of every band of its matrices, or of one of them, is flipped: no row of it can be read."""
    contents = read_contents(name, kind, len(data), lambda at, size: data[at : at + size])
    damaged = bytearray(data)
    for checked in [contents.matrices[matrix]] if matrix is not None else contents.matrices.values():
        for band in range(checked.bands):
            damaged[checked.at + band * checked.stride] ^= 1
    return bytes(damaged)
