"""A share of a query's segments, pruned in another process: the arrays sent there and back.

The process opens the snapshot by its number and reads the chunks of its own segments. It receives which of their files
are live and what file names say, and applies filters, zone maps and pages.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container import index_file
from secateur.index.container.index_file import Writer, read_contents
from secateur.index.model import Store
from secateur.index.naming import ColumnNaming
from secateur.index.read.blocks import LooseBlocks
from secateur.index.read.chunk_reader import ChunkReader
from secateur.index.read.coverage import Coverage, NamesOnly
from secateur.index.read.group_arrays import segment_groups
from secateur.index.read.index_view import IndexView
from secateur.index.read.loader import IndexMemory
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.plain_blocks import ARRAYS, PlainBlocks, joined
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import Faults, Reads
from secateur.pruning.row_ranges import RowRanges, joined_ranges, whole_blocks
from secateur.pruning.stages.filters import prune_by_filters
from secateur.pruning.stages.pages import prune_pages
from secateur.pruning.stages.rows import prune_rows
from secateur.pruning.stages.survivors import Query, SurvivingSegments, Survivors
from secateur.pruning.stages.zone_maps import prune_blocks
from secateur.ragged import elements_of

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Share:
    """Some segments of a snapshot, and what the table says about their files, numbered across these segments."""

    number: int  # snapshot number
    created: float
    segments: np.ndarray  # ascending
    whole: np.ndarray  # those segments whose every row matches
    survives: np.ndarray  # which files are live and may hold a match by their names
    names: Mapping[Field, Zones]  # what file names say about the predicate's columns
    implied: Within | None
    naming: ColumnNaming


@dataclass(frozen=True)
class _ShareFiles(NamesOnly):
    """The files of a share; see :class:`secateur.index.read.coverage.LiveFiles`."""

    share: Share
    id: Hashable = None
    paths: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    @property
    def size(self) -> np.ndarray:
        return np.zeros(len(self.share.survives), np.int64)

    stamp = known_as = size

    def zones(self, column: Field) -> Zones | None:
        return self.share.names.get(column)


def shares_of(catalog: IndexView, query: Query, left: SurvivingSegments, count: int) -> list[tuple[Share, np.ndarray]]:
    """Cut the surviving segments into shares of about equally many blocks, each with the live files of its entries."""
    snapshot, coverage, naming = catalog.memory.snapshot, catalog.coverage, catalog.memory.naming
    segments = left.all_segments
    done = np.cumsum(snapshot.segments.block_count[segments])
    cuts = np.searchsorted(done, np.arange(1, count) * (done[-1] / count)) if len(done) else _NOTHING
    alive = coverage.live >= 0 if left.files is None else coverage.surviving(left.files)
    shares = []
    for of_share in np.split(segments, np.unique(cuts)):
        if len(of_share):
            entries = elements_of(coverage.begin, of_share)
            live = coverage.live[entries]
            named = {f: zones for f in fields(left.predicate) if (zones := catalog.file_zones(f)) is not None}
            names = {f: zones.take(np.maximum(live, 0)).where(live >= 0) for f, zones in named.items()}
            whole = np.intersect1d(of_share, left.whole, assume_unique=True)
            shares.append(
                (
                    Share(
                        snapshot.number, snapshot.created, of_share, whole, alive[entries], names, query.implied, naming
                    ),
                    live,
                )
            )
    return shares


def prune_share(share: Share, store: Store, cache: ByteCache, predicate: Predicate, *, strict: bool) -> bytes:
    """Prune a share and encode its survivors for :func:`gathered`. Raises IndexFault."""
    faults = Faults(strict)
    catalog = _catalog_of(share, store, cache, faults)
    segments = np.setdiff1d(share.segments, share.whole, assume_unique=True)
    left, survivors = SurvivingSegments(predicate, None, segments, share.whole), None
    query = Query(predicate, catalog, implied=share.implied)
    with faults.tolerated():
        left = prune_by_filters(query, left)
    with faults.tolerated():
        survivors = prune_blocks(query, left)
    if survivors is None:
        raise IndexFault("; ".join(faults.drain()))
    with faults.tolerated():
        survivors = prune_pages(query, survivors)
    with faults.tolerated():
        survivors = prune_rows(query, survivors)
    blocks = survivors.blocks
    ranges = survivors.row_ranges or whole_blocks(blocks.row_count)
    reads = catalog.reads
    counts = [reads.stored, reads.stored_bytes, reads.cached, reads.cached_bytes]
    writer = Writer(index_file.SUMMARY, {"faults": faults.drain(), "reads": counts})
    arrays = [getattr(blocks, name) for name in ARRAYS]
    writer.add("survivors", [*arrays, survivors.outcomes, ranges.offsets, ranges.start, ranges.stop])
    return writer.finish()


def _catalog_of(share: Share, store: Store, cache: ByteCache, faults: Faults) -> IndexView:
    """Open a catalog restricted to the segments of a share. Raises IndexFault."""
    snapshot = open_snapshot(store, share.number)
    if snapshot.created != share.created:
        raise IndexFault(f"{snapshot.name} has been replaced since the query began")
    begin = snapshot.segments.file_begin
    entries = elements_of(begin, share.segments)
    if len(entries) != len(share.survives):
        raise IndexFault(f"{snapshot.name} has {len(entries)} files in these segments, not {len(share.survives)}")
    live = np.full(int(begin[-1]), -1)
    live[entries] = np.where(share.survives, np.arange(len(entries)), -1)
    coverage = Coverage(np.zeros(len(entries), np.int64), np.zeros(0, np.int64), live, begin, None)
    groups = segment_groups(snapshot.segments)
    memory = IndexMemory(store, cache, ChunkReader(store, None, Reads()), faults, snapshot, groups, share.naming)
    return IndexView(_ShareFiles(share), coverage, memory, _no_footers, faults)


def _no_footers(files: np.ndarray) -> LooseBlocks:
    """Raise IndexFault: a share with an unreadable block table is returned to the driver, which reads the footers."""
    raise IndexFault(f"the block tables of {len(files)} files cannot be read")


def gathered(
    results: Sequence[bytes], live: Sequence[np.ndarray], left: SurvivingSegments, faults: Faults, reads: Reads
) -> Survivors:
    """Join the survivors of all shares, in order; `live` has the live files of every share. Raises IndexFault."""
    decoded = [_decoded(*pair, faults, reads) for pair in zip(results, live, strict=True)]
    blocks, outcomes, ranges = zip(*decoded, strict=True)
    return left.opened(joined(blocks), np.concatenate(outcomes), joined_ranges(ranges))


def _decoded(data: bytes, live: np.ndarray, faults: Faults, reads: Reads) -> tuple[PlainBlocks, np.ndarray, RowRanges]:
    def read(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    contents = read_contents("task result", index_file.SUMMARY, len(data), read)
    for reason in contents.meta["faults"]:
        faults.record(reason)
    reads.add(*contents.meta["reads"])
    segment, file, row_group, row_count, byte_count, outcomes, *ranges = contents.arrays("survivors", read)
    blocks = PlainBlocks(segment, live[file], row_group, row_count, byte_count)
    return blocks, outcomes, RowRanges(*ranges)
