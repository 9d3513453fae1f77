"""Pages found by their headers are those that the page index of the same file tells, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import arro3.io
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.parquet.file_locations import file_locations, read_locations
from secateur.io.parquet.file_metadata import FileMetadata
from secateur.io.parquet.footer import Footer, read_footer
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.page_walk import walked
from secateur.io.parquet.row_selection import all_rows
from secateur.io.storage.byte_ranges import LOCAL_GAP, REMOTE_GAP
from tests.support.drawn.paged_tables import OPTIONS, parquet, tables, with_pages
from tests.support.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GAPS = (LOCAL_GAP, REMOTE_GAP)  # of a disk and of an object store


def walk(file: pa.NativeFile, footer: Footer, row_group: int, leaf: int, gap: int) -> PageLocations | None:
    stored = footer.chunks(row_group)[leaf].stored
    assert stored is not None
    answer = walked(file, stored, footer.head.columns[leaf], int(footer.row_count[row_group]), gap)
    if answer is None:
        return None
    chunk, pages = answer
    assert chunk.page_count == len(pages.rows)
    if stored.page_count >= 0:  # which not every writer counts
        assert (chunk.page_count, chunk.by_dictionary) == (stored.page_count, stored.by_dictionary)
    return pages


def plain(pages: PageLocations) -> Mapping[str, Any]:
    return {name: array.tolist() for name, array in vars(pages).items()}


def check(file: pa.NativeFile, is_version_2: bool, gap: int) -> int:
    """All pages of a file with a page index, by their headers; the number of pages that these tell."""
    footer, count = read_footer(file), 0
    columns = footer.head.columns
    for row_group in np.flatnonzero(footer.row_count).tolist():
        locations = read_locations(file, footer, row_group, range(len(columns)))
        for leaf, column in enumerate(columns):
            known, by_headers = locations.chunks[leaf].pages, walk(file, footer, row_group, leaf, gap)
            untold = column.repetition and not is_version_2
            if known is None or (untold and len(known.rows) > 1):  # None: some page has no row of its own
                assert by_headers is None
                continue
            assert by_headers is not None
            assert plain(by_headers) == plain(known)
            count += len(by_headers.rows)
    return count


@examples(100)
@given(tables(), OPTIONS, st.sampled_from(GAPS))
def test_headers_tell_what_the_page_index_does(table: pa.Table, options: dict[str, Any], gap: int) -> None:
    """Of repeated columns those of version 2 alone: the others do not tell rows, but where one page has them all."""
    check(parquet(table, write_page_index=True, **options), options["data_page_version"] == "2.0", gap)


ROWS = 50_000
FLAT = {
    "number": np.arange(ROWS),
    "many": np.random.default_rng(1).integers(0, 1 << 60, ROWS),
    "few": [f"value {i % 10}" for i in range(ROWS)],
    "null": pa.array([None if i % 3 else i / 7 for i in range(ROWS)], pa.float64()),
}
NESTED = {**FLAT, "list": [[i, i] if i % 5 else [] for i in range(ROWS)]}


def by_arrow_rs(path: str, table: pa.Table) -> None:
    arro3.io.write_parquet(table, path)


def by_polars(path: str, table: pa.Table) -> None:
    polars.DataFrame(table).write_parquet(path)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("write", [by_arrow_rs, by_polars])
def test_other_writers(tmp_path: Path, write: Callable[[str, pa.Table], None], gap: int) -> None:
    path = str(tmp_path / "file.parquet")
    write(path, pa.table(NESTED))
    with pa.OSFile(path) as file:
        assert check(file, False, gap) >= len(FLAT)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_spark(spark: SparkSession, tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "files")
    nested = ("array(id, id) AS list", "named_struct('x', id % 7) AS nested")
    frame = (
        spark.range(60_000).coalesce(1).selectExpr("id", "rand(1) AS many", "cast(id % 5 AS string) AS few", *nested)
    )
    frame.write.option("parquet.writer.version", version).parquet(path)
    (part,) = Path(path).glob("*.parquet")
    with pa.OSFile(str(part)) as file:
        assert check(file, version == "v2", LOCAL_GAP) >= 8


def without_index(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=9000, data_page_size=4000)


def by_duckdb(path: str, table: pa.Table) -> None:
    duckdb.sql(f"COPY \"table\" TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 20000)")


@pytest.mark.parametrize("write", [without_index, by_duckdb])
def test_files_without_a_page_index_are_read_by_pages(tmp_path: Path, write: Callable[[str, pa.Table], None]) -> None:
    path, table = str(tmp_path / "file.parquet"), pa.table(FLAT)
    write(path, table)
    with pa.OSFile(path) as file:
        footer = read_footer(file)
        assert not any(chunk.offset_index for chunk in footer.chunks(0))
        of_file = file_locations(file, footer)
        metadata, parts = FileMetadata(of_file.head), []
        for row_group, data in enumerate(of_file.blocks):
            locations = with_pages(data, file.size(), range(len(FLAT)))
            assert locations is not None
            reader = PageReader(path, file, metadata, lambda row_group, leaves, pages=locations: pages)  # type: ignore[misc]
            parts += reader.read(row_group, [*FLAT], all_rows(int(footer.row_count[row_group])))
    assert pa.concat_tables(parts).equals(pq.read_table(path))


def test_a_page_whose_header_is_long_is_found() -> None:
    """Bounds in a header may be as long as values are."""
    table = pa.table({"text": ["x" * (i * 1000) for i in range(0, 200, 7)]})
    file = parquet(table, data_page_size=1, write_batch_size=1, use_dictionary=False, max_rows_per_page=1)
    footer = read_footer(file)
    pages = walk(file, footer, 0, 0, LOCAL_GAP)
    assert pages is not None
    assert pages.rows.tolist() == [1] * len(table)


# ---- what does not add up --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> pa.BufferReader:
    return parquet(pa.table({"a": np.arange(100)}), data_page_size=100, write_batch_size=10, use_dictionary=False)


CHANGES: dict[str, dict[str, int]] = {
    "a byte more": {"size": 1},
    "a byte less": {"size": -1},
    "a value more": {"value_count": 1},
    "a value less": {"value_count": -1},
    "too small": {"uncompressed": -(1 << 20)},
    "elsewhere": {"data": 1},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_chunk_that_says_something_else_has_no_pages(small: pa.BufferReader, change: str) -> None:
    footer = read_footer(small)
    stored = footer.chunks(0)[0].stored
    assert stored is not None
    walk_chunk = partial(walked, small, column=footer.head.columns[0], gap=LOCAL_GAP)
    assert walk_chunk(stored, row_count=100) is not None
    assert walk_chunk(stored, row_count=101) is None
    other = {name: getattr(stored, name) + more for name, more in CHANGES[change].items()}
    assert walk_chunk(replace(stored, **other), row_count=100) is None


@examples(200)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 255)), min_size=1, max_size=3))
def test_harmed_headers_are_refused_or_add_up(changes: list[tuple[int, int]]) -> None:
    table = pa.table({"a": np.arange(100)})
    whole = parquet(table, data_page_size=100, write_batch_size=10, use_dictionary=False)
    footer = read_footer(whole)
    stored = footer.chunks(0)[0].stored
    assert stored is not None
    data = bytearray(whole.read_buffer())
    for at, mask in changes:
        data[stored.data + at % stored.size] ^= mask
    pages = walk(pa.BufferReader(bytes(data)), footer, 0, 0, LOCAL_GAP)
    if pages is not None:
        assert pages.rows.sum() == 100
        assert pages.size.sum() == stored.size
