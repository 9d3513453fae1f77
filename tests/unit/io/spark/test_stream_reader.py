"""Offsets of streams, and what is said where the rows of a stream cannot be told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

import secateur as sec
from secateur.errors import IndexMissing, TableChanged, UnknownSnapshot, UnsupportedPredicate
from secateur.io.spark.data_source import SecateurDataSource
from secateur.io.spark.stream_reader import Offset, SecateurStreamReader
from tests.support.formats.delta_tables import numbered


def reader_at(path: Path, **options: str) -> SecateurStreamReader:
    source = SecateurDataSource({"path": str(path), **options})
    schema = source.schema()
    assert isinstance(schema, StructType)
    return source.streamReader(schema)


def read(reader: SecateurStreamReader, start: Offset, end: Offset) -> list[int]:
    batches = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    return sorted(pa.Table.from_batches(batches, reader.schema)["rid"].to_pylist())


def write(at: Path, i: int) -> None:
    at.mkdir(exist_ok=True)
    pq.write_table(numbered(2 * i, 2 * i + 2), at / f"{i}.parquet")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two files, indexed."""
    at = tmp_path / "lake"
    write(at, 0)
    write(at, 1)
    sec.build_index(at)
    return at


def test_a_directory_goes_by_its_index(lake: Path) -> None:
    reader = reader_at(lake, predicate="rid % 2 = 0")
    first = reader.latestOffset()
    assert read(reader, reader.initialOffset(), first) == [0, 2]
    write(lake, 2)
    assert reader.latestOffset() == first  # as long as it is not indexed
    sec.refresh_index(lake)
    second = reader.latestOffset()
    assert read(reader, first, second) == [4]
    write(lake, 3)
    sec.refresh_index(lake)
    sec.optimize_index(lake)
    assert read(reader, first, second) == [4]
    assert read(reader, second, reader.latestOffset()) == [6]


def test_what_is_available_now_is_settled_when_the_query_starts(lake: Path) -> None:
    reader = reader_at(lake)
    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset()
    write(lake, 2)
    sec.refresh_index(lake)
    assert reader.latestOffset(first, None) == first != reader_at(lake).latestOffset()


def test_a_file_that_was_touched_is_not_new(lake: Path) -> None:
    """Its change time is another one; the index notes it."""
    reader = reader_at(lake)
    first = reader.latestOffset()
    os.chmod(lake / "0.parquet", 0o600)
    write(lake, 2)
    sec.refresh_index(lake)
    assert read(reader, first, reader.latestOffset()) == [4, 5]


@pytest.mark.parametrize(
    ("change", "expected"), [("overwrite", [6, 7]), ("remove", [6, 7]), ("remove an old one", [4, 5, 6, 7])]
)
def test_overwritten_and_removed_files(lake: Path, change: str, expected: list[int]) -> None:
    """What a stream has read may be removed; not what it has still to read."""
    reader, skipping = reader_at(lake), reader_at(lake, skip_changes="true")
    first = reader.latestOffset()
    write(lake, 2)
    write(lake, 3)
    match change:
        case "overwrite":
            (lake / "2.parquet").unlink()
            pq.write_table(numbered(20, 22), lake / "0.parquet")
            sec.refresh_index(lake)
        case "remove":
            sec.refresh_index(lake)
            (lake / "2.parquet").unlink()
        case "remove an old one":
            (lake / "1.parquet").unlink()
            sec.refresh_index(lake)
    second = reader.latestOffset()
    if "old" in change:
        assert read(reader, first, second) == expected
    else:
        with pytest.raises(TableChanged, match=r"[02]\.parquet (is gone|was overwritten).*skip_changes"):
            reader.partitions(first, second)
    assert read(skipping, first, second) == expected


def test_a_directory_without_an_index(tmp_path: Path) -> None:
    write(tmp_path / "bare", 0)
    with pytest.raises(IndexMissing, match=r"call build_index\(\), and refresh_index\(\)"):
        reader_at(tmp_path / "bare").latestOffset()


def test_an_index_made_anew_is_not_taken_for_the_old_one(lake: Path) -> None:
    """Numbers begin again: a checkpoint names the snapshot by its time too."""
    reader = reader_at(lake)
    first = reader.latestOffset()
    write(lake, 2)
    sec.drop_index(lake)
    sec.build_index(lake)
    second = reader.latestOffset()
    assert first["snapshot"] == second["snapshot"]
    with pytest.raises(TableChanged, match="made anew"):
        reader.partitions(first, second)


def test_a_snapshot_that_vacuum_removed(lake: Path) -> None:
    reader = reader_at(lake)
    first = reader.latestOffset()
    write(lake, 2)
    sec.refresh_index(lake)
    sec.vacuum_index(lake, grace_seconds=-1)
    with pytest.raises(UnknownSnapshot, match=r"no snapshot 1 .*grace_seconds"):
        reader.partitions(first, reader.latestOffset())


def test_a_delta_table_made_anew(tmp_path: Path) -> None:
    at = tmp_path / "t"
    deltalake.write_deltalake(str(at), numbered(0, 2))
    reader = reader_at(at)
    first = reader.latestOffset()
    shutil.rmtree(at)
    deltalake.write_deltalake(str(at), numbered(2, 4))
    deltalake.write_deltalake(str(at), numbered(4, 6), mode="append")
    with pytest.raises(TableChanged, match="made anew"):
        reader.partitions(first, reader.latestOffset())


def test_a_predicate_that_only_spark_evaluates_is_refused(lake: Path) -> None:
    reader = reader_at(lake, predicate="s RLIKE '(?=t)ext 3'")
    with pytest.raises(UnsupportedPredicate, match="where"):
        reader.partitions(reader.initialOffset(), reader.latestOffset())
