"""What the stages of the pipeline pass on: the query, and what survives so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import TRUE, fully_matching
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Counts
from secateur.pruning.statistics import Blocks, Catalog

NO_SEGMENTS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Query:
    """A bound predicate over the blocks of a table; `limit` is the number of rows wanted, in any order.

    From the moment `deadline` (of ``time.perf_counter``) on nothing more is pruned.
    """

    predicate: Predicate
    catalog: Catalog
    limit: int | None = None
    deadline: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        """Whether the time for pruning is spent."""
        return self.deadline is not None and time.perf_counter() >= self.deadline


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

    predicate: Predicate
    files: np.ndarray | None  # bool over the live files; None: all of them
    segments: np.ndarray  # int64, ascending: those to look into
    whole: np.ndarray = field(default_factory=lambda: NO_SEGMENTS)  # those that match with every row
    blocks: Blocks | None = None  # None until the zone maps were looked at
    known: np.ndarray | None = None  # outcomes of the blocks where a stage found them
    row_ranges: RowRanges | None = None  # None: all rows of every block
    pages: PageCounts | None = None  # None until pages are looked at

    def take(self, indices: np.ndarray) -> Survivors:
        """The given blocks only, in ascending order."""
        assert self.blocks is not None
        return replace(self, blocks=self.blocks.take(indices), known=self.outcomes[indices])

    @cached_property
    def outcomes(self) -> np.ndarray:
        """What the predicate can be over the rows of every block: uint8 of shape (n_blocks,)."""
        assert self.blocks is not None
        if self.known is not None:
            return self.known
        outcomes = np.full(len(self.blocks), TRUE, np.uint8)
        unsure = np.flatnonzero(~self._of_whole_segments)
        all_unsure = len(unsure) == len(self.blocks)
        outcomes[unsure] = evaluate(self.predicate, self.blocks if all_unsure else self.blocks.take(unsure))
        return outcomes

    @property
    def _of_whole_segments(self) -> np.ndarray:
        """Which blocks lie in a segment that matches with every row."""
        assert self.blocks is not None
        if not len(self.whole):
            return np.zeros(len(self.blocks), bool)
        return np.isin(self.blocks.segment, self.whole)

    @property
    def fully_matching(self) -> np.ndarray:
        """Which blocks hold only matching rows: bool of shape (n_blocks,)."""
        return fully_matching(self.outcomes)


def count(query: Query, survivors: Survivors) -> Counts:
    """How much survives."""
    blocks, ranges = survivors.blocks, survivors.row_ranges
    if blocks is None:
        segments = np.union1d(survivors.segments, survivors.whole) if len(survivors.whole) else survivors.segments
        return query.catalog.counts(survivors.files, segments)
    if ranges is None:
        return blocks.counts
    pages = survivors.pages.after if survivors.pages else None
    return replace(blocks.counts, pages=pages, rows=int((ranges.stop - ranges.start).sum()))
