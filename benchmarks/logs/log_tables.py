"""Tables of log lines: one of Parquet files with literals to look for, and one that is only an index."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.logs.logs import RARE, UNIT, log_lines
from benchmarks.planning.bloom_matrices import lay_fragments
from benchmarks.planning.synthetic import publish, with_files
from benchmarks.planning.synthetic_table import BLOCK_BYTES, FILE_BLOCKS, SyntheticTable, table_at
from benchmarks.setting import Setting, index_code
from secateur.index.build.assemble import recipe
from secateur.index.build.column_sketch import add_hashes
from secateur.index.filters.bloom import positions, probes_for, section_bits, size_for
from secateur.index.filters.bloom_fragment import BloomFragmentWriter
from secateur.index.filters.hashing import DistinctHashes
from secateur.index.filters.size_class import own_class
from secateur.index.model import BlockTable, BuildOptions, Filter, FilterOption, IndexedColumn, indexed_columns
from secateur.index.segments.segment_file import SegmentData
from secateur.index.segments.segment_table import SegmentSummary, summarised
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.io.tables.table import Table
from secateur.pruning.predicate.patterns.substrings import Substring, tokens_within
from secateur.values.kinds import Kind

LEAST, MOST = 6, 16  # characters of a literal
LITERALS = 80
RARELY = 0.01  # of the blocks may hold a literal
LINES = 50  # of a block of the table that is only an index
SEGMENT = 1_024  # blocks
DISTINCT = 5_000  # blocks, repeated over the table
SCHEMA = pa.schema([pa.field("message", pa.string())])


@dataclass(frozen=True)
class LogTable:
    """Log lines in Parquet files, row groups of :data:`UNIT` lines; what to look for, with the blocks that hold it."""

    directory: Path
    blocks: int
    literals: dict[str, list[int]]  # parts of messages: the blocks
    words: dict[str, list[int]]  # whole tokens

    def open(self, option: FilterOption) -> tuple[Table, bool]:
        """The table with the index for this filter, and whether that index exists."""
        name = f"{option.kind}-{option.gram}-{index_code()}"
        table = sec.open_table(str(self.directory / "data"), index_location=str(self.directory / name))
        return table, (self.directory / name).exists()


def log_table(setting: Setting, blocks: int, files: int) -> LogTable:
    """The table of so many blocks, written where it is missing."""
    directory = setting.prepared(f"logs-{blocks}", partial(_write, blocks=blocks, files=files))
    return LogTable(directory, blocks, *json.loads((directory / "needles.json").read_text()))


def _write(directory: Path, blocks: int, files: int) -> None:
    (directory / "data").mkdir()
    lines = log_lines(0, blocks * UNIT)
    lines_per_file = -(-blocks // files) * UNIT
    for i, start in enumerate(range(0, len(lines), lines_per_file)):
        part = lines.slice(start, lines_per_file)
        pq.write_table(part, directory / "data" / f"part-{i:03d}.parquet", row_group_size=UNIT, compression="zstd")
    messages = lines["message"].combine_chunks()
    drawn = _drawn(messages), _tokens(messages)
    held = [{text: blocks_with(messages, text, UNIT, word=i == 1) for text in texts} for i, texts in enumerate(drawn)]
    rare = [
        {t: holders for t, holders in by_text.items() if 0 < len(holders) <= max(1, RARELY * blocks)}
        for by_text in held
    ]
    (directory / "needles.json").write_text(json.dumps(rare))


def _drawn(messages: pa.Array) -> list[str]:
    """Substrings of random messages, anywhere in them, and rare words."""
    rng = np.random.default_rng(11)
    literals = list(RARE)
    for text in messages.take(pa.array(rng.integers(0, len(messages), LITERALS))).to_pylist():
        length = int(rng.integers(LEAST, MOST + 1))
        start = int(rng.integers(0, len(text) - length + 1))
        literals.append(text[start : start + length])
    return list(dict.fromkeys(literals))


def _tokens(messages: pa.Array) -> list[str]:
    """Words of random messages."""
    rng = np.random.default_rng(12)
    chosen = []
    for text in messages.take(pa.array(rng.integers(0, len(messages), LITERALS))).to_pylist():
        tokens = tokens_within(Substring(text.encode(), starts=True, ends=True))
        words = [word.decode() for word in tokens if len(word) >= LEAST]
        chosen.append(words[int(rng.integers(len(words)))])
    return list(dict.fromkeys(chosen))


def blocks_with(messages: pa.Array, text: str, rows: int, *, word: bool = False) -> list[int]:
    """The blocks, of `rows` messages each, that hold a text: as a whole word, or anywhere."""
    matches = pc.match_substring_regex(messages, rf"\b{text}\b") if word else pc.match_substring(messages, text)
    return np.unique(np.flatnonzero(matches.to_numpy(zero_copy_only=False)) // rows).tolist()


# ---- without data ----------------------------------------------------------------------------------------------------


def log_index(setting: Setting, blocks: int, option: FilterOption) -> tuple[SyntheticTable, Path]:
    """A table of so many blocks of :data:`LINES` lines that is only an index, and its directory.

    Block i is the same as block i modulo :data:`DISTINCT`.
    """
    blocks = blocks // FILE_BLOCKS * FILE_BLOCKS
    name = f"logs-index-{option.kind}-{option.gram}-{blocks}"
    directory = setting.prepared_index(name, partial(_write_index, blocks=blocks, option=option))
    return table_at(directory, blocks // FILE_BLOCKS), directory


def distinct_messages(blocks: int) -> pa.Array:
    """The messages of the distinct blocks of a table of so many blocks."""
    return log_lines(0, min(DISTINCT, blocks) * LINES)["message"].combine_chunks()


def _write_index(directory: Path, blocks: int, option: FilterOption) -> None:
    table = table_at(directory, blocks // FILE_BLOCKS)
    options = BuildOptions(filters=(option,), pages=False)
    what = recipe(SCHEMA, indexed_columns(SCHEMA), options, blocks)
    (filter_,), (rate,) = what.filters, what.rates
    messages = distinct_messages(blocks)
    filters = [_filter_of(filter_, rate, messages.slice(i, LINES)) for i in range(0, len(messages), LINES)]
    summaries: list[SegmentSummary] = []
    for start in range(0, blocks, SEGMENT):
        stop, name = min(start + SEGMENT, blocks), f"000000000000-{start:09d}"
        writer = BloomFragmentWriter(table.store, f"fragments/{name}", rate)
        for block in range(start, stop):
            writer.add_bits(*filters[block % len(filters)])
        segment = _segment(stop - start, what.columns[0], writer.finish())
        summaries.append(publish(table.store, f"segments/{name}.segment", segment, {0: writer.fragments}))
    segments = summarised(what.columns, [filter_], summaries, lay_fragments(table.store, summaries, 1))
    segments = with_files(segments, table.files, LINES)
    table.store.create(snapshot_name(1), encode_snapshot(1, 0.0, segments, options, SCHEMA))


def _filter_of(filter_: Filter, rate: float, messages: pa.Array) -> tuple[int, np.ndarray]:
    """The size class and the bits of the filter of one block."""
    collected = DistinctHashes()
    add_hashes(filter_, messages, collected)
    hashes = collected.distinct()
    assert hashes is not None
    probes, size = probes_for(rate), size_for(len(hashes), rate)
    bits = np.zeros(probes * section_bits(size), np.uint8)
    bits[positions(hashes, probes, len(bits))] = 1
    return own_class(probes, size), bits


def _segment(n: int, column: IndexedColumn, size_classes: np.ndarray) -> SegmentData:
    blocks = BlockTable(
        (np.arange(n) // FILE_BLOCKS).astype(np.int32),
        (np.arange(n) % FILE_BLOCKS).astype(np.int32),
        np.full(n, LINES, np.int64),
        np.full(n, BLOCK_BYTES, np.int64),
    )
    return SegmentData([], blocks, [column], [zonemap.unknown(Kind.BYTES, n)], size_classes={0: size_classes})
