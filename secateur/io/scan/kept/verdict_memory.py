"""The memory of what reads of this process found, for all tables, bounded in bytes.

For each condition, with all that its meaning depends on, it holds the blocks in which the condition is TRUE on no row,
as a number per block. A block belongs to the identity of its file, so nothing is known about a file that was replaced.
The conditions that were used longest ago are forgotten first.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy, strings, truths
from secateur.forks import lock_for
from secateur.integers import sorted_distinct
from secateur.io.storage.cache_directory import bytes_set
from secateur.io.tables.listing import Listing
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.bound_walks import all_leaves, columns
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.verdicts import ROW_GROUP_BITS, Verdict, implies, leaves_implying, places_of

BYTES_VARIABLE = "SECATEUR_VERDICT_BYTES"
DIRECTORY_VARIABLE = "SECATEUR_VERDICT_DIR"
MOST_BYTES = 64 << 20
OF_CONDITION, OF_FILE, OF_BLOCK = 4 << 10, 400, 16  # bytes in memory, about
MOST_CONDITIONS = 128  # of one table; a plan compares its predicate with each
LEAST_MERGED = 1 << 10  # blocks that are added to a condition's before all are brought in order
FEW_FILES = 64  # for fewer that are gone, nothing is tidied up

ROW_GROUPS = (1 << ROW_GROUP_BITS) - 1  # the bits of a place that are its row group

Identity: TypeAlias = tuple[str, int, int, int]  # path, size, stamp and witness of a file, as listed


def most_bytes() -> int:
    """Return how many bytes verdicts may take: ``SECATEUR_VERDICT_BYTES``, else MOST_BYTES; 0 turns them off.

    Raises ValueError if the variable is not a number of bytes.
    """
    return bytes_set(BYTES_VARIABLE, MOST_BYTES)


def is_sharing() -> bool:
    """Return whether verdicts are also kept on local disk, for other processes: in ``SECATEUR_VERDICT_DIR``."""
    return bool(os.environ.get(DIRECTORY_VARIABLE, "").strip()) and most_bytes() > 0


@dataclass(frozen=True)
class KnownCondition:
    """A condition, and all that its truth value on the rows of a file depends on."""

    condition: Predicate
    stored: tuple[Field, ...]  # its fields as an index names them: by id if the table's format has ids
    session_time_zone: str
    ansi: bool
    rests_on: str | None = None  # the index build by which rows were left out; None: every row was looked at

    @cached_property
    def columns(self) -> frozenset[str]:
        """The top-level columns of the condition."""
        return frozenset(columns(self.condition))

    @cached_property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        ranges = (leaf.ranges.thresholds for leaf in all_leaves(self.condition) if isinstance(leaf, Within))
        return OF_CONDITION + sum(thresholds.nbytes for thresholds in ranges)


@dataclass(frozen=True)
class FoundBlocks:
    """Blocks in which a condition is TRUE on no row, with their files."""

    files: tuple[Identity, ...]
    places: np.ndarray  # int64, ascending; a file is numbered by its position in `files`


@dataclass(eq=False)
class _RefutedBlocks:
    """The blocks in which a condition is TRUE on no row; files have numbers of the table's memory."""

    places: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: list[np.ndarray] = field(default_factory=list)
    unmerged: int = 0  # blocks in `added`
    listed: tuple[np.ndarray, np.ndarray] | None = None  # the places in a listing, after that listing's file ordinals

    def add(self, places: np.ndarray) -> None:
        """Add blocks, known or not."""
        self.added.append(places)
        self.unmerged += len(places)
        if self.unmerged > max(LEAST_MERGED, len(self.places)):  # so that each block is moved a few times only
            self.merge()

    def merge(self) -> None:
        """Bring the blocks in order."""
        if self.added:
            self.places, self.listed = sorted_distinct(np.concatenate([self.places, *self.added])), None
            self.added, self.unmerged = [], 0

    def places_in(self, ordinals: np.ndarray) -> np.ndarray:
        """Return the places with ordinals of live files, by number of the file; without files that have none (-1)."""
        self.merge()
        if self.listed is None or self.listed[0] is not ordinals:
            live = ordinals[self.places >> ROW_GROUP_BITS]
            self.listed = ordinals, np.sort(places_of(live, self.places & ROW_GROUPS)[live >= 0])
        return self.listed[1]

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return OF_BLOCK * (len(self.places) + self.unmerged)


class _TableMemory:
    """What is known about one table: its numbered files, and the blocks by condition."""

    def __init__(self) -> None:
        self.blocks: OrderedDict[KnownCondition, _RefutedBlocks] = OrderedDict()  # the one used last at the end
        self.nbytes = 0  # in memory, about
        self.version = 0  # another one whenever something is added or forgotten, never one that was before
        self.unkept: set[KnownCondition] = set()  # blocks were added to these since they were written to disk
        self.marks: dict[str, str] = {}  # by the digest of a condition on disk: its blocks that were taken over
        self.forgotten: str | None = None  # when the table was forgotten, as the disk says; None: not looked there yet
        self._numbers: dict[Identity, int] = {}
        self._listed: tuple[Callable[[], Listing | None], np.ndarray] = (lambda: None, np.zeros(0, np.int64))

    def add(self, known: KnownCondition, file: Identity, row_groups: Sequence[int]) -> None:
        """Add row groups of a file in which a condition is TRUE on no row; a file gets a number if it has none."""
        self.take_over(known, FoundBlocks((file,), np.array(row_groups)))
        self.unkept.add(known)

    def take_over(self, known: KnownCondition, found_blocks: FoundBlocks) -> None:
        """Add blocks of any files in which a condition is TRUE on no row."""
        numbers = np.array([self._numbers.setdefault(file, len(self._numbers)) for file in found_blocks.files])
        places = found_blocks.places
        places = places_of(numbers[places >> ROW_GROUP_BITS], places & ROW_GROUPS)
        self.blocks.setdefault(known, _RefutedBlocks()).add(places)
        self.blocks.move_to_end(known)
        if len(self.blocks) > MOST_CONDITIONS:
            self.forget_one()
        self._measure()

    def found_blocks(self, known: KnownCondition) -> FoundBlocks:
        """Return the blocks of a condition, with no more files than they need."""
        refuted, files = self.blocks[known], list(self._numbers)
        refuted.merge()
        numbers, at = np.unique(refuted.places >> ROW_GROUP_BITS, return_inverse=True)
        needed = tuple(files[number] for number in numbers.tolist())
        return FoundBlocks(needed, places_of(at.astype(np.int64), refuted.places & ROW_GROUPS))

    def verdicts(
        self, listing: Listing, predicate: Predicate, applies: Callable[[KnownCondition], bool]
    ) -> Iterator[Verdict]:
        """Yield what the conditions that apply tell about a predicate."""
        names = frozenset(columns(predicate))
        for known, refuted in list(self.blocks.items()):
            if names.isdisjoint(known.columns):
                continue
            whole = implies(predicate, known.condition)
            leaves = None if whole else leaves_implying(known.condition, predicate)
            if (whole or leaves) and applies(known):
                places = refuted.places_in(self._ordinals_in(listing))
                if len(places):
                    self.blocks.move_to_end(known)
                    yield Verdict(leaves, places)
        self._measure()

    def forget_one(self) -> None:
        """Forget the condition that was used longest ago."""
        known, _ = self.blocks.popitem(last=False)
        self.unkept.discard(known)
        self._measure()

    def emptied(self) -> _TableMemory:
        """Return a memory of nothing, but of what lies on disk."""
        empty = _TableMemory()
        empty.marks, empty.forgotten, empty.version = self.marks, self.forgotten, self.version
        return empty

    def _measure(self) -> None:
        of_conditions = sum(known.nbytes + refuted.nbytes for known, refuted in self.blocks.items())
        self.nbytes = OF_FILE * len(self._numbers) + of_conditions

    def _ordinals_in(self, listing: Listing) -> np.ndarray:
        """Return the ordinal of every numbered file in a listing; -1 if no live file has its identity."""
        latest, ordinals = self._listed
        if latest() is not listing or len(ordinals) != len(self._numbers):
            ordinals = ordinals_in(listing, list(self._numbers))
            self._listed = weakref.ref(listing), ordinals
        return ordinals

    def tidied(self, listing: Listing) -> _TableMemory:
        """Return a memory of the files that are in a listing, if most of these files are not; else itself."""
        latest, ordinals = self._listed
        kept = ordinals >= 0
        if latest() is not listing or len(kept) != len(self._numbers) or listing.left_out:
            return self
        if np.count_nonzero(~kept) <= max(FEW_FILES, len(kept) // 2):
            return self
        tidy, number = self.emptied(), np.where(kept, np.cumsum(kept) - 1, -1)
        files = (file for file, stays in zip(self._numbers, kept.tolist(), strict=True) if stays)
        tidy._numbers = {file: i for i, file in enumerate(files)}
        tidy.blocks = OrderedDict(
            (known, _RefutedBlocks(refuted.places_in(number))) for known, refuted in self.blocks.items()
        )
        tidy.unkept = self.unkept
        tidy._measure()
        return tidy


class VerdictMemory:
    """What reads found, by table; threads share it."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, _TableMemory] = OrderedDict()  # the one used last at the end
        self._versions = itertools.count(1)
        self._lock = lock_for(self, "_lock")

    def leave(self, table: str, known: KnownCondition, file: Identity, row_groups: Sequence[int], most: int) -> None:
        """Note that a condition is TRUE on no row of some row groups of a file, and keep to so many bytes."""
        with self._lock:
            memory = self._tables.setdefault(table, _TableMemory())
            self._tables.move_to_end(table)
            memory.add(known, file, row_groups)
            memory.version = next(self._versions)
            self._keep_to(most)

    def _keep_to(self, most: int) -> None:
        while self._tables and sum(memory.nbytes for memory in self._tables.values()) > most:
            oldest, of_oldest = next(iter(self._tables.items()))
            if of_oldest.blocks:
                of_oldest.forget_one()
                of_oldest.version = next(self._versions)
            if not of_oldest.blocks:
                del self._tables[oldest]

    def verdicts(
        self, table: str, listing: Listing, predicate: Predicate, applies: Callable[[KnownCondition], bool]
    ) -> tuple[Verdict, ...]:
        """Return what is known of a predicate in the listed files, by the conditions that apply in the session."""
        if table not in self._tables:
            return ()
        with self._lock:
            memory = self._tables.get(table)
            if memory is None:
                return ()
            verdicts = tuple(memory.verdicts(listing, predicate, applies))
            self._tables[table] = memory.tidied(listing)  # at once: a fork or an interrupt sees the one or the other
            return verdicts

    def take_over(
        self, table: str, known: KnownCondition, found_blocks: FoundBlocks, *, digest: str, mark: str, most: int
    ) -> None:
        """Add what lies on disk under the digest of a condition, with a mark, and keep to so many bytes."""
        with self._lock:
            memory = self._tables.setdefault(table, _TableMemory())
            self._tables.move_to_end(table)
            memory.marks[digest] = mark
            memory.take_over(known, found_blocks)
            memory.version = next(self._versions)
            self._keep_to(most)
            if table not in self._tables:  # they are more than fit: not to be taken over at the next plan again
                self._tables[table] = memory.emptied()

    def version(self, table: str) -> int:
        """Return a number that changes with what is known about a table; 0 where that is nothing."""
        memory = self._tables.get(table)
        return 0 if memory is None else memory.version

    def has_taken_over(self, table: str, digest: str, mark: str) -> bool:
        """Return whether these blocks of a condition on disk were taken over, or written by this process."""
        memory = self._tables.get(table)
        return memory is not None and memory.marks.get(digest) == mark

    def mark(self, table: str, digest: str, mark: str) -> None:
        """Note that the blocks of a condition on disk are those known here."""
        with self._lock:
            if table in self._tables:
                self._tables[table].marks[digest] = mark

    def has_unkept(self, table: str) -> bool:
        """Return whether blocks of a table were found since :meth:`unkept` was asked last."""
        memory = self._tables.get(table)
        return memory is not None and bool(memory.unkept)

    def unkept(self, table: str) -> tuple[KnownCondition, ...]:
        """Return the conditions of a table of which blocks were found since this was asked last."""
        with self._lock:
            memory = self._tables.get(table, _TableMemory())
            unkept, memory.unkept = memory.unkept, set()
            return tuple(unkept)

    def found_blocks(self, table: str, known: KnownCondition) -> FoundBlocks | None:
        """Return all that is known of a condition; None if that is nothing."""
        with self._lock:
            memory = self._tables.get(table, _TableMemory())
            return memory.found_blocks(known) if known in memory.blocks else None

    def heed(self, table: str, forgotten: str) -> None:
        """Forget a table if another process has forgotten it since this one looked last."""
        with self._lock:
            memory = self._tables.setdefault(table, _TableMemory())
            if memory.forgotten not in (None, forgotten):
                memory = self._tables[table] = _TableMemory()
            memory.forgotten = forgotten

    def forget(self, table: str) -> None:
        """Forget everything about a table."""
        with self._lock:
            self._tables.pop(table, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tables.clear()

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        with self._lock:
            return sum(memory.nbytes for memory in self._tables.values())


MEMORY = VerdictMemory()


def ordinals_in(listing: Listing, files: Sequence[Identity]) -> np.ndarray:
    """Return the ordinal of every file in a listing; -1 if no live file has its identity: int64."""
    if not len(files) or not len(listing.paths):
        return np.full(len(files), -1)
    wanted = strings([path for path, *_ in files]).cast(listing.paths.type)
    at = _positions(wanted, listing.paths)
    same = truths(pc.equal(listing.paths.take(from_numpy(at)), wanted))
    known = np.array([others for _, *others in files], np.int64).T
    for ours, listed in zip(known, (listing.size, listing.stamp, listing.witness), strict=True):
        same = same & (listed[at] == ours)
    return np.where(same, at, -1)


def _positions(wanted: pa.Array, paths: pa.Array) -> np.ndarray:
    """Return the positions of some paths among ascending ones, at least one; any position for a path that is missing.

    A binary search for all at once: it takes as many steps as one path would, and does not scan a long listing.
    """
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(paths) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        before = truths(pc.less(paths.take(from_numpy(middle)), wanted))
        low, high = np.where(before, np.minimum(middle + 1, high), low), np.where(before, high, middle)
    return low
