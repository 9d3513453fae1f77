"""The index seen through the live files of its table: what the pipeline prunes with.

An index entry belongs to a file *identity* (path, size, modification time). A live file without an entry of its own
identity is not covered: its blocks come from its footer. So an index that is stale, partial or broken answers
for what it knows and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IndexFault
from secateur.index import btree
from secateur.index.bitsliced import Hashes, hash_keys
from secateur.index.cache import ByteCache
from secateur.index.codec import SEGMENT, read_contents
from secateur.index.model import BlockTable, Store
from secateur.index.pages import PageTable, concat_pages, take_pages, whole_blocks
from secateur.index.segment import Segment
from secateur.index.snapshot import Snapshot, open_snapshot, snapshot_numbers
from secateur.index.zonemap import ZoneMap, concat, unknown
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Faults
from secateur.pruning.statistics import Pages, Zones
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


FooterReader = Callable[[np.ndarray], tuple[BlockTable, BlockSource]]


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


class OpenedBlocks:
    """Candidate blocks of a query; their columns are read from the index when a stage asks for them."""

    def __init__(self, parts: Sequence[Part], files: CoveredFiles, cache: ByteCache, faults: Faults) -> None:
        self._parts, self._files, self._cache, self._faults = parts, files, cache, faults
        self._zones: dict[Field, Zones | None] = {}
        self.part = np.repeat(np.arange(len(parts)), [len(p.keep) for p in parts])
        self.within = np.concatenate([np.arange(len(p.keep)) for p in parts]) if parts else np.zeros(0, np.int64)
        self.file = _joined([p.file for p in parts], np.int64)
        self.segment = _joined([np.full(len(p.keep), p.number) for p in parts], np.int64)
        self.row_group = _joined([p.row_group for p in parts], np.int32)
        self.row_count = _joined([p.total_rows[p.keep] for p in parts], np.int64)
        self.byte_count = _joined([p.byte_count for p in parts], np.int64)

    def __len__(self) -> int:
        return len(self.file)

    def take(self, indices: np.ndarray) -> OpenedBlocks:
        """The given blocks only; columns read so far stay read."""
        chosen = object.__new__(OpenedBlocks)
        chosen._parts, chosen._files, chosen._cache, chosen._faults = (
            self._parts,
            self._files,
            self._cache,
            self._faults,
        )
        for name in ("part", "within", "file", "segment", "row_group", "row_count", "byte_count"):
            setattr(chosen, name, getattr(self, name)[indices])
        chosen._zones = {f: None if z is None else z.take(indices) for f, z in self._zones.items()}
        return chosen

    def zones(self, column: Field) -> Zones | None:
        """The zone maps of a column; what cannot be read is unknown."""
        if column not in self._zones:
            self._zones[column] = self._load_zones(column)
        return self._zones[column]

    def _load_zones(self, column: Field) -> Zones | None:
        by_name = self._files.zones(column)
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
        with self._faults.tolerated():
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
            with self._faults.tolerated():
                mask = part.source.may_contain(column.path, column.type, hashes, len(part.total_rows))
            covered |= mask is not None
            masks.append(np.ones(len(positions), bool) if mask is None else mask[positions])
        return np.concatenate(masks) if covered else None

    def pages(self, column: Field) -> Pages | None:
        """The pages of a column; None where no page index covers it."""
        if kind_of(column.type) is None or self._files.zones(column) is not None:
            return None
        tables, paged = [], False
        for i, part in self._present():
            table: PageTable | None = None
            with self._faults.tolerated():
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
        return [(i, self._parts[i]) for i in np.unique(self.part).tolist()]

    def _positions(self, part: int) -> np.ndarray:
        """The positions in a part's source of its blocks that are still candidates."""
        return self._parts[part].keep[self.within[self.part == part]]

    def _load(self, part: Part, what: tuple[str, Field], load: Callable[[], Value]) -> Value:
        return self._cache.get((part.key, *what), load) if part.key else load()


def _joined(arrays: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype)


class IndexCatalog:
    """The index of a table, seen through its live files; see :class:`secateur.pruning.statistics.Catalog`."""

    def __init__(
        self,
        live: LiveFiles,
        store: Store,
        snapshot: Snapshot | None,
        read_footers: FooterReader,
        cache: ByteCache,
        faults: Faults,
    ) -> None:
        self._store, self._cache, self._faults, self._read_footers = store, cache, faults, read_footers
        self.snapshot: Snapshot | None = None
        self._live_of_stored = np.zeros(0, np.int64)
        self.files = _uncovered(live)
        with faults.tolerated():
            if snapshot is not None:
                self._live_of_stored, self.files = _match(live, snapshot)
                self.snapshot = snapshot

    def segments(self, survives: np.ndarray) -> np.ndarray:
        """The segments that hold a block of a surviving file, ascending."""
        if self.snapshot is None:
            return np.zeros(0, np.int64)
        live = self._live_of_stored
        alive = (live >= 0) & survives[live]
        return np.unique(self.snapshot.files.segment[alive]).astype(np.int64)

    def descend(self, predicate: Predicate) -> tuple[np.ndarray, str]:
        """The segments that may hold a match by the tree above them, and a note on the descent."""
        if self.snapshot is None:
            return np.zeros(0, np.int64), "no index"
        segments, visited = btree.descend(predicate, self.snapshot.row_count, self._zones_at)
        return segments, f"tree of fan-out {btree.FAN_OUT}, {visited:,} nodes visited"

    def _zones_at(self, level: int, column: Field) -> Zones | None:
        snapshot = self.snapshot
        assert snapshot is not None
        with self._faults.tolerated():
            key = (self._store.location, snapshot.number, snapshot.created, level, column)
            zone_map = self._cache.get(key, lambda: snapshot.zone_map_at(level, column))
            return None if zone_map is None else zone_map.zones(btree.row_counts(snapshot.row_count)[level])
        return None

    def open(self, survives: np.ndarray, segments: np.ndarray) -> OpenedBlocks:
        """The blocks of the surviving files: from their segments, or from footers where no segment serves."""
        loose = [np.flatnonzero(survives & (self.files.block_count < 0))]
        parts = []
        for number in segments.tolist():
            part = None
            with self._faults.tolerated():
                part = self._open_segment(number, survives)
            if part is None:
                loose.append(self._files_of(number, survives))
            elif len(part.keep):
                parts.append(part)
        files = np.unique(np.concatenate(loose))
        if len(files):
            blocks, source = self._read_footers(files)
            keep = np.arange(len(blocks))
            parts.append(
                Part(
                    source,
                    "",
                    LOOSE,
                    blocks.row_count,
                    keep,
                    blocks.file,
                    blocks.row_group,
                    blocks.byte_count,
                )
            )
        return OpenedBlocks(parts, self.files, self._cache, self._faults)

    def _open_segment(self, number: int, survives: np.ndarray) -> Part:
        assert self.snapshot is not None
        entry = self.snapshot.segments[number]
        key = f"{self._store.location}/{entry['name']}"
        segment, blocks = self._cache.get((key, "blocks"), lambda: self._read_segment(number))
        first = int(np.searchsorted(self.snapshot.files.segment, number))
        live = self._live_of_stored[first + blocks.file]
        keep = np.flatnonzero((live >= 0) & survives[live])
        return Part(
            segment,
            key,
            number,
            blocks.row_count,
            keep,
            live[keep],
            blocks.row_group[keep],
            blocks.byte_count[keep],
        )

    def _read_segment(self, number: int) -> tuple[Segment, BlockTable]:
        """A segment and its block table, once it has proven to be the one that the snapshot means."""
        assert self.snapshot is not None
        entry, files = self.snapshot.segments[number], self.snapshot.files
        segment = open_segment(self._store, entry["name"], entry["size"])
        blocks = segment.blocks()
        mine = np.flatnonzero(files.segment == number)
        expected = zip(
            files.path.take(mine).to_pylist(),
            files.size[mine].tolist(),
            files.modified[mine].tolist(),
            strict=True,
        )
        if segment.files != list(expected) or len(blocks) != entry["blocks"]:
            raise IndexFault(f"{entry['name']}: is another segment than the one that the snapshot names")
        return segment, blocks

    def _files_of(self, number: int, survives: np.ndarray) -> np.ndarray:
        assert self.snapshot is not None
        live = self._live_of_stored[self.snapshot.files.segment == number]
        return live[(live >= 0) & survives[live]]


def open_segment(store: Store, name: str, size: int) -> Segment:
    """A segment file. Raises IndexFault."""

    def read(offset: int, count: int) -> bytes:
        return store.read(name, offset, count)

    return Segment(read_contents(name, SEGMENT, size, read), read)


def current_snapshot(store: Store) -> Snapshot | None:
    """The snapshot with the highest number, or None where there is no index. Raises IndexFault."""
    numbers = snapshot_numbers(store)
    if not numbers:
        return None
    snapshot = open_snapshot(store, numbers[-1])
    if snapshot.number != numbers[-1]:
        raise IndexFault(f"snapshot {numbers[-1]} says that it is number {snapshot.number}")
    return snapshot


def _uncovered(live: LiveFiles) -> CoveredFiles:
    nothing = np.full(len(live.size), -1, np.int64)
    return CoveredFiles(live, nothing, nothing, live.size)


def _match(live: LiveFiles, snapshot: Snapshot) -> tuple[np.ndarray, CoveredFiles]:
    """The live file of every stored one (-1: none with its identity), and the live files with their counts."""
    stored = snapshot.files
    found = pc.index_in(stored.path, value_set=live.paths.cast(pa.large_string()))
    candidate = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    same = candidate >= 0
    same &= (
        (stored.size == live.size[candidate]) & (stored.modified == live.modified[candidate])
        if len(live.size)
        else False
    )
    first_entry = np.zeros(len(candidate), bool)
    first_entry[np.flatnonzero(same)[np.unique(candidate[same], return_index=True)[1]]] = True
    live_of_stored = np.where(first_entry, candidate, -1)
    files = _uncovered(live)
    matched = live_of_stored[first_entry]
    counts = {}
    for name in ("block_count", "row_count", "byte_count"):
        counts[name] = getattr(files, name).copy()
        counts[name][matched] = getattr(stored, name)[first_entry]
    return live_of_stored, replace(files, **counts)
