"""Surviving blocks that were pruned in other processes, as plain arrays: locations without statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import Counts
from secateur.pruning.statistics import Blocks, Pages

ARRAYS = ("segment", "file", "row_group", "row_count", "byte_count")


@dataclass(frozen=True)
class PlainBlocks:
    """Blocks without statistics; see :class:`secateur.pruning.statistics.Blocks`."""

    segment: np.ndarray
    file: np.ndarray
    row_group: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray

    def __len__(self) -> int:
        return len(self.file)

    def take(self, indices: np.ndarray | slice) -> PlainBlocks:
        """Select the given blocks."""
        return PlainBlocks(*(getattr(self, name)[indices] for name in ARRAYS))

    @cached_property
    def counts(self) -> Counts:
        """Segments, files, blocks, rows and bytes."""
        segments, files = (int(np.count_nonzero(np.bincount(numbers + 1)[1:])) for numbers in (self.segment, self.file))
        return Counts(segments, files, len(self), None, int(self.row_count.sum()), int(self.byte_count.sum()))

    def zones(self, column: Field) -> Zones | None:
        """Return None: no column has statistics."""
        return None

    def null_counts(self, column: Field) -> np.ndarray:
        """Return unknown for every block: no column has statistics."""
        return np.full(len(self), -1)

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Return True for every block: numbers are unknown here, and filters were asked elsewhere."""
        return np.ones(len(self), bool)

    def has_pages(self, column: Field) -> bool:
        """Return False: pages were examined elsewhere."""
        return False

    def pages(self, column: Field) -> Pages | None:
        """Return None: no column has pages."""
        return None


def plain(blocks: Blocks) -> PlainBlocks:
    """Copy the arrays of some blocks."""
    return PlainBlocks(*(getattr(blocks, name) for name in ARRAYS))


def loose(blocks: Blocks) -> PlainBlocks:
    """Copy the arrays of some blocks, as blocks that are in no segment."""
    arrays = plain(blocks)
    return replace(arrays, segment=np.full(len(arrays), -1))


def joined(parts: Sequence[PlainBlocks]) -> PlainBlocks:
    """Concatenate the blocks of all parts; at least one part."""
    return PlainBlocks(*(np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS))
