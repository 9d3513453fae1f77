"""A big table that is only an index: segments and a snapshot in the real format, and no data behind them.

Block i of n begins at minute i and is a minute and a half long in `ts`, so `ts` is clustered. In `amount` every block
spans nearly everything; in `distance`, `delay` and `weight` a twentieth of all, wherever it lies. In `user_id` it holds
20 of ten million keys, so only its filter prunes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.planning.bloom_matrices import add_keys, lay_fragments
from benchmarks.planning.synthetic_table import BLOCK_BYTES, FILE_BLOCKS, SyntheticTable, table_at
from secateur.index.build.options import filter_options, filters_of
from secateur.index.build.survey import segment_size
from secateur.index.filters import bloom_fragment
from secateur.index.filters.bloom import rate_for
from secateur.index.filters.bloom_fragment import BloomFragment, BloomFragmentWriter
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn, Store, indexed_columns
from secateur.index.segments.base_file import is_base_due, write_base
from secateur.index.segments.file_table import FileTable
from secateur.index.segments.segment_file import SegmentData, encode_segment
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import Segments, SegmentSummary, summarised
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.index.zones.page_statistics import PageTable, Places
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.tables.listing import Listing
from secateur.values.conversion import float_keys
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

PAGES = 10  # per block, of ts and amount
ROWS = 1_000_000  # per block
KEYS, KEY_SPACE = 20, 10_000_000  # of user_id, per block and in all
EPOCH = 1_600_000_000_000_000  # microseconds: where ts begins
MINUTE = 60_000_000
SCATTERED = ("distance", "delay", "weight")
SPACE, WIDTH = 1_000_000, 50_000  # of the scattered columns: all values, and those of a block


@dataclass(frozen=True)
class Shape:
    """What is in the index of a table: so many blocks, and columns that no predicate names."""

    blocks: int  # a multiple of FILE_BLOCKS
    others: int = 10
    has_filters: bool = True  # of user_id
    has_pages: bool = True  # of ts and amount

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return pa.schema(
            [
                pa.field("ts", pa.timestamp("us", "UTC")),
                pa.field("user_id", pa.int64()),
                pa.field("amount", pa.float64()),
                *(pa.field(name, pa.int64()) for name in SCATTERED),
                *(pa.field(f"other_{i}", pa.int64()) for i in range(self.others)),
            ]
        )

    @property
    def segments(self) -> list[tuple[int, int]]:
        """The blocks [start, stop) of every segment."""
        size = segment_size(self.blocks) // FILE_BLOCKS * FILE_BLOCKS
        return [(start, min(start + size, self.blocks)) for start in range(0, self.blocks, size)]


Bounds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Blocks:
    """What some blocks hold: bounds of shape (n,), and the keys of user_id of shape (n, KEYS)."""

    ts: Bounds  # microseconds
    amount: Bounds
    distance: Bounds
    delay: Bounds
    weight: Bounds
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def user_id(self) -> Bounds:
        """The bounds of user_id."""
        return self.keys.min(axis=1), self.keys.max(axis=1)


def blocks_between(shape: Shape, start: int, stop: int) -> Blocks:
    """The blocks of one segment, the same in every run."""
    n = stop - start
    rng = np.random.default_rng((shape.blocks, start))
    begin = EPOCH + np.arange(start, stop) * MINUTE
    amount = rng.random(n) * 10, 990 + rng.random(n) * 10
    least = [rng.integers(0, SPACE - WIDTH, n) for _ in SCATTERED]
    bounds = {name: (low, low + WIDTH) for name, low in zip(SCATTERED, least, strict=True)}
    keys = rng.integers(0, KEY_SPACE, (n, KEYS))
    return Blocks(ts=(begin, begin + MINUTE * 3 // 2), amount=amount, keys=keys, **bounds)


def blocks_of(shape: Shape) -> Blocks:
    """All blocks of the table."""
    parts = [blocks_between(shape, *segment) for segment in shape.segments]
    names = ("ts", "amount", *SCATTERED)
    bounds = {name: (_joined(parts, name, 0), _joined(parts, name, 1)) for name in names}
    return Blocks(keys=np.concatenate([part.keys for part in parts]), **bounds)


def bounds_of(shape: Shape, names: Sequence[str]) -> dict[str, Bounds]:
    """The bounds of some columns over all blocks; other columns are in memory for one segment at a time."""
    parts: dict[str, list[Bounds]] = {name: [] for name in names}
    for segment in shape.segments:
        blocks = blocks_between(shape, *segment)
        for name, bounds in parts.items():
            bounds.append(getattr(blocks, name))
    return {
        name: (np.concatenate([lower for lower, _ in bounds]), np.concatenate([upper for _, upper in bounds]))
        for name, bounds in parts.items()
    }


def _joined(parts: list[Blocks], name: str, side: int) -> np.ndarray:
    return np.concatenate([getattr(part, name)[side] for part in parts])


def open_synthetic(directory: Path, shape: Shape) -> SyntheticTable:
    """The table whose index is in a directory."""
    return table_at(directory, shape.blocks // FILE_BLOCKS)


def write_index(directory: Path, shape: Shape) -> None:
    """Segments, filters and a snapshot for the table."""
    table = open_synthetic(directory, shape)
    columns = indexed_columns(shape.schema)
    rates = [rate_for(shape.blocks, None)] if shape.has_filters else []
    summaries = []
    for number, (start, stop) in enumerate(shape.segments):
        name = f"000000000000-{number:06d}"
        writers = [BloomFragmentWriter(table.store, f"{bloom_fragment.FOLDER}/{name}", rate) for rate in rates]
        segment = _segment(shape, columns, start, stop, writers)
        made = {f: writer.fragments for f, writer in enumerate(writers)}
        summaries.append(publish(table.store, f"segments/{name}.segment", segment, made))
    options = BuildOptions(
        sort_key=("ts",),
        filters=filter_options(bloom=["user_id"] if shape.has_filters else []),
        pages=shape.has_pages,
        page_locations=False,
    )
    bloom_matrices = lay_fragments(table.store, summaries, len(rates))
    segments = summarised(columns, filters_of(options, shape.schema), summaries, bloom_matrices)
    segments = with_files(segments, table.files, ROWS)
    if is_base_due(segments.files):
        segments = replace(segments, files=write_base(table.store, "0" * 12, segments.files))
    table.store.create(snapshot_name(1), encode_snapshot(1, 0.0, segments, options, shape.schema))


def with_files(segments: Segments, files: Listing, rows_per_block: int) -> Segments:
    """The segments with the files of a synthetic table, in order."""
    n = len(files.size)
    blocks, rows, size = (np.full(n, FILE_BLOCKS * amount, np.int64) for amount in (1, rows_per_block, BLOCK_BYTES))
    segment = np.repeat(np.arange(len(segments), dtype=np.int32), segments.block_count // FILE_BLOCKS)
    paths = files.paths.cast(pa.large_string())
    ends = np.zeros(n, np.int64)
    table = FileTable(paths, files.size, files.stamp, files.witness, ends, blocks, rows, size, segment)
    return replace(
        segments,
        files=SegmentFiles.of(table, len(segments)),
    )


def _segment(
    shape: Shape, columns: list[IndexedColumn], start: int, stop: int, writers: Sequence[BloomFragmentWriter]
) -> SegmentData:
    n, blocks = stop - start, blocks_between(shape, start, stop)
    table = BlockTable(
        (np.arange(n) // FILE_BLOCKS).astype(np.int32),
        (np.arange(n) % FILE_BLOCKS).astype(np.int32),
        np.full(n, ROWS, np.int64),
        np.full(n, BLOCK_BYTES, np.int64),
    )
    zone_maps = [_zone_map(blocks, column, start) for column in columns]
    pages = {0: _ts_pages(blocks), 2: _amount_pages(blocks)} if shape.has_pages else {}
    for writer in writers:
        add_keys(writer, blocks.keys)
    size_classes = {f: writer.finish() for f, writer in enumerate(writers)}
    return SegmentData([], table, columns, zone_maps, pages, size_classes)


def _zone_map(blocks: Blocks, column: IndexedColumn, start: int) -> ZoneMap:
    match column.path[0]:
        case "amount":
            return _bounds(*map(float_keys, blocks.amount))
        case "ts" | "user_id" | "distance" | "delay" | "weight" as name:
            return _bounds(*getattr(blocks, name))
        case name:
            rng = np.random.default_rng((start, len(name), int(name.rpartition("_")[2])))
            low = rng.integers(0, 1 << 40, len(blocks))
            return _bounds(low, low + (1 << 20))


def _bounds(lower: np.ndarray, upper: np.ndarray) -> ZoneMap:
    nothing = np.zeros(len(lower), np.int64)
    return ZoneMap(Keys(Kind.WORD, (lower,)), Keys(Kind.WORD, (upper,)), nothing, nothing)


def _ts_pages(blocks: Blocks) -> PageTable:
    """Pages that follow each other in time."""
    lower, upper = blocks.ts
    width = (upper - lower) // PAGES
    first = lower[:, None] + width[:, None] * np.arange(PAGES)
    return _page_table(first, first + width[:, None])


def _amount_pages(blocks: Blocks) -> PageTable:
    """Pages of which just one reaches the block's greatest amount."""
    lower, upper = blocks.amount
    high = np.repeat(upper[:, None] * 0.9, PAGES, axis=1)
    high[np.arange(len(blocks)), np.arange(len(blocks)) % PAGES] = upper
    low = np.repeat(lower[:, None], PAGES, axis=1)
    return _page_table(float_keys(low), float_keys(high))


def _page_table(lower: np.ndarray, upper: np.ndarray) -> PageTable:
    n, count = lower.shape
    first_row = np.tile(np.arange(count) * (ROWS // count), n)
    size = np.full(n * count, BLOCK_BYTES // 16 // count, np.int64)
    places = Places(np.arange(n * count, dtype=np.int64) * size, size)
    return PageTable(np.arange(n + 1) * count, first_row, _bounds(lower.ravel(), upper.ravel()), places)


def publish(
    store: Store, name: str, segment: SegmentData, bloom_fragment: Mapping[int, Sequence[BloomFragment]]
) -> SegmentSummary:
    """Write a segment, and summarise it with the fragments of its filters."""
    encoded = encode_segment(segment)
    store.put(name, encoded.data)
    row_count = segment.blocks.row_count
    merged = [zonemap.merge(zone_map, row_count, np.zeros(1, np.int64)) for zone_map in segment.zone_maps]
    sizes = (len(encoded.data), int(row_count.sum()), len(row_count))
    return SegmentSummary(name, *sizes, segment.files, _file_counts(segment), merged, encoded.places, bloom_fragment)


def _file_counts(segment: SegmentData) -> np.ndarray:
    """Blocks, rows and bytes of every file: int64 of shape (n_files, 3)."""
    blocks, n = segment.blocks, len(segment.files)
    if not n:
        return np.zeros((0, 3), np.int64)
    counts = [np.bincount(blocks.file, weights, n) for weights in (None, blocks.row_count, blocks.byte_count)]
    return np.stack(counts, axis=1).astype(np.int64)
