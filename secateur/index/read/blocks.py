"""Numbered blocks: their locations and the statistics that stages ask for.

Blocks of an index snapshot are numbered in segment order; blocks of files without a segment follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.index.model import BlockTable, is_derived
from secateur.index.segments.segment_file import PAGE
from secateur.index.zones.page_locations import BlockLocations, concat_locations, unknown_locations
from secateur.index.zones.page_statistics import PageTable, take_pages
from secateur.index.zones.zonemap import ZoneMap, concat
from secateur.pruning.bounds.zones import Zones, concat_zones, unknown_zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.variant_paths import is_variant_path
from secateur.pruning.report import Counts
from secateur.pruning.statistics import Pages
from secateur.ragged import offsets_of
from secateur.values.kinds import kind_of, ordered_kind

LOOSE = -1  # segment number of blocks outside every segment


class OpenFile(Protocol):
    """An open file of the table, with the statistics of its footer."""

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap: ...


@dataclass(frozen=True)
class LooseBlocks:
    """Blocks of files without a segment; `blocks.file` is the live file of each block."""

    blocks: BlockTable
    sources: Sequence[OpenFile]  # the files that hold these blocks, in order

    def zones(self, column: Field) -> Zones:
        """Return the zone maps of an ordered column; tuples of a sort key and expressions are unknown."""
        if not _is_in_files(column):
            return unknown_zones(ordered_kind(column.type), len(self.blocks))
        return self._zone_map(column).zones(self.blocks.row_count)

    def null_counts(self, column: Field) -> np.ndarray:
        """Return the NULL count of an ordered column in every block; -1 where unknown."""
        return self._zone_map(column).null_count if _is_in_files(column) else np.full(len(self.blocks), -1)

    def _zone_map(self, column: Field) -> ZoneMap:
        return concat([source.zone_map(column.path, column.type) for source in self.sources])

    def followed_by(self, others: LooseBlocks) -> LooseBlocks:
        """Return these blocks, then `others`."""
        pairs = zip(vars(self.blocks).values(), vars(others.blocks).values(), strict=True)
        return LooseBlocks(BlockTable(*map(np.concatenate, pairs)), [*self.sources, *others.sources])


def _is_in_files(column: Field) -> bool:
    """Whether footers may know a column: those of the table, and values at paths into VARIANT."""
    return is_variant_path(column.path) or not is_derived(column.path)


class BlockSource(Protocol):
    """What opened blocks need for their statistics: the index, restricted to the table's live files."""

    @property
    def total(self) -> int:
        """The number of blocks in segments; loose blocks follow."""

    @property
    def loose(self) -> LooseBlocks | None: ...

    def file_zones(self, column: Field) -> Zones | None:
        """Return what the names of the live files say about a column."""

    def is_indexed(self, column: Field) -> bool: ...

    def has(self, kind: str, column: Field) -> bool:
        """Whether some segment has a chunk of a kind for a column."""

    def segment_of(self, numbers: np.ndarray) -> np.ndarray: ...

    def segments_of(self, numbers: np.ndarray) -> np.ndarray: ...

    def tables_at(self, numbers: np.ndarray) -> list[tuple[int, BlockTable, np.ndarray | slice]]: ...

    def live_of(self, group: int, file: np.ndarray) -> np.ndarray: ...

    def zones_at(self, column: Field, numbers: np.ndarray) -> Sequence[Zones]:
        """Return the zone maps of an indexed column for the given blocks of segments, in parts."""

    def null_counts(self, column: Field, segments: np.ndarray) -> Sequence[np.ndarray | None]:
        """Return an indexed column's NULL counts in the blocks of every segment; None where unreadable."""

    def pages(self, column: Field, segments: np.ndarray) -> Sequence[PageTable | None]: ...

    def block_begin(self, segment: int) -> int: ...

    def page_locations(self, segments: Sequence[tuple[int, np.ndarray]]) -> BlockLocations:
        """Return the page locations of chosen blocks of some segments."""

    def placed(self, segments: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """Return where split readers see chosen blocks of some segments begin, and their size in bytes."""


@dataclass(frozen=True)
class OpenedBlocks:
    """Some blocks, ascending by number; see :class:`secateur.pruning.statistics.Blocks`.

    Whatever the index cannot deliver is unknown and noted as a fault.
    """

    source: BlockSource
    numbers: np.ndarray  # int64, ascending

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: np.ndarray | slice) -> OpenedBlocks:
        """Return the given blocks only, in ascending order."""
        return replace(self, numbers=self.numbers[indices])

    @cached_property
    def _indexed(self) -> np.ndarray:
        """The numbers of the blocks that lie in segments."""
        return self.numbers[: np.searchsorted(self.numbers, self.source.total)]

    @cached_property
    def _loose(self) -> np.ndarray:
        """Positions of the remaining blocks among the loose blocks."""
        return self.numbers[len(self._indexed) :] - self.source.total

    @cached_property
    def _tables(self) -> list[tuple[int, BlockTable, np.ndarray | slice]]:
        """The block tables of the blocks in segments: (group, its table, positions in the table)."""
        return self.source.tables_at(self._indexed)

    @cached_property
    def file(self) -> np.ndarray:
        live = [self.source.live_of(group, table.file[within]) for group, table, within in self._tables]
        return self._with_loose("file", live)

    @cached_property
    def row_group(self) -> np.ndarray:
        return self._gathered("row_group")

    @cached_property
    def row_count(self) -> np.ndarray:
        return self._gathered("row_count")

    @cached_property
    def byte_count(self) -> np.ndarray:
        return self._gathered("byte_count")

    def _gathered(self, name: str) -> np.ndarray:
        return self._with_loose(name, [getattr(table, name)[within] for _, table, within in self._tables])

    def _with_loose(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        """Concatenate the arrays of the blocks in segments with that of the loose blocks."""
        if len(self._loose) and self.source.loose is not None:
            parts = [*parts, getattr(self.source.loose.blocks, name)[self._loose]]
        dtype = np.int32 if name == "row_group" else np.int64
        return np.concatenate([np.zeros(0, dtype), *(part.astype(dtype, copy=False) for part in parts)])

    @cached_property
    def segment(self) -> np.ndarray:
        return np.concatenate([self.source.segment_of(self._indexed), np.full(len(self._loose), LOOSE)])

    @cached_property
    def counts(self) -> Counts:
        """Segments, files, blocks, rows and bytes. Blocks of one segment or file are adjacent in number order."""
        parts = [(table, within) for _, table, within in self._tables]
        if len(self._loose) and self.source.loose is not None:
            parts.append((self.source.loose.blocks, self._loose))
        counts = np.array([_counts(table, within) for table, within in parts] or [(0, 0, 0)])
        files, rows, size = counts.sum(axis=0).tolist()
        segments = len(self.source.segments_of(self._indexed))
        return Counts(segments=segments, files=files, blocks=len(self), rows=rows, bytes=size)

    @cached_property
    def _columns(self) -> dict[Field, Zones | None]:
        """The zone maps gathered so far."""
        return {}

    def zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column; unreadable ones are unknown."""
        if column not in self._columns:
            self._columns[column] = self._gathered_zones(column)
        return self._columns[column]

    def _gathered_zones(self, column: Field) -> Zones | None:
        by_name = self.source.file_zones(column)
        if by_name is not None:
            return by_name.take(self.file)
        kind = kind_of(column.type)
        if kind is None or not len(self) or not (self.source.is_indexed(column) or len(self._loose)):
            return None
        parts: list[Zones] = []
        if len(self._indexed):
            indexed = self.source.is_indexed(column)
            nothing = [unknown_zones(kind, len(self._indexed))]
            parts += self.source.zones_at(column, self._indexed) if indexed else nothing
        if len(self._loose) and self.source.loose is not None:
            parts.append(self.source.loose.zones(column).take(self._loose))
        return concat_zones(parts)

    def null_counts(self, column: Field) -> np.ndarray:
        """Return a column's NULL count in every block; -1 where it is unknown or comes from file names only."""
        counts_of_blocks = np.full(len(self), -1)
        if kind_of(column.type) is None or self.source.file_zones(column) is not None:
            return counts_of_blocks
        if len(self._indexed) and self.source.is_indexed(column):
            parts = list(self._by_segment())
            counts = self.source.null_counts(column, np.array([segment for segment, _ in parts], np.int64))
            known = [
                np.full(len(at), -1) if counts_of_segment is None else counts_of_segment[at]
                for (_, at), counts_of_segment in zip(parts, counts, strict=True)
            ]
            counts_of_blocks[: len(self._indexed)] = np.concatenate(known)
        if len(self._loose) and self.source.loose is not None:
            counts_of_blocks[len(self._indexed) :] = self.source.loose.null_counts(column)[self._loose]
        return counts_of_blocks

    def among(self, numbers: np.ndarray) -> np.ndarray:
        """Mark the blocks in `numbers` (ascending), and all loose blocks: bool of shape (n,)."""
        is_among = np.zeros(len(self), bool)
        if len(numbers):
            is_among = numbers.take(np.searchsorted(numbers, self.numbers), mode="clip") == self.numbers
        is_among[len(self._indexed) :] = True
        return is_among

    def has_pages(self, column: Field) -> bool:
        """Whether some block may have known pages of a column."""
        return len(self._indexed) > 0 and self.source.has(PAGE, column)

    def pages(self, column: Field) -> Pages | None:
        """Return the pages of a column; None where no page index covers it."""
        kind = kind_of(column.type)
        if kind is None or self.source.file_zones(column) is not None:
            return None
        parts = list(self._by_segment())
        page_tables = self.source.pages(column, np.array([segment for segment, _ in parts], np.int64))
        if all(table is None for table in page_tables):
            return None
        zones = self.zones(column)
        assert zones is not None, "a column with pages is indexed"
        tables, at = [], 0
        for (_, within), table in zip(parts, page_tables, strict=True):
            here = slice(at, at + len(within))
            tables.append(_whole(zones.take(here)) if table is None else _taken(table, within, self.row_count[here]))
            at += len(within)
        if at < len(self):
            tables.append(_whole(zones.take(slice(at, len(self)))))
        return _concat(tables)

    def page_locations(self) -> BlockLocations:
        """Return the page locations of all these blocks, read at once by exact ranges; unknown if not in the index."""
        return concat_locations(
            [self.source.page_locations(list(self._by_segment())), unknown_locations(len(self._loose))]
        )

    @property
    def placed(self) -> np.ndarray:
        """Where split readers see every block begin, and its size in bytes: int64 of shape (2, n); -1 = unknown."""
        return np.concatenate(
            [self.source.placed(list(self._by_segment())), unknown_locations(len(self._loose)).placed], axis=1
        )

    def _by_segment(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield every segment with blocks here, ascending, and the positions of its blocks within it."""
        segment = self.source.segment_of(self._indexed)
        cuts = np.flatnonzero(np.diff(segment, prepend=-1, append=-1)) if len(segment) else np.zeros(0, np.int64)
        for first, end in pairwise(cuts.tolist()):
            number = int(segment[first])
            yield number, self._indexed[first:end] - self.source.block_begin(number)


def _counts(table: BlockTable, within: np.ndarray | slice) -> tuple[int, int, int]:
    """Count files, rows and bytes of blocks of one table, where blocks of a file are adjacent."""
    return _runs(table.file[within]), int(table.row_count[within].sum()), int(table.byte_count[within].sum())


def _runs(values: np.ndarray) -> int:
    """Count the runs of equal values."""
    return int(np.count_nonzero(values[1:] != values[:-1])) + 1 if len(values) else 0


def _taken(table: PageTable, blocks: np.ndarray, block_rows: np.ndarray) -> Pages:
    chosen = take_pages(table, blocks)
    return Pages(chosen.offsets, chosen.first_row, chosen.zone_map.zones(chosen.row_counts(block_rows)))


def _whole(zones: Zones) -> Pages:
    """Return every block as one page."""
    n = len(zones.value)
    return Pages(np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int64), zones)


def _concat(parts: Sequence[Pages]) -> Pages:
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    first_row = np.concatenate([part.first_row for part in parts])
    return Pages(offsets_of(counts), first_row, concat_zones([part.zones for part in parts]))
