"""What pruning needs to know of a table, whoever keeps it.

A *unit* is whatever is summarised: a file, a segment, a block, a page, or a tree node. Unknown is never a
number: a bound that is not known is the least or the greatest key of its kind, which is sound as it stands, and
a null count that is not known makes both a value and a NULL possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.zones import Zones
from secateur.values import Key


class Statistics(Protocol):
    """Summaries of n units."""

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every unit, int64 of shape (n,); -1 where unknown."""

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of a column, or None where nothing is known of it in any unit."""


class Files(Statistics, Protocol):
    """The live files of a table: statistics over files, known from their names alone."""

    @property
    def paths(self) -> pa.Array:
        """Paths below the table, strings of shape (n,)."""

    @property
    def byte_count(self) -> np.ndarray:
        """Size of every file, int64 of shape (n,)."""

    @property
    def block_count(self) -> np.ndarray:
        """Blocks of every file, int64 of shape (n,); -1 where unknown."""


@dataclass(frozen=True)
class Pages:
    """The pages of one column over n blocks: those of block b are [offsets[b], offsets[b + 1]), at least one."""

    offsets: np.ndarray  # int64 of shape (n + 1,)
    first_row: np.ndarray  # int64, within the block
    zones: Zones


class Blocks(Statistics, Protocol):
    """The candidate blocks of a query, opened: statistics over blocks, and where each block lies."""

    @property
    def file(self) -> np.ndarray:
        """Position of the block's file among the live files, int64 of shape (n,)."""

    @property
    def segment(self) -> np.ndarray:
        """The segment of every block, int64 of shape (n,); -1 for one that no segment holds."""

    @property
    def row_group(self) -> np.ndarray:
        """The row group within its file, int32 of shape (n,)."""

    @property
    def byte_count(self) -> np.ndarray:
        """Compressed bytes of every block, int64 of shape (n,)."""

    def __len__(self) -> int: ...

    def take(self, indices: np.ndarray) -> Blocks:
        """The given blocks only."""

    def may_contain(self, column: Field, keys: Sequence[Key]) -> np.ndarray | None:
        """Which blocks may hold any of the keys, bool of shape (n,); None where no filter covers the column."""

    def pages(self, column: Field) -> Pages | None:
        """The pages of a column, or None where only the blocks are known."""


class Catalog(Protocol):
    """The index of a table, seen through its live files."""

    @property
    def files(self) -> Files:
        """The live files."""

    def segments(self, survives: np.ndarray) -> np.ndarray:
        """The segments that hold a block of a surviving file, ascending."""

    def descend(self, predicate: Predicate) -> tuple[np.ndarray, str]:
        """The segments that may hold a match by the tree above them, ascending, and a note on the descent."""

    def open(self, survives: np.ndarray, segments: np.ndarray) -> Blocks:
        """The blocks of the surviving files in the given segments, and those of files that no segment covers."""
