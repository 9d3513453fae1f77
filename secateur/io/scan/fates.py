"""What became of every block of a table in a plan: which stage pruned it, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.io.scan.block_list import reading_order
from secateur.io.scan.planned_scan import PlannedScan
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.stages.survivors import Left, LeftSegments
from secateur.pruning.statistics import Blocks
from secateur.values.kinds import Kind

MOST_COLUMNS = 3
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class ColumnBounds:
    """The bounds of a column in every block, as keys that order as its values do."""

    column: Field
    lower: np.ndarray  # int64 of shape (n_blocks,)
    upper: np.ndarray
    known: np.ndarray  # bool: whether both are


@dataclass(frozen=True)
class Fates:
    """All blocks of a table with rows, by file and row group, and the stage that pruned each."""

    stages: tuple[str, ...]  # of the plan, in their order
    stage: np.ndarray  # int64 of shape (n_blocks,): the number of a stage; len(stages) if the block survives
    bounds: tuple[ColumnBounds, ...]  # of some columns of the predicate

    def __len__(self) -> int:
        return len(self.stage)

    @property
    def survives(self) -> np.ndarray:
        """Which blocks survive: bool of shape (n_blocks,)."""
        return self.stage == len(self.stages)

    @property
    def counts(self) -> np.ndarray:
        """Return the blocks that each stage pruned, and last those that survive: int64."""
        return np.bincount(self.stage, minlength=len(self.stages) + 1)


def fates_of(plan: PlannedScan) -> Fates:
    """Return the fate of every block of the plan's table. This reads the list of all blocks, but no data.

    Bounds are given for the first few columns of the predicate that are not text.
    """
    catalog = plan.opened.catalog
    blocks = catalog.blocks_of(np.ones(len(plan.paths), bool))
    order = reading_order(blocks.file, blocks.row_group)
    stage = np.full(len(blocks), len(plan.trail), np.int64)
    gone = np.ones(len(blocks), bool)
    for number in reversed(range(len(plan.trail))):
        gone &= ~_left(plan.trail[number], blocks)
        stage[gone] = number
    bounds = (_bounds(column, blocks.zones(column), order) for column in fields(plan.predicate)[:MOST_COLUMNS])
    names = tuple(left.stage for left in plan.trail)
    return Fates(names, stage[order], tuple(known for known in bounds if known is not None))


def _left(left: Left, blocks: Blocks) -> np.ndarray:
    """Return which blocks a stage left: bool of shape (n_blocks,)."""
    if isinstance(left, LeftSegments):
        alive = np.isin(blocks.segment, left.segments) | (blocks.segment < 0)
        return alive if left.files is None else alive & left.files[blocks.file]
    return np.isin(_places(blocks), _places(left.blocks))


def _places(blocks: Blocks) -> np.ndarray:
    """Return a number for each block that identifies its file and row group."""
    return blocks.file.astype(np.int64) << 32 | blocks.row_group.astype(np.int64)


def _bounds(column: Field, zones: Zones | None, order: np.ndarray) -> ColumnBounds | None:
    if zones is None or zones.lower.kind is not Kind.WORD:
        return None
    zones = zones.take(order)
    lower, upper = zones.lower.words[0], zones.numbers_upper.words[0]
    known = (zones.value != 0) & (lower > LEAST) & (upper < GREATEST)
    return ColumnBounds(column, lower, upper, known) if known.any() else None
