"""Load an index into memory: in bulk, by exact ranges, only the segments and columns asked for.

Zone maps and block tables lie in arrays over groups of segments (:mod:`secateur.index.read.group_arrays`), postings and
pages segment by segment. All share one cache; users hold references to the arrays, so evicted ones stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import Place, array_begin
from secateur.index.filters.bands import FilterFiles
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.model import Filter, Store
from secateur.index.naming import BY_NAME, ColumnNaming
from secateur.index.read.chunk_reader import Arrays, ChunkReader, IndexChunk, StoredFilters
from secateur.index.read.group_arrays import ResidentBlocks, ResidentZones, SegmentGroups, segment_groups
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.segment_file import (
    BLOCKS,
    LOCATION_TABLE,
    ORDERED_POSTING,
    PAGE,
    PAGE_LOCATIONS,
    POSTING,
    SIZE_CLASS,
    ZONE,
    StoredOrdered,
    StoredPostings,
    blocks_of,
    ordered_of,
    pages_of,
    postings_of,
    size_classes_of,
    zone_map_of,
)
from secateur.index.segments.segment_table import Directory
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import no_segments
from secateur.index.zones.page_locations import LocationTable, location_table_of
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap, unknown
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import Faults
from secateur.values.kinds import ordered_kind

Value = TypeVar("Value")
Resident = TypeVar("Resident", ResidentZones, ResidentBlocks)
BATCH = 256  # chunks
FEW = 16  # segments
FEW_READ = 4  # segments whose page locations are prefetched; wasted if the plan is only counted or reported
SHORT = (
    256 << 10
)  # bytes of prefetched page locations; at 100 MB/s they take 3 ms, while a saved request is worth about 10 ms
Wanted = Sequence[tuple[int, np.ndarray]]  # groups, and segments of each


@dataclass(eq=False)
class IndexMemory:
    """The statistics of one snapshot's segments. What cannot be read is noted as a fault and is unknown."""

    store: Store
    cache: ByteCache
    chunks: ChunkReader
    faults: Faults
    snapshot: Snapshot
    groups: SegmentGroups
    naming: ColumnNaming = BY_NAME
    tables: dict[int, ResidentBlocks] = field(default_factory=dict)  # by group: a query keeps what it has read
    expected: list[Field] = field(default_factory=list)  # columns the query will ask for, as named in the index

    def without_segments(self) -> IndexMemory:
        """Return the same for a table without an index."""
        empty = no_segments()
        return replace(self, snapshot=empty, groups=segment_groups(empty.segments), tables={}, expected=[])

    def called(self, column: Field) -> Field | None:
        """Return the column under its name in the index; None where the index cannot know it."""
        return self.naming.field(column)

    def knows(self, column: Field) -> bool:
        """Whether segments may have zone maps of a column."""
        stored = self.called(column)
        return stored is not None and self.snapshot.number_of(stored) is not None

    def tree_zones(self, column: Field) -> ZoneMap | None:
        """Return the zone map of a column over all nodes of the tree; None where not indexed. Raises IndexFault."""
        stored = self.called(column)
        if stored is None:
            return None
        key = (self.store.location, "tree", self.snapshot.number, self.snapshot.created, stored)
        return self.cache.get(key, lambda: self.snapshot.tree_zones(stored))

    def by_group(self, segments: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Split ascending segments by group."""
        group = self.groups.group_of[segments]
        cuts = (np.flatnonzero(group[1:] != group[:-1]) + 1).tolist()
        for first, end in pairwise([0, *cuts, len(group)] if len(group) else []):
            yield int(group[first]), segments[first:end]

    def has(self, kind: str, column: Field) -> bool:
        """Whether some segment has a chunk of a kind for a column."""
        stored = self.called(column)
        return stored is not None and self._directory(kind, stored) is not None

    def missing_bytes(self, columns: Sequence[Field], segments: np.ndarray) -> tuple[int, int]:
        """Return how many chunks of zone maps and block tables must be read for the given segments, and their bytes."""
        chunks = size = 0
        known = (stored for column in columns if (stored := self.called(column)) is not None)
        for column in (None, *known):
            kind = BLOCKS if column is None else ZONE
            part: tuple[Hashable, ...] = (kind,) if column is None else (kind, column)
            directory = self._directory(kind, column)
            if directory is None:
                continue
            for group, of_group in self.by_group(segments):
                resident = self.cache.peek(self._group_key(part, group))
                if resident is not None:
                    of_group = of_group[~resident.loaded[of_group - self.groups.group_begin[group]]]
                chunks, size = chunks + len(of_group), size + int(directory.size[of_group].sum())
        return chunks, size

    # ---- by group

    def zones(self, column: Field, wanted: Wanted) -> list[ResidentZones]:
        """Return the zone maps of an indexed column over groups, with the wanted segments loaded."""
        stored = self.called(column)
        assert stored is not None, "asked only for columns that `knows` knows"
        return self._zones(stored, wanted)

    def _zones(self, column: Field, wanted: Wanted) -> list[ResidentZones]:
        kind, directory = ordered_kind(column.type), self._directory(ZONE, column)
        residents = [self._resident_zones(column, group) for group, _ in wanted]
        missing = list(self._missing(residents, wanted))
        if not missing:
            return residents
        there = [chunk for chunk in missing if directory is not None and directory.size[chunk[2]]]
        for resident, within, segment in missing:
            if directory is None or not directory.size[segment]:
                nothing = unknown(kind, self._block_count(segment))
                resident.fill(within, nothing, None, for_good=directory is not None)
        if directory is not None:
            for part in _batches(there):
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
            zone_map = zone_map_of(_sound(arrays), kind, n, self._where(segment, ZONE, column))
            may_be_all_null = bool((zone_map.null_count > 0).any())
            resident.fill(within, zone_map, self.row_count(segment) if may_be_all_null else None)
            return
        resident.fill(within, unknown(kind, n), None, for_good=False)

    def blocks(self, wanted: Wanted) -> list[ResidentBlocks]:
        """Return the block tables of groups, with the wanted segments loaded where they are readable."""
        groups = self.groups
        residents = [self._tables(group) for group, _ in wanted]
        missing = list(self._missing(residents, wanted))
        directory = self._directory(BLOCKS, None) if missing else None
        if directory is None:
            return residents
        for part in _batches(missing):
            read = self._read(BLOCKS, directory, [segment for _, _, segment in part])
            for (resident, within, segment), arrays in zip(part, read, strict=True):
                with self.faults.tolerated():
                    files = int(groups.file_begin[segment + 1] - groups.file_begin[segment])
                    where = self._where(segment, BLOCKS, None)
                    resident.fill(within, blocks_of(_sound(arrays), self._block_count(segment), files, where))
        return residents

    def _tables(self, group: int) -> ResidentBlocks:
        if group not in self.tables:
            self.tables[group] = self._resident_blocks(group)
        return self.tables[group]

    def row_count(self, segment: int) -> np.ndarray:
        """Return the row counts of the blocks of a segment. Raises IndexFault."""
        group, within = self.groups.place(segment)
        (resident,) = self.blocks([(group, np.array([segment]))])
        if not resident.loaded[within]:
            raise IndexFault(f"{self.snapshot.segments.name[segment]}: the block table cannot be read")
        return resident.of(within).row_count.astype(np.int64)

    def _resident_zones(self, column: Field, group: int) -> ResidentZones:
        return self.cache.get(
            self._group_key((ZONE, column), group),
            lambda: ResidentZones(ordered_kind(column.type), self.groups.blocks_of(group)),
        )

    def _resident_blocks(self, group: int) -> ResidentBlocks:
        groups = self.groups
        return self.cache.get(
            self._group_key((BLOCKS,), group), lambda: ResidentBlocks(groups.blocks_of(group), groups.files_of(group))
        )

    def _group_key(self, part: tuple[Hashable, ...], group: int) -> Hashable:
        return (self.store.location, self.groups.keys[group], *part)

    def _missing(self, residents: Sequence[Resident], wanted: Wanted) -> Iterator[tuple[Resident, int, int]]:
        """Yield what is not loaded yet: (arrays, position of the segment within them, segment)."""
        for resident, (group, segments) in zip(residents, wanted, strict=True):
            if resident.complete:
                continue
            within = segments - self.groups.group_begin[group]
            for i in np.flatnonzero(~resident.loaded[within]).tolist():
                yield resident, int(within[i]), int(segments[i])

    # ---- by segment

    def bloom_matrices(self, f: int) -> BloomMatrices | None:
        """Return the bloom matrices of a filter; None where absent or unreadable."""
        with self.faults.tolerated():
            return self.snapshot.bloom_matrices(f)
        return None

    def filter_files(self, bloom_matrices: BloomMatrices) -> FilterFiles:
        """Return the files of bloom matrices."""
        sizes = dict(zip(bloom_matrices.file_name, bloom_matrices.file_size.tolist(), strict=True))
        return StoredFilters(self.chunks, sizes)

    def size_classes(self, f: int, segments: np.ndarray) -> list[np.ndarray | None]:
        """Return the size class of every block's filter in the given segments; None where absent or unreadable."""

        def decode(segment: int, arrays: Arrays, where: str) -> np.ndarray:
            return size_classes_of(arrays, self._block_count(segment), where)

        return self._of_filter(SIZE_CLASS, f, segments, decode)

    def postings(self, f: int, segments: np.ndarray) -> list[StoredPostings | None]:
        """Return the postings of a filter in the given segments; None where absent or unreadable."""

        def decode(segment: int, arrays: Arrays, where: str) -> StoredPostings:
            return postings_of(arrays, self._block_count(segment), int(self.snapshot.segments.size[segment]), where)

        return self._of_filter(POSTING, f, segments, decode)

    def ordered(self, f: int, segments: np.ndarray) -> list[StoredOrdered | None]:
        """Return the ordered postings of a filter in the given segments; None where absent or unreadable."""

        def decode(segment: int, arrays: Arrays, where: str) -> StoredOrdered:
            return ordered_of(arrays, self._block_count(segment), int(self.snapshot.segments.size[segment]), where)

        return self._of_filter(ORDERED_POSTING, f, segments, decode)

    def _of_filter(
        self, kind: str, f: int, segments: np.ndarray, decode: Callable[[int, Arrays, str], Value]
    ) -> list[Value | None]:
        with self.faults.tolerated():
            directory = self.snapshot.filter_directory(kind, f)
            return self._by_segment(kind, self.snapshot.filters[f], directory, segments, decode)
        return [None] * len(segments)

    def null_counts(self, column: Field, segments: np.ndarray) -> list[np.ndarray | None]:
        """Return a column's NULL counts in the blocks of the given segments; None where absent or unreadable.

        The arrays over groups only record whether there are any, which is all that pruning needs.
        """
        stored = self.called(column)
        if stored is None:
            return [None] * len(segments)
        kind = ordered_kind(stored.type)

        def decode(segment: int, arrays: Arrays, where: str) -> np.ndarray:
            return zone_map_of(arrays, kind, self._block_count(segment), where).null_count.copy()

        return self._by_segment(ZONE, stored, self._directory(ZONE, stored), segments, decode)

    def pages(self, column: Field, segments: np.ndarray) -> list[PageTable | None]:
        """Return the pages of a column in the given segments; None where absent or unreadable."""
        stored = self.called(column)
        if stored is None:
            return [None] * len(segments)
        return self._pages(stored, segments)

    def _pages(self, column: Field, segments: np.ndarray) -> list[PageTable | None]:
        kind = ordered_kind(column.type)

        def decode(segment: int, arrays: Arrays, where: str) -> PageTable:
            return pages_of(arrays, kind, self.row_count(segment), where)

        return self._by_segment(PAGE, column, self._directory(PAGE, column), segments, decode)

    def location_tables(self, segments: np.ndarray) -> list[LocationTable | None]:
        """Return the table of page locations of the given segments; None where absent or unreadable."""

        def decode(segment: int, arrays: Arrays, where: str) -> LocationTable:
            return location_table_of(
                arrays, self._block_count(segment), int(self.snapshot.segments.size[segment]), where
            )

        return self._by_segment(LOCATION_TABLE, None, self._directory(LOCATION_TABLE, None), segments, decode)

    def near_locations(self, segment: int) -> tuple[int, np.ndarray] | None:
        """Return where a segment's page locations begin in its file, and their bytes (uint8), if they were prefetched.

        Never asks the store. None where they are neither in memory nor on local disk, or are damaged.
        """
        chunks = [] if self.store.is_local else self._short_locations(PAGE_LOCATIONS, [segment])
        if not chunks:
            return None
        (chunk,) = chunks
        key = (self.store.location, chunk.segment, PAGE_LOCATIONS, None)
        cached = self.cache.peek(key)
        if cached is None:
            match self.chunks.nearby(chunk):
                case [np.ndarray(dtype=np.uint8) as array]:
                    cached = self.cache.get(key, lambda: array)
        return None if cached is None else (array_begin(chunk.place.at, 1), cached)

    def _by_segment(
        self,
        kind: str,
        subject: Field | Filter | None,
        directory: Directory | None,
        segments: np.ndarray,
        decode: Callable[[int, Arrays, str], Value],
    ) -> list[Value | None]:
        """Return the decoded chunks of one kind (of a column, a filter or neither), from memory or read in bulk."""
        if directory is None:
            return [None] * len(segments)
        names = self.snapshot.segments.name
        keys = {s: (self.store.location, names[s], kind, subject) for s in segments.tolist() if directory.size[s]}
        missing = [s for s, key in keys.items() if not self.cache.holds(key)]
        read = dict(zip(missing, self._read(kind, directory, missing), strict=True))
        values: dict[int, Value] = {}
        for segment, key in keys.items():
            with self.faults.tolerated():
                load = self._loader(decode, segment, kind, subject, directory, read.get(segment))
                values[segment] = self.cache.get(key, load)
        return [values.get(segment) for segment in segments.tolist()]

    def _loader(
        self,
        decode: Callable[[int, Arrays, str], Value],
        segment: int,
        kind: str,
        subject: Field | Filter | None,
        directory: Directory,
        read: Arrays | IndexFault | None,
    ) -> Callable[[], Value]:
        """Return a decoder of what was read; it reads again if the cache has evicted the value meanwhile."""

        def load() -> Value:
            arrays = self._read(kind, directory, [segment])[0] if read is None else read
            return decode(segment, _sound(arrays), self._where(segment, kind, subject))

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
        """List the chunks of these segments to prefetch: one round trip to a remote store instead of several.

        If there are many segments, pruning leaves few, and later chunks are read for those only. Page locations are
        included where they are few and short, so that a reader of the survivors can request pages at once.
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
        for kind in (LOCATION_TABLE, PAGE_LOCATIONS) if len(segments) <= FEW_READ else ():
            chunks += self._short_locations(kind, [s for s in segments if not self._is_here(kind, None, s)])
        return chunks

    def _short_locations(self, kind: str, segments: Sequence[int]) -> list[IndexChunk]:
        """Return the chunks of `kind` for segments with short page locations.

        A plan can do without them: a fault in their locations is reported when they are read.
        """
        with Faults(strict=False).tolerated():
            directory, page_locations = (
                self.snapshot.directory(chunk_kind, None) for chunk_kind in (kind, PAGE_LOCATIONS)
            )
            if directory is not None and page_locations is not None:
                return self._chunks(kind, directory, [s for s in segments if page_locations.size[s] <= SHORT])
        return []

    def _is_here(self, kind: str, column: Field | None, segment: int) -> bool:
        """Whether the contents of a chunk are in memory."""
        if kind in (PAGE, LOCATION_TABLE, PAGE_LOCATIONS):
            return self.cache.holds((self.store.location, self.snapshot.segments.name[segment], kind, column))
        group, within = self.groups.place(segment)
        resident = self.cache.peek(self._group_key((kind,) if column is None else (kind, column), group))
        return resident is not None and bool(resident.complete or resident.loaded[within])

    def _block_count(self, segment: int) -> int:
        return int(self.snapshot.segments.block_count[segment])

    def _where(self, segment: int, kind: str, subject: Field | Filter | None) -> str:
        of = "" if subject is None else f" of {'.'.join(subject.path)}"
        return f"{self.snapshot.segments.name[segment]}: chunk {kind}{of}"


def readable(size_classes: np.ndarray | None, name: str) -> np.ndarray:
    """Return the size classes of the filters of a segment. Raises IndexFault where they are unreadable."""
    if size_classes is None:
        raise IndexFault(f"{name}: the size classes of its filters cannot be read")
    return size_classes


def _batches(items: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Split items into batches: what is read is in memory twice until it is filled in."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _sound(arrays: Arrays | IndexFault) -> Arrays:
    """Return the arrays of a chunk, or raise its fault."""
    if isinstance(arrays, IndexFault):
        raise arrays
    return arrays
