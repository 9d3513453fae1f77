"""Footers that a job hands over: the same index without reading them again, and never that of another file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

import secateur as sec
from secateur.errors import InvalidOption
from secateur.io.parquet import parquet_file
from secateur.io.parquet.known_footer import GivenFooter, KnownFooter, end_of_file
from secateur.io.tables.given_footers import opens_with
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.s3_server import S3Server

BUILD = {"sort_key": ["id"], "page_locations": False}
PLAIN = {"compression": "none", "use_dictionary": False, "column_encoding": "PLAIN"}


@pytest.fixture
def footers_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for every footer that is read from a file."""
    read: list[int] = []
    usual: Callable[[pa.NativeFile], KnownFooter] = parquet_file._read

    def counted(file: pa.NativeFile) -> KnownFooter:
        read.append(1)
        return usual(file)

    monkeypatch.setattr(parquet_file, "_read", counted)
    return read


def write(path: Path, ids: range, **options: object) -> pq.FileMetaData:
    collected: list[pq.FileMetaData] = []
    table = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([i % 3 for i in ids], pa.int64())})
    with pq.ParquetWriter(path, table.schema, metadata_collector=collected, **options) as writer:
        writer.write_table(table, row_group_size=5)
    return collected[0]


def ids_where(table: object, value: int) -> list[int]:
    ids: list[int] = sec.prune(table, f"id = {value}", strict=True).to_arrow()["id"].to_pylist()
    return ids


# ---- directories


@pytest.mark.parametrize("by_path", [False, True])
def test_a_written_data_set(tmp_path: Path, footers_read: list[int], by_path: bool) -> None:
    """As pyarrow collects them, with paths below the table; the index is the one that reads them itself."""
    root, alone = tmp_path / "lake", tmp_path / "alone"
    write_part = lambda part, collected: pq.write_to_dataset(  # noqa: E731
        pa.table({"id": range(part * 10, part * 10 + 10), "part": [part] * 10}),
        root,
        partition_cols=["part"],
        metadata_collector=collected,
    )
    write_part(0, [])
    table = sec.open_table(str(root))
    for location in (None, str(alone)):
        sec.build_index(sec.open_table(str(root), index_location=location), **BUILD)
    collected: list[pq.FileMetaData] = []
    write_part(1, collected)
    footers_read.clear()
    footers = {str(metadata.row_group(0).column(0).file_path): metadata for metadata in collected}
    index = sec.index_written(table, footers=footers if by_path else collected)
    assert index.files == 2
    assert footers_read == []
    without = sec.open_table(str(root), index_location=str(alone))
    sec.index_written(without)
    assert footers_read
    assert ids_where(table, 17) == ids_where(without, 17) == [17]
    assert sec.verify_index(table).sound
    bounds = [sec.inspect.blocks(one).to_pylist() for one in (table, without)]
    assert bounds[0] == bounds[1]


def test_of_another_file_of_the_same_size(tmp_path: Path, footers_read: list[int]) -> None:
    """Another job wrote the name again: its rows would be lost by the bounds of the first."""
    root = tmp_path / "lake"
    root.mkdir()
    write(root / "a.parquet", range(10), **PLAIN)
    sec.build_index(str(root), **BUILD)
    first = write(root / "b.parquet", range(100, 110), **PLAIN)
    size = (root / "b.parquet").stat().st_size
    write(root / "b.parquet", range(200, 210), **PLAIN)
    assert (root / "b.parquet").stat().st_size == size
    footers_read.clear()
    sec.index_written(str(root), footers={"b.parquet": first})
    assert footers_read
    assert ids_where(str(root), 205) == [205]
    assert ids_where(str(root), 105) == []
    assert sec.verify_index(str(root)).sound


def test_of_no_file_of_the_table(tmp_path: Path) -> None:
    """Footers of files that are gone or elsewhere, and of another size, change nothing."""
    root = tmp_path / "lake"
    root.mkdir()
    write(root / "a.parquet", range(10))
    sec.build_index(str(root), **BUILD)
    gone = write(root / "b.parquet", range(10, 20))
    (root / "b.parquet").unlink()
    other = write(tmp_path / "c.parquet", range(900, 1000))
    write(root / "c.parquet", range(20, 30))
    sec.index_written(str(root), footers={"b.parquet": gone, "c.parquet": other, "nowhere/d.parquet": gone})
    assert ids_where(str(root), 25) == [25]
    assert sec.verify_index(str(root)).sound


def test_they_travel_to_executors(tmp_path: Path, footers_read: list[int]) -> None:
    """A task opens files with what it was sent."""
    metadata = write(tmp_path / "a.parquet", range(10))
    table = sec.open_table(str(tmp_path)).snapshot()
    opens = opens_with(table, table.fresh_listing(dt.UTC), {"a.parquet": metadata})
    sent = cloudpickle.loads(cloudpickle.dumps(opens))
    opened = sent("a.parquet")
    assert footers_read == []
    assert opened.row_count.tolist() == [5, 5]
    assert opened.end() == table.open_for_index("a.parquet").end()


def test_what_is_no_footer(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", range(10))
    sec.build_index(str(tmp_path), **BUILD)
    nameless = pq.read_metadata(tmp_path / "a.parquet")
    with pytest.raises(InvalidOption, match="does not name its file: give a dictionary by path"):
        sec.index_written(str(tmp_path), footers=[nameless])
    wrong: list[Mapping[str, object] | list[object]] = [{"a.parquet": b"PAR1"}, [b"PAR1"]]
    for footers in wrong:
        with pytest.raises(InvalidOption, match=r"footers has a bytes instead of a pyarrow.parquet.FileMetaData"):
            sec.index_written(str(tmp_path), footers=footers)


def test_requests_on_s3(s3: S3Server) -> None:
    """One request for a new file, which proves the footer, instead of two."""
    root, counts = f"s3://{s3.bucket}/given", []
    filesystem, path = pa.fs.FileSystem.from_uri(root)
    for number, hands_over in enumerate([None, False, True]):
        collected: list[pq.FileMetaData] = []
        table = pa.table({"id": range(number * 10, number * 10 + 10)})
        name = f"{number}.parquet"
        with pq.ParquetWriter(
            f"{path}/{name}", table.schema, filesystem=filesystem, metadata_collector=collected
        ) as writer:
            writer.write_table(table)
        if hands_over is None:
            sec.build_index(root, **BUILD)
            continue
        s3.gate.requests.clear()
        sec.index_written(root, footers={name: collected[0]} if hands_over else {})
        counts.append(sum(request.name.endswith(name) and request.kind == "GET" for request in s3.gate.requests))
    assert counts == [2, 1]
    assert ids_where(root, 25) == [25]


# ---- table formats


def delta_table(root: Path) -> LoggedTable:
    root.mkdir()
    table = LoggedTable(root, numbered(0, 1).schema)
    table.append(numbered(0, 10))
    sec.build_index(str(root), sort_key=["rid"], page_locations=False)
    return table


def test_delta(tmp_path: Path, footers_read: list[int]) -> None:
    table = delta_table(tmp_path / "lake")
    actions = table.append(*(numbered(i * 10, i * 10 + 10) for i in range(1, 6)))
    names = [action["add"]["path"] for action in actions]
    footers = {f"{table.directory}/{name}": pq.read_metadata(table.directory / name) for name in names}
    footers_read.clear()
    index = sec.index_written(str(table.directory), footers=footers)
    assert index.files == 6
    assert footers_read == []
    for value in range(0, 60, 7):
        rows = sec.prune(str(table.directory), f"rid = {value}", strict=True).to_arrow()
        assert rows["rid"].to_pylist() == [value]
    assert sec.verify_index(str(table.directory)).sound


def test_delta_uses_none_of_another_file(tmp_path: Path, footers_read: list[int]) -> None:
    """Two of one size that were mixed up, and one of another layout."""
    table = delta_table(tmp_path / "lake")
    rows = [pa.table({"rid": np.arange(i, i + 8), "s": pa.array(["s"] * 8)}) for i in (100, 200)]
    names = [action["add"]["path"] for action in table.append(*rows)]
    first, second = (pq.read_metadata(table.directory / name) for name in names)
    assert len({(table.directory / name).stat().st_size for name in names}) == 1
    longer = pq.read_metadata(table.directory / "part-00000.parquet")
    for number, footers in enumerate([dict(zip(names, [second, first], strict=True)), dict.fromkeys(names, longer)]):
        location = str(tmp_path / f"index-{number}")
        indexed = sec.open_table(str(table.directory), index_location=location)
        sec.index_written(indexed, build={"sort_key": ["rid"], "page_locations": False}, footers=footers)
        rows_left = sec.prune(indexed, "rid = 203", strict=True).to_arrow()
        assert rows_left["rid"].to_pylist() == [203]
        assert sec.verify_index(indexed).sound


def test_iceberg(tmp_path: Path, footers_read: list[int]) -> None:
    table = catalog_in(tmp_path).create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    sec.build_index(table, **BUILD)
    for i in range(1, 4):
        table.append(pa.table({"id": range(i * 10, i * 10 + 10)}))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    footers = {path: pq.read_metadata(path.removeprefix("file://")) for path in paths}
    footers_read.clear()
    assert sec.index_written(table, footers=footers).files == 4
    assert footers_read == []
    assert ids_where(table, 25) == [25]
    assert sec.verify_index(table).sound


# ---- the bytes

values = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=30)


@given(
    values,
    st.integers(1, 10),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["none", "snappy"]),
    st.sampled_from(["", "part=1/a.parquet"]),
)
def test_a_footer_is_the_end_of_its_file(
    tmp_path_factory: pytest.TempPathFactory,
    ids: list[int | None],
    groups: int,
    with_index: bool,
    nested: bool,
    compression: str,
    path: str,
) -> None:
    """To the byte, also where pyarrow has set a path."""
    columns = {
        "id": pa.array(ids, pa.int64()),
        "f": pa.array([None if i is None else i / 7 for i in ids], pa.float64()),
    }
    if nested:
        columns["l"] = pa.array([None if i is None else [i, i] for i in ids], pa.list_(pa.int64()))
    file, collected = tmp_path_factory.getbasetemp() / "end.parquet", []
    table = pa.table(columns)
    with pq.ParquetWriter(
        file, table.schema, metadata_collector=collected, write_page_index=with_index, compression=compression
    ) as writer:
        writer.write_table(table, row_group_size=groups)
    (metadata,) = collected
    if path:
        metadata.set_file_path(path)
    data, end = file.read_bytes(), end_of_file(metadata)
    assert data.endswith(end)
    assert data[-8:-4] == (len(end) - 8).to_bytes(4, "little")
    assert not GivenFooter(len(data) + 1, end).is_of(pa.BufferReader(data))
    assert GivenFooter(len(data), end).is_of(pa.BufferReader(data))
    changed = data[: -len(end)] + bytes([end[0] ^ 1]) + end[1:]
    assert not GivenFooter(len(data), end).is_of(pa.BufferReader(changed))
