"""Postings of 100 million distinct keys: a look-up finds the one block of a key by a page per segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.planning.scale_tables import changing, numbers
from benchmarks.planning.synthetic import publish, with_files
from benchmarks.planning.synthetic_table import BLOCK_BYTES, FILE_BLOCKS, SyntheticTable, table_at
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.build.options import filter_options, filters_of
from secateur.index.build.survey import MOST_POSTINGS, segment_size
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.postings_build import postings_of
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn
from secateur.index.segments.segment_file import SegmentData
from secateur.index.segments.segment_table import summarised
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.scan import Scan
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

BLOCKS = 10_000
KEYS = 10_000  # per block
SECONDS = 0.01
SCHEMA = pa.schema([pa.field("key", pa.int64())])
COLUMN = IndexedColumn(("key",), pa.int64())
_SPREAD = 0x9E3779B97F4A7C15  # odd: its multiples modulo 2^62 are as many numbers, in no order


@dataclass(frozen=True)
class Keyed:
    """The table of n blocks with so many keys each."""

    blocks: int
    keys: int = KEYS

    @property
    def segments(self) -> list[tuple[int, int]]:
        """The blocks [start, stop) of every segment, as a build cuts them."""
        size = min(segment_size(self.blocks), max(1, MOST_POSTINGS // self.keys)) // FILE_BLOCKS * FILE_BLOCKS
        return [(start, min(start + size, self.blocks)) for start in range(0, self.blocks, size)]

    def values(self, start: int, stop: int) -> np.ndarray:
        """The keys of some blocks, int64 of shape (stop - start, keys): distinct, and anywhere in [0, 2^62)."""
        ordinals = np.arange(start * self.keys, stop * self.keys, dtype=np.uint64)
        spread = ordinals * np.uint64(_SPREAD) & np.uint64(2**62 - 1)
        return spread.view(np.int64).reshape(-1, self.keys)


def postings(setting: Setting) -> Result:
    """One key in one block, another in every call; the bounds of every block span all keys."""
    shape = Keyed(setting.scaled(BLOCKS, least=400) // FILE_BLOCKS * FILE_BLOCKS)
    directory = setting.prepared_index(f"postings-{shape.blocks}", partial(_write, shape=shape))
    table = table_at(directory, shape.blocks // FILE_BLOCKS)
    blocks = np.random.default_rng(4).permutation(shape.blocks)[:1_000]
    values = np.array([shape.values(int(b), int(b) + 1)[0, int(b) % shape.keys] for b in blocks])
    wrong = _wrong(table, values[:100], blocks[:100])
    first = _find(table, values[0])
    whole, keys = race(
        [
            changing(lambda call: _find(table, values[call % len(values)])),
            changing(lambda call: sec.prune(table, f"key = {values[call % len(values)]}", strict=True)),
        ],
        setting.repetitions,
    )
    count = shape.blocks * shape.keys
    size = sum(path.stat().st_size for path in (directory / "segments").iterdir())
    reads = first.report.reads
    ratios = (
        against("prune(), one key, warm", whole, SECONDS),
        timed("prune(), one key as text", keys, "as an expression", whole),
        Ratio(
            "pieces read per plan", reads.stored, "reads", "segments that may hold it", len(shape.segments), goal=1.0
        ),
        Ratio("bytes read per plan", reads.stored_bytes, "B", "a page of each segment", 2568 * len(shape.segments)),
        Ratio("segments", size / count, "B/key", "a step of four bytes, a block of one", 5.0),
        Ratio("blocks wrongly kept per key", wrong, "blocks", "none", 0.0, goal=0.0),
    )
    kept = Kept("postings", "one key", "blocks", shape.blocks, 1, {"secateur": len(numbers(first))})
    stages = ", ".join(f"{stage.name} {stage.seconds * 1000:.2f} ms" for stage in first.report.stages)
    sizes = {"blocks": shape.blocks, "keys": count, "segments": len(shape.segments), "bytes": size}
    return Result(sizes, ratios, (kept,), (stages,))


def _find(table: SyntheticTable, value: int) -> Scan:
    return sec.prune(table, sec.col("key") == int(value), strict=True, session_time_zone="UTC")


def _wrong(table: SyntheticTable, values: np.ndarray, blocks: np.ndarray) -> float:
    """Blocks kept per key besides the one that holds it."""
    wrong = 0
    for value, block in zip(values.tolist(), blocks.tolist(), strict=True):
        kept = numbers(_find(table, value))
        if block not in kept:
            raise AssertionError(f"block {block}, which holds {value}, is lost")
        wrong += len(kept) - 1
    return wrong / len(values)


def _write(directory: Path, shape: Keyed) -> None:
    """Write segments with postings, and a snapshot."""
    table = table_at(directory, shape.blocks // FILE_BLOCKS)
    options = BuildOptions(filters=filter_options(postings=["key"]), pages=False)
    summaries = []
    for number, (start, stop) in enumerate(shape.segments):
        segment = _segment(shape, start, stop)
        summaries.append(publish(table.store, f"segments/000000000000-{number:06d}.segment", segment, {}))
    segments = with_files(summarised([COLUMN], filters_of(options, SCHEMA), summaries, {}), table.files, shape.keys)
    table.store.create(snapshot_name(1), encode_snapshot(1, 0.0, segments, options, SCHEMA))


def _segment(shape: Keyed, start: int, stop: int) -> SegmentData:
    n, values = stop - start, shape.values(start, stop)
    blocks = BlockTable(
        (np.arange(n) // FILE_BLOCKS).astype(np.int32),
        (np.arange(n) % FILE_BLOCKS).astype(np.int32),
        np.full(n, shape.keys, np.int64),
        np.full(n, BLOCK_BYTES, np.int64),
    )
    nothing = np.zeros(n, np.int64)
    lower, upper = (Keys(Kind.WORD, (side,)) for side in (values.min(axis=1), values.max(axis=1)))
    zone_map = zonemap.ZoneMap(lower, upper, nothing, nothing)
    return SegmentData([], blocks, [COLUMN], [zone_map], postings={0: postings_of(_hashes(values))})


def _hashes(values: np.ndarray) -> Sequence[np.ndarray]:
    return [hash_keys(block, Kind.WORD) for block in values]
