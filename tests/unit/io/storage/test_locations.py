"""Tables and indexes on filesystems other than the local disk, and indexes kept apart from the data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import AccessDenied, IndexConflict, InvalidOption, TableNotFound
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import resolve_location
from tests.support.tables import write_file


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two files of a thousand rows, in nested directories."""
    for part in range(2):
        folder = tmp_path / "bucket" / "lake" / "deep" / str(part)
        folder.mkdir(parents=True)
        ids = np.arange(part * 1000, (part + 1) * 1000)
        pq.write_table(pa.table({"id": ids, "twice": ids * 2}), folder / "rows.parquet", row_group_size=100)
    return tmp_path / "bucket"


def test_a_table_on_another_filesystem(spark: SparkSession, lake: Path) -> None:
    """A filesystem of which nothing is known but pyarrow's interface, as an object store is."""
    store = pafs.SubTreeFileSystem(str(lake), pafs.LocalFileSystem())
    table = sec.open_table("lake", filesystem=store)
    built = sec.build_index(table, spark=spark, sort_key=["id"], bloom=["twice"])
    assert (built.files, built.blocks, built.rows) == (2, 20, 2000)
    plan = sec.prune(table, "twice = 2468", strict=True)
    assert plan.to_arrow().to_pylist() == [{"id": 1234, "twice": 2468}]
    assert [tuple(row) for row in plan.to_spark(spark).collect()] == [(1234, 2468)]
    assert sec.verify_index(table).sound
    assert len(sec.drop_index(table)) == 3  # a snapshot, a segment, and the filters of it
    assert sec.prune(table, "twice = 2468").report.index == "none"


def test_a_table_by_uri(spark: SparkSession, lake: Path) -> None:
    table = sec.open_table((lake / "lake").as_uri())
    sec.build_index(table, spark=spark)
    plan = sec.prune(table, "id BETWEEN 995 AND 1004", strict=True)
    assert plan.count() == 10
    assert plan.to_spark(spark, via="native").count() == plan.to_spark(spark, via="blocks").count() == 10


def test_an_index_apart_from_the_data(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "indexes" / "lake")
    table = sec.open_table(str(lake / "lake"), index_location=elsewhere)
    sec.build_index(table, spark=spark)
    assert not (lake / "lake" / "_secateur").exists()
    again = sec.open_table(str(lake / "lake"), index_location=elsewhere)
    assert sec.prune(again, "id = 5", strict=True).report.index.startswith("snapshot 1")
    assert sec.prune(sec.open_table(str(lake / "lake")), "id = 5").report.index == "none"


@pytest.mark.parametrize(
    ("marker", "error", "message"),
    [
        ("_delta_log/0.json", TableNotFound, "has a _delta_log without a commit"),
        (".hoodie/properties", TableNotFound, "Hudi"),
    ],
)
def test_tables_of_other_formats_are_no_directories(
    lake: Path, marker: str, error: type[Exception], message: str
) -> None:
    """Their directories hold files that are no longer part of the table."""
    file = lake / "lake" / marker
    file.parent.mkdir()
    file.write_text("{}")
    with pytest.raises(error, match=message):
        sec.open_table(str(lake / "lake"))


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_a_name_is_taken_once(tmp_path: Path, remote: bool) -> None:
    local = pafs.LocalFileSystem()
    store = (
        FileStore(pafs.SubTreeFileSystem(str(tmp_path), local), "index") if remote else FileStore(local, str(tmp_path))
    )
    store.create("snapshots/0000000001.snapshot", b"first")
    with pytest.raises(IndexConflict):
        store.create("snapshots/0000000001.snapshot", b"second")
    assert store.read("snapshots/0000000001.snapshot", 0, 5) == b"first"
    assert [file.name for file in store.files("snapshots")] == ["snapshots/0000000001.snapshot"]


def test_names_of_hadoop() -> None:
    location, filesystem, root = resolve_location("s3a://key:secret@lake/events/?region=eu-west-1", None)
    assert isinstance(filesystem, pafs.S3FileSystem)
    assert (location, root, filesystem.region) == ("s3a://lake/events", "lake/events", "eu-west-1")


def test_dbfs_is_its_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TableNotFound, match="dbfs:/lake is read where DBFS is mounted"):
        resolve_location("dbfs:/lake", None)
    monkeypatch.setattr("secateur.io.storage.locations._DBFS_MOUNT", str(tmp_path))
    location, filesystem, root = resolve_location("dbfs:/lake/events/", None)
    assert (location, root) == ("dbfs:/lake/events", f"{tmp_path}/lake/events")
    assert isinstance(filesystem, pafs.LocalFileSystem)


@pytest.mark.parametrize("make", [str, Path])
def test_a_path_is_a_table(tmp_path: Path, make: Callable[[Path], str | Path]) -> None:
    write_file(tmp_path / "a.parquet", {"id": [1, 2]})
    lake = make(tmp_path)
    assert sec.build_index(lake, bloom=["id"]).bloom == ("id",)
    assert sec.prune(lake, "id = 2", strict=True).count() == 1
    assert sec.aggregate(lake, "max(id) AS most").to_pylist() == [{"most": 2}]
    assert sec.refresh_index(lake).is_current
    assert sec.verify_index(lake).sound
    assert sec.describe_index(lake).rows == sec.inspect.files(lake)["row_count"][0].as_py() == 2
    assert sec.drop_index(lake)


def test_azure_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's library says it in names of C++ classes."""
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AccessDenied) as refused:
        sec.open_table("abfss://container@account.dfs.core.windows.net/events")
    assert "Azure gave no token: set AZURE_STORAGE_ACCOUNT_KEY" in str(refused.value)
    assert "Azure4Core" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_index_that_engines_would_read_as_data_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    os.symlink(tmp_path, tmp_path.with_name("link"))
    for place in (tmp_path, tmp_path / "index", tmp_path / "day=1" / "i", tmp_path.with_name("link") / "index"):
        with pytest.raises(InvalidOption, match=r"lies in the table, .* such as .*/_index"):
            sec.open_table(str(tmp_path), index_location=str(place))
    for place in (tmp_path / "_index", tmp_path / "_a" / "b", tmp_path.with_name("index")):
        sec.build_index(sec.open_table(str(tmp_path), index_location=str(place)), bloom=["id"])
        assert sec.prune(str(tmp_path), "id = 2").count() == 1
    beside = sec.open_table(str(tmp_path), index_location=str(tmp_path / "index"), glob="*.parquet")
    sec.build_index(beside, bloom=["id"])
    assert sec.prune(beside, "id = 2").count() == 1


def test_no_text_is_no_location(tmp_path: Path) -> None:
    """Such as that of a variable of the shell which is not set: it would be the working directory."""
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidOption, match=r"write \. for this directory"):
        sec.open_table("")
    with pytest.raises(InvalidOption, match=r"write \. for this directory"):
        sec.open_table(str(tmp_path), index_location="")
