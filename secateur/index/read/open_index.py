"""Find the current snapshot of an index, and open the index for a query."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.errors import IndexFault
from secateur.index.model import Store, StoredFile
from secateur.index.naming import BY_NAME, ColumnNaming
from secateur.index.read.chunk_reader import ChunkReader, RangeCache
from secateur.index.read.coverage import LiveFiles, covered, uncovered
from secateur.index.read.group_arrays import segment_groups
from secateur.index.read.index_view import FooterReader, IndexView
from secateur.index.read.loader import IndexMemory
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import last_snapshot_file, no_segments, open_snapshot, snapshot_files
from secateur.pruning.report import Faults, Reads


@dataclass(frozen=True)
class Caches:
    """Where an index is read from, and where what was read is cached."""

    store: Store
    memory: ByteCache
    disk: RangeCache | None = None


def open_catalog(
    live: LiveFiles,
    caches: Caches,
    snapshot: Snapshot | None,
    read_footers: FooterReader,
    faults: Faults,
    naming: ColumnNaming = BY_NAME,
) -> IndexView:
    """Open the catalog of a table with these live files, without the index if its snapshot has a fault."""
    cache, chunks = caches.memory, ChunkReader(caches.store, caches.disk, Reads())
    with faults.tolerated():
        if snapshot is not None:
            version = (caches.store.location, snapshot.number, snapshot.created)
            segments = snapshot.segments  # read here, where faults are tolerated; later code relies on them
            groups = cache.get((*version, "groups"), lambda: segment_groups(segments))
            coverage = cache.get((*version, "coverage", live.id), lambda: covered(live, snapshot))
            memory = IndexMemory(caches.store, cache, chunks, faults, snapshot, groups, naming)
            return IndexView(live, coverage, memory, read_footers, faults)
    empty = no_segments()
    memory = IndexMemory(caches.store, cache, chunks, faults, empty, segment_groups(empty.segments), naming)
    return IndexView(live, uncovered(live), memory, read_footers, faults)


def current_snapshot(store: Store, cache: ByteCache | None = None) -> Snapshot | None:
    """Return the snapshot with the highest number, or None where there is no index. Raises IndexFault.

    A snapshot read before comes from the cache. Its key includes the file's size, time and tag, because numbers restart
    after an index is dropped. A snapshot removed between listing and reading is no fault: the store is listed again.
    """
    file = last_snapshot_file(store)
    while file is not None:
        try:
            return _opened(store, *file, cache)
        except IndexFault:
            unreadable, file = file, last_snapshot_file(store)
            if file == unreadable:
                raise
    return None


def numbered_snapshot(store: Store, number: int, cache: ByteCache | None = None) -> Snapshot | None:
    """Return the snapshot with a number, or None where there is none. Raises IndexFault."""
    file = snapshot_files(store).get(number)
    return None if file is None else _opened(store, number, file, cache)


def _opened(store: Store, number: int, file: StoredFile, cache: ByteCache | None) -> Snapshot:
    if cache is None:
        return open_snapshot(store, number, file.size)
    return cache.get((store.location, file), lambda: open_snapshot(store, number, file.size, cache.get))
