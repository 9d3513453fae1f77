"""Interfaces: what pruning needs to know of a table, whoever stores it.

A *unit* is anything with statistics: a file, a segment, a block, a page, or a tree node. Unknown is never encoded as a
usable number: an unknown bound is the least or greatest key of its kind, which is sound, and an unknown null count
makes both a value and a NULL possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from secateur.concurrency import Result, Wanted
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import FilterHits, Question, Ranges, Values
from secateur.pruning.report import Counts, Reads
from secateur.pruning.row_ranges import RowRanges
from secateur.values.key import Key
from secateur.values.keys import Keys


class Statistics(Protocol):
    """Statistics over n units."""

    def __len__(self) -> int: ...

    @property
    def row_count(self) -> np.ndarray:
        """Rows of every unit, int64 of shape (n,); -1 if unknown."""

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column, or None if no unit has any."""


class Numbered(Statistics, Protocol):
    """Statistics over units that evidence identifies by numbers."""

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Return which units have one of these ascending numbers, or an unknown number: bool of shape (n,)."""


class Files(Numbered, Protocol):
    """The live files of a table, with statistics from their names and the table's own metadata."""

    @property
    def paths(self) -> pa.Array:
        """Paths below the table, strings of shape (n,)."""

    @property
    def touched(self) -> np.ndarray | None:
        """Which files have rows deleted by other files: bool of shape (n,); None if none has."""

    def most_deleted(self, files: np.ndarray) -> np.ndarray:
        """Return the most rows that may be deleted by position in each of some ascending files: int64, like `files`."""

    def deleted(self, files: np.ndarray, among: np.ndarray) -> list[np.ndarray] | None:
        """Return the deleted positions of some files, ascending; None if they cannot be read.

        Positions of other files in `among`, a superset of `files`, that are read along the way are cached.
        """

    def holders(self, question: Question) -> np.ndarray | None:
        """Return which files may hold what is asked for: bool of shape (n,); None if nothing can tell."""


@dataclass(frozen=True)
class Pages:
    """The pages of one column over n blocks: those of block b are [offsets[b], offsets[b + 1]), at least one."""

    offsets: np.ndarray  # int64 of shape (n + 1,)
    first_row: np.ndarray  # int64, within the block
    zones: Zones


class Blocks(Numbered, Protocol):
    """Blocks of a table in index order: their statistics and locations."""

    @property
    def file(self) -> np.ndarray:
        """Position of the block's file among the live files, int64 of shape (n,)."""

    @property
    def segment(self) -> np.ndarray:
        """The segment of every block, int64 of shape (n,); -1 if it is in no segment."""

    @property
    def row_group(self) -> np.ndarray:
        """The row group within its file, int32 of shape (n,)."""

    @property
    def byte_count(self) -> np.ndarray:
        """Compressed bytes of every block, int64 of shape (n,)."""

    @property
    def counts(self) -> Counts:
        """Count segments, files, blocks, rows and bytes."""

    def take(self, indices: np.ndarray | slice) -> Blocks:
        """Select the given blocks, in ascending order."""

    def null_counts(self, column: Field) -> np.ndarray:
        """Return the NULLs in a column per block, int64 of shape (n,); -1 if unknown."""

    def has_pages(self, column: Field) -> bool:
        """Return whether the pages of a column may be known in some block."""

    def pages(self, column: Field) -> Pages | None:
        """Return the pages of a column, or None if only block statistics exist."""


class Run(Statistics, Protocol):
    """Candidate blocks that are adjacent in the index, as arrays in memory, used without copying."""

    @property
    def begin(self) -> int:
        """The number of the first block."""

    @property
    def candidates(self) -> np.ndarray | None:
        """Which blocks are candidates: bool of shape (n,); None if all are."""


class ValueEntries(NamedTuple):
    """Some values in ascending order: their heads, and the block, by its position, and the row of each."""

    heads: np.ndarray
    block: np.ndarray
    row: np.ndarray

    def take(self, chosen: np.ndarray | slice) -> ValueEntries:
        """Return the chosen entries: positions, bool, or a slice."""
        return ValueEntries(*(part[chosen] for part in self))


class OrderedSegment(Protocol):
    """The values of a column in the blocks of one segment that are among n blocks. Reading raises IndexFault."""

    @property
    def positions(self) -> slice:
        """The positions of its blocks among the n."""

    @property
    def is_known(self) -> np.ndarray:
        """Which of these blocks have all their values here: bool."""

    @property
    def has_unknown(self) -> bool:
        """Whether the values of some block of the segment, given or not, are not here."""

    @property
    def is_complete(self) -> bool:
        """Whether all files of the segment are live."""

    @property
    def ends(self) -> tuple[Key, Key] | None:
        """The least and the greatest value of the segment; None where it has none."""

    def keys_of(self, heads: np.ndarray) -> Keys:
        """Return the keys of some heads."""

    def most_within(self, ranges: RangeSet) -> int:
        """Return how many entries have to be looked at for those in some ranges."""

    def count(self, ranges: RangeSet) -> int:
        """Count the values of the whole segment in some ranges."""

    def entries(self, ranges: RangeSet, *, descending: bool = False) -> Iterator[ValueEntries]:
        """Yield the entries of its blocks in some ranges, some at a time, from the least on, or from the greatest."""


@dataclass(frozen=True)
class Descent:
    """What the tree above the segments leaves, ascending: segments to examine, and fully matching ones.

    `note` describes the traversal.
    """

    segments: np.ndarray
    whole: np.ndarray
    note: str


class Catalog(Protocol):
    """The index of a table, restricted to its live files."""

    @property
    def reads(self) -> Reads:
        """What was read of the index so far."""

    @property
    def files(self) -> Files:
        """The live files."""

    def everywhere(self, files: np.ndarray | None) -> np.ndarray:
        """Return the segments with a block of a surviving file (None: all files survive), ascending."""

    def descend(self, predicate: Predicate, implied: Predicate | None) -> Descent:
        """Return the segments that the tree cannot rule out; `implied` is used only to prune."""

    def counts(self, files: np.ndarray | None, segments: np.ndarray) -> Counts:
        """Count what the surviving files hold in the given segments and outside of all segments."""

    def block_count(self, segments: np.ndarray) -> int:
        """Return the number of blocks in the given segments."""

    def row_counts(self, files: np.ndarray | None, segments: np.ndarray) -> np.ndarray:
        """Return the rows that some live files (None: all) hold in each of some segments: int64 of shape (n,)."""

    def holders(self, question: Question, segments: np.ndarray) -> np.ndarray | None:
        """Return the blocks of some ascending segments that may hold what is asked for; None if no filter applies."""

    def answers(self, question: Question, segments: np.ndarray) -> Sequence[FilterHits]:
        """Return one answer per filter that covers any of `segments`."""

    @property
    def lists_rows(self) -> bool:
        """Whether some postings say which rows of a block hold a value."""

    @property
    def keeps_order(self) -> bool:
        """Whether the values of some column are kept in order."""

    def ordered(self, column: Field, blocks: Blocks) -> Sequence[OrderedSegment]:
        """Return the values of a column in some blocks, for the segments that keep them in order."""

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, in order, where each reads another file of the index."""

    def rows(self, question: Values | Ranges, blocks: Blocks) -> RowRanges | None:
        """Return the rows of some blocks that may hold what is asked for; None where no postings say it."""

    def merged(self, segments: np.ndarray) -> Statistics:
        """Return the merged zone maps of some segments, as used in the tree."""

    def merged_nulls(self, column: Field, segments: np.ndarray) -> np.ndarray:
        """Return the most NULLs that some segments may hold in a column: int64 of shape (n,); -1 if unknown."""

    def choose(self, numbers: np.ndarray, whole: np.ndarray, files: np.ndarray | None) -> Blocks:
        """Return the surviving files' blocks with these numbers, in whole segments, and in no segment."""

    def runs(self, files: np.ndarray | None, segments: np.ndarray) -> Sequence[Run]:
        """Return the blocks of the surviving files in the given segments."""

    def loose_runs(self, files: np.ndarray | None) -> Sequence[Run]:
        """Return the blocks of surviving files that are in no segment."""

    def blocks_of(self, files: np.ndarray) -> Blocks:
        """Return all non-empty blocks of the files that a mask selects."""

    def load(self, columns: Sequence[Field], runs: Sequence[Run]) -> None:
        """Load the zone maps of columns over some runs into memory, in bulk."""

    def by_footers(self, files: np.ndarray | None) -> Blocks:
        """Return all blocks of the surviving files from footers, giving up on the index."""

    def open(self, numbers: np.ndarray, files: np.ndarray | None) -> Blocks:
        """Return the non-empty blocks with these ascending numbers.

        Blocks that cannot be found are replaced by all blocks of the files they may be in.
        """
