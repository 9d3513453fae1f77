"""What the stages of the pipeline pass on: the query, and what survives so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from secateur.pruning.outcomes import EVERYTHING, fully_matching
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Counts
from secateur.pruning.statistics import Blocks, Catalog


@dataclass(frozen=True)
class Query:
    """A bound predicate over the blocks of a table; `limit` is the number of rows wanted, in any order."""

    predicate: Predicate
    catalog: Catalog
    limit: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RowRanges:
    """Rows of every block that may match: ranges of block b are [offsets[b], offsets[b + 1]) of [start, stop)."""

    offsets: np.ndarray  # int64 of shape (n_blocks + 1,)
    start: np.ndarray  # int64, within the block
    stop: np.ndarray


@dataclass(frozen=True)
class PageCounts:
    """Pages of the predicate's columns in the blocks that reached the stage, and those that survive it."""

    before: int
    after: int


@dataclass(frozen=True)
class Survivors:
    """What no stage has proven dead yet."""

    files: np.ndarray  # bool over the live files
    segments: np.ndarray  # int64
    blocks: Blocks | None = None  # None until the surviving segments are opened
    outcomes: np.ndarray | None = None  # uint8 per block
    row_ranges: RowRanges | None = None  # None: all rows of every block
    pages: PageCounts | None = None  # None until pages are looked at

    def take(self, indices: np.ndarray, outcomes: np.ndarray | None = None) -> Survivors:
        """The given blocks only, with new outcomes or those that they had."""
        assert self.blocks is not None
        assert self.outcomes is not None
        blocks = self.blocks.take(indices)
        kept = self.outcomes[indices] if outcomes is None else outcomes
        return Survivors(self.files, _segments(blocks), blocks, kept)

    @property
    def fully_matching(self) -> np.ndarray:
        """Which blocks hold only matching rows: bool of shape (n_blocks,)."""
        assert self.outcomes is not None
        return fully_matching(self.outcomes)


def _segments(blocks: Blocks) -> np.ndarray:
    """The segments that hold any of the blocks, ascending: counted, which is many times as fast as sorted out."""
    return np.flatnonzero(np.bincount(blocks.segment + 1)[1:])


def opened(query: Query, survivors: Survivors) -> Survivors:
    """The survivors with their blocks opened, every outcome still possible."""
    if survivors.blocks is not None:
        return survivors
    blocks = query.catalog.open(survivors.files, survivors.segments)
    return Survivors(survivors.files, survivors.segments, blocks, np.full(len(blocks), EVERYTHING, np.uint8))


def count(query: Query, survivors: Survivors) -> Counts:
    """How much survives."""
    if survivors.blocks is not None:
        return _count_blocks(survivors)
    files = query.catalog.files
    chosen = np.flatnonzero(survivors.files)
    return Counts(
        segments=len(survivors.segments),
        files=len(chosen),
        blocks=_total(files.block_count[chosen]),
        rows=_total(files.row_count[chosen]),
        bytes=_total(files.byte_count[chosen]),
    )


def _count_blocks(survivors: Survivors) -> Counts:
    blocks, ranges = survivors.blocks, survivors.row_ranges
    assert blocks is not None
    rows = blocks.row_count if ranges is None else ranges.stop - ranges.start
    return Counts(
        segments=len(_segments(blocks)),
        files=int(np.count_nonzero(np.bincount(blocks.file))),
        blocks=len(blocks),
        pages=survivors.pages.after if survivors.pages else None,
        rows=int(rows.sum()),
        bytes=int(blocks.byte_count.sum()),
    )


def _total(counts: np.ndarray) -> int | None:
    return None if (counts < 0).any() else int(counts.sum())
