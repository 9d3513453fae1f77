"""The life of a table and its index on S3: built, pruned, refreshed, verified, vacuumed, dropped, amid failures."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import AccessDenied, IndexFault, IndexNotWritable, InvalidParquet, TableNotFound
from secateur.index.model import BLOOM, BuildOptions, FilterOption
from secateur.io.storage.locations import resolve_location
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.profiles import one_in, takes_seconds
from tests.support.s3_server import REGION, SLOW, Fails, S3Server, every, once
from tests.support.stores.local_build import index_here

ROWS = 400  # of a file
OPTIONS = BuildOptions(filters=(FilterOption(BLOOM, "twice"),))


@dataclass
class Lake:
    """A table of files with known rows, and where its index is kept."""

    location: str
    index: str | None
    data: dict[str, pa.Table]

    def write(self, name: str, first: int) -> None:
        ids = np.arange(first, first + ROWS)
        self.data[name] = pa.table({"id": ids, "twice": ids * 2, "word": [f"word {i % 7}" for i in ids]})
        _, filesystem, root = resolve_location(self.location, None)
        filesystem.create_dir(root, recursive=True)
        pq.write_table(self.data[name], f"{root}/{name}", filesystem=filesystem, row_group_size=50)

    def remove(self, name: str) -> None:
        _, filesystem, root = resolve_location(self.location, None)
        filesystem.delete_file(f"{root}/{name}")
        del self.data[name]

    def open(self) -> ParquetDirectory:
        table = sec.open_table(self.location, index_location=self.index)
        assert isinstance(table, ParquetDirectory)
        return table

    def rows(self, first: int, last: int) -> list[tuple[int, int, str]]:
        """The rows that ``id BETWEEN first AND last`` finds."""
        all_rows = pa.concat_tables(self.data.values()).to_pylist()
        return sorted(tuple(row.values()) for row in all_rows if first <= row["id"] <= last)


@pytest.fixture
def lake(request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path) -> Iterator[Lake]:
    """A table of three files; the parameter says where its data and its index are."""
    data, index = getattr(request, "param", ("s3", "s3"))
    places = {"s3": f"s3://{s3.bucket}/{tmp_path.name}", "local": str(tmp_path)}
    made = Lake(f"{places[data]}/events", None if data == index else f"{places[index]}/indexes/events", {})
    for number in range(3):
        made.write(f"part={number}.parquet", number * ROWS)
    yield made
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


def arrow_rows(table: ParquetDirectory, predicate: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in sec.prune(table, predicate, strict=True).to_arrow().to_pylist())


def spark_rows(table: ParquetDirectory, predicate: str, spark: SparkSession) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in sec.prune(table, predicate, strict=True).to_spark(spark).collect())


@pytest.mark.parametrize(
    "lake", one_in(2, [("s3", "s3"), ("s3", "local"), ("local", "s3")]), indirect=True, ids="-".join
)
def test_the_life_of_an_index(spark: SparkSession, lake: Lake) -> None:
    table = lake.open()
    built = sec.build_index(table, spark=spark, sort_key=["id"], bloom=["twice"])
    assert (built.number, built.files, built.rows) == (1, 3, 3 * ROWS)
    few, most = "id BETWEEN 395 AND 405", "id BETWEEN 10 AND 100000"
    assert len(sec.prune(table, few, strict=True).blocks) == 2
    assert arrow_rows(table, few) == spark_rows(table, few, spark) == lake.rows(395, 405)
    assert spark_rows(table, most, spark) == lake.rows(10, 100_000)
    assert sec.prune(table, "twice = 1000", strict=True).to_arrow().num_rows == 1

    lake.write("later.parquet", 5 * ROWS)
    lake.remove("part=1.parquet")
    new = "id BETWEEN 300 AND 2010"
    assert arrow_rows(table, new) == lake.rows(300, 2010)
    refreshed = sec.refresh_index(lake.open(), spark=spark).index
    assert refreshed.number == 2
    assert arrow_rows(lake.open(), new) == spark_rows(lake.open(), new, spark) == lake.rows(300, 2010)
    assert sec.verify_index(lake.open()) == sec.Verification(2, refreshed.segments, 3, 0, ())

    removed = sec.vacuum_index(lake.open(), grace_seconds=-2)  # S3 tells whole seconds
    assert "snapshots/0000000001.snapshot" in {file.name for file in removed}
    assert arrow_rows(lake.open(), new) == lake.rows(300, 2010)
    sec.drop_index(lake.open())
    assert not [file for folder in ("snapshots", "segments", "filters") for file in table.store.files(folder)]
    assert arrow_rows(lake.open(), new) == lake.rows(300, 2010)


def test_the_data_source_reads_s3(spark: SparkSession, lake: Lake) -> None:
    index_here(lake.open(), OPTIONS)
    frame = spark.read.format("secateur").option("predicate", "twice = 1000").load(lake.location)
    assert [tuple(row) for row in frame.collect()] == lake.rows(500, 500)


def test_the_data_source_plans_once_and_keeps_the_index(spark: SparkSession, s3: S3Server, lake: Lake) -> None:
    """Whoever plans reads the index, once; tasks read the files that are left."""
    index_here(lake.open(), OPTIONS)

    def rows(predicate: str) -> list[tuple[object, ...]]:
        frame = spark.read.format("secateur").option("predicate", predicate).load(lake.location)
        return sorted(tuple(row) for row in frame.collect())

    assert rows("twice = 1000") == lake.rows(500, 500)
    with s3.traffic() as traffic:
        assert rows("twice = 1800") == lake.rows(900, 900)
    with s3.traffic() as wide:
        assert rows("id BETWEEN 100 AND 1100") == lake.rows(100, 1100)
    for seen, files in ((traffic, {"part=2"}), (wide, {"part=0", "part=1", "part=2"})):
        read = [request.name for request in seen.requests if request.kind == "GET"]
        assert {posixpath.basename(name).partition(".")[0] for name in read if name.endswith(".parquet")} == files
        assert not [name for name in read if name.endswith(".snapshot")]
        assert seen.counts["LIST"] == 4  # of files and of snapshots, for the schema and for the plan
    assert not [request for request in wide.requests if request.name.endswith(".filter")]


@takes_seconds
def test_failures_now_and_then_are_healed(s3: S3Server, lake: Lake) -> None:
    with s3.failing(every(10)) as gate:
        index_here(lake.open(), OPTIONS)
        assert arrow_rows(lake.open(), "twice = 1000") == lake.rows(500, 500)
        assert sec.verify_index(lake.open()).sound
    assert gate.failed > 3


def test_an_answer_that_does_not_come_is_asked_for_again(s3: S3Server, lake: Lake) -> None:
    index_here(lake.open(), OPTIONS)
    with s3.failing(once(".segment"), "hang") as gate:
        assert arrow_rows(lake.open(), "id = 500") == lake.rows(500, 500)
    assert gate.failed == 1


def impatient(s3: S3Server, lake: Lake) -> ParquetDirectory:
    """The table, opened by a client that does not try again."""
    retries = pafs.AwsStandardS3RetryStrategy(max_attempts=1)
    filesystem = pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION, retry_strategy=retries)
    table = sec.open_table(lake.location.removeprefix("s3://"), filesystem=filesystem)
    assert isinstance(table, ParquetDirectory)
    return table


@takes_seconds
@pytest.mark.parametrize("ending", [".snapshot", ".segment", ".filter", ""])
def test_an_index_that_cannot_be_read_costs_no_row(s3: S3Server, lake: Lake, ending: str) -> None:
    index_here(lake.open(), OPTIONS)

    def fails(method: str, path: str) -> bool:
        return "_secateur" in path and path.endswith(ending)

    table = impatient(s3, lake)
    with s3.failing(fails) as gate:
        plan = sec.prune(table, "twice = 1000")
        assert sorted(tuple(row.values()) for row in plan.to_arrow().to_pylist()) == lake.rows(500, 500)
        assert gate.failed
        assert "degraded" in plan.explain()
        with pytest.raises(IndexFault):
            sec.prune(impatient(s3, lake), "twice = 1000", strict=True)
    assert arrow_rows(table, "twice = 1000") == lake.rows(500, 500)


@takes_seconds
def test_data_that_cannot_be_read_is_an_error_and_not_fewer_rows(s3: S3Server, lake: Lake) -> None:
    index_here(lake.open(), OPTIONS)
    table = impatient(s3, lake)
    plan = sec.prune(table, "id >= 0", strict=True)
    with (
        s3.failing(lambda method, path: path.endswith("part=1.parquet")),
        pytest.raises(InvalidParquet, match=r"part=1\.parquet"),
    ):
        plan.to_arrow()
    with s3.failing(lambda method, path: not path.endswith(".parquet")), pytest.raises(TableNotFound):
        sec.prune(table, "id >= 0")
    assert plan.to_arrow().num_rows == 3 * ROWS


# ---- while it is read: of the data, and of the index -----------------------------------------------------------------


def gets(ending: str, fails: Fails) -> Fails:
    """Of the reads of names with an ending those that fail."""
    return lambda method, path: method == "GET" and path.endswith(ending) and fails(method, path)


def hasty(s3: S3Server, lake: Lake, seconds: float) -> ParquetDirectory:
    """The table, opened by a client that waits so long for an answer."""
    filesystem = pafs.S3FileSystem(endpoint_override=s3.endpoint, region=REGION, request_timeout=seconds)
    table = sec.open_table(lake.location.removeprefix("s3://"), filesystem=filesystem)
    assert isinstance(table, ParquetDirectory)
    return table


@takes_seconds
@pytest.mark.parametrize(
    ("how", "ending"), one_in(5, product(["status", "cut", "lost"], [".parquet", ".snapshot", ".segment", ".filter"]))
)
def test_reads_that_fail_now_and_then_give_all_rows(s3: S3Server, lake: Lake, how: str, ending: str) -> None:
    index_here(lake.open(), OPTIONS)
    with s3.failing(gets(ending, every(2, first=1)), how) as gate:
        table = lake.open()
        assert arrow_rows(table, "twice = 1000 AND id > 0") == lake.rows(500, 500)
        assert arrow_rows(table, "id BETWEEN 300 AND 900") == lake.rows(300, 900)
    assert gate.failed


@pytest.mark.parametrize(("how", "ending"), one_in(3, product(["slow", "hang"], [".parquet", ".segment"])))
def test_answers_that_come_late_or_not_at_all_are_asked_for_again(
    s3: S3Server, lake: Lake, how: str, ending: str
) -> None:
    """By a client that waits for less than the server takes."""
    index_here(lake.open(), OPTIONS)
    with s3.failing(gets(ending, once(ending)), how) as gate:
        assert arrow_rows(hasty(s3, lake, SLOW / 2), "twice = 1000") == lake.rows(500, 500)
    assert gate.failed == 1


def test_slow_answers_are_waited_for(s3: S3Server, lake: Lake) -> None:
    index_here(lake.open(), OPTIONS)
    table = lake.open()
    with s3.failing(gets("", lambda method, path: "." in path), "slow") as gate, s3.traffic() as traffic:
        assert arrow_rows(table, "twice = 1000") == lake.rows(500, 500)
    asked = [(request.name, request.range) for request in traffic.requests if request.kind == "GET"]
    assert gate.failed == len(asked) == len(set(asked)) > 3


@takes_seconds
@pytest.mark.parametrize("how", ["status", "cut", "slow", "denied"])
def test_data_that_never_comes_is_a_clear_error(s3: S3Server, lake: Lake, how: str) -> None:
    index_here(lake.open(), OPTIONS)
    table = hasty(s3, lake, SLOW / 4)
    plan = sec.prune(table, "id BETWEEN 300 AND 900", strict=True)
    expected = AccessDenied if how == "denied" else InvalidParquet
    with s3.failing(gets("part=1.parquet", lambda method, path: True), how) as gate:
        with pytest.raises(expected, match=r"part=1\.parquet"):
            plan.to_arrow()
        with pytest.raises(expected, match=r"part=1\.parquet"):
            list(plan.to_batches())
    assert gate.failed
    assert sorted(tuple(row.values()) for row in plan.to_arrow().to_pylist()) == lake.rows(300, 900)


@takes_seconds
@pytest.mark.parametrize(
    ("how", "ending"), one_in(4, product(["cut", "slow", "denied"], [".snapshot", ".segment", ".filter"]))
)
def test_an_index_that_never_comes_costs_no_row(s3: S3Server, lake: Lake, how: str, ending: str) -> None:
    index_here(lake.open(), OPTIONS)
    with s3.failing(gets(ending, lambda method, path: True), how) as gate:
        plan = sec.prune(hasty(s3, lake, SLOW / 4), "twice = 1000")
        assert sorted(tuple(row.values()) for row in plan.to_arrow().to_pylist()) == lake.rows(500, 500)
        assert "degraded" in plan.explain()
        with pytest.raises(IndexFault, match=ending):
            sec.prune(hasty(s3, lake, SLOW / 4), "twice = 1000", strict=True)
    assert gate.failed


# ---- while it is written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["0000000002.snapshot", ".segment"])
def test_a_build_that_cannot_write_leaves_the_old_index(
    spark: SparkSession, s3: S3Server, lake: Lake, ending: str
) -> None:
    """Nor anything of its own."""
    sec.build_index(lake.open(), spark=spark, bloom=["twice"])
    lake.write("later.parquet", 5 * ROWS)
    before = {name for name in s3.names() if "_secateur" in name}
    with (
        s3.failing(lambda method, path: method in ("PUT", "POST") and path.endswith(ending)) as gate,
        pytest.raises(IndexNotWritable, match="injected"),
    ):
        sec.refresh_index(lake.open(), spark=spark)
    assert gate.failed
    assert {name for name in s3.names() if "_secateur" in name and not name.endswith("/")} == {
        name for name in before if not name.endswith("/")
    }
    plan = sec.prune(lake.open(), "id >= 1000", strict=True)
    assert plan.report.index.startswith("snapshot 1")
    assert sorted(tuple(row.values()) for row in plan.to_arrow().to_pylist()) == lake.rows(1000, 10**6)


def test_a_write_that_is_cut_off_is_no_part_of_an_index(s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    """A builder that dies within the upload of its snapshot."""
    index_here(lake.open(), OPTIONS)
    (name,) = (name for name in s3.names(tmp_path.name) if name.endswith("0000000001.snapshot"))
    next_one = posixpath.join(posixpath.dirname(name), "0000000002.snapshot")
    data = s3.client.get_object(Bucket=s3.bucket, Key=name)["Body"].read()
    s3.send_half_a_put(next_one, data)
    plan = sec.prune(lake.open(), "id = 500", strict=True)
    assert plan.report.index.startswith("snapshot 1")
    assert [tuple(row.values()) for row in plan.to_arrow().to_pylist()] == lake.rows(500, 500)
