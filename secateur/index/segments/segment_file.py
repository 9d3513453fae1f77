"""A segment file: the blocks of some files, and per column their zone maps, pages and postings.

docs/format.md, "Segment files". Column number c of the segment's ``columns`` has the chunks ``zone/c``, ``page/c`` and
``place/c``, so a predicate on two columns reads the chunks of those two; filter number f has the chunk ``size-class/f``
or ``posting/f``. Page locations are separate (:mod:`secateur.index.zones.page_locations`). Encoders and decoders of
every kind of chunk are kept side by side in this module; the snapshot knows where each chunk lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.checked_matrix import Matrix, salt_of, signed_salt
from secateur.index.container.index_file import SEGMENT, Place, Writer, is_repeated
from secateur.index.filters.ordered import Ordered, OrderedTable, ordered_arrays, ordered_table_of
from secateur.index.filters.page_bytes import BAND
from secateur.index.filters.postings import Form, Postings, PostingTable, posting_arrays, posting_table_of
from secateur.index.filters.row_lists import ListTable, RowLists, list_arrays, list_table_of
from secateur.index.filters.size_class import NONE
from secateur.index.identity import FileIdentity
from secateur.index.model import BlockTable, IndexedColumn, type_name
from secateur.index.zones.gaps import gap_arrays, gaps_of
from secateur.index.zones.page_locations import BlockLocations, locations_array, table_arrays
from secateur.index.zones.page_statistics import PageTable, Places
from secateur.index.zones.zonemap import ZoneMap
from secateur.values.combination import same_width
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

BLOCKS, ZONE, PAGE, PLACE, SIZE_CLASS, POSTING, ORDERED_POSTING = (
    "blocks",
    "zone",
    "page",
    "place",
    "size-class",
    "posting",
    "ordered",
)  # kinds of chunks
PAGE_LOCATIONS, LOCATION_TABLE = "page-locations", "location-table"
BLOCK_KINDS = (BLOCKS, PAGE_LOCATIONS, LOCATION_TABLE)  # one of each per segment, whatever its columns
COLUMN_KINDS = (ZONE, PAGE, PLACE)  # at most one of each per column
FILTER_KINDS = (SIZE_CLASS, POSTING, ORDERED_POSTING)  # one of them per filter


@dataclass(frozen=True)
class SegmentData:
    """The contents of a segment before it is encoded."""

    files: Sequence[FileIdentity]
    blocks: BlockTable
    columns: Sequence[IndexedColumn]
    zone_maps: Sequence[ZoneMap]  # one per column
    pages: Mapping[int, PageTable] = field(default_factory=dict)
    size_classes: Mapping[int, np.ndarray] = field(
        default_factory=dict
    )  # by filter: int16 size class of every block's filter
    postings: Mapping[int, Postings] = field(default_factory=dict)  # by filter
    page_locations: BlockLocations | None = None  # None: not requested
    ordered: Mapping[int, Ordered] = field(default_factory=dict)  # by filter


@dataclass(frozen=True)
class Encoded:
    """A segment file's bytes, and where its chunks lie in them."""

    data: bytes
    places: Mapping[str, Place]


def encode_segment(segment: SegmentData) -> Encoded:
    """Encode a segment as a file."""
    writer = Writer(SEGMENT, {"columns": columns_meta(segment.columns)})
    blocks = segment.blocks
    writer.add(BLOCKS, [blocks.file, blocks.row_group, blocks.row_count, blocks.byte_count])
    add_statistics(writer, segment)
    return Encoded(writer.finish(), writer.chunks)


def columns_meta(columns: Sequence[IndexedColumn]) -> list[dict[str, object]]:
    """Return the columns as written in a table of contents."""
    return [{"path": list(c.path), "type": type_name(c.type)} for c in columns]


def add_statistics(writer: Writer, segment: SegmentData, first_column: int = 0, first_filter: int = 0) -> None:
    """Add a segment's page locations and the chunks of its columns and filters, numbered from the given numbers."""
    for c, zone_map in enumerate(segment.zone_maps, first_column):
        writer.add(f"{ZONE}/{c}", zone_arrays(zone_map))
    for c, pages in segment.pages.items():
        number = first_column + c
        writer.add(f"{PAGE}/{number}", [pages.offsets, pages.first_row, *zone_arrays(pages.zone_map)])
        if pages.places is not None:
            writer.add(f"{PLACE}/{number}", [pages.places.position, pages.places.size])
    for f, size_classes in segment.size_classes.items():
        writer.add(f"{SIZE_CLASS}/{first_filter + f}", [size_classes])
    for f, postings in segment.postings.items():
        name = f"{POSTING}/{first_filter + f}"
        matrix = writer.add_rows(name, postings.rows)
        where = np.array([matrix.at, signed_salt(matrix.salt)], np.int64)
        writer.add(name, [where, *posting_arrays(postings.table), *_list_arrays(writer, name, postings.lists)])
    for f, ordered in segment.ordered.items():
        name = f"{ORDERED_POSTING}/{first_filter + f}"
        matrix = writer.add_rows(name, ordered.bands)
        where = np.array([matrix.at, signed_salt(matrix.salt)], np.int64)
        writer.add(name, [where, *ordered_arrays(ordered.table)])
    if segment.page_locations is not None:
        writer.add_bytes(PAGE_LOCATIONS, locations_array(segment.page_locations))
        writer.add(LOCATION_TABLE, table_arrays(segment.page_locations, writer.chunks[PAGE_LOCATIONS].at))


def _list_arrays(writer: Writer, name: str, lists: RowLists | None) -> list[np.ndarray]:
    """Add the pages of row lists, and return the arrays that describe them; none where there are no lists."""
    if lists is None:
        return []
    matrix = writer.add_rows(f"{name}/rows", lists.bands)
    return [np.array([matrix.at, signed_salt(matrix.salt)], np.int64), *list_arrays(lists.table)]


def zone_arrays(zone_map: ZoneMap) -> list[np.ndarray]:
    """Return a zone map as the arrays of a chunk."""
    lower, upper = same_width([zone_map.lower, zone_map.upper])
    stored = zone_map.stored_gaps
    gaps = [] if stored is None else gap_arrays(stored)
    return [*lower.words, *upper.words, zone_map.null_count, zone_map.nan_count, *gaps]


# ---- decoding --------------------------------------------------------------------------------------------------------


def blocks_of(arrays: Sequence[np.ndarray], n: int, files: int, where: str) -> BlockTable:
    """Decode the block table of n blocks of `files` files. Raises IndexFault."""
    file, row_group, row_count, byte_count = _vectors(arrays, (_SHORT, _SHORT, _SIGNED, _SIGNED), n, where)
    ordered = n == 0 or bool(file[0] >= 0 and file[-1] < files and (file[1:] >= file[:-1]).all())
    if not ordered or min(array.min(initial=0) for array in arrays) < 0:
        raise IndexFault(f"{where}: the block table is out of range")
    return BlockTable(file, row_group, row_count, byte_count)


def zone_map_of(arrays: Sequence[np.ndarray], kind: Kind, n: int, where: str) -> ZoneMap:
    """Decode the zone map over n units. Raises IndexFault."""
    if kind is Kind.WORD and len(arrays) > _PLAIN_WORDS:
        bare = zone_map_of(arrays[:_PLAIN_WORDS], kind, n, where)
        return bare.with_stored_gaps(gaps_of(arrays[_PLAIN_WORDS:], n, where))
    words = (len(arrays) - 2) // 2
    expected = _WORDS.get(kind, (_UNSIGNED,) * max(words, 2))
    if [array.dtype for array in arrays] != [*expected, *expected, _SIGNED, _SIGNED]:
        raise IndexFault(f"{where}: these {len(arrays)} arrays are not a zone map of {kind.value} keys")
    *bounds, null_count, nan_count = _vectors(arrays, [array.dtype for array in arrays], n, where)
    if kind is Kind.BYTES and any(length.max(initial=0) > 8 * (words - 1) for length in _lengths(bounds, words)):
        raise IndexFault(f"{where}: a bound is longer than its words")
    return ZoneMap(Keys(kind, tuple(bounds[:words])), Keys(kind, tuple(bounds[words:])), null_count, nan_count)


_SIGNED, _UNSIGNED = np.dtype("<i8"), np.dtype("<u8")
_SHORT, _SIZE_CLASS = np.dtype("<i4"), np.dtype("<i2")
_PLAIN_WORDS = 4  # arrays of a zone map with WORD keys and no gaps
_WORDS = {Kind.WORD: (_SIGNED,), Kind.WIDE: (_SIGNED, _UNSIGNED)}


def _lengths(bounds: Sequence[np.ndarray], words: int) -> list[np.ndarray]:
    """Return the lengths of the bounds, without unbounded ones."""
    sides = (bounds[words - 1], bounds[2 * words - 1])
    return [length[length != np.uint64(2**64 - 1)] for length in sides]


def pages_of(arrays: Sequence[np.ndarray], kind: Kind, block_rows: np.ndarray, where: str) -> PageTable:
    """Decode the pages of blocks with `block_rows` rows. Raises IndexFault."""
    n = len(block_rows)
    if [array.dtype for array in arrays[:2]] != [_SIGNED, _SIGNED] or arrays[0].shape != (n + 1,):
        raise IndexFault(f"{where}: these are not the pages of {n} blocks")
    offsets, first_row = arrays[0], arrays[1]
    count = int(offsets[-1]) if n else 0
    if is_repeated(first_row) and count > n:  # pages of one block begin at different rows
        raise IndexFault(f"{where}: the pages are out of order")
    ordered = n == 0 or (offsets[0] == 0 and np.diff(offsets).min() >= 1 and first_row.shape == (count,))
    if not ordered or (n and not _ascending(offsets, first_row, block_rows)):
        raise IndexFault(f"{where}: the pages are out of order")
    return PageTable(offsets, first_row, zone_map_of(arrays[2:], kind, count, where))


def places_of(arrays: Sequence[np.ndarray], count: int, where: str) -> Places:
    """Decode where pages lie in their files. Raises IndexFault."""
    return Places(*_vectors(arrays, (_SIGNED, _SIGNED), count, where))


def _ascending(offsets: np.ndarray, first_row: np.ndarray, block_rows: np.ndarray) -> bool:
    """Whether the pages of every block begin at row 0 and ascend within its rows."""
    begins = first_row[offsets[:-1]] == 0
    steps = np.diff(first_row) > 0
    steps[offsets[1:-1] - 1] = True  # from the last page of a block to the first of the next
    ends = first_row[offsets[1:] - 1] < np.maximum(block_rows, 1)
    return bool(begins.all() and steps.all() and ends.all())


def size_classes_of(arrays: Sequence[np.ndarray], n: int, where: str) -> np.ndarray:
    """Decode the size class of every filter of n blocks. Raises IndexFault."""
    (size_classes,) = _vectors(arrays, (_SIZE_CLASS,), n, where)
    if size_classes.min(initial=0) < NONE:
        raise IndexFault(f"{where}: there is no filter of size class {size_classes.min()}")
    return size_classes


@dataclass(frozen=True)
class StoredLists:
    """The row lists of a segment's postings, and where their pages lie in its file."""

    table: ListTable
    bands: Matrix


@dataclass(frozen=True)
class StoredPostings:
    """The postings of a segment, and where their rows lie in its file."""

    table: PostingTable
    rows: Matrix
    lists: StoredLists | None = None  # None: they say no rows of blocks

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.table.nbytes + (0 if self.lists is None else self.lists.table.nbytes)

    @property
    def stored_bytes(self) -> int:
        """Bytes in the file, besides those in memory."""
        return self.rows.nbytes + (0 if self.lists is None else self.lists.bands.nbytes)


_OF_POSTINGS = 4  # arrays of postings without row lists


def postings_of(arrays: Sequence[np.ndarray], n: int, size: int, where: str) -> StoredPostings:
    """Decode the postings of n blocks, whose rows lie in a file of `size` bytes. Raises IndexFault."""
    (place,) = _vectors(arrays[:1], (_SIGNED,), 2, where)
    table = posting_table_of(arrays[1:_OF_POSTINGS], n, where)
    rows = _matrix(place, table.rows, table.width, size, where)
    if len(arrays) == _OF_POSTINGS:
        return StoredPostings(table, rows)
    if table.form is not Form.PAIRS and table.pairs:
        raise IndexFault(f"{where}: bitmaps have no pairs, and no row lists")
    (place,) = _vectors(arrays[_OF_POSTINGS : _OF_POSTINGS + 1], (_SIGNED,), 2, where)
    list_table = list_table_of(arrays[_OF_POSTINGS + 1 :], table.pairs, where)
    return StoredPostings(table, rows, StoredLists(list_table, _matrix(place, list_table.bands, BAND, size, where)))


@dataclass(frozen=True)
class StoredOrdered:
    """The ordered postings of a segment, and where their pages lie in its file."""

    table: OrderedTable
    bands: Matrix

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.table.nbytes

    @property
    def stored_bytes(self) -> int:
        """Bytes in the file, besides those in memory."""
        return self.bands.nbytes


def ordered_of(arrays: Sequence[np.ndarray], n: int, size: int, where: str) -> StoredOrdered:
    """Decode the ordered postings of n blocks, whose pages lie in a file of `size` bytes. Raises IndexFault."""
    (place,) = _vectors(arrays[:1], (_SIGNED,), 2, where)
    table = ordered_table_of(arrays[1:], n, where)
    return StoredOrdered(table, _matrix(place, table.bands, BAND, size, where))


def _matrix(place: np.ndarray, rows: int, width: int, size: int, where: str) -> Matrix:
    """Return a matrix in a file of `size` bytes. Raises IndexFault."""
    matrix = Matrix(int(place[0]), rows, width, salt_of(int(place[1])))
    if matrix.at < 0 or matrix.at + matrix.nbytes > size:
        raise IndexFault(f"{where}: the postings lie outside the file")
    return matrix


def _vectors(arrays: Sequence[np.ndarray], dtypes: Sequence[np.dtype], n: int, where: str) -> Sequence[np.ndarray]:
    """Return the arrays if they have these dtypes and n elements each. Raises IndexFault."""
    if [(array.dtype, len(array)) for array in arrays] != [(dtype, n) for dtype in dtypes]:
        shapes = ", ".join(f"{len(array)} {array.dtype}" for array in arrays)
        raise IndexFault(f"{where}: has arrays of {shapes} instead of {n} each of {', '.join(map(str, dtypes))}")
    return arrays
