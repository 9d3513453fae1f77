"""What an index keeps for reads of single pages: it is what the file says, and reads by it are those of the whole."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog

import secateur as sec
from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk
from secateur.index.model import BuildOptions
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.segments.segment_file import LOCATION_TABLE, PAGE_LOCATIONS
from secateur.index.zones.page_locations import (
    BlockLocations,
    concat_locations,
    location_table_of,
    table_arrays,
    unknown_locations,
)
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.file_locations import file_locations, locations_of_file, read_locations
from secateur.io.parquet.file_metadata import FileMetadata
from secateur.io.parquet.footer import read_footer
from secateur.io.parquet.location_codec import decode_locations, encode_locations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.row_selection import all_rows, chosen_rows
from secateur.io.scan import surviving_blocks
from secateur.io.scan.stored_locations import locations_of
from secateur.io.storage.byte_ranges import REMOTE_GAP
from secateur.io.storage.locations import resolve_location
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan
from tests.support.drawn.paged_tables import OPTIONS, parquet, tables, with_pages
from tests.support.profiles import examples
from tests.support.s3_server import S3Server
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import element, lie_in_segment, snapshot_of
from tests.support.tables import WriteTable, write_file


def plain(locations: ChunkLocations | None) -> Any:
    """Page locations as values that compare."""
    if locations is None:
        return None
    chunks = {leaf: dict(vars(chunk)) for leaf, chunk in locations.chunks.items()}
    for chunk in chunks.values():
        pages = chunk.pop("pages")
        chunk["pages"] = pages and {name: array.tolist() for name, array in vars(pages).items()}
    return locations.row_count, chunks


@examples(100)
@given(tables(), OPTIONS, st.booleans(), st.data())
def test_an_encoded_locations_is_that_of_the_files_footer(
    table: pa.Table, options: dict[str, Any], index: bool, data: st.DataObject
) -> None:
    """Of all leaves, and of some; what the footer does not tell of pages may be known by their headers."""
    file = parquet(table, write_page_index=index, **options)
    footer = read_footer(file)
    of_file = file_locations(file, footer)
    assert of_file.head == footer.head.data
    assert of_file.placed.tolist() == footer.placed.tolist()
    for row_group, encoded in enumerate(of_file.blocks):
        leaves = data.draw(st.sets(st.integers(0, len(footer.head.columns) - 1)))
        by_footer = read_locations(file, footer, row_group, sorted(leaves)).of(leaves)
        decoded = decode_locations(encoded, file.size(), "it", leaves)
        if by_footer is None:  # of no rows, for which there may be no chunk
            assert not footer.row_count[row_group]
            continue
        if index:
            assert plain(decoded) == plain(by_footer)
        assert plain(decode_locations(encode_locations(decoded), file.size(), "it")) == plain(decoded)
        assert {leaf: chunk.start for leaf, chunk in decoded.chunks.items()} == {
            leaf: chunk.start for leaf, chunk in by_footer.chunks.items()
        }


@examples(60)
@given(tables(), OPTIONS, st.booleans(), st.data())
def test_rows_read_by_stored_locations_are_those_of_a_full_read(
    table: pa.Table, options: dict[str, Any], index: bool, data: st.DataObject
) -> None:
    file = parquet(table, write_page_index=index, **options)
    of_file = file_locations(file, read_footer(file))
    whole = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
    for row_group, encoded in enumerate(of_file.blocks):
        expected = whole.read_row_group(row_group)
        names = data.draw(st.lists(st.sampled_from(table.schema.names), min_size=1, unique=True))
        locations = with_pages(encoded, file.size(), FileMetadata(of_file.head).leaves(names))
        if locations is None or not len(expected):
            continue
        rows = data.draw(st.sets(st.integers(0, len(expected) - 1), min_size=1, max_size=9).map(sorted))
        read = pa.concat_tables(
            reader(file, of_file.head, locations).read(row_group, names, chosen_rows(np.array(rows)))
        )
        assert read.equals(expected.select(read.column_names).take(rows))
        assert {*read.column_names} == {*names}


def reader(file: pa.NativeFile, head: bytes, locations: ChunkLocations) -> PageReader:
    return PageReader("it", file, FileMetadata(head), lambda row_group, leaves: locations)


# ---- in an index -----------------------------------------------------------------------------------------------------


def opened_blocks(plan: Scan) -> OpenedBlocks:
    blocks = plan.survivors.blocks
    assert isinstance(blocks, OpenedBlocks)
    return blocks


def everything(head: FileMetadata) -> Sequence[int]:
    return range(len(head.columns))


def stored(table: ParquetDirectory, predicate: str = "true") -> tuple[Scan, BlockLocations]:
    """The plan of a predicate, and what the index has of its blocks."""
    plan = sec.prune(table, predicate, strict=True)
    stored_locations = locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True)
    assert not stored_locations.degraded
    return plan, stored_locations.page_locations


def require_own(root: Path, table: ParquetDirectory, predicate: str = "true") -> int:
    """Every block's page locations and place are those of its file; the number of blocks."""
    plan, block_locations = stored(table, predicate)
    blocks = opened_blocks(plan)
    placed = blocks.placed
    for i, (file, row_group) in enumerate(zip(blocks.file.tolist(), blocks.row_group.tolist(), strict=True)):
        with pa.OSFile(str(root / plan.opened.listing.paths[file].as_py())) as opened:
            footer = read_footer(opened)
            assert plain(decode_locations(block_locations.blocks[i], opened.size(), "it")) == plain(
                locations_of_file(opened, footer)[row_group]
            )
            assert block_locations.heads[block_locations.head[i]] == footer.head.data
            assert placed[:, i].tolist() == footer.placed[:, row_group].tolist()
    return len(blocks)


ROWS = 500


def rows_of(first: int, **more: Any) -> pa.Table:
    ids = np.arange(first, first + ROWS)
    return pa.table({"id": ids, "text": [f"text {i}" for i in ids], **more})


@examples(10, shrink=False)
@given(st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.booleans()), min_size=1, max_size=4), st.data())
def test_locations_stay_with_their_blocks(appends: list[tuple[int, bool, bool]], data: st.DataObject) -> None:
    """Through refreshes, added columns, removed files and optimizations."""
    with tempfile.TemporaryDirectory() as name:
        root, files = Path(name), 0
        table = sec.open_table(name)
        for i, (count, index, other) in enumerate(appends):
            for _ in range(count):
                more = {"other": np.full(ROWS, files)} if other else {}
                options = {"row_group_size": 100 + 50 * files, "write_page_index": index, "data_page_size": 300}
                write_file(root / f"{files}.parquet", rows_of(files * ROWS, **more), **options)
                files += 1
            if i == 0:
                sec.build_index(table, segment_blocks=4)
            else:
                sec.refresh_index(table, bloom=["id"] if data.draw(st.booleans()) else [])
            require_own(root, table)
        if files > 1 and data.draw(st.booleans()):
            (root / "0.parquet").unlink()
        sec.optimize_index(table)
        assert require_own(root, table)
        assert sec.verify_index(table).sound
        require_own(root, table, f"id >= {ROWS // 2} AND id < {ROWS + 10}")


@pytest.fixture
def lake(write_table: WriteTable) -> Iterator[Path]:
    """Three files of five row groups and two writers, indexed in two segments."""
    root = write_table({f"{i}.parquet": rows_of(i * ROWS) for i in range(2)}, row_group_size=100, write_page_index=True)
    write_file(root / "2.parquet", rows_of(2 * ROWS, other=np.arange(ROWS)), row_group_size=100)
    sec.build_index(sec.open_table(str(root)), segment_blocks=10)
    yield root


def test_a_read_opens_no_footer(lake: Path) -> None:
    """Of the data file only bytes of the pages are read, and of the index the page locations of the blocks alone."""
    plan, block_locations = stored(sec.open_table(str(lake)), "id = 777")
    (file,), (row_group,) = opened_blocks(plan).file.tolist(), opened_blocks(plan).row_group.tolist()
    path = lake / plan.opened.listing.paths[file].as_py()
    locations = with_pages(block_locations.blocks[0], path.stat().st_size, [0, 1])
    assert locations is not None
    data, read = path.read_bytes(), []

    class Recording(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            read.append((self.tell(), len(buffer)))
            return super().readinto(buffer)

        def read(self, size: int | None = -1) -> bytes:
            read.append((self.tell(), len(data) if size is None else size))
            return super().read(size)

    opened = pa.PythonFile(Recording(data), mode="r")
    rows = chosen_rows(np.array([777 % 100]))
    (found_rows,) = reader(opened, block_locations.heads[0], locations).read(row_group, ["id", "text"], rows)
    assert found_rows.to_pylist() == [{"id": 777, "text": "text 777"}]
    pages = [(chunk.start, chunk.stop) for chunk in locations.chunks.values()]
    first, last = min(start for start, _ in pages), max(stop for _, stop in pages)
    assert read and all(first <= at and at + size <= last for at, size in read)


def test_only_what_is_asked_for_is_read(lake: Path) -> None:
    """Once: a second read finds it in memory. Planning reads none of it."""
    table = sec.open_table(str(lake))
    plan = sec.prune(table, "id = 777", strict=True)
    reads = plan.opened.catalog.reads
    before = reads.stored_bytes + reads.cached_bytes
    for _ in range(2):
        locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True)
    memory = plan.opened.catalog.memory
    table_bytes = memory.snapshot.directory(LOCATION_TABLE, None)
    every = memory.snapshot.directory(PAGE_LOCATIONS, None)
    assert table_bytes is not None and every is not None
    (block,) = opened_blocks(plan).page_locations().blocks
    (head,) = opened_blocks(plan).page_locations().heads
    assert reads.stored_bytes + reads.cached_bytes - before <= table_bytes.size.max() + len(block) + len(head)
    assert len(block) + len(head) < every.size.min() / 2
    again = sec.prune(table, "id = 778", strict=True)
    assert opened_blocks(again).page_locations().blocks == [block]
    assert not again.opened.catalog.reads.stored


def test_heads_are_there_once_for_files_of_one_writer(lake: Path) -> None:
    _, block_locations = stored(sec.open_table(str(lake)))
    assert len(block_locations.heads) == 2
    assert np.bincount(block_locations.head).tolist() == [10, 5]


def test_only_the_columns_that_are_read_are_kept(lake: Path) -> None:
    """Of many pages; few pages are left as they are."""
    texts = {f"text {i}": [str(hash((i, j)) % 10**9) * (j % 7) for j in range(3000)] for i in range(6)}
    write_file(lake / "wide.parquet", pa.table(texts), data_page_size=300, write_batch_size=20, use_dictionary=False)
    sec.refresh_index(sec.open_table(str(lake)))
    for predicate, column, kept in (("id = 777", "text", [0, 1]), ("`text 3` IS NOT NULL", "text 3", [3])):
        plan = sec.prune(sec.open_table(str(lake)), predicate, strict=True)
        (data,) = locations_of(
            plan.opened, opened_blocks(plan), partial(FileMetadata.leaves, names=[column]), is_sent=True
        ).page_locations.blocks
        size = int(plan.opened.listing.size[opened_blocks(plan).file[0]])
        assert [*decode_locations(data, size, "it").chunks] == kept
        assert with_pages(data, size, kept[-1:]) is not None
        assert len(opened_blocks(plan).page_locations().blocks[0]) >= len(data)


def test_an_index_without_locations_gets_them_by_a_refresh(write_table: WriteTable) -> None:
    root = write_table({"0.parquet": rows_of(0)}, row_group_size=100)
    table = sec.open_table(str(root))
    without = sec.build_index(table, page_locations=False, bloom=["id"])
    assert not without.location_bytes
    plan, block_locations = stored(table)
    assert not block_locations.heads and block_locations.blocks == [b""] * 5
    assert (opened_blocks(plan).placed == -1).all()
    write_file(root / "1.parquet", rows_of(ROWS), row_group_size=100)
    sec.refresh_index(table)
    assert not stored(table)[1].heads
    write_file(root / "2.parquet", rows_of(2 * ROWS), row_group_size=100)
    done = sec.refresh_index(table, page_locations=True)
    assert done.segments_amended == 1
    assert 0 < done.index.location_bytes < done.index.index_bytes
    assert require_own(root, table) == 15
    assert sec.verify_index(table).sound
    assert sec.refresh_index(table).is_current
    assert sec.optimize_index(table).segments_after == 1
    assert require_own(root, table) == 15


def test_iceberg(catalog: Catalog) -> None:
    """Files are where manifests say, and an entry belongs to the snapshot that added the file."""
    made = catalog.create_table("db.events", rows_of(0).schema)
    for first in (0, ROWS):
        made.append(rows_of(first))
    table = sec.open_table(made)
    index_here(table, BuildOptions())
    plan = sec.prune(table, f"id = {ROWS + 7}", strict=True)
    block_locations = locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True).page_locations
    (uri,) = plan.files
    with pa.OSFile(uri.removeprefix("file://")) as file:
        locations = with_pages(block_locations.blocks[0], file.size(), [1])
        assert locations is not None
        (read,) = reader(file, block_locations.heads[0], locations).read(0, ["text"], chosen_rows(np.array([7])))
    assert read.to_pylist() == [{"text": f"text {ROWS + 7}"}]


def test_object_store(s3: S3Server, tmp_path: Path) -> None:
    """Of files without a page index chunks are read by megabytes, and of the index the blocks' page locations."""
    location = f"s3://{s3.bucket}/{tmp_path.name}/events"
    _, filesystem, root = resolve_location(location, None)
    filesystem.create_dir(root, recursive=True)
    for i in range(3):
        path = f"{root}/{i}.parquet"
        pq.write_table(rows_of(i * ROWS), path, filesystem=filesystem, row_group_size=100, data_page_size=300)
    table = sec.open_table(location)
    index_here(table, BuildOptions(segment_blocks=5))
    plan, block_locations = stored(table, f"id % {ROWS} = 250")
    assert len(block_locations.blocks) == 3
    sizes = plan.opened.listing.size[opened_blocks(plan).file].tolist()
    assert all(with_pages(data, size, [0, 1]) for data, size in zip(block_locations.blocks, sizes, strict=True))
    before, one = stored(sec.open_table(location), "id = 250")  # what another process has read is on local disk
    assert not before.opened.catalog.reads.stored
    assert before.opened.catalog.reads.cached
    with filesystem.open_input_file(f"{root}/0.parquet") as file:
        locations = with_pages(one.blocks[0], file.size(), [0])
        assert locations is not None
        page_reader = PageReader(
            "it", file, FileMetadata(one.heads[0]), lambda row_group, leaves: locations, REMOTE_GAP
        )
        (read,) = page_reader.read(2, ["id"], chosen_rows(np.array([50])))
    assert read.to_pylist() == [{"id": 250}]


def test_a_file_that_the_index_does_not_know_has_no_locations(lake: Path) -> None:
    write_file(lake / "new.parquet", rows_of(9 * ROWS), row_group_size=500)
    _, block_locations = stored(sec.open_table(str(lake)), f"id >= {3 * ROWS - 1}")
    assert block_locations.head.tolist() == [0, -1]
    assert block_locations.blocks[1] == b""


def test_a_column_that_cannot_be_read_by_pages_keeps_the_others() -> None:
    """A repeated column in pages of version 1, without a page index."""
    table = pa.table({"a": np.arange(1000), "b": [[i, i] for i in range(1000)]})
    file = parquet(table, data_page_size=100, write_batch_size=10)
    of_file = file_locations(file, read_footer(file))
    assert with_pages(of_file.blocks[0], file.size(), [0]) is not None
    assert with_pages(of_file.blocks[0], file.size(), [1]) is None


# ---- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [PAGE_LOCATIONS, LOCATION_TABLE])
def test_broken_locations_cost_time_and_no_rows(
    lake: Path, chunk: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for row groups that are too large to be read whole: for small ones nobody asks."""
    monkeypatch.setattr(surviving_blocks, "CHUNK_COST", 0)
    snapshot = snapshot_of(lake / "_secateur")
    directory = snapshot.directory(chunk, None)
    assert directory is not None
    path = lake / "_secateur" / snapshot.segments.name[0]
    data = bytearray(path.read_bytes())
    data[int(directory.at[0] + directory.size[0]) - 9] ^= 1
    path.write_bytes(bytes(data))
    table = sec.open_table(str(lake))
    plan = sec.prune(table, "true")
    stored_locations = locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True)
    assert "does not match its checksum" in stored_locations.degraded[0]
    assert b"" in stored_locations.page_locations.blocks
    assert any(stored_locations.page_locations.blocks)
    assert plan.to_arrow()["id"].to_pylist() == [*range(3 * ROWS)]
    assert "is read by footers: " in caplog.text
    assert not sec.verify_index(table).sound
    strict = sec.prune(table, "true", strict=True)
    with pytest.raises(IndexFault, match="checksum"):
        locations_of(strict.opened, opened_blocks(strict), everything, is_sent=True)


def test_a_table_of_locations_that_lies_is_found(lake: Path) -> None:
    """Another checksum of the first page locations, with all other checksums right."""
    lie_in_segment(lake / "_secateur", LOCATION_TABLE, element(5, 0, 1))
    table = sec.open_table(str(lake))
    assert "location-table does not match its checksum" in sec.verify_index(table).faults[0]
    plan = sec.prune(table, "true")
    stored_locations = locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True)
    assert len(stored_locations.degraded) == 1
    assert [bool(data) for data in stored_locations.page_locations.blocks].count(False) == 1


TABLES: dict[str, Callable[[list[np.ndarray]], list[np.ndarray]]] = {
    "no arrays": lambda arrays: [],
    "too few": lambda arrays: arrays[:-1],
    "other types": lambda arrays: [*arrays[:3], arrays[3].astype(np.int64), *arrays[4:]],
    "another length": lambda arrays: [*arrays[:4], arrays[4][:-1], *arrays[5:]],
    "begins nowhere": element(0, 0, -1),
    "begins behind the file": element(0, 0, 1 << 61),
    "longer than the file": element(4, 0, 1 << 30),
    "longer than memory": lambda arrays: [*arrays[:4], arrays[4] + (1 << 62), *arrays[5:]],
    "a size below 0": element(4, 0, -1),
    "a head that is not there": element(3, 0, 7),
    "a head below": element(3, 0, -2),
    "a place before the file": element(6, 0, -2),
}


@pytest.mark.parametrize("lie", TABLES)
def test_a_malformed_table_of_locations_is_refused(lie: str) -> None:
    page_locations = BlockLocations([b"h"], np.zeros(3, np.int32), np.zeros((2, 3), np.int64), [b"0", b"1", b""])
    arrays = table_arrays(page_locations, 0)
    assert location_table_of(arrays, 3, 1 << 20, "it").place(1).size == 1
    with pytest.raises(IndexFault, match="it: "):
        location_table_of(TABLES[lie](arrays), 3, 1 << 20, "it")


LIES: dict[str, tuple[int, int, int]] = {  # array, element, what is added
    "rows": (0, 0, 1),
    "beyond the file": (0, 1, 1 << 40),
    "before the file": (0, 1, -(1 << 40)),
    "leaf": (1, 0, -5),
    "tail": (3, 1, -7),
    "values": (5, 0, -(1 << 20)),
    "dictionary": (7, 1, -(1 << 20)),
    "dictionary pages": (8, 0, 1 << 20),
    "page count": (9, 0, 1),
    "endless": (2, 1, 1 << 62),
    "page size": (11, 0, -(1 << 30)),
    "page rows": (12, 0, 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_locations_that_contradicts_itself_is_not_believed(
    write_table: WriteTable, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """With all checksums right."""
    number, element, more = LIES[lie]

    def change(arrays: list[np.ndarray]) -> list[np.ndarray]:
        array = arrays[number].astype(np.int64)
        array[element] += more
        return [*arrays[:number], array, *arrays[number + 1 :]]

    def lying(locations: ChunkLocations) -> bytes:
        data = encode_locations(locations)
        return data if locations.row_count != 7 else encode_chunk(change(decode_chunk(data, "it")))

    root = write_table({"0.parquet": rows_of(0)}, row_group_size=100)
    write_file(root / "1.parquet", rows_of(0).slice(0, 7), use_dictionary=["id"])
    monkeypatch.setattr("secateur.io.parquet.file_locations.encode_locations", lying)
    sec.build_index(sec.open_table(str(root)))
    plan = sec.prune(sec.open_table(str(root)), "true")
    stored_locations = locations_of(plan.opened, opened_blocks(plan), everything, is_sent=True)
    assert stored_locations.degraded
    assert [bool(data) for data in stored_locations.page_locations.blocks] == [*[True] * 5, False]
    strict = sec.prune(sec.open_table(str(root)), "true", strict=True)
    with pytest.raises(IndexFault, match="page locations"):
        locations_of(strict.opened, opened_blocks(strict), everything, is_sent=True)


def test_locations_of_parts_are_those_of_the_whole() -> None:
    """Heads that several parts have are one, and those that no block has any more are gone."""
    placed = np.arange(6).reshape(2, 3)
    first = BlockLocations([b"h", b"i"], np.array([0, 1, -1], np.int32), placed, [b"0", b"1", b""])
    second = BlockLocations([b"i", b"j"], np.array([1, 0, 1], np.int32), placed + 6, [b"2", b"3", b"4"])
    both = concat_locations([first, unknown_locations(1), second])
    assert [both.heads[i] if i >= 0 else b"" for i in both.head] == [b"h", b"i", b"", b"", b"j", b"i", b"j"]
    assert both.blocks == [b"0", b"1", b"", b"", b"2", b"3", b"4"]
    some = both.take(np.array([5, 0, 3]))
    assert sorted(some.heads) == [b"h", b"i"]
    assert [some.heads[i] if i >= 0 else b"" for i in some.head] == [b"i", b"h", b""]
    assert some.placed.tolist() == [[7, 0, -1], [10, 3, -1]]
    assert len(concat_locations([])) == 0


def test_all_rows_of_a_file_without_a_page_index_are_read_by_pages() -> None:
    table = pa.table({"a": np.arange(3000), "b": [f"text {i % 7}" for i in range(3000)]})
    file = parquet(table, data_page_size=500, write_batch_size=50, row_group_size=1000)
    of_file = file_locations(file, read_footer(file))
    for row_group, data in enumerate(of_file.blocks):
        locations = with_pages(data, file.size(), [0, 1])
        assert locations is not None
        read = pa.concat_tables(reader(file, of_file.head, locations).read(row_group, ["a", "b"], all_rows(1000)))
        assert read.equals(table.slice(row_group * 1000, 1000))
