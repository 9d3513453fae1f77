"""Bloom fragments: bit-sliced filters of one segment's blocks, written aside until a build merges them.

An executor that builds a segment fills columns of eight filters of one size each. When :data:`FRAGMENT_BYTES` of them
are full they are written as one fragment, so memory use does not depend on the size of the segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from secateur.index.container import index_file
from secateur.index.container.checked_matrix import Matrix, read_rows
from secateur.index.container.index_file import Writer
from secateur.index.filters.bloom import GROUP, BloomColumn, distinct_count, probes_for, size_for
from secateur.index.filters.hashing import distinct
from secateur.index.filters.size_class import NONE, native_class, own_class, shape_of
from secateur.index.model import Store

FOLDER = "fragments"
FRAGMENT_BYTES = 1 << 25
FEW = 1 << 12  # hashes; up to this many are deduplicated, since few bits do not tell closely how many values they hold
BAND = 1 << 16  # bytes of a fragment that share a checksum


class BloomFragment(NamedTuple):
    """A bloom fragment: filters of one size, of consecutive blocks among those of that size in a segment."""

    name: str  # file name
    size_class: int
    blocks: int
    rows: Matrix  # the fragment's bytes in rows of BAND bytes

    @property
    def width(self) -> int:
        """Bytes of a row by bit position."""
        return -(-self.blocks // GROUP)

    @property
    def bits(self) -> int:
        """Bits of every filter."""
        return shape_of(self.size_class).bits


@dataclass
class BloomFragmentWriter:
    """Collects the filters of one column block by block and writes them as bloom fragments."""

    store: Store
    prefix: str  # of fragment names
    fpr: float
    size_classes: list[int] = field(default_factory=list)  # size classes of the blocks so far
    fragments: list[BloomFragment] = field(default_factory=list)
    _open: dict[int, list[BloomColumn]] = field(default_factory=dict)
    _sizes: set[int] = field(default_factory=set)  # of the filters so far

    def add(self, hashes: np.ndarray | None) -> None:
        """Add the filter of the next block, from hashes of its values, distinct or not; None where they are unknown."""
        if hashes is None:
            self.size_classes.append(NONE)
            return
        if len(hashes) <= FEW:
            hashes = distinct(hashes)
        count = len(hashes) if len(hashes) <= FEW else distinct_count(hashes)
        probes = probes_for(self.fpr)
        self._column(own_class(probes, self.size_of(count))).add_values(hashes, probes)
        self._write_full()

    def size_of(self, distinct: int) -> int:
        """Choose the size of the next filter: the least, or the next one where earlier blocks have only that.

        Every size is a matrix of its own, with rows of its own to read.
        """
        least = size_for(distinct, self.fpr)
        size = next((size for size in (least, least + 1) if size in self._sizes), least)
        self._sizes.add(size)
        return size

    def add_native(self, encoding: int, bits: np.ndarray) -> None:
        """Add the filter of the next block, given the bits (0 or 1, uint8) of one in a data file."""
        self.add_bits(native_class(encoding, len(bits).bit_length() - 1), bits)

    def add_bits(self, size_class: int, bits: np.ndarray) -> None:
        """Add the filter of the next block, given its bits (0 or 1, uint8)."""
        self._column(size_class).add(bits)
        self._write_full()

    def _column(self, size_class: int) -> BloomColumn:
        self.size_classes.append(size_class)
        columns = self._open.setdefault(size_class, [])
        if not columns or columns[-1].is_full:
            columns.append(BloomColumn(shape_of(size_class).bits))
        return columns[-1]

    def _write_full(self) -> None:
        columns = self._open[self.size_classes[-1]]
        if columns[-1].is_full and sum(len(column.bytes) for column in columns) >= FRAGMENT_BYTES:
            self._write(self.size_classes[-1])

    def finish(self) -> np.ndarray:
        """Write the remaining filters and return the size class of every block, int16."""
        for size_class in sorted(self._open):
            self._write(size_class)
        return np.array(self.size_classes, np.int16)

    def _write(self, size_class: int) -> None:
        columns = self._open.pop(size_class)
        writer = Writer(index_file.FRAGMENT, {})
        matrix = writer.add_rows("rows", _side_by_side([column.bytes for column in columns]))
        name = f"{self.prefix}-{len(self.fragments):04d}.fragment"
        self.store.put_aside(name, writer.finish())
        self.fragments.append(BloomFragment(name, size_class, sum(column.count for column in columns), matrix))


def _side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return columns of as many bytes as a matrix by rows, cut into bands, the last of which is padded with zeros."""
    size = len(columns) * len(columns[0])
    if len(columns) == 1 and not size % BAND:
        return columns[0].reshape(-1, BAND)
    padded = np.empty(-(-size // BAND) * BAND, np.uint8)
    padded[size:] = 0
    rows = padded[:size].reshape(-1, len(columns))
    for i, column in enumerate(columns):
        rows[:, i] = column
    return padded.reshape(-1, BAND)


def read_fragment(store: Store, fragment: BloomFragment, first: int, end: int) -> np.ndarray:
    """Read rows [first, end) of a fragment by bit position: uint8 of shape (end - first, width). Raises IndexFault."""
    low, high = first * fragment.width, end * fragment.width

    def read(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return store.read_many(fragment.name, ranges)

    bands = read_rows(fragment.rows, np.arange(low // BAND, -(-high // BAND)), read, fragment.name).reshape(-1)
    start = low - low // BAND * BAND
    return bands[start : start + high - low].reshape(-1, fragment.width)
