"""Candidate blocks of a query, opened: where each lies, and its statistics as stages ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from secateur.index.bitsliced import Hashes, hash_keys
from secateur.index.cache import ByteCache
from secateur.index.pages import PageTable, concat_pages, take_pages, whole_blocks
from secateur.index.zonemap import ZoneMap, concat, unknown
from secateur.pruning.predicate.bound import Field
from secateur.pruning.report import Faults
from secateur.pruning.statistics import Pages
from secateur.pruning.zones import Zones
from secateur.values import Key, kind_of

Value = TypeVar("Value")
LOOSE = -1  # the segment number of blocks that no segment holds


class BlockSource(Protocol):
    """Where the statistics of some blocks come from: a segment file, or footers."""

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType, n: int) -> ZoneMap | None: ...

    def pages(self, path: tuple[str, ...], type_: pa.DataType, block_rows: np.ndarray) -> PageTable | None: ...

    def may_contain(self, path: tuple[str, ...], type_: pa.DataType, hashes: Hashes, n: int) -> np.ndarray | None: ...


class LiveFiles(Protocol):
    """The files of a table snapshot, and what their names tell."""

    @property
    def paths(self) -> pa.Array: ...

    @property
    def size(self) -> np.ndarray: ...

    @property
    def modified(self) -> np.ndarray: ...

    def zones(self, column: Field) -> Zones | None: ...


@dataclass(frozen=True)
class CoveredFiles:
    """The live files with the counts that the index knows of them; -1 where it does not."""

    live: LiveFiles
    block_count: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray

    @property
    def paths(self) -> pa.Array:
        return self.live.paths

    def zones(self, column: Field) -> Zones | None:
        return self.live.zones(column)


@dataclass(frozen=True)
class Part:
    """Blocks of one source: `keep` are their positions there, of `total`; `file` is the live file of each."""

    source: BlockSource
    key: str  # for the cache; empty for sources that are not cached
    number: int
    total_rows: np.ndarray  # row counts of all blocks of the source
    keep: np.ndarray
    file: np.ndarray
    row_group: np.ndarray
    byte_count: np.ndarray


@dataclass(frozen=True)
class Origin:
    """Where opened blocks come from, and how trouble in reading them is noted."""

    parts: Sequence[Part]
    files: CoveredFiles
    cache: ByteCache
    faults: Faults


_ARRAYS = ("part", "within", "file", "segment", "row_group", "row_count", "byte_count")


@dataclass(frozen=True)
class OpenedBlocks:
    """Candidate blocks, ordered by part; see :class:`secateur.pruning.statistics.Blocks`.

    What cannot be read of the index is unknown, and noted as a fault.
    """

    origin: Origin
    part: np.ndarray  # position among the parts, ascending
    within: np.ndarray  # position within the part
    file: np.ndarray
    segment: np.ndarray
    row_group: np.ndarray
    row_count: np.ndarray
    byte_count: np.ndarray
    columns: dict[Field, Zones | None] = field(default_factory=dict)  # those read so far

    def __len__(self) -> int:
        return len(self.file)

    def take(self, indices: np.ndarray) -> OpenedBlocks:
        """The given blocks only, in ascending order; columns read so far stay read."""
        arrays = {name: getattr(self, name)[indices] for name in _ARRAYS}
        columns = {column: None if zones is None else zones.take(indices) for column, zones in self.columns.items()}
        return replace(self, **arrays, columns=columns)

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of a column; what cannot be read is unknown."""
        if column not in self.columns:
            self.columns[column] = self._load_zones(column)
        return self.columns[column]

    def _load_zones(self, column: Field) -> Zones | None:
        by_name = self.origin.files.zones(column)
        if by_name is not None:
            return by_name.take(self.file)
        kind = kind_of(column.type)
        if kind is None or not len(self):
            return None
        maps = [self._zone_map(part, column).take(self._positions(i)) for i, part in self._present()]
        return concat(maps).zones(self.row_count)

    def _zone_map(self, part: Part, column: Field) -> ZoneMap:
        """The zone map over all blocks of a part's source; unknown where it has none or cannot be read."""
        n = len(part.total_rows)
        found: ZoneMap | None = None
        with self.origin.faults.tolerated():
            found = self._load(part, ("zone", column), lambda: part.source.zone_map(column.path, column.type, n))
        kind = kind_of(column.type)
        assert kind is not None
        return unknown(kind, n) if found is None else found

    def may_contain(self, column: Field, keys: Sequence[Key]) -> np.ndarray | None:
        """Which blocks may hold any of the keys; None where no filter covers the column."""
        kind = kind_of(column.type)
        assert kind is not None
        hashes = hash_keys(keys, kind)
        masks, covered = [], False
        for i, part in self._present():
            positions = self._positions(i)
            mask: np.ndarray | None = None
            with self.origin.faults.tolerated():
                mask = part.source.may_contain(column.path, column.type, hashes, len(part.total_rows))
            covered |= mask is not None
            masks.append(np.ones(len(positions), bool) if mask is None else mask[positions])
        return np.concatenate(masks) if covered else None

    def pages(self, column: Field) -> Pages | None:
        """The pages of a column; None where no page index covers it."""
        if kind_of(column.type) is None or self.origin.files.zones(column) is not None:
            return None
        tables, paged = [], False
        for i, part in self._present():
            table: PageTable | None = None
            with self.origin.faults.tolerated():
                table = self._load(
                    part,
                    ("pages", column),
                    lambda part=part: part.source.pages(column.path, column.type, part.total_rows),  # type: ignore[misc]
                )
            paged |= table is not None
            whole = whole_blocks(self._zone_map(part, column)) if table is None else table
            tables.append(take_pages(whole, self._positions(i)))
        if not paged:
            return None
        table = concat_pages(tables)
        page_rows = table.row_counts(self.row_count)
        return Pages(table.offsets, table.first_row, table.zone_map.zones(page_rows))

    def _present(self) -> list[tuple[int, Part]]:
        """The parts of which a block is still a candidate; blocks are ordered by part."""
        return [(i, self.origin.parts[i]) for i in np.unique(self.part).tolist()]

    def _positions(self, part: int) -> np.ndarray:
        """The positions in a part's source of its blocks that are still candidates."""
        first, last = np.searchsorted(self.part, [part, part + 1])
        return self.origin.parts[part].keep[self.within[first:last]]

    def _load(self, part: Part, what: tuple[str, Field], load: Callable[[], Value]) -> Value:
        return self.origin.cache.get((part.key, *what), load) if part.key else load()


def open_blocks(origin: Origin) -> OpenedBlocks:
    """All blocks of all parts."""
    parts = origin.parts
    return OpenedBlocks(
        origin,
        part=np.repeat(np.arange(len(parts)), [len(p.keep) for p in parts]),
        within=_joined([np.arange(len(p.keep)) for p in parts], np.int64),
        file=_joined([p.file for p in parts], np.int64),
        segment=_joined([np.full(len(p.keep), p.number) for p in parts], np.int64),
        row_group=_joined([p.row_group for p in parts], np.int32),
        row_count=_joined([p.total_rows[p.keep] for p in parts], np.int64),
        byte_count=_joined([p.byte_count for p in parts], np.int64),
    )


def _joined(arrays: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype)
