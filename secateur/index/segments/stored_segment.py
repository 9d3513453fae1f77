"""Read stored segments back: single chunks, or everything that a snapshot knows of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, read_rows
from secateur.index.container.index_file import Place, ReadRange, check, decode_chunk
from secateur.index.filters.ordered import Ordered
from secateur.index.filters.postings import Postings
from secateur.index.filters.row_lists import RowLists
from secateur.index.model import ORDERED, POSTINGS, BlockTable, Store
from secateur.index.segments.segment_file import (
    BLOCKS,
    LOCATION_TABLE,
    ORDERED_POSTING,
    PAGE,
    PLACE,
    POSTING,
    SIZE_CLASS,
    ZONE,
    SegmentData,
    blocks_of,
    ordered_of,
    pages_of,
    places_of,
    postings_of,
    size_classes_of,
    zone_map_of,
)
from secateur.index.segments.segment_table import Directory
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.page_locations import BlockLocations, location_table_of
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.zonemap import ZoneMap, unknown
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import ordered_kind


@dataclass(frozen=True)
class StoredSegment:
    """One segment of a snapshot; every method raises IndexFault for what cannot be read."""

    snapshot: Snapshot
    number: int
    read: ReadRange  # reads ranges of its file

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.snapshot.segments.name[self.number]

    @property
    def block_count(self) -> int:
        return int(self.snapshot.segments.block_count[self.number])

    def blocks(self) -> BlockTable:
        """Read the block table."""
        arrays = self._arrays(BLOCKS, self.snapshot.directory(BLOCKS, None))
        if arrays is None:
            raise IndexFault(f"{self.name}: the block table is missing")
        files = int(self.snapshot.segments.file_count[self.number])
        return blocks_of(arrays, self.block_count, files, self._where(BLOCKS))

    def zone_map(self, c: int) -> ZoneMap:
        """Read the zone map of a column over the blocks; all unknown where there is none."""
        zone_map = self.known_zone_map(c)
        return unknown(ordered_kind(self._field(c).type), self.block_count) if zone_map is None else zone_map

    def known_zone_map(self, c: int) -> ZoneMap | None:
        """Read the zone map of a column over the blocks; None where there is none."""
        column = self._field(c)
        arrays = self._arrays(ZONE, self.snapshot.directory(ZONE, column))
        if arrays is None:
            return None
        return zone_map_of(arrays, ordered_kind(column.type), self.block_count, self._where(ZONE))

    def pages(self, c: int, block_rows: np.ndarray) -> PageTable | None:
        """Read the pages of a column with their places; None where there are none."""
        column = self._field(c)
        arrays = self._arrays(PAGE, self.snapshot.directory(PAGE, column))
        if arrays is None:
            return None
        pages = pages_of(arrays, ordered_kind(column.type), block_rows, self._where(PAGE))
        places = self._arrays(PLACE, self.snapshot.directory(PLACE, column))
        if places is None:
            return pages
        count = len(pages.first_row)
        return PageTable(pages.offsets, pages.first_row, pages.zone_map, places_of(places, count, self._where(PLACE)))

    def size_classes(self, f: int) -> np.ndarray:
        """Read the size class of every block's filter."""
        arrays = self._arrays(SIZE_CLASS, self.snapshot.filter_directory(SIZE_CLASS, f))
        if arrays is None:
            raise IndexFault(f"{self.name}: the size classes of a filter are missing")
        return size_classes_of(arrays, self.block_count, self._where(SIZE_CLASS))

    def postings(self, f: int) -> Postings:
        """Read the postings of a filter with all their rows."""
        arrays = self._arrays(POSTING, self.snapshot.filter_directory(POSTING, f))
        if arrays is None:
            raise IndexFault(f"{self.name}: the postings of a filter are missing")
        size = int(self.snapshot.segments.size[self.number])
        stored = postings_of(arrays, self.block_count, size, self._where(POSTING))
        rows = self._every_row(stored.rows)
        if not self.snapshot.filters[f].rows:
            return Postings(stored.table, rows)
        if stored.lists is None:
            raise IndexFault(f"{self._where(POSTING)}: the row lists are missing")
        return Postings(stored.table, rows, RowLists(stored.lists.table, self._every_row(stored.lists.bands)))

    def ordered(self, f: int) -> Ordered:
        """Read the ordered postings of a filter with all their pages."""
        arrays = self._arrays(ORDERED_POSTING, self.snapshot.filter_directory(ORDERED_POSTING, f))
        if arrays is None:
            raise IndexFault(f"{self.name}: the ordered postings of a filter are missing")
        size = int(self.snapshot.segments.size[self.number])
        stored = ordered_of(arrays, self.block_count, size, self._where(ORDERED_POSTING))
        return Ordered(stored.table, self._every_row(stored.bands, ORDERED_POSTING))

    def _every_row(self, matrix: Matrix, kind: str = POSTING) -> np.ndarray:
        every, where = np.arange(matrix.rows), self._where(kind)
        return read_rows(matrix, every, lambda ranges: [self.read(*range_) for range_ in ranges], where)

    def page_locations(self) -> BlockLocations | None:
        """Read the page locations of all blocks; None where there are none."""
        arrays = self._arrays(LOCATION_TABLE, self.snapshot.directory(LOCATION_TABLE, None))
        if arrays is None:
            return None
        size, where = int(self.snapshot.segments.size[self.number]), self._where(LOCATION_TABLE)
        table = location_table_of(arrays, self.block_count, size, where)
        return table.page_locations(self.read(*table.range), where)

    def _arrays(self, kind: str, directory: Directory | None) -> list[np.ndarray] | None:
        if directory is None or not directory.size[self.number]:
            return None
        place = Place(*(int(column[self.number]) for column in (directory.at, directory.size, directory.crc)))
        where = self._where(kind)
        return decode_chunk(check(self.read(place.at, place.size), place, where), where)

    def _field(self, c: int) -> Field:
        column = self.snapshot.columns[c]
        return Field(column.path, column.type)

    def _where(self, kind: str) -> str:
        return f"{self.name}: chunk {kind}"


def stored_segment(store: Store, snapshot: Snapshot, number: int) -> StoredSegment:
    """Return a segment whose chunks are read one by one."""
    name = snapshot.segments.name[number]
    return StoredSegment(snapshot, number, lambda at, size: store.read(name, at, size))


def read_segment(store: Store, snapshot: Snapshot, number: int) -> SegmentData:
    """Read everything of a segment except the size classes of its filters, in one read. Raises IndexFault."""
    size = int(snapshot.segments.size[number])
    data = memoryview(store.read(snapshot.segments.name[number], 0, size))

    def read(at: int, count: int) -> bytes:
        return bytes(data[at : at + count])

    stored = StoredSegment(snapshot, number, read)
    blocks = stored.blocks()
    columns = range(len(snapshot.columns))
    pages = {c: table for c in columns if (table := stored.pages(c, blocks.row_count.astype(np.int64))) is not None}
    postings = {f: stored.postings(f) for f, filter_ in enumerate(snapshot.filters) if filter_.kind == POSTINGS}
    zone_maps = [stored.zone_map(c) for c in columns]
    ordered = {f: stored.ordered(f) for f, filter_ in enumerate(snapshot.filters) if filter_.kind == ORDERED}
    return SegmentData((), blocks, snapshot.columns, zone_maps, pages, {}, postings, stored.page_locations(), ordered)
