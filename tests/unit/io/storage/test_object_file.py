"""Objects of S3 as files: the bytes that pyarrow's own files give, by fewer requests, and of one object only."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.demo.s3_traffic import Traffic
from secateur.errors import IndexFault, InvalidParquet, StalePlan
from secateur.index.model import BLOOM, BuildOptions, FilterOption
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.read.loader import FEW_READ, SHORT, IndexMemory
from secateur.index.segments.segment_file import LOCATION_TABLE, PAGE_LOCATIONS
from secateur.io.parquet.footer import chunk_bounds
from secateur.io.parquet.parquet_file import open_parquet
from secateur.io.scan.reading.block_reader import block_reader
from secateur.io.storage.byte_ranges import REMOTE_GAP, read_ranges
from secateur.io.storage.object_file import ObjectFile, open_file
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan
from tests.support.profiles import examples, sweep, takes_seconds
from tests.support.s3_server import REGION, S3Server, once
from tests.support.stores.local_build import index_here

LATENCY = 0.15  # seconds: requests that are sent together overlap whatever else the machine does
DATA = bytes(i * i % 251 for i in range(100_000))


@pytest.fixture
def folder(s3: S3Server, tmp_path: Path) -> Iterator[str]:
    """A place in the bucket of the test's own."""
    yield f"{s3.bucket}/{tmp_path.name}"
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


@pytest.fixture
def filesystem(s3: S3Server) -> pafs.S3FileSystem:
    return pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION)


def put(filesystem: pafs.FileSystem, path: str, data: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(data)


# ---- the same bytes --------------------------------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("seek"), st.integers(0, len(DATA))),
    st.tuples(st.just("read"), st.one_of(st.none(), st.integers(0, len(DATA) + 10))),
    st.tuples(st.just("read_at"), st.tuples(st.integers(0, 3_000), st.integers(0, len(DATA)))),
    st.tuples(st.just("size"), st.none()),
    st.tuples(st.just("ahead"), st.lists(st.tuples(st.integers(0, len(DATA) - 10), st.integers(0, 10)), max_size=4)),
)


@examples(30)
@given(steps=st.lists(STEPS, max_size=8), knows_size=st.booleans())
def test_an_object_reads_as_a_file(
    filesystem: pafs.S3FileSystem, folder: str, steps: list[tuple[str, object]], knows_size: bool
) -> None:
    put(filesystem, f"{folder}/object", DATA)
    opened = open_file(filesystem, f"{folder}/object", len(DATA) if knows_size else None)
    assert isinstance(opened, ObjectFile)
    with opened, pa.BufferReader(DATA) as expected:
        for what, argument in steps:
            match what, argument:
                case "ahead", list():
                    opened.read_ahead(argument)
                case "read_at", (int(length), int(offset)):
                    assert opened.read_at(length, offset) == expected.read_at(length, offset)
                case "seek", int():
                    opened.seek(argument)
                    expected.seek(argument)
                case "read", _:
                    assert opened.read(argument) == expected.read(argument)
                case _:
                    assert opened.size() == expected.size()
            assert opened.tell() == expected.tell()


@pytest.mark.parametrize(
    "name",
    ["a b", "a%20b", "a%2Fb", "%", "x=ü é/日本", "a#b?c", "a+b&c;d", "a\\b{c}", " a", "a\tb", "a:b|c*", "...", "~"],
)
def test_a_name_is_asked_for_as_it_stands(filesystem: pafs.S3FileSystem, folder: str, name: str) -> None:
    put(filesystem, f"{folder}/{name}", name.encode())
    with open_file(filesystem, f"{folder}/{name}") as file:
        assert file.read() == name.encode()


def test_a_part_of_a_filesystem(filesystem: pafs.S3FileSystem, folder: str) -> None:
    put(filesystem, f"{folder}/deep/object", DATA)
    part = pafs.SubTreeFileSystem(folder, pafs.SubTreeFileSystem("", filesystem))
    with open_file(part, "deep/object") as file:
        assert isinstance(file, ObjectFile)
        assert file.read() == DATA


def test_another_filesystem_opens_its_files_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    with open_file(pafs.LocalFileSystem(), str(tmp_path / "file")) as file:
        assert not isinstance(file, ObjectFile)
        assert file.read() == DATA


def test_what_is_not_there(filesystem: pafs.S3FileSystem, folder: str) -> None:
    """It shows when it is read."""
    with open_file(filesystem, f"{folder}/nothing") as file, pytest.raises(FileNotFoundError, match="nothing"):
        file.read_at(10, 0)
    put(filesystem, f"{folder}/object", DATA)
    with open_file(filesystem, f"{folder}/object") as file, pytest.raises(InvalidParquet, match="do not lie"):
        read_ranges(file, [(len(DATA), 1)], REMOTE_GAP)


def test_a_process_that_was_forked_reads_as_pyarrow_does(s3: S3Server, filesystem: pafs.S3FileSystem) -> None:
    """The threads of a client that worked before are not there any more, and waiting for them has no end."""
    put(filesystem, f"{s3.bucket}/forked", b"data")
    code = f"""
        import os, signal
        import pyarrow.fs as pafs
        from secateur.io.storage.conditional_put import create_object
        from secateur.io.storage.object_file import ObjectFile, open_file
        s3 = pafs.S3FileSystem(endpoint_override={s3.endpoint!r}, region={REGION!r})
        def read():
            with open_file(s3, "{s3.bucket}/forked") as file:
                return type(file) is ObjectFile, file.read()
        assert read() == (True, b"data")
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            works = read() == (False, b"data") and create_object(s3, "{s3.bucket}/forked", b"") is None
            os._exit(0 if works else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert read() == (True, b"data")
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env=environment, timeout=120)


# ---- of one object ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [DATA[::-1], DATA[:-1], DATA + b"x"], ids=["same size", "shorter", "longer"])
@pytest.mark.parametrize("knows_size", [True, False])
def test_an_object_that_is_replaced_while_it_is_read(
    filesystem: pafs.S3FileSystem, folder: str, other: bytes, knows_size: bool
) -> None:
    put(filesystem, f"{folder}/object", DATA)
    with open_file(filesystem, f"{folder}/object", len(DATA) if knows_size else None) as file:
        assert file.read_at(10, 50) == DATA[50:60]
        put(filesystem, f"{folder}/object", other)
        with pytest.raises(OSError, match="was replaced while it was read"):
            file.read_at(10, 100)


ROWS = 2_000


def user(ids: int | np.ndarray) -> int | np.ndarray:
    """In no order, each once."""
    return ids * 7_919 % 1_000_003


def rows(first: int) -> pa.Table:
    ids = np.arange(first, first + ROWS)
    return pa.table({"id": ids, "user": user(ids), "word": [f"{i:0100d}" for i in ids]})


@pytest.fixture
def table(filesystem: pafs.S3FileSystem, folder: str, s3: S3Server) -> ParquetDirectory:
    """Four files with an index."""
    for i in range(4):
        write(filesystem, f"{folder}/t/{i}.parquet", rows(i * ROWS))
    opened = sec.open_table(f"s3://{folder}/t")
    assert isinstance(opened, ParquetDirectory)
    index_here(opened, BuildOptions(filters=(FilterOption(BLOOM, "user"),)))
    return opened


def write(filesystem: pafs.FileSystem, path: str, data: pa.Table, rows: int = 500) -> None:
    pq.write_table(data, path, filesystem=filesystem, row_group_size=rows, compression="none", use_dictionary=False)


def found(plan: object) -> list[int]:
    return sorted(plan.to_arrow()["id"].to_pylist())  # type: ignore[attr-defined]


@takes_seconds
def test_a_file_that_is_replaced_while_it_is_read(
    table: ParquetDirectory, filesystem: pafs.S3FileSystem, folder: str
) -> None:
    """By one of the same size, perhaps within the second that times of objects are exact to."""
    plan = sec.prune(table, "id BETWEEN 2100 AND 3900", strict=True)
    reader = block_reader(plan.opened, plan.delivery, plan.fields(), plan.residuals)
    (file,) = plan.blocks_at(plan.order(), reader).by_file()
    opened, fields = table.open_rows(file), list(plan.opened.schema)
    assert next(opened.positioned((0,), fields))[1]["id"].to_pylist() == list(range(2000, 2500))
    write(filesystem, f"{folder}/t/1.parquet", rows(50_000))
    with pytest.raises((StalePlan, InvalidParquet), match=r"1\.parquet.* (has changed|was replaced)"):
        next(opened.positioned((1,), fields))
    filesystem.delete_file(f"{folder}/t/1.parquet")
    for read in (lambda: next(opened.positioned((2,), fields)), plan.to_arrow):
        with pytest.raises(StalePlan, match=r"1\.parquet has vanished"):
            read()


@takes_seconds
def test_a_file_that_is_longer_makes_a_plan_stale(
    table: ParquetDirectory, filesystem: pafs.S3FileSystem, folder: str
) -> None:
    plan = sec.prune(table, f"user = {user(2007)}", strict=True)
    assert found(plan) == [2007]
    write(filesystem, f"{folder}/t/1.parquet", pa.concat_tables([rows(ROWS), rows(9 * ROWS)]))
    with pytest.raises(StalePlan, match=r"1\.parquet has changed since the plan was made \(it had"):
        plan.to_arrow()


# ---- round trips -----------------------------------------------------------------------------------------------------


@takes_seconds
def test_few_round_trips(table: ParquetDirectory, s3: S3Server) -> None:
    """Of a process that knows nothing, and of one that knows the index's snapshot; each asks for another value."""
    cold = sec.open_table(table.location)
    with s3.traffic(LATENCY) as planning:
        plan = sec.prune(cold, f"user = {user(2007)} AND id > 0", strict=True)
    with s3.traffic(LATENCY) as reading:
        assert found(plan) == [2007]
    assert planning.counts["LIST"] == 2
    assert planning.counts.keys() == reading.counts.keys() | {"LIST"} == {"GET", "LIST"}
    assert (
        planning.round_trips <= 4
    )  # listings; snapshot; filters; what else is known of the segment, page locations too
    assert reading.round_trips == 1  # pages
    assert len(reading.requests) <= 2
    with s3.traffic(LATENCY) as again:
        assert found(sec.prune(cold, f"user = {user(7011)} AND id > 0", strict=True)) == [7011]
    assert again.round_trips <= 3  # the listing; filters; pages


@takes_seconds
def test_a_look_up_in_another_segment_takes_four_round_trips(
    filesystem: pafs.S3FileSystem, folder: str, s3: S3Server
) -> None:
    known = unread(filesystem, folder)
    assert found(sec.prune(known, f"user = {user(2007)}", strict=True)) == [2007]
    with s3.traffic(LATENCY) as warm:
        assert found(sec.prune(known, f"user = {user(7011)}", strict=True)) == [7011]
    assert warm.round_trips <= 4  # the listing; filters; what is known of the segment; pages


def test_an_index_on_the_local_disk_spares_footers_too(
    filesystem: pafs.S3FileSystem, folder: str, s3: S3Server, tmp_path: Path
) -> None:
    """Small row groups of a local table are read by footers that are kept, which those of objects are not."""
    write(filesystem, f"{folder}/t/0.parquet", rows(0))
    table = sec.open_table(f"s3://{folder}/t", index_location=str(tmp_path / "index"))
    index_here(table, BuildOptions())
    plan = sec.prune(table, "id = 7", strict=True)
    with s3.traffic(0) as reading:
        assert found(plan) == [7]
    assert reading.round_trips == 1


def test_a_long_footer_is_read_once(filesystem: pafs.S3FileSystem, folder: str, s3: S3Server) -> None:
    table = pa.table({f"c{i}": range(100) for i in range(10)})
    with filesystem.open_output_stream(f"{folder}/long.parquet") as stream:
        pq.write_table(table, stream, row_group_size=1)
    with s3.traffic(0) as traffic:
        file = open_parquet(filesystem, f"{folder}/long.parquet", "long.parquet")
        assert file.footer.byte_count.shape == (100,)
    assert len(traffic.requests) == 2  # the end, which tells how long the footer is; the footer


def test_equal_footers_of_objects_are_decoded_once(filesystem: pafs.S3FileSystem, folder: str) -> None:
    """Also where an object is replaced within the second: another footer is another one."""
    path = f"{folder}/object.parquet"
    footers = []
    for start in (0, 0, 50):
        pq.write_table(pa.table({"a": range(start, start + 10)}), path, filesystem=filesystem)
        footers.append(open_parquet(filesystem, path, "object.parquet").footer)
    first, same, other = footers
    assert first is same
    assert [chunk_bounds(footer, footer.leaves[0]).lower.to_pylist() for footer in (first, other)] == [[0], [50]]


def unread(filesystem: pafs.S3FileSystem, folder: str) -> ParquetDirectory:
    """Six files of four row groups, a segment each, with an index of which nothing was read yet."""
    for i in range(6):
        write(filesystem, f"{folder}/t/{i}.parquet", rows(i * ROWS))
    indexed = sec.open_table(f"s3://{folder}/t")
    index_here(indexed, BuildOptions(filters=(FilterOption(BLOOM, "user"),), segment_blocks=4))
    return sec.open_table(f"s3://{folder}/t")


def memory_of(plan: Scan) -> IndexMemory:
    return plan.opened.catalog.memory


def locations_asked_for(plan: Scan, traffic: Traffic) -> int:
    """How many requests were for bytes of page locations."""
    directory = memory_of(plan).snapshot.directory(PAGE_LOCATIONS, None)
    assert directory is not None
    places = zip(memory_of(plan).snapshot.segments.name, directory.at.tolist(), directory.size.tolist(), strict=True)
    asked = [(request.name, int(request.range.split("-")[0])) for request in traffic.requests if request.range]
    return sum(path.endswith(name) and at <= first < at + size for name, at, size in places for path, first in asked)


ALONG = [
    pytest.param(f"user = {user(2007)}", SHORT, 1, id="one"),
    pytest.param(f"id IN (7, {ROWS + 7}, {2 * ROWS + 7}, {3 * ROWS + 7})", SHORT, FEW_READ, id="few"),
    pytest.param(f"user = {user(2007)}", 64, 0, id="long"),
    pytest.param(f"id IN (7, {ROWS + 7}, {2 * ROWS + 7}, {3 * ROWS + 7}, {4 * ROWS + 7})", SHORT, 0, id="many"),
]


@takes_seconds
@pytest.mark.parametrize(("predicate", "short", "along"), sweep(ALONG, 2))
def test_only_few_and_short_locations_are_read_along(
    filesystem: pafs.S3FileSystem,
    folder: str,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    predicate: str,
    short: int,
    along: int,
) -> None:
    """And they are what is read of them alone, whatever was read along."""
    monkeypatch.setattr("secateur.index.read.loader.SHORT", short)
    cold = unread(filesystem, folder)
    with s3.traffic() as planning:
        plan = sec.prune(cold, predicate, strict=True)
    assert locations_asked_for(plan, planning) == along
    blocks = plan.survivors.blocks
    assert isinstance(blocks, OpenedBlocks)
    with s3.traffic() as reading:
        page_locations = blocks.page_locations()
    assert bool(locations_asked_for(plan, reading)) == (not along)
    monkeypatch.setattr("secateur.index.read.loader.SHORT", 0)
    other = sec.prune(sec.open_table(cold.location), predicate, strict=True).survivors.blocks
    assert isinstance(other, OpenedBlocks)
    alone = other.page_locations()
    assert all(page_locations.blocks)
    assert [*page_locations.blocks] == [*alone.blocks]
    assert [*page_locations.heads] == [*alone.heads]
    assert page_locations.head.tolist() == alone.head.tolist()


@takes_seconds
@pytest.mark.parametrize(
    ("chunk", "keeps", "sound"),
    sweep(
        [
            pytest.param(PAGE_LOCATIONS, None, {500}, id="page-locations"),
            pytest.param(LOCATION_TABLE, None, set(), id="table"),
            pytest.param(PAGE_LOCATIONS, -9, set(), id="cut off in page locations"),
            pytest.param(LOCATION_TABLE, -9, set(), id="cut off in the table"),
        ],
        3,
    ),
)
def test_broken_locations_that_are_read_along_disturb_no_plan(
    filesystem: pafs.S3FileSystem, folder: str, chunk: str, keeps: int | None, sound: set[int]
) -> None:
    """Who reads finds them again: those that are sound are there, and the others are told. No row is lost."""
    indexed = unread(filesystem, folder)
    snapshot = memory_of(sec.prune(indexed, f"user = {user(2007)}", strict=True)).snapshot
    directory = snapshot.directory(chunk, None)
    assert directory is not None
    path = f"{folder}/t/_secateur/{snapshot.segments.name[0]}"
    with filesystem.open_input_file(path) as file:
        data = bytearray(file.read())
    end = int(directory.at[0] + directory.size[0])
    data[end - 9] ^= 1
    put(filesystem, path, bytes(data[: None if keeps is None else end + keeps]))
    harmed = sec.open_table(indexed.location)
    for first in (
        500,
        1_500,
    ):  # the second block of the segment, and the last, whose page locations has the broken byte
        plan = sec.prune(harmed, f"user = {user(first + 7)}", strict=True)
        blocks = plan.survivors.blocks
        assert isinstance(blocks, OpenedBlocks)
        if first in sound:
            assert all(blocks.page_locations().blocks)
        else:
            with pytest.raises(IndexFault):
                blocks.page_locations()
        assert found(sec.prune(harmed, f"user = {user(first + 7)}")) == [first + 7]


def test_columns_apart_are_read_at_once(filesystem: pafs.S3FileSystem, folder: str, s3: S3Server) -> None:
    wide = pa.table({f"c{i}": np.random.default_rng(i).random(20_000) for i in range(12)})
    write(filesystem, f"{folder}/wide/0.parquet", wide, rows=20_000)
    plan = sec.prune(sec.open_table(f"s3://{folder}/wide"), "c0 < 2")
    with s3.traffic(LATENCY) as reading:
        assert plan.to_arrow(columns=["c1", "c6", "c11"]).num_rows == 20_000
    assert reading.sent < wide.nbytes / 2
    assert (len(reading.requests), reading.round_trips) == (4, 2)  # a footer; the chunks


@takes_seconds
def test_opening_a_table_looks_around_at_once(table: ParquetDirectory, s3: S3Server) -> None:
    with s3.traffic(LATENCY) as opening:
        sec.open_table(table.location)
    assert opening.round_trips <= 3


def test_an_answer_that_is_cut_off_is_asked_for_again(s3: S3Server, filesystem: pafs.S3FileSystem, folder: str) -> None:
    put(filesystem, f"{folder}/object", DATA)
    with s3.failing(once("object"), "cut") as gate, open_file(filesystem, f"{folder}/object") as file:
        assert file.read_at(50_000, 7) == DATA[7:50_007]
    assert gate.failed == 1
