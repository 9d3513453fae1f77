"""Statistics of blocks in memory: arrays over a *group* of neighbouring segments, filled as they are read.

A group has about :data:`GROUP_BLOCKS` blocks. The arrays of one column over a group are allocated at once and filled
segment by segment, only for the segments that a query needs; untouched memory is not resident. So a predicate over
millions of blocks is evaluated on a few long arrays, and one over a single segment reads only that segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from secateur.forks import lock_for
from secateur.index.model import BlockTable
from secateur.index.segments.snapshot import SegmentTable
from secateur.index.zones.gaps import MOST_GAPS, GapTable
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.bounds.outcomes import FALSE, TRUE
from secateur.pruning.bounds.zones import Zones, occupancy
from secateur.values.combination import same_width
from secateur.values.key import INT64_MAX
from secateur.values.keys import UNBOUNDED, Keys, greatest_keys
from secateur.values.kinds import Kind

GROUP_BLOCKS = 1 << 18


@dataclass(frozen=True)
class SegmentGroups:
    """How the segments of a snapshot form groups."""

    names: Sequence[str]  # names of the segments
    block_begin: np.ndarray  # first block of every segment, and the end of the last
    file_begin: np.ndarray  # first file of every segment, and the end of the last
    group_begin: np.ndarray  # first segment of every group, and the end of the last

    @cached_property
    def group_block_begin(self) -> np.ndarray:
        """The first block of every group, and the end of the last."""
        return self.block_begin[self.group_begin]

    @cached_property
    def group_of(self) -> np.ndarray:
        """The group of every segment."""
        return np.repeat(np.arange(len(self.group_begin) - 1), np.diff(self.group_begin))

    @cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """Keys that identify groups across snapshots: the names of their segments, which are never reused."""
        return [tuple(self.names[first:end]) for first, end in pairwise(self.group_begin.tolist())]

    def place(self, segment: int) -> tuple[int, int]:
        """Return the group of a segment, and its position there."""
        group = int(self.group_of[segment])
        return group, segment - int(self.group_begin[group])

    def blocks_of(self, group: int) -> np.ndarray:
        """Return the first block of every segment of a group, and the end of the last."""
        return self.block_begin[self.group_begin[group] : self.group_begin[group + 1] + 1]

    def files_of(self, group: int) -> np.ndarray:
        """Return the first file of every segment of a group, and the end of the last."""
        return self.file_begin[self.group_begin[group] : self.group_begin[group + 1] + 1]


def segment_groups(segments: SegmentTable) -> SegmentGroups:
    """Cut the segments into groups of whole segments; a group ends once it has enough blocks."""
    group = segments.block_begin[:-1] // GROUP_BLOCKS
    begin = np.flatnonzero(np.diff(group, prepend=-1)) if len(group) else np.zeros(0, np.int64)
    group_begin = np.append(begin, len(group)).astype(np.int64)
    return SegmentGroups(segments.name, segments.block_begin, segments.file_begin, group_begin)


class ResidentZones:
    """The zone maps of one column over a group; entries of segments not loaded are arbitrary and never read.

    Filling is idempotent and takes a lock; reading takes none. A segment is marked loaded once its arrays are complete.
    """

    def __init__(self, kind: Kind, begin: np.ndarray) -> None:
        self.loaded = np.zeros(len(begin) - 1, bool)
        self.complete = False  # whether every segment is loaded
        self._begin = begin - begin[0]  # first block of every segment within the group
        self._lock = lock_for(self, "_lock")
        n = int(self._begin[-1])
        words = len(greatest_keys(kind, 0).words)
        value, null = (np.broadcast_to(np.uint8(outcomes), n) for outcomes in (TRUE | FALSE, 0))
        self.zones = Zones(_empty(kind, words, n), _empty(kind, words, n), value, null)

    @property
    def nbytes(self) -> int:
        """Bytes in memory once every array is touched."""
        zones = self.zones
        words = sum(array.nbytes for array in (*zones.lower.words, *zones.upper.words, *(zones.gaps or ())))
        words += 0 if zones.top is None else zones.top.nbytes
        return words + (zones.value.nbytes + zones.null.nbytes if self._has_flags else 0)

    @property
    def _has_flags(self) -> bool:
        """Whether `value` and `null` are real arrays; without NULLs they are broadcast scalars."""
        return self.zones.null.flags.writeable

    def fill(self, segment: int, zone_map: ZoneMap, row_count: np.ndarray | None, *, for_good: bool = True) -> None:
        """Write the zone map of one segment of the group; `row_count` is None where no block has NULLs.

        With `for_good` false the segment stays to be loaded again.
        """
        with self._lock:
            if not self.loaded[segment]:
                self._write(segment, zone_map, row_count)
                self.loaded[segment] = for_good
                self.complete = bool(self.loaded.all())

    def _chunk(self, segment: int) -> slice:
        return slice(int(self._begin[segment]), int(self._begin[segment + 1]))

    def _write(self, segment: int, zone_map: ZoneMap, row_count: np.ndarray | None) -> None:
        chunk = self._chunk(segment)
        self._widen(max(len(zone_map.lower.words), len(zone_map.upper.words)))
        for kept, given in ((self.zones.lower, zone_map.lower), (self.zones.upper, zone_map.upper)):
            wide, _ = same_width([given, kept.take(slice(0, 0))])
            for word, values in zip(kept.words, wide.words, strict=True):
                word[chunk] = values
        if zone_map.gaps is not None:
            self._write_gaps(chunk, zone_map.gaps)
        if zone_map.top is not None and self.zones.top is None:
            self.zones = replace(self.zones, top=self.zones.upper.words[0].copy())
        if self.zones.top is not None:
            self.zones.top[chunk] = zone_map.upper.words[0] if zone_map.top is None else zone_map.top
        if row_count is None and not zone_map.null_count.any() and not self._has_flags:
            return
        if not self._has_flags:
            self.zones = replace(self.zones, value=self.zones.value.copy(), null=self.zones.null.copy())
        if row_count is None:
            row_count = np.full(len(zone_map), -1)
        self.zones.value[chunk], self.zones.null[chunk] = occupancy(row_count, zone_map.null_count)

    def _write_gaps(self, chunk: slice, gaps: GapTable) -> None:
        """Write the gaps of one segment; unused slots of a block stay empty."""
        kept = self.zones.gaps
        if kept is None:
            shape = (MOST_GAPS, int(self._begin[-1]))
            kept = np.full(shape, INT64_MAX), np.full(shape, INT64_MAX)
            self.zones = replace(self.zones, gaps=kept)
        for array, values in zip(kept, (gaps.low, gaps.high), strict=True):
            array[: len(values), chunk] = values

    def _widen(self, words: int) -> None:
        """Allocate more words for longer strings; readers of the old arrays keep them."""
        have = len(self.zones.lower.words)
        if words > have:
            missing = words - have
            lower, upper = (_widened(side, missing) for side in (self.zones.lower, self.zones.upper))
            self.zones = replace(self.zones, lower=lower, upper=upper)


def _empty(kind: Kind, words: int, n: int) -> Keys:
    if kind is Kind.BYTES:
        return Keys(kind, tuple(np.empty(n, np.uint64) for _ in range(words)))
    dtypes = (np.int64, np.uint64)[:words]
    return Keys(kind, tuple(np.empty(n, dtype) for dtype in dtypes))


def _widened(keys: Keys, missing: int) -> Keys:
    """Insert words before the lengths: zero, or all ones where a key is unbounded."""
    *body, length = keys.words
    padding = np.where(length == UNBOUNDED, UNBOUNDED, np.uint64(0))
    return Keys(keys.kind, (*body, *(padding.copy() for _ in range(missing)), length.copy()))


class ResidentBlocks:
    """The block tables of a group's segments; files are numbered across the segments of the group."""

    def __init__(self, begin: np.ndarray, file_begin: np.ndarray) -> None:
        self.loaded = np.zeros(len(begin) - 1, bool)
        self.complete = False  # whether every segment is loaded
        self.has_empty = False  # whether some loaded block has no rows
        self._begin, self._file_begin = begin - begin[0], file_begin - file_begin[0]
        self._lock = lock_for(self, "_lock")
        n = int(self._begin[-1])
        self.table = BlockTable(*(np.empty(n, dtype) for dtype in (np.uint16, np.uint16, np.uint32, np.uint32)))

    @property
    def nbytes(self) -> int:
        """Bytes in memory once every array is touched."""
        table = self.table
        return sum(a.nbytes for a in (table.file, table.row_group, table.row_count, table.byte_count))

    def fill(self, segment: int, blocks: BlockTable) -> None:
        """Write the block table of one segment of the group."""
        with self._lock:
            if self.loaded[segment]:
                return
            chunk = slice(int(self._begin[segment]), int(self._begin[segment + 1]))
            numbered = replace(blocks, file=blocks.file + self._file_begin[segment])
            self._widen(numbered)
            for name, values in vars(numbered).items():
                getattr(self.table, name)[chunk] = values
            self.has_empty |= bool((blocks.row_count == 0).any())
            self.loaded[segment] = True
            self.complete = bool(self.loaded.all())

    def _widen(self, blocks: BlockTable) -> None:
        """Use wider integers where the numbers need them; readers of the old arrays keep them."""
        wide = {
            name: array.astype(np.int64)
            for name, array in vars(self.table).items()
            if getattr(blocks, name).max(initial=0) > np.iinfo(array.dtype).max
        }
        self.table = replace(self.table, **wide) if wide else self.table

    def of(self, segment: int) -> BlockTable:
        """Return the block table of one loaded segment."""
        chunk = slice(int(self._begin[segment]), int(self._begin[segment + 1]))
        return BlockTable(*(array[chunk] for array in vars(self.table).values()))
