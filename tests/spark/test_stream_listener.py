"""Indexes follow what Spark's jobs write: by a listener of streaming queries, and at the end of a job."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.errors import IndexMissing, InvalidOption
from secateur.maintain.watch import Look

PATIENCE = 120  # seconds until a refresh that is waited for has been done


def append(spark: SparkSession, to: Path, i: int) -> None:
    spark.range(i * 100, (i + 1) * 100, 1, 1).write.mode("append").parquet(str(to))


def stream(spark: SparkSession, source: Path, lake: Path, checkpoint: Path) -> None:
    """Copy what is new of the source, and end."""

    def write(batch: DataFrame, _: int) -> None:
        batch.coalesce(1).write.mode("append").parquet(str(lake))

    frame = spark.readStream.schema("id BIGINT").parquet(str(source))
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def require_covered(lake: Path, rows: int) -> None:
    held = sec.describe_index(str(lake))
    assert held.files == len(list(lake.glob("*.parquet")))
    for value in range(0, rows, 37):
        plan = sec.prune(str(lake), f"id = {value}", strict=True)
        assert len(plan.files) == 1
        assert plan.to_arrow()["id"].to_pylist() == [value]


def test_batches_of_a_streaming_query_are_indexed(spark: SparkSession, tmp_path: Path) -> None:
    """Each by the next look of the listener's thread; what is written after it by the look of close()."""
    source, lake, looks, refreshed = tmp_path / "source", tmp_path / "lake", [], threading.Event()

    def on_look(look: Look) -> None:
        looks.append(look)
        refreshed.set()

    append(spark, source, 100)
    append(spark, lake, 0)
    sec.build_index(str(lake), bloom=["id"])
    listener = sec.stream_listener(str(lake), on_look=on_look)
    spark.streams.addListener(listener)
    try:
        for i in range(1, 3):
            refreshed.clear()
            append(spark, source, 100 + i)
            stream(spark, source, lake, tmp_path / "checkpoint")
            assert refreshed.wait(PATIENCE), "a batch had rows"
    finally:
        spark.streams.removeListener(listener)
    append(spark, lake, 50)
    assert listener.close(PATIENCE)
    assert all(look.error is None for look in looks)
    added = sum(look.refreshed.files_added for look in looks if look.refreshed is not None)
    assert added == len(list(lake.glob("*.parquet"))) - 1, "each file once"
    require_covered(lake, 100)


def test_a_failed_refresh_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    append(spark, tmp_path / "lake", 0)
    looks: list[Look] = []
    listener = sec.stream_listener(str(tmp_path / "lake"), on_look=looks.append)
    assert not listener.close(PATIENCE), "there is no index"
    assert [type(look.error) for look in looks] == [IndexMissing]
    with pytest.raises(InvalidOption, match="there is no table whose index to refresh"):
        sec.stream_listener()


@pytest.mark.parametrize("distributed", [False, True])
def test_a_job_indexes_what_it_wrote(spark: SparkSession, tmp_path: Path, distributed: bool) -> None:
    """The first makes the index; each covers its own files when it ends."""
    lake = tmp_path / "lake"
    for i in range(3):
        append(spark, lake, i)
        written = sec.index_written(str(lake), spark=spark if distributed else None, build={"bloom": ["id"]})
        assert (written.files, written.bloom) == (i + 1, ("id",))
        require_covered(lake, (i + 1) * 100)
