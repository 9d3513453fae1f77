"""Offsets of streams, and what is said where the rows of a stream cannot be told."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.serializers import read_int, write_with_length
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

import secateur as sec
from secateur.errors import IndexMissing, InvalidOption, TableChanged, UnknownSnapshot, UnsupportedPredicate
from secateur.io.spark.data_source import SecateurDataSource
from secateur.io.spark.stream_offsets import Offset
from secateur.io.spark.stream_reader import KNOWS_LIMITS, ReadAllAvailable, SecateurStreamReader
from tests.support.formats.delta_tables import numbered


def reader_at(path: Path, **options: str) -> SecateurStreamReader:
    source = SecateurDataSource(CaseInsensitiveDict({"path": str(path), **options}))  # as PySpark's worker does
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


@pytest.mark.parametrize("change", ["overwrite", "touch"])
def test_an_optimization_does_not_forget_an_overwritten_file(lake: Path, change: str) -> None:
    """Else the rows that the refresh after it indexes anew would come as new ones, and those that stayed twice."""
    for i in (2, 3):
        write(lake, i)
        sec.refresh_index(lake)
    (lake / "2.parquet").unlink()
    if change == "overwrite":
        pq.write_table(numbered(20, 23), lake / "0.parquet")
    else:
        os.utime(lake / "0.parquet")
    assert sec.optimize_index(lake).segments_made
    reader, skipping = reader_at(lake), reader_at(lake, skip_changes="true")
    first = reader.latestOffset()
    write(lake, 4)
    sec.refresh_index(lake)
    second = reader.latestOffset()
    with pytest.raises(TableChanged, match=r"0\.parquet was overwritten"):
        reader.partitions(first, second)
    assert read(skipping, first, second) == [8, 9]


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


# ---- limits ----------------------------------------------------------------------------------------------------------

limited = pytest.mark.skipif(not KNOWS_LIMITS, reason="before 4.2 Spark says of no batch where it begins")


@pytest.mark.skipif(KNOWS_LIMITS, reason="from 4.2 on Spark says where a batch begins")
def test_limits_are_refused_where_spark_does_not_say_where_a_batch_begins(lake: Path) -> None:
    with pytest.raises(InvalidOption, match=r"need Spark 4\.2"):
        reader_at(lake, maxFilesPerTrigger="1")


def batches(reader: SecateurStreamReader, start: Offset | None = None) -> list[tuple[Offset, Offset]]:
    """The offsets of the batches that a query reads until there is nothing new."""
    at = reader.initialOffset() if start is None else start
    read_so_far = []
    while (following := reader.latestOffset(at, None)) != at:
        read_so_far.append((at, following))
        at = following
    return read_so_far


def all_of(reader: SecateurStreamReader, start: Offset | None = None) -> list[list[int]]:
    return [read(reader, *batch) for batch in batches(reader, start)]


@limited
def test_a_batch_has_as_many_files_as_are_allowed(lake: Path) -> None:
    for i in (2, 3, 4):
        write(lake, i)
    sec.refresh_index(lake)
    assert all_of(reader_at(lake, maxFilesPerTrigger="2")) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert all_of(reader_at(lake, maxFilesPerTrigger="5")) == [list(range(10))]
    assert all_of(reader_at(lake, maxFilesPerTrigger="2", since="1")) == [[4, 5, 6, 7], [8, 9]]
    size = (lake / "0.parquet").stat().st_size
    assert all_of(reader_at(lake, maxBytesPerTrigger="1")) == [[2 * i, 2 * i + 1] for i in range(5)]
    assert [len(rows) for rows in all_of(reader_at(lake, maxBytesPerTrigger=str(3 * size)))] == [6, 4]
    both = reader_at(lake, maxFilesPerTrigger="4", maxBytesPerTrigger=str(2 * size))
    assert [len(rows) for rows in all_of(both)] == [4, 4, 2]


@limited
def test_a_batch_within_a_snapshot_is_read_again_as_it_was(lake: Path) -> None:
    """Though files came since, and those that were read before it are gone."""
    for i in (2, 3):
        write(lake, i)
    sec.refresh_index(lake)
    reader = reader_at(lake, maxFilesPerTrigger="1")
    whole = reader_at(lake)
    _, second, *others = batches(reader)
    write(lake, 4)
    sec.refresh_index(lake)
    (lake / "0.parquet").unlink()
    assert read(reader, *second) == [2, 3]
    assert all_of(reader, second[1]) == [[4, 5], [6, 7], [8, 9]]
    assert read(whole, second[1], whole.latestOffset(second[1], None)) == [4, 5, 6, 7, 8, 9]
    assert batches(reader, others[-1][1])[0][0]["snapshot"] == 2


@limited
def test_files_that_go_between_two_batches_are_told(lake: Path) -> None:
    reader, skipping = (reader_at(lake, maxFilesPerTrigger="1", skip_changes=skip) for skip in ("false", "true"))
    at = reader_at(lake).latestOffset()
    for i in (2, 3, 4):
        write(lake, i)
    sec.refresh_index(lake)
    (first, second, third) = batches(reader, at)
    assert read(reader, *first) == [4, 5]
    (lake / "3.parquet").unlink()
    with pytest.raises(TableChanged, match=r"3\.parquet is gone"):
        read(reader, *second)
    assert read(reader, *third) == [8, 9]
    assert all_of(skipping, first[1]) == [[], [8, 9]]


@limited
def test_what_is_available_now_comes_in_limited_batches(lake: Path) -> None:
    """Up to the snapshot of the start, also of a query that goes on within an earlier one."""
    reader = reader_at(lake, maxFilesPerTrigger="1")
    (_, within), _ = batches(reader)
    assert within["files"] == 1
    write(lake, 2)
    sec.refresh_index(lake)
    again = reader_at(lake, maxFilesPerTrigger="1")
    again.prepareForTriggerAvailableNow()
    write(lake, 3)
    sec.refresh_index(lake)
    assert all_of(again, within) == [[2, 3], [4, 5]]


@limited
def test_spark_is_told_the_limit(lake: Path) -> None:
    def limit(**options: str) -> object:
        return reader_at(lake, **options).getDefaultReadLimit()

    assert limit() == ReadAllAvailable()
    assert str(limit(maxFilesPerTrigger="7")) == "ReadMaxFiles(max_files=7)"
    assert str(limit(maxBytesPerTrigger="2KiB")) == "ReadMaxBytes(max_bytes=2048)"
    reader = reader_at(lake, maxFilesPerTrigger="1")
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == reader_at(lake).latestOffset()


@limited
def test_sparks_worker_gets_limited_batches(lake: Path) -> None:
    """By the functions of PySpark's own worker, which pass offsets and limits as JSON."""
    from pyspark.sql.streaming import python_streaming_source_runner as runner

    write(lake, 2)
    sec.refresh_index(lake)
    reader = reader_at(lake, maxFilesPerTrigger="2")

    def asked(function: Callable[..., None], *arguments: object) -> Any:
        request, reply = io.BytesIO(), io.BytesIO()
        for argument in arguments:
            write_with_length(json.dumps(argument).encode(), request)
        request.seek(0)
        function(reader, *([request] if arguments else []), reply)
        reply.seek(0)
        return json.loads(reply.read(read_int(reply)))

    at, limit = asked(runner.initial_offset_func), asked(runner.get_default_read_limit_func)
    runner.prepare_for_trigger_available_now_func(reader, io.BytesIO())
    rows = []
    while (following := asked(runner.latest_offset_admission_control_func, at, limit)) != at:
        rows.append(read(reader, at, following))
        at = following
    assert limit == {"_type": "ReadMaxFiles", "max_files": 2}
    assert rows == [[0, 1, 2, 3], [4, 5]]


@limited
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFilesPerTrigger": "0"}, "number of files, at least 1, not '0'"),
        ({"maxFilesPerTrigger": "-1"}, "not '-1'"),
        ({"maxFilesPerTrigger": "many"}, "not 'many'"),
        ({"maxBytesPerTrigger": "0"}, "at least 1 byte"),
        ({"maxBytesPerTrigger": "much"}, "maxBytesPerTrigger is a number of bytes such as"),
        ({"maxFilesPerTriger": "1"}, "did you mean 'maxFilesPerTrigger'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(lake: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        reader_at(lake, **options)


def test_a_batch_read_has_no_limit(lake: Path) -> None:
    source = SecateurDataSource({"path": str(lake), "maxFilesPerTrigger": "1"})
    with pytest.raises(InvalidOption, match=r"maxFilesPerTrigger is an option of streams"):
        source.reader(source.schema())
