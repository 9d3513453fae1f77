"""Chosen rows read by their pages are the rows of a full read, whatever was written and by whom."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from secateur.io.parquet import page_reader
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.footer import read_footer
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.row_selection import chosen_rows
from secateur.io.storage.byte_ranges import LOCAL_GAP, REMOTE_GAP
from tests.support.drawn.parquet_files import chosen, difference, parquet_files
from tests.support.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READS = 5  # of a file
SETTINGS = st.tuples(st.sampled_from([200, 5000, 64 << 20]), st.sampled_from([0, LOCAL_GAP, REMOTE_GAP]))


def reader_of(data: bytes, gap: int = LOCAL_GAP) -> PageReader:
    """A reader of a file in memory, whose page locations come from its footer."""
    file = pa.BufferReader(data)
    footer = read_footer(file)

    def locations(row_group: int, leaves: Sequence[int]) -> ChunkLocations:
        chunk_locations = read_locations(file, footer, row_group, leaves).of(leaves)
        assert chunk_locations is not None
        return chunk_locations

    return PageReader("it", file, footer.head, locations, gap)


def opened(data: bytes) -> pq.ParquetFile:
    """The oracle: the same file as pyarrow reads it whole."""
    return pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us", page_checksum_verification=True)


def has_pages(reader: PageReader, row_group: int, names: Sequence[str]) -> bool:
    """Whether the pages of all these columns are known."""
    return reader.locations(row_group, reader.head.leaves(names)).has_pages


def check(reader: PageReader, row_group: int, whole: pa.Table, names: Sequence[str], rows: np.ndarray) -> None:
    """One read against the same rows of the whole row group."""
    read = pa.concat_tables(reader.read(row_group, names, chosen_rows(rows)))
    expected = whole.select([name for name in whole.schema.names if name in names])
    slices = [expected.slice(at, 1) for at in rows.tolist()] or [expected.slice(0, 0)]
    assert (wrong := difference(read, pa.concat_tables(slices))) is None, wrong


@st.composite
def reads(draw: st.DrawFn, names: Sequence[str], row_counts: Sequence[int]) -> tuple[int, list[str], np.ndarray]:
    """A row group, some columns in any order, and rows."""
    row_group = draw(st.integers(0, len(row_counts) - 1))
    order = draw(st.permutations(names))
    return row_group, order[: draw(st.integers(1, len(names)))], draw(chosen(row_counts[row_group]))


@examples(100, shrink=False)
@given(st.data())
def test_chosen_rows_are_those_of_the_full_read(data: st.DataObject) -> None:
    file = data.draw(parquet_files())
    plain = opened(file.data)
    counts = [plain.metadata.row_group(i).num_rows for i in range(plain.metadata.num_row_groups)]
    try:
        whole = [plain.read_row_group(i) for i in range(len(counts))]
        for table in whole:
            table.validate(full=True)
    except (pa.ArrowException, OSError):  # pyarrow cannot read what it wrote
        assume(False)
    for _ in range(READS):
        row_group, names, rows = data.draw(reads(file.schema.names, counts))
        window, gap = data.draw(SETTINGS)
        reader = reader_of(file.data, gap)
        if has_pages(reader, row_group, names):
            with patch.object(page_reader, "WINDOW_BYTES", window):
                check(reader, row_group, whole[row_group], names, rows)


# ---- files of others -------------------------------------------------------------------------------------------------

ROWS = 30_000
EPOCH = dt.datetime(2024, 1, 1)


def many_types(n: int = ROWS) -> pa.Table:
    """Rows of types that all writers know; pages of 20,000 rows, or of 1 MB, are cut."""
    rng = np.random.default_rng(5)
    no = rng.random(n) < 0.1
    numbers = rng.integers(-(10**12), 10**12, n)
    lists = [None if none else list(range(i % 4)) for i, none in enumerate(no.tolist())]
    pairs = [[{"a": j, "b": f"b{i}" * (i % 30)} for j in range(i % 3)] for i in range(n)]
    return pa.table(
        {
            "id": pa.array(np.arange(n)),
            "small": pa.array(rng.integers(0, 100, n), pa.int32(), mask=no),
            "number": pa.array(rng.random(n), mask=no),
            "flag": pa.array(rng.random(n) < 0.5, mask=no),
            "word": pa.array([f"word {i % 50}" for i in range(n)], mask=no),
            "text": pa.array([f"{number} is a number, and this a longer text" for number in numbers.tolist()], mask=no),
            "data": pa.array([bytes([i % 256]) * (i % 20) for i in range(n)], mask=no),
            "money": pa.array([Decimal(int(number)).scaleb(-2) for number in numbers], pa.decimal128(20, 2), mask=no),
            "day": pa.array(rng.integers(0, 20_000, n), pa.int32(), mask=no).cast(pa.date32()),
            "moment": pa.array([EPOCH + dt.timedelta(minutes=i) for i in range(n)], pa.timestamp("us"), mask=no),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "pairs": pa.array(pairs, pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()}))),
            "point": pa.array([{"x": i, "y": f"{i % 9}"} for i in range(n)], mask=no),
        }
    )


def check_file(path: Path) -> None:
    """Some reads of every row group of a file all of whose chunks have a page index; some pages of it are not read."""
    data = path.read_bytes()
    plain, rng = opened(data), np.random.default_rng(7)
    for row_group in range(plain.metadata.num_row_groups):
        whole = plain.read_row_group(row_group)
        reader, names, n = reader_of(data), plain.schema_arrow.names, len(whole)
        assert has_pages(reader, row_group, names)
        for rows in (rng.integers(0, n, 1), np.arange(n // 2, min(n, n // 2 + 700)), np.array([0, n - 1])):
            check(reader, row_group, whole, names, np.unique(rows))
        for name in names:
            check(reader, row_group, whole, [name], np.unique(rng.integers(0, n, 3)))
        check(reader, row_group, whole, names, np.flatnonzero(rng.random(n) < 0.01))


def test_files_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    """parquet-mr: pages of both versions, its codecs, INT96, lists, maps and structs."""
    frame = spark.range(45_000).selectExpr(
        "id",
        "cast(id % 100 AS int) AS small",
        "if(id % 10 = 0, NULL, rand(3)) AS number",
        "id % 3 = 0 AS flag",
        "concat('word ', id % 50) AS word",
        "concat(id * 7919 % 45000, ' is a number, and this a longer text') AS text",
        "cast(id * 7919 % 45000 AS decimal(9, 2)) AS money",
        "cast(id * 7919 AS decimal(38, 4)) AS fortune",
        "date_add(DATE '2020-01-01', cast(id % 5000 AS int)) AS day",
        "timestamp_micros(id * 60000000) AS moment",
        "timestamp_micros(id * 60000000)::timestamp_ntz AS local",
        "if(id % 7 = 0, NULL, sequence(1, id % 4)) AS list",
        "transform(sequence(1, id % 4), x -> struct(x AS a, concat('b', x) AS b)) AS pairs",
        "map_from_arrays(sequence(1, id % 5), transform(sequence(1, id % 5), x -> concat('v', x))) AS map",
        "struct(id AS x, if(id % 9 = 0, NULL, array(map('k', id))) AS y) AS nested",
    )
    int96, version = "spark.sql.parquet.outputTimestampType", "parquet.writer.version"
    for i, (codec, options) in enumerate(
        [("snappy", {}), ("zstd", {version: "v2"}), ("gzip", {version: "v2"}), ("none", {"parquet.page.size": "5000"})]
    ):
        spark.conf.set(int96, "INT96" if i % 2 else "TIMESTAMP_MICROS")
        try:
            path = tmp_path / f"{codec}-{i}"
            frame.coalesce(1).write.options(compression=codec, **options).parquet(str(path))
        finally:
            spark.conf.unset(int96)
        (file,) = path.glob("*.parquet")
        check_file(file)


def write_with_arrow_rs(table: pa.Table, path: Path) -> None:
    import arro3.io

    arro3.io.write_parquet(table, str(path), max_row_group_size=25_000, compression="zstd(1)")


def write_with_polars(table: pa.Table, path: Path) -> None:
    import polars

    polars.from_arrow(table).write_parquet(path, row_group_size=25_000, data_page_size=20_000)


def write_with_datafusion(table: pa.Table, path: Path) -> None:
    datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
    datafusion.SessionContext().from_arrow(table).write_parquet(str(path), compression="snappy")


def write_with_delta_rs(table: pa.Table, path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="delta-rs is not installed")
    deltalake.write_deltalake(str(path), table)


def write_with_pyarrow(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, write_page_index=True, row_group_size=25_000, max_rows_per_page=5000)


@pytest.mark.parametrize(
    "write",
    [write_with_arrow_rs, write_with_polars, write_with_datafusion, write_with_delta_rs, write_with_pyarrow],
)
def test_files_of_others(tmp_path: Path, write: Callable[[pa.Table, Path], None]) -> None:
    write(many_types(), tmp_path / "it.parquet")
    files = [path for path in tmp_path.rglob("*.parquet") if path.is_file()]
    assert files
    for file in files:
        check_file(file)


def write_with_duckdb(table: pa.Table, path: Path) -> None:
    import duckdb

    duckdb.from_arrow(table).write_parquet(str(path))


def write_plainly(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


@pytest.mark.parametrize("write", [write_with_duckdb, write_plainly])
def test_pages_of_files_without_a_page_index_are_not_known(
    tmp_path: Path, write: Callable[[pa.Table, Path], Any]
) -> None:
    write(many_types(2000), tmp_path / "it.parquet")
    reader = reader_of((tmp_path / "it.parquet").read_bytes())
    assert not any(has_pages(reader, 0, [name]) for name in reader.head.schema.names)
