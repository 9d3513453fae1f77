"""What is in memory of an index, and how it gets there: in bulk, exact ranges, the segments and columns asked for only.

Zone maps and block tables lie in arrays over groups of segments (:mod:`secateur.index.read.group_arrays`), postings and
pages
segment by segment. All are in one cache; who uses arrays holds them, so what the cache drops stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Range
from secateur.index.container.index_file import Place, array_begin
from secateur.index.filters.bloom_matrix import Slabs
from secateur.index.model import Filter, Store
from secateur.index.naming import BY_NAME, ColumnNaming
from secateur.index.read.chunk_reader import Arrays, ChunkReader, IndexChunk
from secateur.index.read.group_arrays import ResidentBlocks, ResidentZones, SegmentGroups
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.segment_file import (
    BLOCKS,
    CODE,
    LAYOUT_TABLE,
    LAYOUTS,
    PAGE,
    POSTING,
    ZONE,
    StoredPostings,
    blocks_of,
    codes_of,
    pages_of,
    postings_of,
    zone_map_of,
)
from secateur.index.segments.segment_table import Directory
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.page_locations import LayoutTable, layout_table_of
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap, unknown
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import Faults
from secateur.values import ordered_kind

Value = TypeVar("Value")
Resident = TypeVar("Resident", ResidentZones, ResidentBlocks)
BATCH = 256  # chunks
FEW = 16  # segments
FEW_READ = 4  # segments whose layouts are read along, in vain where the plan is only counted or reported
SHORT = 256 << 10  # bytes of such layouts; at 100 MB/s they take 3 ms, a request that is saved some 10 ms
Wanted = Sequence[tuple[int, np.ndarray]]  # groups, and segments of each


@dataclass(frozen=True)
class IndexMemory:
    """The statistics of the segments of one snapshot. What cannot be read is noted as a fault, and unknown."""

    store: Store
    cache: ByteCache
    chunks: ChunkReader
    faults: Faults
    snapshot: Snapshot
    layout: SegmentGroups
    naming: ColumnNaming = BY_NAME
    tables: dict[int, ResidentBlocks] = field(default_factory=dict)  # by group: what a query has read stays with it
    expected: list[Field] = field(default_factory=list)  # columns, as the index calls them, that a query asks for

    def called(self, column: Field) -> Field | None:
        """The column as the index calls it; None where it cannot know it."""
        return self.naming.field(column)

    def knows(self, column: Field) -> bool:
        """Whether segments may have zone maps of a column."""
        own = self.called(column)
        return own is not None and self.snapshot.number_of(own) is not None

    def tree_zones(self, column: Field) -> ZoneMap | None:
        """The zone map of a column over all nodes of the tree; None where it is not indexed. Raises IndexFault."""
        own = self.called(column)
        if own is None:
            return None
        key = (self.store.location, "tree", self.snapshot.number, self.snapshot.created, own)
        return self.cache.get(key, lambda: self.snapshot.tree_zones(own))

    def by_group(self, segments: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The groups that hold some of the segments, which ascend, with those that they hold."""
        group = self.layout.group_of[segments]
        cuts = (np.flatnonzero(group[1:] != group[:-1]) + 1).tolist()
        for first, end in pairwise([0, *cuts, len(group)] if len(group) else []):
            yield int(group[first]), segments[first:end]

    def has(self, kind: str, column: Field) -> bool:
        """Whether some segment has a chunk of a kind for a column."""
        own = self.called(column)
        return own is not None and self._directory(kind, own) is not None

    def missing_bytes(self, columns: Sequence[Field], segments: np.ndarray) -> tuple[int, int]:
        """How many chunks of zone maps and block tables are to be read for the given segments, and their bytes."""
        chunks = size = 0
        known = (own for column in columns if (own := self.called(column)) is not None)
        for column in (None, *known):
            kind = BLOCKS if column is None else ZONE
            what: tuple[Hashable, ...] = (kind,) if column is None else (kind, column)
            directory = self._directory(kind, column)
            for group, mine in self.by_group(segments) if directory is not None else ():
                assert directory is not None
                resident = self.cache.peek(self._group_key(what, group))
                if resident is not None:
                    mine = mine[~resident.loaded[mine - self.layout.group_begin[group]]]
                chunks, size = chunks + len(mine), size + int(directory.size[mine].sum())
        return chunks, size

    # ---- by group

    def zones(self, column: Field, wanted: Wanted) -> list[ResidentZones]:
        """The zone maps of an indexed column over groups, the wanted segments loaded."""
        own = self.called(column)
        assert own is not None
        return self._zones(own, wanted)

    def _zones(self, column: Field, wanted: Wanted) -> list[ResidentZones]:
        kind, directory = ordered_kind(column.type), self._directory(ZONE, column)
        residents = [self._resident_zones(column, group) for group, _ in wanted]
        missing = list(self._missing(residents, wanted))
        if not missing:
            return residents
        there = [each for each in missing if directory is not None and directory.size[each[2]]]
        for resident, within, segment in missing:
            if directory is None or not directory.size[segment]:
                nothing = unknown(kind, self._block_count(segment))
                resident.fill(within, nothing, None, for_good=directory is not None)
        for part in _batches(there) if directory is not None else ():
            assert directory is not None
            read = self._read(ZONE, directory, [segment for _, _, segment in part])
            for (resident, within, segment), arrays in zip(part, read, strict=True):
                self._fill_zones(resident, within, segment, column, arrays)
        for group, _ in wanted:
            self.cache.measure(self._group_key((ZONE, column), group))
        return residents

    def _fill_zones(
        self, resident: ResidentZones, within: int, segment: int, column: Field, arrays: Arrays | IndexFault
    ) -> None:
        kind, n = ordered_kind(column.type), self._block_count(segment)
        with self.faults.tolerated():
            found = zone_map_of(_sound(arrays), kind, n, self._where(segment, ZONE, column))
            may_be_all_null = bool((found.null_count > 0).any())
            resident.fill(within, found, self.row_count(segment) if may_be_all_null else None)
            return
        resident.fill(within, unknown(kind, n), None, for_good=False)

    def blocks(self, wanted: Wanted) -> list[ResidentBlocks]:
        """The block tables of groups, the wanted segments loaded where they can be read."""
        layout = self.layout
        residents = [self._tables(group) for group, _ in wanted]
        missing = list(self._missing(residents, wanted))
        directory = self._directory(BLOCKS, None) if missing else None
        for part in _batches(missing) if directory is not None else ():
            assert directory is not None
            read = self._read(BLOCKS, directory, [segment for _, _, segment in part])
            for (resident, within, segment), arrays in zip(part, read, strict=True):
                with self.faults.tolerated():
                    files = int(layout.file_begin[segment + 1] - layout.file_begin[segment])
                    where = self._where(segment, BLOCKS, None)
                    resident.fill(within, blocks_of(_sound(arrays), self._block_count(segment), files, where))
        return residents

    def _tables(self, group: int) -> ResidentBlocks:
        if group not in self.tables:
            self.tables[group] = self._resident_blocks(group)
        return self.tables[group]

    def row_count(self, segment: int) -> np.ndarray:
        """Rows of the blocks of a segment. Raises IndexFault."""
        group, within = self.layout.place(segment)
        (resident,) = self.blocks([(group, np.array([segment]))])
        if not resident.loaded[within]:
            raise IndexFault(f"{self.snapshot.segments.name[segment]}: the block table cannot be read")
        return resident.of(within).row_count.astype(np.int64)

    def _resident_zones(self, column: Field, group: int) -> ResidentZones:
        return self.cache.get(
            self._group_key((ZONE, column), group),
            lambda: ResidentZones(ordered_kind(column.type), self.layout.blocks_of(group)),
        )

    def _resident_blocks(self, group: int) -> ResidentBlocks:
        layout = self.layout
        return self.cache.get(
            self._group_key((BLOCKS,), group), lambda: ResidentBlocks(layout.blocks_of(group), layout.files_of(group))
        )

    def _group_key(self, what: tuple[Hashable, ...], group: int) -> Hashable:
        return (self.store.location, self.layout.keys[group], *what)

    def _missing(self, residents: Sequence[Resident], wanted: Wanted) -> Iterator[tuple[Resident, int, int]]:
        """What is not loaded yet: the arrays, the position of the segment within them, and the segment."""
        for resident, (group, segments) in zip(residents, wanted, strict=True):
            if resident.complete:
                continue
            within = segments - self.layout.group_begin[group]
            for i in np.flatnonzero(~resident.loaded[within]).tolist():
                yield resident, int(within[i]), int(segments[i])

    # ---- by segment

    def slabs(self, f: int) -> Slabs | None:
        """The slabs of a filter; None where it has none, or they cannot be read."""
        with self.faults.tolerated():
            return self.snapshot.slabs(f)
        return None

    def read_filter_file(self, slabs: Slabs) -> Callable[[str, Sequence[Range]], Sequence[bytes]]:
        """Reads ranges of the files of slabs."""
        sizes = dict(zip(slabs.file_name, slabs.file_size.tolist(), strict=True))

        def read(name: str, ranges: Sequence[Range]) -> list[bytes]:
            if any(at + count > sizes[name] for at, count in ranges):
                raise IndexFault(f"{name}: a filter lies outside the file")
            return self.chunks.read_ranges(name, ranges)

        return read

    def codes(self, f: int, segment: int) -> np.ndarray:
        """What filter every block of a segment has. Raises IndexFault."""

        def decode(segment: int, arrays: Arrays, where: str) -> np.ndarray:
            return codes_of(arrays, self._block_count(segment), where)

        (found,) = self._of_filter(CODE, f, np.array([segment]), decode)
        if found is None:
            raise IndexFault(f"{self.snapshot.segments.name[segment]}: the codes of its filters cannot be read")
        return found

    def postings(self, f: int, segments: np.ndarray) -> list[StoredPostings | None]:
        """The postings of a filter in the given segments; None where there are none, or they cannot be read."""

        def decode(segment: int, arrays: Arrays, where: str) -> StoredPostings:
            return postings_of(arrays, self._block_count(segment), int(self.snapshot.segments.size[segment]), where)

        return self._of_filter(POSTING, f, segments, decode)

    def _of_filter(
        self, kind: str, f: int, segments: np.ndarray, decode: Callable[[int, Arrays, str], Value]
    ) -> list[Value | None]:
        with self.faults.tolerated():
            directory = self.snapshot.filter_directory(kind, f)
            return self._by_segment(kind, self.snapshot.filters[f], directory, segments, decode)
        return [None] * len(segments)

    def null_counts(self, column: Field, segments: np.ndarray) -> list[np.ndarray | None]:
        """The NULLs of a column in the blocks of the given segments; None where there are none, or cannot be read.

        The arrays over groups tell only whether there are any: pruning asks for no more.
        """
        own = self.called(column)
        if own is None:
            return [None] * len(segments)
        kind = ordered_kind(own.type)

        def decode(segment: int, arrays: Arrays, where: str) -> np.ndarray:
            return zone_map_of(arrays, kind, self._block_count(segment), where).null_count.copy()

        return self._by_segment(ZONE, own, self._directory(ZONE, own), segments, decode)

    def pages(self, column: Field, segments: np.ndarray) -> list[PageTable | None]:
        """The pages of a column in the given segments; None where there are none, or they cannot be read."""
        own = self.called(column)
        if own is None:
            return [None] * len(segments)
        return self._pages(own, segments)

    def _pages(self, column: Field, segments: np.ndarray) -> list[PageTable | None]:
        kind = ordered_kind(column.type)

        def decode(segment: int, arrays: Arrays, where: str) -> PageTable:
            return pages_of(arrays, kind, self.row_count(segment), where)

        return self._by_segment(PAGE, column, self._directory(PAGE, column), segments, decode)

    def layout_tables(self, segments: np.ndarray) -> list[LayoutTable | None]:
        """Where the layouts of the blocks of given segments lie; None where there are none, or they cannot be read."""

        def decode(segment: int, arrays: Arrays, where: str) -> LayoutTable:
            return layout_table_of(arrays, self._block_count(segment), int(self.snapshot.segments.size[segment]), where)

        return self._by_segment(LAYOUT_TABLE, None, self._directory(LAYOUT_TABLE, None), segments, decode)

    def near_layouts(self, segment: int) -> tuple[int, np.ndarray] | None:
        """Where the layouts of a segment begin in its file, and their bytes (uint8), where these were read along.

        The store is not asked for them. None where they are neither in memory nor on local disk, or have a fault.
        """
        chunks = [] if self.store.is_local else self._short_layouts(LAYOUTS, [segment])
        if not chunks:
            return None
        (chunk,) = chunks
        key = (self.store.location, chunk.segment, LAYOUTS, None)
        found = self.cache.peek(key)
        if found is None:
            match self.chunks.nearby(chunk):
                case [np.ndarray(dtype=np.uint8) as array]:
                    found = self.cache.get(key, lambda: array)
        return None if found is None else (array_begin(chunk.place.at, 1), found)

    def _by_segment(
        self,
        kind: str,
        what: Field | Filter | None,
        directory: Directory | None,
        segments: np.ndarray,
        decode: Callable[[int, Arrays, str], Value],
    ) -> list[Value | None]:
        """What the chunks of one kind, of a column, a filter or neither, hold: from memory or read in bulk."""
        if directory is None:
            return [None] * len(segments)
        names = self.snapshot.segments.name
        keys = {s: (self.store.location, names[s], kind, what) for s in segments.tolist() if directory.size[s]}
        missing = [s for s, key in keys.items() if not self.cache.holds(key)]
        read = dict(zip(missing, self._read(kind, directory, missing), strict=True))
        found: dict[int, Value] = {}
        for segment, key in keys.items():
            with self.faults.tolerated():
                load = self._loader(decode, segment, kind, what, directory, read.get(segment))
                found[segment] = self.cache.get(key, load)
        return [found.get(segment) for segment in segments.tolist()]

    def _loader(
        self,
        decode: Callable[[int, Arrays, str], Value],
        segment: int,
        kind: str,
        what: Field | Filter | None,
        directory: Directory,
        read: Arrays | IndexFault | None,
    ) -> Callable[[], Value]:
        """Decodes what was read; what the cache has dropped in between is read again."""

        def load() -> Value:
            arrays = self._read(kind, directory, [segment])[0] if read is None else read
            return decode(segment, _sound(arrays), self._where(segment, kind, what))

        return load

    # ---- chunks

    def _directory(self, kind: str, column: Field | None) -> Directory | None:
        with self.faults.tolerated():
            return self.snapshot.directory(kind, column)
        return None

    def _read(self, kind: str, directory: Directory, segments: Sequence[int]) -> list[Arrays | IndexFault]:
        return self.chunks.read(self._chunks(kind, directory, segments), self._along(segments))

    def _chunks(self, kind: str, directory: Directory, segments: Sequence[int]) -> list[IndexChunk]:
        names = self.snapshot.segments.name
        at, size, crc = directory.at, directory.size, directory.crc
        return [IndexChunk(names[s], kind, Place(int(at[s]), int(size[s]), int(crc[s]))) for s in segments if size[s]]

    def _along(self, segments: Sequence[int]) -> list[IndexChunk]:
        """What the query will ask of these segments besides: a store that is waited for is asked for all of it at once.

        Of many segments pruning leaves few, of which alone the next chunks are read. With them come the layouts, where
        they are few and short: a reader of what survives then asks for pages at once.
        """
        if self.store.is_local or len(segments) > FEW or not self.expected:
            return []
        wanted = [(BLOCKS, None), *((kind, column) for column in self.expected for kind in (ZONE, PAGE))]
        directories = [(kind, column, self._directory(kind, column)) for kind, column in wanted]
        chunks = [
            chunk
            for kind, column, directory in directories
            if directory is not None
            for chunk in self._chunks(kind, directory, [s for s in segments if not self._is_here(kind, column, s)])
        ]
        for kind in (LAYOUT_TABLE, LAYOUTS) if len(segments) <= FEW_READ else ():
            chunks += self._short_layouts(kind, [s for s in segments if not self._is_here(kind, None, s)])
        return chunks

    def _short_layouts(self, kind: str, segments: Sequence[int]) -> list[IndexChunk]:
        """The layouts of those segments whose layouts are short, or the tables of these.

        A plan may do without: trouble with where they lie is told when they are read.
        """
        with Faults(strict=False).tolerated():
            directory, layouts = (self.snapshot.directory(each, None) for each in (kind, LAYOUTS))
            if directory is not None and layouts is not None:
                return self._chunks(kind, directory, [s for s in segments if layouts.size[s] <= SHORT])
        return []

    def _is_here(self, kind: str, column: Field | None, segment: int) -> bool:
        """Whether what a chunk holds is in memory."""
        if kind in (PAGE, LAYOUT_TABLE, LAYOUTS):
            return self.cache.holds((self.store.location, self.snapshot.segments.name[segment], kind, column))
        group, within = self.layout.place(segment)
        resident = self.cache.peek(self._group_key((kind,) if column is None else (kind, column), group))
        return resident is not None and bool(resident.complete or resident.loaded[within])

    def _block_count(self, segment: int) -> int:
        return int(self.snapshot.segments.block_count[segment])

    def _where(self, segment: int, kind: str, what: Field | Filter | None) -> str:
        of = "" if what is None else f" of {'.'.join(what.path)}"
        return f"{self.snapshot.segments.name[segment]}: chunk {kind}{of}"


def _batches(items: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Some at a time: what is read of them is in memory twice until it is filled in."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _sound(arrays: Arrays | IndexFault) -> Arrays:
    """The arrays of a chunk. Raises the fault that it has."""
    if isinstance(arrays, IndexFault):
        raise arrays
    return arrays
