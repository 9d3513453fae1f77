"""Tables and indexes on Azure's and Google's object stores, by their names, by the client that reads S3."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import AccessDenied, IndexConflict
from secateur.io.storage.azure_object import ACCOUNT_KEY as VARIABLE
from secateur.io.storage.conditional_put import create_object
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.object_file import ObjectFile, open_file
from tests.support.store_servers import (
    ACCOUNT_KEY,
    BUCKET,
    AzureServer,
    GoogleServer,
    azure_server,
    google_server,
)

DATA = bytes(i * i % 251 for i in range(100_000))


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    with azure_server() as server:
        yield server


@pytest.fixture(scope="module")
def google() -> Iterator[GoogleServer]:
    with google_server() as server:
        yield server


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account's key is in the environment."""
    monkeypatch.setenv(VARIABLE, ACCOUNT_KEY)


def write(filesystem: pafs.FileSystem, path: str, first: int) -> None:
    with filesystem.open_output_stream(path) as file:
        pq.write_table(pa.table({"id": range(first, first + 1000)}), file, row_group_size=100)


def ids(table: object, predicate: str) -> list[int]:
    return sorted(sec.prune(table, predicate, strict=True).to_arrow()["id"].to_pylist())  # type: ignore[arg-type]


def lives(server: AzureServer | GoogleServer, folder: str) -> None:
    """Builds an index, asks it, adds a file, refreshes, verifies, and drops it."""
    write(server.filesystem, f"{BUCKET}/{folder}/a.parquet", 0)
    assert ids(server.uri(folder), "id IN (5, 999, 1005)") == [5, 999]
    sec.build_index(sec.open_table(server.uri(folder)), bloom=["id"])
    plan = sec.prune(server.uri(folder), "id = 5", strict=True)
    assert (plan.report.index, len(plan.blocks), plan.count()) == ("snapshot 1, 1 segment, covers 1 of 1 file", 1, 1)
    write(server.filesystem, f"{BUCKET}/{folder}/b.parquet", 1000)
    assert ids(server.uri(folder), "id IN (5, 1005)") == [5, 1005]
    table = sec.open_table(server.uri(folder))
    assert sec.refresh_index(table).files_added == 1
    assert ids(table, "id BETWEEN 995 AND 1004") == list(range(995, 1005))
    assert sec.verify_index(table).faults == ()
    sec.drop_index(table)
    assert sec.prune(server.uri(folder), "id = 5").report.index == "none"


def test_an_index_on_azure(azure: AzureServer, key: None) -> None:
    lives(azure, "table")


def test_an_index_on_google(google: GoogleServer) -> None:
    lives(google, "table")


def test_an_object_of_azure_reads_as_a_file(azure: AzureServer) -> None:
    reads_as_a_file(azure.filesystem, f"{BUCKET}/object é=%")


def test_an_object_of_google_reads_as_a_file(google: GoogleServer) -> None:
    reads_as_a_file(google.filesystem, f"{BUCKET}/object")


def reads_as_a_file(filesystem: pafs.FileSystem, path: str) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(DATA)
    for size in (None, len(DATA)):
        with open_file(filesystem, path, size) as file:
            assert isinstance(file, ObjectFile)
            assert (file.size(), file.read_at(7, 50_000)) == (len(DATA), DATA[50_000:50_007])
            file.read_ahead([(10, 20), (90_000, 20_000)][:1])
            assert file.read() == DATA
    with open_file(filesystem, path) as file:
        assert file.read_at(3, 0) == DATA[:3]
        with filesystem.open_output_stream(path) as stream:
            stream.write(DATA[::-1])
        with pytest.raises(OSError, match="was replaced while it was read"):
            file.read_at(3, 50_000)
    with open_file(filesystem, f"{path}-absent") as file, pytest.raises(FileNotFoundError):
        file.size()


def test_of_two_builders_on_azure_one_publishes(azure: AzureServer) -> None:
    assert create_object(azure.filesystem, f"{BUCKET}/one", b"first") is True
    assert create_object(azure.filesystem, f"{BUCKET}/one", b"second") is False
    store = FileStore(azure.filesystem, f"{BUCKET}/index")
    store.create("1.snapshot", b"first")
    store.create("1.snapshot", b"first")  # whose answer was lost
    with pytest.raises(IndexConflict, match="another build published first"):
        store.create("1.snapshot", b"second")
    assert store.read("1.snapshot", 0, 5) == b"first"


def test_a_table_on_azure_is_sent_without_its_key(
    azure: AzureServer, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(azure.filesystem, f"{BUCKET}/sent/a.parquet", 0)
    table = sec.open_table(azure.uri("sent"))
    described = pickle.dumps(table)
    assert ACCOUNT_KEY.encode() not in described
    assert ids(pickle.loads(described), "id = 7") == [7]
    monkeypatch.setenv(VARIABLE, "AAAA" + ACCOUNT_KEY[4:])
    with pytest.raises(AccessDenied, match="set AZURE_STORAGE_ACCOUNT_KEY"):
        ids(azure.uri("sent"), "id = 7")


def test_data_and_index_in_different_places(azure: AzureServer, key: None, tmp_path: Path) -> None:
    write(azure.filesystem, f"{BUCKET}/apart/a.parquet", 0)
    table = sec.open_table(azure.uri("apart"), index_location=str(tmp_path / "index"))
    sec.build_index(table, bloom=["id"])
    assert sec.prune(table, "id = 5", strict=True).report.index.startswith("snapshot 1")
    local = tmp_path / "lake"
    local.mkdir()
    write(pafs.LocalFileSystem(), str(local / "a.parquet"), 0)
    elsewhere = sec.open_table(local, index_location=azure.uri("indexes/local"))
    sec.build_index(elsewhere, bloom=["id"])
    assert sec.prune(elsewhere, "id = 5", strict=True).report.index.startswith("snapshot 1")
