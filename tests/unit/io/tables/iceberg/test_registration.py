"""An index that the table's own metadata names."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.puffin import PuffinFile

import secateur as sec
from secateur.errors import IndexMissing, IndexNotWritable, UnsupportedTable
from secateur.index.model import BuildOptions
from secateur.io.tables.iceberg.puffin import Blob, decode_puffin, encode_puffin
from tests.support.iceberg_rows import SCHEMA, ids, rows
from tests.support.local_build import index_here
from tests.support.profiles import examples

ABOUT = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 1}


@pytest.fixture
def events(catalog: Catalog) -> Table:
    table = catalog.create_table("db.events", SCHEMA)
    table.append(rows(0, 1, 2))
    return table


def test_whoever_opens_the_table_finds_the_index(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    opened = sec.open_table(events, index_location=elsewhere)
    index_here(opened, BuildOptions())
    assert sec.prune(sec.open_table("db.events", catalog=catalog), "id = 1").report.index == "none"
    path = sec.register_index(opened)
    found = sec.open_table("db.events", catalog=catalog)
    assert found.store.root == elsewhere
    assert sec.prune(found, "id = 1", strict=True).report.index.startswith(
        "snapshot 1, 1 segments, covers 1 of 1 files"
    )
    assert ids(found, "id = 1") == [1]
    (blob,) = decode_puffin(Path(path.removeprefix("file://")).read_bytes())
    assert blob.about["type"] == "secateur-index-v1"
    events.refresh().append(rows(5))
    assert ids(sec.open_table("db.events", catalog=catalog), "id > 1") == [2, 5]
    assert sec.open_table("db.events", catalog=catalog, index_location=str(tmp_path / "third")).store.root.endswith(
        "third"
    )


def test_statistics_of_others_are_kept(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    opened = sec.open_table(events, index_location=str(tmp_path / "elsewhere"))
    index_here(opened, BuildOptions())
    first = sec.register_index(opened)
    sketch = Blob(
        b"sketch", {"type": "apache-datasketches-theta-v1", "fields": [1], "snapshot-id": 1, "sequence-number": 1}
    )
    file = Path(first.removeprefix("file://"))
    file.write_bytes(encode_puffin([*decode_puffin(file.read_bytes()), sketch])[0])
    second = Path(sec.register_index(opened).removeprefix("file://"))
    assert [blob.about["type"] for blob in decode_puffin(second.read_bytes())] == [
        sketch.about["type"],
        "secateur-index-v1",
    ]
    assert decode_puffin(second.read_bytes())[0].data == b"sketch"


def test_a_broken_statistics_file_costs_the_index_and_no_row(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    opened = sec.open_table(events, index_location=str(tmp_path / "elsewhere"))
    index_here(opened, BuildOptions())
    file = Path(sec.register_index(opened).removeprefix("file://"))
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[4:], whole.replace(b"location", b"lacation")):
        file.write_bytes(damaged)
        again = sec.open_table("db.events", catalog=catalog)
        assert again.store.root.endswith("/_secateur")
        assert ids(again) == [0, 1, 2]


def test_what_cannot_be_registered_is_said(events: Table, tmp_path: Path) -> None:
    with pytest.raises(IndexMissing):
        sec.register_index(sec.open_table(events))
    static = sec.open_table(events.metadata_location)
    index_here(static, BuildOptions())
    with pytest.raises(IndexNotWritable, match="cannot register the index"):
        sec.register_index(static)
    (tmp_path / "plain").mkdir()
    with pytest.raises((IndexMissing, UnsupportedTable)):
        sec.register_index(sec.open_table(tmp_path / "plain"))


@given(st.lists(st.binary(max_size=50), max_size=4))
@examples(100)
def test_puffin_files_are_read_by_pyiceberg(blobs: list[bytes]) -> None:
    data, footer = encode_puffin([Blob(each, ABOUT) for each in blobs])
    read = PuffinFile(data)
    assert [read.get_blob_payload(blob) for blob in read.footer.blobs] == blobs
    assert [blob.data for blob in decode_puffin(data)] == blobs
    assert data[-footer : -footer + 4] == b"PFA1"


@given(st.binary(max_size=60), st.integers(0, 200), st.integers(1, 255))
@examples(300)
def test_no_bytes_make_the_puffin_reader_fail_otherwise(noise: bytes, at: int, change: int) -> None:
    """Whatever is not a Puffin file is a ValueError, or lacks a member."""
    whole = bytearray(encode_puffin([Blob(noise, ABOUT)])[0])
    whole[at % len(whole)] ^= change
    for data in (noise, bytes(whole)):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            decode_puffin(data)
