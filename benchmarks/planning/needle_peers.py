"""Looking for a value in filters that lie one after the other: in memory, and in Parquet files by DuckDB and Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.planning.needle_table import NeedleTable, needle_table
from benchmarks.planning.scale_tables import changing
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.spark.sessions import spark_session
from benchmarks.timing import race
from secateur.index.build.options import filter_options
from secateur.index.container.checked_matrix import read_rows
from secateur.index.filters.bloom import positions
from secateur.index.filters.hashing import hash_keys
from secateur.index.filters.size_class import shape_of
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from secateur.values.kinds import Kind
from tests.support.stores.local_build import index_here

ROW_GROUPS, FILES = 2_000, 10
ROWS = 1_000  # of a row group
TRANSPOSED = 8_192  # blocks at once


def needle_beside(setting: Setting) -> Result:
    """The look-up against filters block by block in memory; plan and read of one row against queries of its file."""
    needles = needle_table(setting)
    scan = needles.find(int(needles.value[0]))
    laid = _laid(needles)
    probe, one_by_one = race(
        [
            changing(lambda call: needles.probe(scan, needles.value[call % 100 : call % 100 + 1])),
            changing(lambda call: _probe_laid(needles, laid, int(needles.value[call % 100]))),
        ],
        setting.repetitions,
    )
    for value, block in zip(needles.value[:20].tolist(), needles.block[:20].tolist(), strict=True):
        if block not in _probe_laid(needles, laid, value):
            raise AssertionError("the filters block by block are not those of the table")
    ratios = [timed("look-up in filters", probe, "filters one after the other, numpy in memory", one_by_one)]
    measured, kept = _beside_files(setting)
    sizes = {"blocks": len(needles), "row_groups": kept.total}
    return Result(sizes, (*ratios, *measured), (kept,), ("Spark and DuckDB run on all cores",))


def _laid(needles: NeedleTable) -> np.ndarray:
    """The filters of all blocks one after the other: uint8 of shape (n_columns, bits / 8)."""
    bloom_matrices = needles.bloom_matrices()
    parts = []
    for part in range(len(bloom_matrices.at)):
        piece, name = bloom_matrices.part(part), bloom_matrices.file_name[int(bloom_matrices.file[part])]
        store = needles.table.store
        parts.append(read_rows(piece, np.arange(piece.rows), partial(store.read_many, name), name))
    rows = np.concatenate(parts)
    laid = []
    for start in range(0, rows.shape[1], TRANSPOSED // 8):
        bits = np.unpackbits(rows[:, start : start + TRANSPOSED // 8], axis=1, bitorder="little")
        laid.append(np.packbits(bits.T, axis=1, bitorder="little"))
    return np.concatenate(laid)


def _probe_laid(needles: NeedleTable, laid: np.ndarray, value: int) -> np.ndarray:
    """The blocks whose filters have all bits of a value: k bytes of every filter."""
    bloom_matrices = needles.bloom_matrices()
    hashes = hash_keys([value], Kind.WORD)
    shape = shape_of(int(bloom_matrices.size_class[0]))
    (places,) = positions(hashes, shape.probes, shape.bits)
    bits = (laid[:, places >> 3] >> (places & 7).astype(np.uint8)) & 1
    return np.flatnonzero(bits.all(axis=1))


# ---- files -----------------------------------------------------------------------------------------------------------


def _beside_files(setting: Setting) -> tuple[list[Ratio], Kept]:
    """A value that is there and one that is not, in Parquet files with bloom filters of their own."""
    groups = setting.scaled(ROW_GROUPS, least=FILES)
    directory = setting.prepared(f"needles-parquet-{groups}", partial(_write, groups=groups))
    table = _open(directory)
    values = np.load(directory / "values.npy")
    there, absent = int(values[len(values) // 3]), int(values[0]) + 1
    files = str(directory / "data" / "*.parquet")
    with spark_session() as spark, duckdb.connect() as connection:
        frame = spark.read.parquet(str(directory / "data"))

        def by_duckdb(value: int) -> int:
            query = f"SELECT key, amount FROM read_parquet('{files}') WHERE key = {value}"
            return len(connection.execute(query).fetchall())

        def by_spark(value: int) -> int:
            return len(frame.where(f"key = {value}").collect())

        def by_secateur(value: int) -> int:
            return len(sec.prune(table, sec.col("key") == value, strict=True).to_arrow(["key", "amount"]))

        ratios = []
        for value, name, rows in ((there, "a value that is there", 1), (absent, "an absent value", 0)):
            asked = [partial(ask, value) for ask in (by_secateur, by_duckdb, by_spark)]
            if [ask() for ask in asked] != [rows] * 3:
                raise AssertionError(f"{name}: {[ask() for ask in asked]} rows are found instead of {rows}")
            ours, in_duckdb, in_spark = race(asked, setting.repetitions)
            ratios += [
                timed(f"plan and read, {name}", ours, "DuckDB, by the files' own filters", in_duckdb),
                timed(f"plan and read, {name}", ours, "Spark, by the files' own filters", in_spark),
            ]
    left = len(sec.prune(table, sec.col("key") == there, strict=True).blocks)
    return ratios, Kept("Parquet files", "a value that is there", "blocks", groups, 1, {"secateur": left})


def _write(directory: Path, groups: int) -> None:
    rng = np.random.default_rng(6)
    values = rng.permutation(groups * ROWS) * 2 + 1
    table = pa.table({"key": values, "amount": rng.random(len(values))})
    (directory / "data").mkdir()
    rows_per_file = -(-groups // FILES) * ROWS
    for i in range(FILES):
        part = table.slice(i * rows_per_file, rows_per_file)
        if len(part):
            path = directory / "data" / f"part-{i:02d}.parquet"
            pq.write_table(part, path, row_group_size=ROWS, bloom_filter_options={"key": {"ndv": ROWS, "fpp": 0.001}})
    np.save(directory / "values.npy", values)


def _open(directory: Path) -> Table:
    index = directory / f"index-{index_code()}"
    table = sec.open_table(str(directory / "data"), index_location=str(index))
    if not index.exists():
        index_here(table, BuildOptions(filters=filter_options(bloom=["key"])))
    return table
