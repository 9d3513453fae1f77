"""A big table that is all index: segments and a snapshot of secateur's own making, and no data behind them.

Block i of n begins at minute i and is a minute and a half long in `ts`, so `ts` is clustered; in `amount` every block
spans nearly everything; in `user_id` it holds 20 of ten million keys, so only its filter tells.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from secateur.index import bitsliced, zonemap
from secateur.index.build import LEAST_SEGMENT, MOST_SEGMENT
from secateur.index.cache import ByteCache
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn, indexed_columns
from secateur.index.pages import PageTable
from secateur.index.segment import BlockFilters, SegmentData, encode_segment
from secateur.index.snapshot import SegmentSummary, encode_snapshot, snapshot_name
from secateur.index.zonemap import ZoneMap
from secateur.io.parquet_dir import CACHE_BYTES
from secateur.io.parquet_file import ParquetSource
from secateur.io.partitions import Partitions
from secateur.io.store import FileStore
from secateur.io.table import Listing
from secateur.values import Keys, Kind, float_keys

FILE_BLOCKS = 4
PAGES = 10  # per block, of ts and amount
ROWS = 1_000_000  # per block
BLOCK_BYTES = 128 << 20
MODIFIED = 1_700_000_000_000_000_000
KEYS, KEY_SPACE = 20, 10_000_000  # of user_id, per block and in all
EPOCH = 1_600_000_000_000_000  # microseconds: where ts begins
MINUTE = 60_000_000
OTHERS = 13  # columns that no predicate names

SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("user_id", pa.int64()),
        pa.field("amount", pa.float64()),
        *(pa.field(f"other_{i}", pa.int64()) for i in range(OTHERS)),
    ]
)
COLUMNS = indexed_columns(SCHEMA)


@dataclass(frozen=True)
class Blocks:
    """What the n blocks hold: bounds of shape (n,), and their keys of shape (n, KEYS)."""

    ts: tuple[np.ndarray, np.ndarray]  # microseconds
    amount: tuple[np.ndarray, np.ndarray]
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def user_id(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of user_id."""
        return self.keys.min(axis=1), self.keys.max(axis=1)


def blocks_of(n: int) -> Blocks:
    """The blocks of the table of n blocks, the same in every run."""
    rng = np.random.default_rng(n)
    begin = EPOCH + np.arange(n) * MINUTE
    amount = rng.random(n) * 10, 990 + rng.random(n) * 10
    return Blocks((begin, begin + MINUTE * 3 // 2), amount, rng.integers(0, KEY_SPACE, (n, KEYS)))


@dataclass(frozen=True)
class SyntheticTable:
    """A table of which only the listing and the index exist; see :class:`secateur.io.table.Table`."""

    location: str
    store: FileStore
    files: Listing
    declared_schema: pa.Schema | None = None
    cache: ByteCache = field(default_factory=lambda: ByteCache(CACHE_BYTES), compare=False, repr=False)

    def listing(self, zone: dt.tzinfo) -> Listing:
        """The files, from memory: what listing a directory costs is not secateur's."""
        return Listing(self.files.paths, self.files.size, self.files.modified, self.files.partitions)

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """The schemas of files that the index does not cover: there are none."""
        assert not len(ordinals)
        return iter(())

    def open_file(self, path: str) -> ParquetSource:
        """There is no data."""
        raise FileNotFoundError(path)

    def full_path(self, path: str) -> str:
        """The path below the location."""
        return f"{self.location}/{path}"


def open_synthetic(directory: Path, n: int) -> SyntheticTable:
    """The table of n blocks whose index is in a directory."""
    identities = _identities(-(-n // FILE_BLOCKS))
    paths, sizes, modified = zip(*identities, strict=True)
    listing = Listing(
        pa.array(paths, pa.string()), np.array(sizes, np.int64), np.array(modified, np.int64), Partitions((), ())
    )
    return SyntheticTable(str(directory), FileStore(pafs.LocalFileSystem(), str(directory)), listing)


def _identities(files: int) -> list[tuple[str, int, int]]:
    return [(f"part-{i:07d}.parquet", FILE_BLOCKS * BLOCK_BYTES, MODIFIED + i) for i in range(files)]


def write_index(directory: Path, n: int) -> None:
    """Segments and a snapshot for the table of n blocks; n is a multiple of FILE_BLOCKS."""
    table, blocks = open_synthetic(directory, n), blocks_of(n)
    identities = _identities(n // FILE_BLOCKS)
    size = min(max(isqrt(n), LEAST_SEGMENT), MOST_SEGMENT)
    size -= size % FILE_BLOCKS
    fpr = bitsliced.rate_for(n, None)
    summaries = []
    for number, start in enumerate(range(0, n, size)):
        chosen = np.arange(start, min(start + size, n))
        files = identities[start // FILE_BLOCKS : -(-int(chosen[-1] + 1) // FILE_BLOCKS)]
        segment = _segment(blocks, chosen, files, fpr)
        summaries.append(_publish(table.store, f"segments/000000000000-{number:06d}.segment", segment))
    options = BuildOptions(sort_key=("ts",), bloom=("user_id",))
    table.store.create(snapshot_name(1), encode_snapshot(1, 0.0, COLUMNS, summaries, options, SCHEMA))


def _segment(blocks: Blocks, chosen: np.ndarray, files: Sequence[tuple[str, int, int]], fpr: float) -> SegmentData:
    n = len(chosen)
    table = BlockTable(
        (np.arange(n) // FILE_BLOCKS).astype(np.int32),
        (np.arange(n) % FILE_BLOCKS).astype(np.int32),
        np.full(n, ROWS, np.int64),
        np.full(n, BLOCK_BYTES, np.int64),
    )
    zone_maps = [_zone_map(blocks, column, chosen) for column in COLUMNS]
    pages = {0: _ts_pages(blocks, chosen), 2: _amount_pages(blocks, chosen)}
    return SegmentData(files, table, COLUMNS, zone_maps, pages, {1: _filters(blocks.keys[chosen], fpr)})


def _zone_map(blocks: Blocks, column: IndexedColumn, chosen: np.ndarray) -> ZoneMap:
    match column.path[0]:
        case "ts":
            lower, upper = blocks.ts
        case "user_id":
            lower, upper = blocks.user_id
        case "amount":
            lower, upper = (float_keys(side) for side in blocks.amount)
        case _:
            lower = upper = np.arange(len(blocks))
    return _bounds(lower[chosen], upper[chosen])


def _bounds(lower: np.ndarray, upper: np.ndarray) -> ZoneMap:
    nothing = np.zeros(len(lower), np.int64)
    return ZoneMap(Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,)), nothing, nothing)


def _ts_pages(blocks: Blocks, chosen: np.ndarray) -> PageTable:
    """Pages that follow each other in time."""
    lower, upper = blocks.ts[0][chosen], blocks.ts[1][chosen]
    width = (upper - lower) // PAGES
    first = lower[:, None] + width[:, None] * np.arange(PAGES)
    return _page_table(first, first + width[:, None])


def _amount_pages(blocks: Blocks, chosen: np.ndarray) -> PageTable:
    """Pages of which just one reaches the block's greatest amount."""
    lower, upper = blocks.amount[0][chosen], blocks.amount[1][chosen]
    high = np.repeat(upper[:, None] * 0.9, PAGES, axis=1)
    high[np.arange(len(chosen)), chosen % PAGES] = upper
    low = np.repeat(lower[:, None], PAGES, axis=1)
    return _page_table(float_keys(low), float_keys(high))


def _page_table(lower: np.ndarray, upper: np.ndarray) -> PageTable:
    n, count = lower.shape
    first_row = np.tile(np.arange(count) * (ROWS // count), n)
    size = np.full(n * count, BLOCK_BYTES // 16 // count, np.int64)
    position = np.arange(n * count, dtype=np.int64) * size
    return PageTable(np.arange(n + 1) * count, first_row, position, size, _bounds(lower.ravel(), upper.ravel()))


def _filters(keys: np.ndarray, fpr: float) -> BlockFilters:
    probes = bitsliced.probes_for(fpr)
    hashes = [bitsliced.hash_values(pa.array(block)) for block in keys]
    log2_bits = np.array([bitsliced.log2_bits_for(len(block.first), probes) for block in hashes], np.int8)
    filters = [bitsliced.build_filter(h, probes, int(bits)) for h, bits in zip(hashes, log2_bits, strict=True)]
    return BlockFilters(log2_bits, filters, probes)


def _publish(store: FileStore, name: str, segment: SegmentData) -> SegmentSummary:
    data = encode_segment(segment)
    store.put(name, data)
    blocks = segment.blocks
    weights = (None, blocks.row_count, blocks.byte_count)
    counts = np.stack([np.bincount(blocks.file, w, len(segment.files)) for w in weights], axis=1).astype(np.int64)
    starts = np.zeros(1, np.int64)
    merged = [zonemap.merge(zone_map, blocks.row_count, starts) for zone_map in segment.zone_maps]
    rows = int(blocks.row_count.sum())
    return SegmentSummary(name, len(data), rows, len(blocks), segment.files, counts, merged)
