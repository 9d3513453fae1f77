"""A segment file: the blocks of some files, and by column their zone maps, pages and bloom filters.

docs/format.md, "Segment files". The column with number c of the segment's ``columns`` has its arrays under
``zone/c/...``, ``page/c/...`` and ``bloom/c/...``, so a predicate on two columns reads the arrays of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index import bitsliced
from secateur.index.codec import SEGMENT, Contents, ReadRange, ReadRanges, Writer
from secateur.index.model import BlockTable, IndexedColumn, type_name, type_of_name
from secateur.index.pages import PageTable
from secateur.index.zonemap import ZoneMap
from secateur.values import Keys, Kind, kind_of, same_keys


@dataclass(frozen=True)
class BlockFilters:
    """The bloom filters of one column: per block the log2 of its bits (-1: none) and the packed filter."""

    log2_bits: np.ndarray  # int8 of shape (n_blocks,)
    filters: Sequence[np.ndarray | None]
    probes: int


@dataclass(frozen=True)
class SegmentData:
    """What a build knows of a segment before it is encoded."""

    files: Sequence[tuple[str, int, int]]  # path below the table, size, modified (ns)
    blocks: BlockTable
    columns: Sequence[IndexedColumn]
    zone_maps: Sequence[ZoneMap]  # one per column
    pages: Mapping[int, PageTable] = field(default_factory=dict)
    filters: Mapping[int, BlockFilters] = field(default_factory=dict)


def encode_segment(segment: SegmentData) -> bytes:
    """The bytes of a segment file."""
    writer = Writer(
        SEGMENT,
        {
            "files": [list(file) for file in segment.files],
            "columns": [{"path": list(c.path), "type": type_name(c.type)} for c in segment.columns],
            "probes": {str(c): filters.probes for c, filters in segment.filters.items()},
        },
    )
    for name in ("file", "row_group", "row_count", "byte_count"):
        writer.add(f"block/{name}", getattr(segment.blocks, name))
    for c, zone_map in enumerate(segment.zone_maps):
        add_zone_map(writer, f"zone/{c}", zone_map)
    for c, pages in segment.pages.items():
        for name in ("offsets", "first_row", "position", "size"):
            writer.add(f"page/{c}/{name}", getattr(pages, name))
        add_zone_map(writer, f"page/{c}", pages.zone_map)
    for c, filters in segment.filters.items():
        writer.add(f"bloom/{c}/log2_bits", filters.log2_bits)
        for size in np.unique(filters.log2_bits[filters.log2_bits >= 0]):
            chosen = [
                f for f, bits in zip(filters.filters, filters.log2_bits, strict=True) if bits == size and f is not None
            ]
            writer.add_rows(f"bloom/{c}/{size}", bitsliced.transpose(chosen))
    return writer.finish()


def add_zone_map(writer: Writer, prefix: str, zone_map: ZoneMap) -> None:
    """Add the arrays of a zone map under a prefix."""
    for side, keys in (("lower", zone_map.lower), ("upper", zone_map.upper)):
        for i, word in enumerate(keys.words):
            writer.add(f"{prefix}/{side}/{i}", word)
    writer.add(f"{prefix}/null_count", zone_map.null_count)
    writer.add(f"{prefix}/nan_count", zone_map.nan_count)


def read_zone_map(contents: Contents, prefix: str, kind: Kind, n: int, read: ReadRange) -> ZoneMap:
    """The zone map under a prefix. Raises IndexFault unless all its arrays have n elements of the right types."""
    arrays = [_vector(contents, f"{prefix}/{name}", n, read) for name in ("null_count", "nan_count")]
    lower, upper = (_read_keys(contents, f"{prefix}/{side}", kind, n, read) for side in ("lower", "upper"))
    return ZoneMap(lower, upper, *arrays)


_WORD_TYPES = {Kind.WORD: ("<i8",), Kind.WIDE: ("<i8", "<u8")}


def _read_keys(contents: Contents, prefix: str, kind: Kind, n: int, read: ReadRange) -> Keys:
    count = 0
    while f"{prefix}/{count}" in contents:
        count += 1
    words = tuple(_vector(contents, f"{prefix}/{i}", n, read) for i in range(count))
    expected = _WORD_TYPES.get(kind, ("<u8",) * max(count, 2))
    if tuple(word.dtype.newbyteorder("<").str for word in words) != expected:
        raise IndexFault(f"{contents.name}: {prefix} has no words of a {kind.value} key")
    return Keys(kind, words)


def _vector(contents: Contents, section: str, n: int, read: ReadRange) -> np.ndarray:
    array = contents.array(section, read)
    if array.shape != (n,):
        raise IndexFault(f"{contents.name}: section {section} has shape {array.shape} instead of ({n},)")
    return array


class Segment:
    """A segment file opened for reading: every method reads just the arrays that it names, and checks them."""

    def __init__(self, contents: Contents, read: ReadRange, read_many: ReadRanges) -> None:
        self._contents, self._read, self._read_many = contents, read, read_many
        self.columns = _columns(contents)

    @property
    def files(self) -> list[tuple[str, int, int]]:
        """The files whose blocks are here: path, size, modified."""
        try:
            return [(str(path), int(size), int(modified)) for path, size, modified in self._contents.meta["files"]]
        except (KeyError, TypeError, ValueError) as error:
            raise IndexFault(f"{self._contents.name}: the list of files is malformed: {error}") from None

    def blocks(self) -> BlockTable:
        """The block table; every block names a file of the segment."""
        row_count = self._contents.array("block/row_count", self._read)
        n = len(row_count)
        rest = [_vector(self._contents, f"block/{name}", n, self._read) for name in ("file", "row_group", "byte_count")]
        file, row_group, byte_count = rest
        if n and not (0 <= file.min() <= file.max() < len(self.files) and row_group.min() >= 0 <= row_count.min()):
            raise IndexFault(f"{self._contents.name}: the block table is out of range")
        return BlockTable(file, row_group, row_count, byte_count)

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType, n: int) -> ZoneMap | None:
        """The zone map of a column over the n blocks, or None where the segment has none of that type."""
        c = self._number(path, type_)
        return None if c is None else read_zone_map(self._contents, f"zone/{c}", _kind(type_), n, self._read)

    def pages(self, path: tuple[str, ...], type_: pa.DataType, block_rows: np.ndarray) -> PageTable | None:
        """The pages of a column, or None where the segment holds none."""
        c = self._number(path, type_)
        if c is None or f"page/{c}/offsets" not in self._contents:
            return None
        n = len(block_rows)
        offsets = _vector(self._contents, f"page/{c}/offsets", n + 1, self._read)
        count = int(offsets[-1]) if n else 0
        names = ("first_row", "position", "size")
        first_row, position, size = (_vector(self._contents, f"page/{c}/{name}", count, self._read) for name in names)
        if n and (offsets[0] != 0 or np.diff(offsets).min() < 1 or not _ascending(offsets, first_row, block_rows)):
            raise IndexFault(f"{self._contents.name}: the pages of column {c} are out of order")
        zone_map = read_zone_map(self._contents, f"page/{c}", _kind(type_), count, self._read)
        return PageTable(offsets, first_row, position, size, zone_map)

    def may_contain(
        self, path: tuple[str, ...], type_: pa.DataType, hashes: bitsliced.Hashes, n: int
    ) -> np.ndarray | None:
        """Which of the n blocks may hold any of the hashed values, or None where there is no filter."""
        c = self._number(path, type_)
        if c is None or f"bloom/{c}/log2_bits" not in self._contents:
            return None
        probes = self._probes(c)
        log2_bits = _vector(self._contents, f"bloom/{c}/log2_bits", n, self._read)
        result = np.ones(n, bool)
        for size in np.unique(log2_bits[log2_bits >= 0]).tolist():
            members = np.flatnonzero(log2_bits == size)

            def read_rows(rows: np.ndarray, section: str = f"bloom/{c}/{size}") -> np.ndarray:
                return self._contents.rows(section, rows, self._read_many)

            result[members] = bitsliced.probe(hashes, probes, size, len(members), read_rows)
        return result

    def _probes(self, c: int) -> int:
        probes = self._contents.meta.get("probes", {}).get(str(c))
        if not isinstance(probes, int) or not 1 <= probes <= bitsliced.MOST_PROBES:
            raise IndexFault(f"{self._contents.name}: the bloom filter of column {c} has {probes!r} probes per value")
        return probes

    def _number(self, path: tuple[str, ...], type_: pa.DataType) -> int | None:
        """The number of a column whose keys are those of the type asked for."""
        for c, column in enumerate(self.columns):
            if column.path == path:
                return c if same_keys(column.type, type_) else None
        return None

    def verify(self) -> list[str]:
        """Every fault found by reading every array and every row of the file."""
        return self._contents.verify(self._read)


def _kind(type_: pa.DataType) -> Kind:
    kind = kind_of(type_)
    if kind is None:
        raise IndexFault(f"type {type_} has no keys")
    return kind


def _columns(contents: Contents) -> list[IndexedColumn]:
    try:
        described: list[dict[str, Any]] = contents.meta["columns"]
        return [IndexedColumn(tuple(map(str, c["path"])), type_of_name(c["type"])) for c in described]
    except (KeyError, TypeError, AttributeError) as error:
        raise IndexFault(f"{contents.name}: the columns are malformed: {error}") from None


def _ascending(offsets: np.ndarray, first_row: np.ndarray, block_rows: np.ndarray) -> bool:
    """Whether the pages of every block begin at row 0 and ascend within its rows."""
    begins = first_row[offsets[:-1]] == 0
    steps = np.diff(first_row) > 0
    steps[offsets[1:-1] - 1] = True  # from the last page of a block to the first of the next
    ends = first_row[offsets[1:] - 1] < np.maximum(block_rows, 1)
    return bool(begins.all() and steps.all() and ends.all())
