"""The index seen through the live files of its table: what the pipeline prunes with.

An index entry belongs to a file *identity* (path, size, modification time). A live file without an entry of its own
identity is not covered: its blocks come from its footer. So an index that is stale, partial or broken answers
for what it knows and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IndexFault
from secateur.index import btree
from secateur.index.blocks import LOOSE, BlockSource, CoveredFiles, LiveFiles, OpenedBlocks, Origin, Part, open_blocks
from secateur.index.cache import ByteCache
from secateur.index.codec import SEGMENT, Range, read_contents
from secateur.index.model import BlockTable, Store
from secateur.index.segment import Segment
from secateur.index.snapshot import Snapshot, open_snapshot, snapshot_files
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Faults
from secateur.pruning.zones import Zones

FooterReader = Callable[[np.ndarray], tuple[BlockTable, BlockSource]]


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
        return np.flatnonzero(np.bincount(self.snapshot.files.segment[alive]))

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
        return open_blocks(Origin(parts, self.files, self._cache, self._faults))

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

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        return store.read_many(name, ranges)

    return Segment(read_contents(name, SEGMENT, size, read), read, read_many)


def current_snapshot(store: Store, cache: ByteCache | None = None) -> Snapshot | None:
    """The snapshot with the highest number, or None where there is no index. Raises IndexFault.

    A snapshot that was read before is taken from the cache: by size and time of its file too, for numbers begin again
    after an index was dropped.
    """
    files = snapshot_files(store)
    if not files:
        return None
    number = max(files)
    if cache is None:
        return open_snapshot(store, number)
    return cache.get((store.location, files[number]), lambda: open_snapshot(store, number))


def _uncovered(live: LiveFiles) -> CoveredFiles:
    nothing = np.full(len(live.size), -1, np.int64)
    return CoveredFiles(live, nothing, nothing, live.size)


def _match(live: LiveFiles, snapshot: Snapshot) -> tuple[np.ndarray, CoveredFiles]:
    """The live file of every stored one (-1: none with its identity), and the live files with their counts."""
    stored = snapshot.files
    found = pc.index_in(stored.path, value_set=live.paths.cast(pa.large_string()))
    candidate = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    same = candidate >= 0
    same[same] = (stored.size[same] == live.size[candidate[same]]) & (
        stored.modified[same] == live.modified[candidate[same]]
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
