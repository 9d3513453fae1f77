"""The parts of a table that a plan leaves out, for audits: pruned blocks, and rows outside the others' ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.io.scan.block_list import BlockList, block_list, reading_order
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.io.tables.listing import METADATA
from secateur.pruning.row_ranges import RowRanges, in_ranges, joined_ranges, no_ranges

_ROW_GROUP_BITS = 32


@dataclass(frozen=True)
class PrunedBlocks:
    """Blocks of which a plan reads nothing, or not all rows: arrays of shape (n,), in reading order."""

    file: np.ndarray  # index of the live file
    row_group: np.ndarray
    row_count: np.ndarray
    kept: RowRanges  # rows that the plan reads; none for a pruned block

    def __len__(self) -> int:
        return len(self.file)

    def take(self, positions: np.ndarray) -> PrunedBlocks:
        """Return the given blocks, ascending."""
        chosen = (self.file[positions], self.row_group[positions], self.row_count[positions])
        return PrunedBlocks(*chosen, self.kept.take(positions))

    @cached_property
    def keys(self) -> np.ndarray:
        """A number that identifies every block of a listing: int64, ascending."""
        return _keys(self.file, self.row_group)

    @property
    def rows(self) -> int:
        """The number of rows that the plan does not read."""
        return int(self.row_count.sum() - (self.kept.stop - self.kept.start).sum())

    def left_out(self, block: int, positions: np.ndarray) -> np.ndarray:
        """Return which rows of a block, by their positions in it, the plan does not read: bool, like `positions`."""
        begin, end = self.kept.offsets[block : block + 2].tolist()
        return ~in_ranges(self.kept.start[begin:end], self.kept.stop[begin:end], positions)


def _keys(file: np.ndarray, row_group: np.ndarray) -> np.ndarray:
    return (file.astype(np.int64) << _ROW_GROUP_BITS) | row_group


def from_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decode the files and row groups of blocks from :attr:`PrunedBlocks.keys`."""
    return keys >> _ROW_GROUP_BITS, keys & ((1 << _ROW_GROUP_BITS) - 1)


def excluded_by(plan: PlannedScan) -> PrunedBlocks:
    """Return all blocks of live files that a plan does not read completely; opens files' footers."""
    survivors = plan.survivors
    kept = survivors.blocks
    everything = plan.opened.catalog.blocks_of(np.ones(len(plan.paths), bool))
    order = reading_order(everything.file, everything.row_group)
    file, row_group, row_count = (getattr(everything, name)[order] for name in ("file", "row_group", "row_count"))
    pruned = np.flatnonzero(~np.isin(_keys(file, row_group), _keys(kept.file, kept.row_group)))
    whole = PrunedBlocks(file[pruned], row_group[pruned], row_count[pruned].astype(np.int64), no_ranges(len(pruned)))
    partly = _read_in_part(plan)
    return _joined(whole, partly) if len(partly) else whole


def _read_in_part(plan: PlannedScan) -> PrunedBlocks:
    """Return the surviving blocks of which not all rows are read."""
    blocks, ranges = plan.survivors.blocks, plan.survivors.row_ranges
    if ranges is None:
        nothing = np.zeros(0, np.int64)
        return PrunedBlocks(nothing, nothing, nothing, no_ranges(0))
    order = plan.order()
    partly = order[ranges.row_counts[order] < blocks.row_count[order]]
    count = blocks.row_count[partly].astype(np.int64)
    return PrunedBlocks(blocks.file[partly], blocks.row_group[partly], count, ranges.take(partly))


def _joined(first: PrunedBlocks, second: PrunedBlocks) -> PrunedBlocks:
    file, row_group, row_count = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("file", "row_group", "row_count")
    )
    joined = PrunedBlocks(file, row_group, row_count, joined_ranges([first.kept, second.kept]))
    return joined.take(np.argsort(joined.keys, kind="stable"))


def sampled(count: int, most: int, draw: np.random.Generator) -> np.ndarray:
    """Draw the positions of at most `most` of `count` items uniformly: ascending."""
    return np.arange(count) if count <= most else np.sort(draw.choice(count, most, replace=False))


@dataclass(frozen=True)
class PrunedReading:
    """Blocks to read, and their reader."""

    reader: BlockReader
    blocks: BlockList


def reading_of(opened: OpenedTable, file: np.ndarray, row_group: np.ndarray, names: Sequence[str]) -> PrunedReading:
    """Return a reader of all live rows of some blocks, in reading order: top-level columns of the table by name."""
    ordinals = np.unique(file)
    delivery = opened.table.delivery(opened.listing, ordinals)
    fields = tuple(opened.readable_schema.field(name) for name in names)
    shadowing = frozenset({METADATA} if opened.listing.has_metadata_column else ())
    reader = BlockReader(delivery.open, fields, fields, (None,), shadowing, at_once=delivery.at_once)
    nothing_left = np.zeros(len(file), np.int64)
    return PrunedReading(reader, block_list(opened.listing, delivery.options, file, row_group, nothing_left))
