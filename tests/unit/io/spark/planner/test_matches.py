"""Files that Spark has listed, matched with the index: kept from query to query, and checked for changes in each."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import secateur as sec
from secateur.index.model import BuildOptions
from secateur.index.read.open_index import current_snapshot
from secateur.io.spark.planner import matches
from secateur.io.spark.planner.file_list import FileList
from secateur.io.spark.planner.matches import MatchedList, match
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.partitions import Partitions
from tests.support.stores.local_build import index_here

FILES = 7


def matched(root: Path, freshness: float) -> MatchedList:
    """The files as Spark would list them now, matched with the index of before."""
    table = sec.open_table(str(root), freshness=freshness)
    assert isinstance(table, ParquetDirectory)
    snapshot = current_snapshot(table.store, table.cache)
    assert snapshot is not None
    names = [f"{i}.parquet" for i in reversed(range(FILES))]
    status = [(root / name).stat() for name in names]
    size = np.array([stat.st_size for stat in status], np.int64)
    modified = np.array([stat.st_mtime_ns for stat in status], np.int64)
    columns = StructType([StructField("id", LongType())])
    files = FileList(str(root), columns, pa.array(names), size, modified // 1_000_000, Partitions((), ()))
    return match(files, table, snapshot)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for i in range(FILES):
        pq.write_table(pa.table({"id": np.arange(i, i + 5)}), tmp_path / f"{i}.parquet")
    index_here(sec.open_table(str(tmp_path)), BuildOptions())
    return tmp_path


@pytest.mark.parametrize("chunk", [2, 1024])
def test_changed_files_are_found_in_every_look(root: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(matches, "CHUNK", chunk)
    matched_list = matched(root, 0)
    assert matched_list.current() is matched_list.known
    assert matched_list.known.listing.paths.to_pylist() == [f"{i}.parquet" for i in range(FILES)]
    assert matched_list.schema.names == ["id"]
    before = (root / "3.parquet").stat()
    os.utime(root / "3.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "5.parquet").unlink()
    now = matched_list.current()
    assert now.listing.paths.to_pylist() == [f"{i}.parquet" for i in (0, 1, 2, 4, 6)]
    assert now.others.tolist() == [FILES - 1 - 5, FILES - 1 - 3]


def test_change_times_are_as_old_as_the_table_allows(root: Path) -> None:
    matched_list = matched(root, 3600)
    assert matched_list.current() is matched_list.known
    os.utime(root / "3.parquet")
    assert matched_list.current() is matched_list.known


@pytest.mark.parametrize("partitions", [True, False])
def test_a_column_that_directories_name_is_not_asked_where_spark_reads_no_names(
    tmp_path: Path, partitions: bool
) -> None:
    (tmp_path / "Day=1").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "day": [7, 8]}), tmp_path / "Day=1" / "a.parquet")
    table = sec.open_table(str(tmp_path))
    index_here(table, BuildOptions())
    snapshot = current_snapshot(table.store, table.cache)
    assert snapshot is not None
    status = (tmp_path / "Day=1" / "a.parquet").stat()
    identity = np.array([status.st_size], np.int64), np.array([status.st_mtime_ns // 1_000_000], np.int64)
    day = Partitions((pa.field("Day", pa.int32()),), (pa.array([1], pa.int32()),)) if partitions else Partitions((), ())
    columns = StructType([StructField(name, LongType()) for name in ("id", "day")])
    files = FileList(str(tmp_path), columns, pa.array(["Day=1/a.parquet"]), *identity, day)
    assert match(files, table, snapshot).schema.names == (["id", "Day"] if partitions else ["id"])
