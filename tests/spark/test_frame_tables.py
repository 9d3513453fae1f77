"""Spark DataFrames in the place of tables: the rows are the DataFrame's, and what is no whole table is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.errors import UnsupportedTable
from secateur.io.spark.version import IS_3
from tests.support.checks import oracle
from tests.support.formats.iceberg_spark import location


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four files in two partitions, of which Spark infers numbers, with an index that was built by the path."""
    place = str(tmp_path_factory.mktemp("frames") / "a b%20c")
    rows = spark.range(0, 80, 1, 2).selectExpr("CAST(id AS INT) AS id", "concat('n', id % 7) AS name", "id % 2 AS part")
    rows.write.partitionBy("part").parquet(place)
    sec.build_index(place, bloom=["id"])
    return place


def agrees(frame: DataFrame, predicate: str) -> sec.Scan:
    plan = sec.prune(frame, predicate, strict=True)
    expected = oracle.rows(frame.where(predicate).toArrow())
    assert oracle.rows(plan.to_arrow()) == expected
    assert oracle.rows(plan.to_spark(frame.sparkSession).toArrow()) == expected
    assert plan.count() == expected.total() > 0
    return plan


def test_a_directory(spark: SparkSession, events: str) -> None:
    frame = spark.read.parquet(events)
    assert len(agrees(frame, "id = 7 AND part = 1").blocks) == 1
    agrees(frame.alias("e"), "name = 'n3'")
    assert sec.dataframe(spark, frame).where("id = 7").count() == 1
    assert sec.aggregate(frame, "count(*)").to_pylist() == [{"count(*)": 80}]
    assert sec.refresh_index(frame).index.location == sec.describe_index(events).location


def test_the_columns_are_those_of_the_frame(spark: SparkSession, events: str) -> None:
    wide = "INT" if IS_3 else "BIGINT"  # to which Spark 3.5 widens no INT
    agrees(spark.read.schema(f"name STRING, id {wide}, part INT, more INT").parquet(events), "part = 1 AND id > 3")
    agrees(spark.read.option("mergeSchema", True).parquet(f"{events}/part=1"), "id = 7")
    agrees(spark.read.option("pathGlobFilter", "part-00000*").parquet(events), "id >= 0")


def test_columns_that_are_named_as_a_table_has_attributes(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(9).selectExpr("id AS snapshot", "id AS store").write.parquet(f"{tmp_path}/t")
    agrees(spark.read.parquet(f"{tmp_path}/t"), "store > 3")


def test_a_table_of_the_catalog(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE framed (id BIGINT, day STRING) USING parquet PARTITIONED BY (day)")
    try:
        spark.sql("INSERT INTO framed SELECT id, concat('0', id % 3) FROM range(60)")
        sec.build_index(spark.table("framed"), bloom=["id"])
        assert len(agrees(spark.table("framed"), "id = 7 AND day = '01'").blocks) == 1
        chosen = spark.read.option("modifiedAfter", "2100-01-01T00:00:00").table("framed")
        if IS_3:  # which gives no options to a table that it has read before
            agrees(chosen, "id = 7")
        else:
            with pytest.raises(UnsupportedTable, match="modifiedafter"):
                sec.open_table(chosen)
    finally:
        spark.sql("DROP TABLE framed")


OTHERS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "Filter": lambda spark, place: spark.read.parquet(place).where("id = 7"),
    "Project": lambda spark, place: spark.read.parquet(place).select("id"),
    "Range": lambda spark, place: spark.range(3),
    "2 places": lambda spark, place: spark.read.parquet(f"{place}/part=0", f"{place}/part=1"),
    "recursivefilelookup": lambda spark, place: spark.read.option("recursiveFileLookup", True).parquet(place),
    "basepath": lambda spark, place: spark.read.option("basePath", place).parquet(f"{place}/part=1"),
    "part has another type": lambda spark, place: spark.read.schema("id INT, part STRING").parquet(place),
    "StreamingRelation": lambda spark, place: spark.readStream.schema("id INT").parquet(place),
    "TextFileFormat": lambda spark, place: spark.read.text(place),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_whole_table_is_refused(spark: SparkSession, events: str, what: str) -> None:
    frame = OTHERS[what](spark, events)
    with pytest.raises(UnsupportedTable, match=what):
        sec.prune(frame, "true")


def test_the_frame_alone_says_which_rows(spark: SparkSession, events: str) -> None:
    with pytest.raises(ValueError, match="the DataFrame tells"):
        sec.prune(spark.read.parquet(events), "true", glob="*")


@pytest.fixture(scope="module")
def lake(iceberg: SparkSession) -> Iterator[str]:
    """A table of Iceberg of two snapshots, of which the first has a tag."""
    name = "lake.db.framed"
    iceberg.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id, concat('n', id % 7) AS name FROM range(0, 80, 1, 2)")
    sec.build_index(iceberg.table(name), bloom=["id"])
    iceberg.sql(f"ALTER TABLE {name} CREATE TAG first")
    iceberg.sql(f"INSERT INTO {name} SELECT id + 80, 'n3' FROM range(0, 20, 1, 1)")
    iceberg.sql(f"ALTER TABLE {name} CREATE BRANCH aside")
    yield name
    iceberg.sql(f"DROP TABLE {name}")


def test_a_table_of_iceberg(iceberg: SparkSession, lake: str) -> None:
    frame = iceberg.table(lake)
    assert len(agrees(frame, "id = 7").blocks) == 1
    agrees(frame.alias("f"), "name = 'n3'")
    assert sec.open_table(frame).identifier == tuple(lake.split("."))
    agrees(iceberg.read.format("iceberg").load(location(iceberg, lake)), "id > 70")
    with pytest.raises(TypeError, match="beside"):
        sec.enable(iceberg, [frame])


def test_a_table_of_iceberg_as_it_was(iceberg: SparkSession, lake: str) -> None:
    for frame in (iceberg.sql(f"SELECT * FROM {lake} VERSION AS OF 'first'"), iceberg.table(f"{lake}.tag_first")):
        assert agrees(frame, "name = 'n3'").count() == 11
    before = iceberg.table(lake)
    iceberg.sql(f"INSERT INTO {lake} VALUES (500, 'n3')")
    assert sec.prune(before, "id = 500").count() == 1
    iceberg.sql(f"ALTER TABLE {lake} RENAME COLUMN name TO label")
    try:
        with pytest.raises(UnsupportedTable, match="the columns id, name, where the table has id, label"):
            sec.prune(before, "true")
    finally:
        iceberg.sql(f"ALTER TABLE {lake} RENAME COLUMN label TO name")


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda spark, lake: spark.read.option("split-size", "1000").table(lake), "the option split-size"),
        (lambda spark, lake: spark.table(f"{lake}.branch_aside"), "the branch aside"),
        (lambda spark, lake: spark.table(f"{lake}.files"), "another format"),
        (lambda spark, lake: spark.table(lake).where("id = 7"), "Filter"),
    ],
)
def test_what_is_no_whole_table_of_iceberg_is_refused(
    iceberg: SparkSession, lake: str, read: Callable[[SparkSession, str], DataFrame], what: str
) -> None:
    with pytest.raises(UnsupportedTable, match=what):
        sec.prune(read(iceberg, lake), "true")
