"""Candidate runs: adjacent candidate blocks, evaluated as long arrays in place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.index.model import BlockTable
from secateur.index.read.blocks import LooseBlocks
from secateur.index.read.coverage import LiveFiles
from secateur.index.read.loader import IndexMemory
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import kind_of


@dataclass(frozen=True, eq=False)
class SegmentRun:
    """Blocks of neighbouring segments of one group; see :class:`secateur.pruning.statistics.Run`."""

    memory: IndexMemory
    live: np.ndarray  # the live file of every index entry
    files: LiveFiles
    group: int
    segments: np.ndarray  # the requested segments
    begin: int
    end: int
    candidates: np.ndarray | None

    def __len__(self) -> int:
        return self.end - self.begin

    @cached_property
    def columns(self) -> dict[Field, Zones | None]:
        """The zone maps read so far, as views of the arrays in memory."""
        return {}

    @property
    def within(self) -> slice:
        """The slice of these blocks in the arrays of the group."""
        before = int(self.memory.groups.group_block_begin[self.group])
        return slice(self.begin - before, self.end - before)

    @cached_property
    def row_count(self) -> np.ndarray:
        table, known = self._blocks
        return np.where(known, table.row_count[self.within].astype(np.int64), -1)

    @property
    def _blocks(self) -> tuple[BlockTable, np.ndarray]:
        """The block table of the group, and which blocks of the run it covers."""
        (resident,) = self.memory.blocks([(self.group, self.segments)])
        counts = np.diff(self.memory.groups.blocks_of(self.group))
        return resident.table, np.repeat(resident.loaded, counts)[self.within]

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column."""
        if column not in self.columns:
            self.columns[column] = self._zones(column)
        return self.columns[column]

    def _zones(self, column: Field) -> Zones | None:
        by_name = self.files.zones(column)
        if by_name is not None:
            return self._by_name(by_name)
        if kind_of(column.type) is None or not self.memory.knows(column):
            return None
        (resident,) = self.memory.zones(column, [(self.group, self.segments)])
        return resident.zones.take(self.within)

    def _by_name(self, zones: Zones) -> Zones:
        """Return the blocks' zone maps by file names; unknown for blocks whose files cannot be determined."""
        table, known = self._blocks
        entry = int(self.memory.groups.files_of(self.group)[0]) + table.file[self.within].astype(np.int64)
        live = self.live[np.where(known, entry, 0)]
        return zones.take(np.maximum(live, 0)).where(known & (live >= 0))


@dataclass(frozen=True)
class LooseRun:
    """The blocks of files that no segment covers; see :class:`secateur.pruning.statistics.Run`."""

    begin: int
    loose: LooseBlocks
    files: LiveFiles
    candidates: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.loose.blocks)

    @property
    def row_count(self) -> np.ndarray:
        return self.loose.blocks.row_count

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column from file names or footers."""
        by_name = self.files.zones(column)
        if by_name is not None:
            return by_name.take(self.loose.blocks.file)
        return None if kind_of(column.type) is None else self.loose.zones(column)
