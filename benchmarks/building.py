"""Summarising a file for the index, against reading the same columns with pyarrow."""

from __future__ import annotations

from dataclasses import replace
from math import log, log2
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.assemble import Recipe, assemble, recipe, summarise
from secateur.index.survey import LEAST_SEGMENT
from secateur.index.model import BuildOptions, indexed_columns
from secateur.index.segment import BlockFilters, encode_segment
from secateur.io.parquet_file import ParquetSource, open_parquet

ROWS = 500_000
ROW_GROUPS = 8
TABLE_BLOCKS = 10_000  # of the table that the file is thought to be a part of: decides the false-positive rate
BLOOM = ("id", "user")


def build_read(setting: Setting) -> Result:
    """One file with two bloom columns: summarised, and made into the bytes of a segment."""
    rows = setting.scaled(ROWS, least=100)
    directory = setting.prepared(f"build-{rows}", lambda path: _write(path, rows))
    path = str(directory / "data.parquet")
    what = _recipe(path)
    summarised, built, read, read_all = race(
        [
            lambda: summarise(_open(path), what),
            lambda: _segment(path, what),
            lambda: _read(path, list(BLOOM)),
            lambda: _read(path, None),
        ],
        setting.repetitions,
    )
    keys = _count_keys(path, what)
    wanted = f"pyarrow reads {' and '.join(BLOOM)}"
    ratios = (
        timed("summarise()", summarised, wanted, read),
        timed("summarise()", summarised, "pyarrow reads all columns", read_all),
        timed("assemble() and encode_segment()", built, wanted, read),
        Ratio("summarise(), keys per second", keys / summarised.seconds, "keys/s", wanted, keys / read.seconds),
        *_sizes(path, what, keys),
    )
    return Result({"rows": rows, "row_groups": ROW_GROUPS, "keys": keys}, ratios)


def _sizes(path: str, what: Recipe, keys: int) -> list[Ratio]:
    """Bytes per key of the filters of the file as they are, and as segments of few and of many blocks hold them."""
    segment = assemble([("data.parquet", 1, 1)], lambda _: _open(path), what)
    formula, ideal = f"log2(1/p) / ln 2 bits, p = {what.fpr:g}", log2(1 / what.fpr) / log(2) / 8
    alone = sum(int((1 << f.log2_bits.astype(np.int64)).sum()) for f in segment.filters.values()) / 8
    ratios = [Ratio("filters by themselves", alone / keys, "B/key", formula, ideal)]
    for times in (1, LEAST_SEGMENT // ROW_GROUPS):
        repeated = replace(segment, filters={c: _repeated(filters, times) for c, filters in segment.filters.items()})
        bare = replace(segment, filters={})
        added = len(encode_segment(repeated).data) - len(encode_segment(bare).data)
        subject = f"filters in a segment of {ROW_GROUPS * times} blocks"
        ratios.append(Ratio(subject, added / (keys * times), "B/key", formula, ideal))
    return ratios


def _repeated(filters: BlockFilters, times: int) -> BlockFilters:
    return BlockFilters(np.tile(filters.log2_bits, times), [*filters.filters] * times, filters.probes)


def _open(path: str) -> ParquetSource:
    return open_parquet(pafs.LocalFileSystem(), path, path)


def _recipe(path: str) -> Recipe:
    schema = _open(path).schema
    return recipe(schema, indexed_columns(schema), BuildOptions(bloom=BLOOM), TABLE_BLOCKS)


def _segment(path: str, what: Recipe) -> bytes:
    return encode_segment(assemble([("data.parquet", 1, 1)], lambda _: _open(path), what)).data


def _read(path: str, columns: list[str] | None) -> None:
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        file.read_row_group(group, columns=columns, use_threads=False)


def _count_keys(path: str, what: Recipe) -> int:
    hashes = summarise(_open(path), what).hashes
    return sum(len(block.first) for blocks in hashes.values() for block in blocks if block is not None)


def _write(path: Path, rows: int) -> None:
    rng = np.random.default_rng(7)
    user = rng.integers(0, max(1, rows // 4), rows)
    table = pa.table(
        {
            "id": pa.array(rng.permutation(rows)),
            "user": pa.array([f"user-{number:010d}" for number in user.tolist()]),
            "ts": pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC")),
            "quantity": pa.array(rng.integers(0, 100, rows)),
            "note": pa.array([f"note {number % 1000}" for number in user.tolist()]),
        }
    )
    pq.write_table(table, path / "data.parquet", row_group_size=max(1, -(-rows // ROW_GROUPS)), write_page_index=True)
