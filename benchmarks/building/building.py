"""Summarising a file for the index, against reading the same columns with pyarrow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from benchmarks.logs.logs import log_lines
from benchmarks.planning.bloom_matrices import lay_fragments
from benchmarks.planning.synthetic import publish
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.build.assemble import Assembled, Collector, Recipe, assemble, recipe, summarise
from secateur.index.build.options import filter_options
from secateur.index.filters.bloom import least_bytes
from secateur.index.filters.bloom_fragment import BloomFragmentWriter
from secateur.index.filters.hashing import distinct
from secateur.index.identity import FileIdentity
from secateur.index.model import BLOOM, NGRAM, TOKEN, BuildOptions, FilterOption, indexed_columns
from secateur.index.segments.segment_file import encode_segment
from secateur.io.parquet.parquet_file import ParquetFile, open_parquet
from tests.support.stores.memory_store import MemoryStore

ROWS = 500_000
KEYS = 4_000_000  # rows of the file of columns that filters are made of
LINES = 400_000
ROW_GROUPS = 8
TABLE_BLOCKS = 10_000  # of the table that the file stands for: decides the false-positive rate
COLUMNS = (("id",), ("user",))
SEGMENTS = 8  # with filters side by side
GOAL = 3.0  # times what reading takes


@dataclass(frozen=True)
class Build:
    """A file, and what an index keeps of it."""

    path: str
    recipe: Recipe

    def summarise(self) -> None:
        """The statistics of the file; filters are written to memory."""
        collectors = self.collectors()
        summarise(_open(self.path), self.recipe, collectors)
        for collector in collectors:
            collector.writer.finish()

    def assemble(self) -> tuple[Assembled, MemoryStore]:
        """The file as a segment, and the store with its fragments."""
        store = MemoryStore()
        assembled = assemble(
            [FileIdentity("data.parquet", 1, 1, 1)], lambda _: _open(self.path), self.recipe, store, "fragments/0"
        )
        return assembled, store

    def encode(self) -> bytes:
        """The bytes of the segment."""
        return encode_segment(self.assemble()[0].segment).data

    def collectors(self) -> list[Collector]:
        """New collectors of the filters."""
        rates = zip(self.recipe.filters, self.recipe.rates, strict=True)
        return [Collector(filter_, False, BloomFragmentWriter(MemoryStore(), "0", rate)) for filter_, rate in rates]

    def read(self, columns: list[str] | None) -> None:
        """The floor: pyarrow reads columns, in one thread."""
        file = pq.ParquetFile(self.path)
        for group in range(file.num_row_groups):
            file.read_row_group(group, columns=columns, use_threads=False)

    def key_counts(self) -> list[np.ndarray]:
        """The number of distinct hashes per block, for every filter."""
        collectors = [Counting(collector.filter, False, collector.writer) for collector in self.collectors()]
        summarise(_open(self.path), self.recipe, collectors)
        return [np.array(collector.counts) for collector in collectors]

    def filter_bytes(self) -> float:
        """Bytes per segment of the bloom matrices of several segments like this file: rows are words of 64 blocks."""
        assembled, store = self.assemble()
        summary = publish(store, "segments/0.segment", assembled.segment, assembled.fragments)
        bloom_matrices = lay_fragments(store, [summary] * SEGMENTS, len(self.recipe.rates))
        return sum(int(matrices.file_size.sum()) for matrices in bloom_matrices.values()) / SEGMENTS


class Counting(Collector):
    """Counts the hashes of every block without making a filter."""

    def take(self, hashes: np.ndarray | None) -> None:
        self.counts = [*getattr(self, "counts", []), 0 if hashes is None else len(distinct(hashes))]


def build_read(setting: Setting) -> Result:
    """One file with two bloom columns: summarised, and made into the bytes of a segment."""
    rows = setting.scaled(ROWS, least=100)
    directory = setting.prepared(f"build-{rows}", partial(_write, columns=_mixed(rows)))
    build = _build(directory, BuildOptions(filters=filter_options(bloom=[".".join(path) for path in COLUMNS])))
    names = [path[0] for path in COLUMNS]
    summarised, built, read, read_all = race(
        [build.summarise, build.encode, lambda: build.read(names), lambda: build.read(None)], setting.repetitions
    )
    keys = int(sum(per_block.sum() for per_block in build.key_counts()))
    wanted = f"pyarrow reads {' and '.join(names)}"
    ratios = (
        timed("summarise()", summarised, wanted, read, GOAL),
        timed("summarise()", summarised, "pyarrow reads all columns", read_all),
        timed("assemble() and encode_segment()", built, wanted, read),
        Ratio("summarise(), keys per second", keys / summarised.seconds, "keys/s", wanted, keys / read.seconds),
        _size(build, "two columns"),
    )
    return Result({"rows": rows, "row_groups": ROW_GROUPS, "keys": keys}, ratios)


def build_filters(setting: Setting) -> Result:
    """Filters column by column: keys of several kinds, and parts of texts."""
    rows, lines = setting.scaled(KEYS, least=1000), setting.scaled(LINES, least=1000)
    directory = setting.prepared(f"build-keys-{rows}", partial(_write_columns, rows=rows, lines=lines))
    ratios: list[Ratio] = []
    for name in ("unique_bigint", "repeated_bigint", "unique_text", "repeated_text"):
        build = _build(directory / name, BuildOptions(filters=(FilterOption(BLOOM, "key"),)))
        ratios += _against_reading(build, name.replace("_", " "), "key", rows, "keys/s", setting)
    size = int(pq.read_table(directory / "message" / "data.parquet")["message"].nbytes)
    for option in (FilterOption(NGRAM, "message", gram=5), FilterOption(TOKEN, "message")):
        build = _build(directory / "message", BuildOptions(filters=(option,)))
        name = f"{option.gram}-grams of log lines" if option.gram else "tokens of log lines"
        ratios += _against_reading(build, name, "message", size, "B/s", setting)
    return Result({"keys": rows, "lines": lines, "row_groups": ROW_GROUPS}, tuple(ratios))


def _against_reading(build: Build, name: str, column: str, amount: int, unit: str, setting: Setting) -> list[Ratio]:
    made, read = race([build.summarise, lambda: build.read([column])], setting.repetitions)
    wanted = "pyarrow reads the column"
    return [
        timed(f"filter of {name}", made, wanted, read, GOAL),
        Ratio(f"filter of {name}", amount / made.seconds, unit, wanted, amount / read.seconds),
        _size(build, name),
    ]


def _size(build: Build, name: str) -> Ratio:
    """The bytes of filters, laid side by side, per distinct key of a block."""
    counts = build.key_counts()
    keys = int(sum(per_block.sum() for per_block in counts))
    rates = zip(counts, build.recipe.rates, strict=True)
    least = sum(least_bytes(int(per_block.sum()), rate) for per_block, rate in rates)
    formula = f"n log2(1/p) / ln 2 bits, p = {build.recipe.rates[0]:g}"
    return Ratio(f"filter of {name}, {keys:,} keys", build.filter_bytes() / keys, "B/key", formula, least / keys)


def _build(directory: Path, options: BuildOptions) -> Build:
    path = str(directory / "data.parquet")
    schema = _open(path).schema
    return Build(path, recipe(schema, indexed_columns(schema), options, TABLE_BLOCKS))


def _open(path: str) -> ParquetFile:
    return open_parquet(pafs.LocalFileSystem(), path, path)


def _write(path: Path, columns: pa.Table) -> None:
    path.mkdir(exist_ok=True)
    rows = max(1, -(-len(columns) // ROW_GROUPS))
    pq.write_table(columns, path / "data.parquet", row_group_size=rows, write_page_index=True)


def _mixed(rows: int) -> pa.Table:
    rng = np.random.default_rng(7)
    user = rng.integers(0, max(1, rows // 4), rows)
    return pa.table(
        {
            "id": pa.array(rng.permutation(rows)),
            "user": pa.array([f"user-{number:010d}" for number in user.tolist()]),
            "ts": pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC")),
            "quantity": pa.array(rng.integers(0, 100, rows)),
            "note": pa.array([f"note {number % 1000}" for number in user.tolist()]),
        }
    )


def _write_columns(path: Path, rows: int, lines: int) -> None:
    """Write a file for every kind of key, and one of log lines."""
    rng = np.random.default_rng(7)
    unique = rng.permutation(rows) * 1_000_003
    few = rng.integers(0, max(1, rows // 100), rows)
    hexadecimal = [f"{high:016x}{low:016x}" for high, low in rng.integers(0, 2**63, (rows, 2)).tolist()]
    texts = [f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}" for digits in hexadecimal]
    columns = {
        "unique_bigint": pa.array(unique),
        "repeated_bigint": pa.array(few * 1_000_003),
        "unique_text": pa.array(texts),
        "repeated_text": pa.array([f"city-{number % 500}" for number in few.tolist()]),
    }
    for name, values in columns.items():
        _write(path / name, pa.table({"key": values}))
    _write(path / "message", log_lines(0, lines).select(["message"]))
