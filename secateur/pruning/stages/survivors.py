"""The values that the stages pass on: the query, and the survivors so far."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from secateur.pruning.bounds.outcomes import TRUE, fully_matching
from secateur.pruning.connectives import fold
from secateur.pruning.evaluate import leaf_outcomes, may_fail
from secateur.pruning.order import Boundary, Fronts, Order
from secateur.pruning.plain_blocks import loose
from secateur.pruning.predicate.bound import Leaf, Within
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Counts
from secateur.pruning.row_ranges import RowRanges
from secateur.pruning.statistics import Blocks, Catalog, Numbered, Statistics
from secateur.pruning.verdicts import Verdict

NO_SEGMENTS = np.zeros(0, np.int64)


class Executors(Protocol):
    """Other processes that can prune segments that are not in memory here."""

    def prune(self, query: Query, left: SurvivingSegments) -> Survivors | None:
        """Prune the blocks of the surviving segments with all their statistics, pages included.

        Returns None if that is not worthwhile or was not possible.
        """


@dataclass
class Query:
    """A bound predicate over the blocks of a table; `limit` is the number of rows wanted, the first ones of `order`.

    Without an order any rows will do.

    After `deadline` (a time of ``time.perf_counter``) nothing more is pruned. Stages write `notes` for the report.
    """

    predicate: Predicate
    catalog: Catalog
    limit: int | None = None
    files: np.ndarray | None = None  # bool over the live files: the rows of others are not asked for; None: all are
    deadline: float | None = None
    executors: Executors | None = None
    implied: Within | None = None  # what the predicate implies for sort key tuples; used only to prune
    order: Order | None = None
    verdicts: tuple[Verdict, ...] = ()  # what earlier reads of these files tell about the predicate
    notes: list[str] = field(default_factory=list)  # of the stage that runs

    @property
    def is_late(self) -> bool:
        """Whether the time for pruning is spent."""
        return self.deadline is not None and time.perf_counter() >= self.deadline


@dataclass(frozen=True)
class PageCounts:
    """Pages of the predicate's columns in the blocks that reached the stage, and those that survive it."""

    before: int
    after: int


@dataclass(frozen=True)
class LeftSegments:
    """What a stage left before blocks were opened."""

    stage: str
    files: np.ndarray | None  # bool over the live files; None: all of them
    segments: np.ndarray  # int64, ascending

    @property
    def detached(self) -> LeftSegments:
        """Return itself: it holds plain arrays only."""
        return self

    def holds(self, file: int, segment: int, row_groups: np.ndarray) -> np.ndarray:
        """Return which row groups of a file are left, given its segment (-1: none): bool of shape (n,)."""
        alive = self.files is None or bool(self.files[file])
        return np.full(len(row_groups), alive and (segment < 0 or segment in self.segments))


@dataclass(frozen=True)
class LeftBlocks:
    """The blocks that a stage left, without the statistics it used."""

    stage: str
    blocks: Blocks

    @property
    def detached(self) -> LeftBlocks:
        """Return a copy with plain arrays, which does not keep the index in memory."""
        return replace(self, blocks=loose(self.blocks))

    def holds(self, file: int, segment: int, row_groups: np.ndarray) -> np.ndarray:
        """Return which row groups of a file are left: bool of shape (n,)."""
        return np.isin(row_groups, self.blocks.row_group[self.blocks.file == file])


Left = LeftSegments | LeftBlocks


@dataclass(frozen=True)
class SurvivingSegments:
    """Files and segments that no stage has proven dead, before their blocks are opened."""

    predicate: Predicate
    files: np.ndarray | None  # bool over the live files; None: all of them
    segments: np.ndarray  # int64, ascending: segments to examine
    whole: np.ndarray = field(default_factory=lambda: NO_SEGMENTS)  # segments in which every row matches
    evidence: Mapping[Leaf, np.ndarray] = field(default_factory=dict)  # by leaf, the blocks that may hold what it asks
    chosen: Blocks | None = None  # the blocks that filters left, if these are few

    @property
    def all_segments(self) -> np.ndarray:
        """Return the segments to examine and those that match fully, ascending."""
        if not len(self.segments) or not len(self.whole):
            return self.segments if len(self.segments) else self.whole
        return np.union1d(self.segments, self.whole)

    def opened(self, blocks: Blocks, known: np.ndarray | None = None, ranges: RowRanges | None = None) -> Survivors:
        """Return blocks of these segments and files as survivors, with their outcomes and row ranges if known."""
        return Survivors(self.predicate, blocks, self.whole, self.evidence, known, ranges)

    def left_by(self, stage: str, before: Left | None) -> Left:
        """Return what a stage left, given what the stage before it left."""
        if self.chosen is None:
            return LeftSegments(stage, self.files, self.all_segments)
        return _blocks_left(stage, self.chosen, before)


@dataclass(frozen=True)
class Survivors:
    """The blocks that no stage has proven dead, and the part of each that survives."""

    predicate: Predicate
    blocks: Blocks
    whole: np.ndarray = field(default_factory=lambda: NO_SEGMENTS)  # segments in which every row matches
    evidence: Mapping[Leaf, np.ndarray] = field(default_factory=dict)  # by leaf, the blocks that may hold what it asks
    known: np.ndarray | None = None  # outcomes of the blocks, if a stage computed them
    row_ranges: RowRanges | None = None  # None: all rows of every block
    is_listed: bool = False  # row lists of all that the predicate asks say which rows these are, unless all of a block
    pages: PageCounts | None = None  # None until pages are examined
    deleted_rows: np.ndarray | None = None  # by live file, rows in blocks dropped as fully deleted; None: none
    fronts: Fronts | None = None  # where the rows of every block may begin in the query's order
    boundary: Boundary | None = None  # at least as many rows as are wanted stand before or at it; None: unknown

    def take(self, indices: np.ndarray) -> Survivors:
        """Select the given blocks, in ascending order."""
        ranges = None if self.row_ranges is None else self.row_ranges.take(indices)
        fronts = None if self.fronts is None else self.fronts.take(indices)
        known = self.outcomes[indices]
        return replace(self, blocks=self.blocks.take(indices), known=known, row_ranges=ranges, fronts=fronts)

    @cached_property
    def outcomes(self) -> np.ndarray:
        """Return the possible outcomes of the predicate in each block: uint8 of shape (n_blocks,)."""
        if self.known is not None:
            return self.known
        outcomes = np.full(len(self.blocks), TRUE, np.uint8)
        unsure = np.flatnonzero(~self._match_whole(self.blocks))
        all_unsure = len(unsure) == len(self.blocks)
        outcomes[unsure] = evaluate_with(
            self.predicate, self.blocks if all_unsure else self.blocks.take(unsure), self.evidence
        )
        return outcomes

    def left_by(self, stage: str, before: Left | None) -> LeftBlocks:
        """Return what a stage left, given what the stage before it left."""
        return _blocks_left(stage, self.blocks, before)

    @property
    def detached(self) -> Survivors:
        """Return a copy as plain arrays with everything about the blocks computed, which does not hold the index."""
        return replace(self, blocks=loose(self.blocks), known=self.outcomes, evidence={})

    def refuted(self, blocks: Blocks) -> dict[Leaf, np.ndarray]:
        """Return in which of some of the blocks filters refute leaves: bool arrays of shape (n,).

        Filters were not asked about segments that match whole, so they say nothing there.
        """
        was_asked = ~self._match_whole(blocks)
        return {leaf: was_asked & ~blocks.among(numbers) for leaf, numbers in self.evidence.items()}

    def _match_whole(self, blocks: Blocks) -> np.ndarray:
        """Return which of some of the blocks lie in segments in which every row matches."""
        return np.isin(blocks.segment, self.whole) if len(self.whole) else np.zeros(len(blocks), bool)

    @property
    def fully_matching(self) -> np.ndarray:
        """Return which blocks hold only matching rows: bool of shape (n_blocks,)."""
        return fully_matching(self.outcomes)


def _blocks_left(stage: str, blocks: Blocks, before: Left | None) -> LeftBlocks:
    """Return the blocks that a stage left, shared with the stage before it if none was dropped."""
    if isinstance(before, LeftBlocks) and len(before.blocks) == len(blocks):
        return LeftBlocks(stage, before.blocks)
    return LeftBlocks(stage, blocks.take(slice(None)))  # without the statistics gathered for them


def evaluate_with(predicate: Predicate, blocks: Numbered, evidence: Mapping[Leaf, np.ndarray]) -> np.ndarray:
    """Evaluate a predicate over blocks or files by zone maps, with leaves refuted by filters.

    Sound under AND, OR and NOT alike: a leaf refuted by a filter cannot be TRUE there, and nothing else is claimed.
    """
    return evaluate_refuted(predicate, blocks, {leaf: ~blocks.among(numbers) for leaf, numbers in evidence.items()})


def evaluate_refuted(predicate: Predicate, units: Statistics, refuted: Mapping[Leaf, np.ndarray]) -> np.ndarray:
    """Evaluate a predicate over units, with leaves refuted in some of them: bool arrays of shape (n,).

    Rows on which Spark raises an error are never refuted.
    """
    refutable = {leaf: flags & ~may_fail(leaf, units) for leaf, flags in refuted.items()}

    def outcomes_of(leaf: Leaf) -> np.ndarray:
        possible = leaf_outcomes(leaf, units)
        return np.where(refutable[leaf], possible & ~np.uint8(TRUE), possible) if leaf in refutable else possible

    return fold(predicate, units.row_count, outcomes_of)


def count(survivors: SurvivingSegments | Survivors, catalog: Catalog) -> Counts:
    """Count what survives."""
    if isinstance(survivors, SurvivingSegments):
        chosen = survivors.chosen
        return catalog.counts(survivors.files, survivors.all_segments) if chosen is None else chosen.counts
    counts, ranges = survivors.blocks.counts, survivors.row_ranges
    if ranges is None:
        return counts
    pages = None if survivors.pages is None else survivors.pages.after
    return replace(counts, pages=pages, rows=int((ranges.stop - ranges.start).sum()))
