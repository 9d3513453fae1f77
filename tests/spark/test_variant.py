"""VARIANT columns, shredded or not: every read path gives the rows and values of Spark's own reader, or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secateur as sec
from secateur.errors import UnsupportedPredicate, UnsupportedTable
from secateur.io.spark.version import IS_3
from tests.support.profiles import one_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(IS_3, reason="Spark 3.5 has no VARIANT")

SHREDDED = "user bigint, name string, nest struct<k bigint>"
VALUES = """parse_json(CASE WHEN id % 13 = 0 THEN '{"user":"x","t":1}' WHEN id % 17 = 0 THEN '{"user":null}'
    WHEN id % 19 = 0 THEN '[1,2]' WHEN id % 23 = 0 THEN 'null' WHEN id % 29 = 0 THEN NULL
    ELSE '{"user":' || id || ',"name":"n' || id || '","nest":{"k":' || (id * 2) || '},"rest":' || id || '}' END)"""
PATHS = [
    "try_variant_get(payload, '$.user', 'int') = 7",
    "NOT (try_variant_get(payload, '$.user', 'int') > 7)",
    "try_variant_get(payload, '$.user', 'int') IS NULL AND id < 100",
    "variant_get(payload, '$.nest.k', 'bigint') = 14",  # Spark 4.0 has no payload:nest.k
    "variant_get(payload, '$.name', 'string') IN ('n7', 'n300') OR id = 3",
    "is_variant_null(payload)",
    "payload IS NULL",
]
PLAIN = ["id = 7", "id BETWEEN 290 AND 310"]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that shreds nothing, and one that shreds some paths, of some row groups each."""
    root = tmp_path_factory.mktemp("variant")
    spark.conf.set("spark.sql.variant.allowReadingShredded", "true")  # off by default in Spark 4.0
    for shredded in (False, True):
        settings = {
            "spark.sql.variant.writeShredding.enabled": str(shredded).lower(),
            "spark.sql.variant.inferShreddingSchema": "false",
            "spark.sql.variant.forceShreddingSchemaForTest": SHREDDED if shredded else "",
        }
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            rows = spark.range(400 * shredded, 400 * shredded + 400, 1, 1).selectExpr("id", f"{VALUES} AS payload")
            rows.write.option("parquet.block.row.count.limit", "100").parquet(str(root / f"part={int(shredded)}"))
        finally:
            for name in settings:
                spark.conf.unset(name)
    return root


@pytest.fixture(params=["without an index", "with an index"])
def table(request: pytest.FixtureRequest, lake: Path) -> Iterator[Any]:
    table = sec.open_table(str(lake))
    if request.param == "with an index":
        sec.build_index(table, bloom=["id"])
        assert sec.verify_index(table).faults == ()
    yield table
    sec.drop_index(table)


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.selectExpr("id", "part", "to_json(payload)").collect())


def test_c56_the_rows_of_sparks_reader(spark: SparkSession, lake: Path, table: Any) -> None:
    frame = spark.read.parquet(str(lake))
    assert len(set(frame.schema["payload"].dataType.simpleString().split())) == 1
    for predicate in one_in(3, [*PATHS, *PLAIN]):
        wanted = values(frame.where(predicate))
        assert wanted, predicate
        plan = sec.prune(table, predicate, strict=True)
        for via in ("auto", "native"):
            read = plan.to_spark(spark, via=via)
            assert read.schema == frame.schema
            assert values(read) == wanted, (predicate, via)
        assert values(sec.dataframe(spark, table).where(predicate)) == wanted, predicate
        sec.enable(spark)
        try:
            assert values(spark.read.parquet(str(lake)).where(predicate)) == wanted, predicate
        finally:
            sec.disable(spark)


def test_what_other_read_paths_cannot_read_is_refused(spark: SparkSession, table: Any) -> None:
    for via in ("local", "blocks"):
        with pytest.raises(UnsupportedTable, match="payload has a collation or is VARIANT"):
            sec.prune(table, "id = 7").to_spark(spark, via=via)
        with pytest.raises(UnsupportedPredicate, match="asks a collation or a VARIANT"):
            sec.prune(table, "payload:nest.k::bigint = 14").to_spark(spark, ["id"], via=via)
        assert [row.id for row in sec.prune(table, "id = 7").to_spark(spark, ["id"], via=via).collect()] == [7]
    with pytest.raises(UnsupportedPredicate, match="only Spark reads the values of VARIANT"):
        sec.prune(table, "payload:nest.k::bigint = 14").count()
    with pytest.raises(UnsupportedTable, match="leave the column out"):
        sec.prune(table, "id = 500").to_arrow()
    assert sec.prune(table, "id IN (7, 500)").to_arrow(columns=["id"])["id"].to_pylist() == [7, 500]
