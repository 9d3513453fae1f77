"""Iceberg on Spark: a copy with bloom filters in its files, planned by Iceberg's Java."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer_engines.engines.spark_sql import SparkSql, jars, prepared, session_with

PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
BLOOM = ("user_id", "name", "status")
BLOOM_BYTES = "16384"  # of a filter: Iceberg takes a megabyte where it does not know how many values there are


def open_engine(data: Path, work: Path) -> SparkSql:
    """Write the rows in the order of the files, in files of the same size."""
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    session = session_with(
        {
            "spark.jars": jars(work.parent / "packages", [PACKAGE]),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": catalog,
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(work / "lake"),
        }
    )
    rows = session.read.parquet(str(data))
    files = len(list(data.glob("*.parquet")))

    def copy() -> None:
        writer = rows.repartitionByRange(files, "ts").sortWithinPartitions("ts").writeTo("lake.db.orders")
        for column in BLOOM:
            writer = writer.tableProperty(f"write.parquet.bloom-filter-enabled.column.{column}", "true")
        writer = writer.tableProperty("write.parquet.bloom-filter-max-bytes", BLOOM_BYTES)
        writer.tableProperty("write.distribution-mode", "none").create()

    what = f"a copy, by ts; bloom filters in its files of {', '.join(BLOOM)}"
    preparation = prepared(what, work, session, [copy])
    return SparkSql(session, "lake.db.orders", preparation, f"Iceberg {PACKAGE.rpartition(':')[2]}")
