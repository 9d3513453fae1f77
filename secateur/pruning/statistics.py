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
from secateur.pruning.questions import FilterHits, Question
from secateur.pruning.report import Counts, Reads
from secateur.pruning.zones import Zones


class Statistics(Protocol):
    """Summaries of n units."""

    def __len__(self) -> int: ...

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every unit, int64 of shape (n,); -1 where unknown."""

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of a column, or None where nothing is known of it in any unit."""


class Numbered(Statistics, Protocol):
    """Summaries of units that evidence names by numbers."""

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Which units have one of the numbers, ascending, or one that is not known: bool of shape (n,)."""


class Files(Numbered, Protocol):
    """The live files of a table: statistics over files, known from their names and the table's own metadata."""

    @property
    def paths(self) -> pa.Array:
        """Paths below the table, strings of shape (n,)."""

    @property
    def touched(self) -> np.ndarray | None:
        """Which files have rows that other files delete: bool of shape (n,); None where none has."""

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """How many rows of some files, which ascend, may be deleted by position, at most: int64, like `files`."""

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """The deleted positions of some files, ascending; None where they cannot be read.

        What is read besides, of files `among` which there are these, is kept for who reads them next.
        """

    def holders(self, question: Question) -> np.ndarray | None:
        """Which files may hold what is asked for: bool of shape (n,); None where nothing tells."""


@dataclass(frozen=True)
class Pages:
    """The pages of one column over n blocks: those of block b are [offsets[b], offsets[b + 1]), at least one."""

    offsets: np.ndarray  # int64 of shape (n + 1,)
    first_row: np.ndarray  # int64, within the block
    zones: Zones


class Blocks(Numbered, Protocol):
    """Blocks of a table in the order of the index: statistics over them, and where each lies."""

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

    @property
    def counts(self) -> Counts:
        """Segments, files, blocks, rows and bytes."""

    def take(self, indices: np.ndarray | slice) -> Blocks:
        """The given blocks only, in ascending order."""

    def null_counts(self, column: Field) -> np.ndarray:
        """How many NULLs every block has in a column, int64 of shape (n,); -1 where unknown."""

    def has_pages(self, column: Field) -> bool:
        """Whether pages of a column may be known in some block."""

    def pages(self, column: Field) -> Pages | None:
        """The pages of a column, or None where only the blocks are known."""


class Run(Statistics, Protocol):
    """Candidate blocks that follow each other in the index, as arrays that lie in memory: nothing is gathered."""

    @property
    def begin(self) -> int:
        """The number of the first block."""

    @property
    def candidates(self) -> np.ndarray | None:
        """Which of the blocks are candidates: bool of shape (n,); None where all are."""


@dataclass(frozen=True)
class Descent:
    """What the tree above the segments leaves, ascending: segments to look into, and those that match with every row.

    `note` tells how.
    """

    segments: np.ndarray
    whole: np.ndarray
    note: str


class Catalog(Protocol):
    """The index of a table, seen through its live files."""

    @property
    def reads(self) -> Reads:
        """What was read of the index so far."""

    @property
    def files(self) -> Files:
        """The live files."""

    def everywhere(self, files: np.ndarray | None) -> np.ndarray:
        """The segments that hold a block of a surviving file (None: all files survive), ascending."""

    def descend(self, predicate: Predicate, implied: Predicate | None) -> Descent:
        """The segments that may hold a match by the tree above them; `implied` only ever rules out."""

    def counts(self, files: np.ndarray | None, segments: np.ndarray) -> Counts:
        """How much the surviving files hold in the given segments and outside of all."""

    def block_count(self, segments: np.ndarray) -> int:
        """How many blocks the given segments have."""

    def holders(self, question: Question, segments: np.ndarray) -> np.ndarray | None:
        """The blocks of some segments, ascending, that may hold what is asked for; None where no filter tells."""

    def answers(self, question: Question, segments: np.ndarray) -> Sequence[FilterHits]:
        """What every filter that tells of some segments says by itself."""

    def merged(self, segments: np.ndarray) -> Statistics:
        """The merged zone maps of some segments, by which the tree above them decides."""

    def choose(self, numbers: np.ndarray, whole: np.ndarray, files: np.ndarray | None) -> Blocks:
        """The blocks with these numbers, those of whole segments, and those of no segment: of surviving files."""

    def runs(self, files: np.ndarray | None, segments: np.ndarray) -> Sequence[Run]:
        """The blocks of the surviving files in the given segments."""

    def loose_runs(self, files: np.ndarray | None) -> Sequence[Run]:
        """The blocks of surviving files that no segment covers."""

    def blocks_of(self, files: np.ndarray) -> Blocks:
        """All blocks with rows of the files that a mask chooses."""

    def load(self, columns: Sequence[Field], runs: Sequence[Run]) -> None:
        """Bring the zone maps of columns over some runs into memory, many at a time."""

    def by_footers(self, files: np.ndarray | None) -> Blocks:
        """All blocks of the surviving files, without the index, which is given up."""

    def open(self, numbers: np.ndarray, files: np.ndarray | None) -> Blocks:
        """The blocks with these numbers, ascending, but for those without rows.

        In place of blocks that cannot be found, all of the files that they may be in.
        """
