"""``sec.enable`` beside what else a session does: cancelled queries, threads, buckets, options, caches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from tests.support.enabled_session import answer, enabled, pruning, require_same

ROWS = 2_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Path]:
    """An indexed directory of two files, of which one lacks a column; also as the view `some`."""
    root = tmp_path_factory.mktemp("surroundings") / "some"
    root.mkdir()
    ids = np.arange(ROWS)
    table = pa.table({"id": ids, "k": (ids * 7919) % ROWS, "more": [f"m{i}" for i in ids]})
    pq.write_table(table.slice(0, ROWS // 2), root / "a.parquet", row_group_size=100)
    pq.write_table(table.slice(ROWS // 2).drop_columns(["more"]), root / "b.parquet", row_group_size=100)
    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["k"])
    spark.read.schema("id bigint, k bigint, more string").parquet(str(root)).createOrReplaceTempView("some")
    with enabled(spark):
        yield root


CONDITIONS = ("id = 5", "id BETWEEN 950 AND 1050", "more = 'm7' OR id = 1999", "more IS NULL AND id < 1005", "k = 77")


@pytest.mark.parametrize("option", ["mergeSchema", "ignoreCorruptFiles", "ignoreMissingFiles", "recursiveFileLookup"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_options(spark: SparkSession, root: Path, option: str, value: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW optional USING parquet OPTIONS (path '{root}', {option} '{value}')")
    columns = spark.table("optional").columns
    for condition in CONDITIONS:
        if "more" in columns or "more" not in condition:
            require_same(spark, f"SELECT * FROM optional WHERE {condition}")
    kept = pruning(spark.sql("SELECT id FROM optional WHERE id = 5"))
    is_pruned = option == "recursiveFileLookup" or (option, value) == ("mergeSchema", "false")
    assert kept == (["1 of 20"] if is_pruned else [])


@pytest.mark.parametrize("ignored", ["true", "false"])
def test_a_corrupt_file(spark: SparkSession, root: Path, tmp_path: Path, ignored: str) -> None:
    for i in range(2):
        pq.write_table(pa.table({"id": np.arange(100) + 100 * i}), tmp_path / f"{i}.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    sec.enable(spark)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW harmed USING parquet OPTIONS (path '{tmp_path}')")
    (tmp_path / "1.parquet").write_bytes(b"PAR1" + b"x" * 50 + b"PAR1")
    spark.catalog.refreshTable("harmed")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", ignored)
    try:
        for condition in ("id = 5", "id = 150", "id > 90"):
            require_same(spark, f"SELECT * FROM harmed WHERE {condition}")
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_buckets(spark: SparkSession, root: Path) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.sql("CREATE TABLE cut USING parquet CLUSTERED BY (k) SORTED BY (k) INTO 4 BUCKETS AS SELECT id, k FROM some")
    try:
        location = spark.sql("DESCRIBE FORMATTED cut").where("col_name = 'Location'").first().data_type
        sec.build_index(sec.open_table(location.removeprefix("file:")))
        for query in (
            "SELECT * FROM cut WHERE k = 7",
            "SELECT a.id, b.id FROM cut a JOIN cut b ON a.k = b.k WHERE a.id < 9",
            "SELECT cut.id, some.id FROM cut JOIN some ON cut.k = some.k WHERE some.id < 9",
            "SELECT k, count(*) FROM cut WHERE id < 100 GROUP BY k",
        ):
            require_same(spark, query)
    finally:
        spark.sql("DROP TABLE cut")
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_names_of_files_and_caches(spark: SparkSession, root: Path) -> None:
    require_same(spark, "SELECT id, input_file_name() FROM some WHERE id IN (5, 1500)")
    require_same(spark, "SELECT input_file_name() AS f, count(*) FROM some WHERE id > 900 GROUP BY 1")
    spark.sql("CACHE TABLE kept AS SELECT * FROM some WHERE id < 300")
    try:
        require_same(spark, "SELECT a.id FROM kept a JOIN some b ON a.id = b.k WHERE b.id < 500")
        require_same(spark, "SELECT * FROM some WHERE id < 300")
    finally:
        spark.sql("UNCACHE TABLE kept")
        spark.catalog.dropTempView("kept")


def test_a_new_session_has_its_own_switch(spark: SparkSession, root: Path) -> None:
    other = spark.newSession()
    other.conf.set("secateur.enabled", "false")
    assert pruning(other.read.parquet(str(root)).where("id = 5")) == []
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == ["1 of 20"]
    other.conf.unset("secateur.enabled")
    assert pruning(other.read.parquet(str(root)).where("id = 5")) == ["1 of 20"]


def test_many_threads_with_different_questions(spark: SparkSession, root: Path) -> None:
    expected = {key: answer(spark, question(key), pruned=False) for key in range(0, ROWS, 200)}

    def asked(key: int) -> list[str]:
        frame = spark.sql(question(key))
        return [str(frame.dtypes), *sorted(map(repr, frame.collect()))]

    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            assert dict(zip(expected, threads.map(asked, expected), strict=True)) == expected


def question(key: int) -> str:
    """A join whose small side prunes at run time, in every thread with other values."""
    return f"SELECT a.id, b.id AS other FROM some a JOIN some b ON a.k = b.id WHERE a.id BETWEEN {key} AND {key + 3}"


def test_a_cancelled_query_harms_no_other(spark: SparkSession, root: Path) -> None:
    context, errors = spark.sparkContext, []
    started = threading.Event()

    def endless() -> None:
        context.setJobGroup("endless", "to be cancelled", interruptOnCancel=True)
        started.set()
        try:
            spark.sql(
                "SELECT sum(hash(a.id, b.id, c.id)) FROM some a CROSS JOIN some b CROSS JOIN some c WHERE a.id < 400"
            ).collect()
        except Exception as error:
            errors.append(str(error))

    thread = InheritableThread(target=endless)
    thread.start()
    assert started.wait(60)
    while thread.is_alive():
        context.cancelJobGroup("endless")
        thread.join(0.5)
    assert errors
    assert "cancel" in errors[0].lower()
    require_same(spark, "SELECT * FROM some WHERE id = 5")
    assert pruning(spark.sql("SELECT * FROM some WHERE id = 5")) == ["1 of 20"]


def test_queries_of_a_micro_batch_are_pruned(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    seen: list[tuple[list[str], list[int]]] = []

    def look(batch: DataFrame, number: int) -> None:
        answer = batch.sparkSession.read.parquet(str(root)).where("id BETWEEN 5 AND 7")
        joined = answer.join(batch, "id").select("id")
        seen.append((pruning(answer), sorted(row.id for row in joined.collect())))

    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": range(6, 10)}), tmp_path / "in" / "a.parquet")
    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    writer = stream.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "check"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert seen == [(["1 of 20"], [6, 7])]
