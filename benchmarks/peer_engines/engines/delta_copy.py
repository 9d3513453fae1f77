"""Delta on Spark: a copy in Z-order, skipped by the statistics in its log."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer_engines.engines.spark_sql import SparkSql, jars, prepared, session_with

PACKAGES = ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
ZORDER = ("user_id", "ts")


def open_engine(data: Path, work: Path) -> SparkSql:
    """Write the rows in files of about the same size, and bring them into Z-order."""
    size = sum(file.stat().st_size for file in data.glob("*.parquet")) // len(list(data.glob("*.parquet")))
    session = session_with(
        {
            "spark.jars": jars(work.parent / "packages", PACKAGES),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.optimize.maxFileSize": str(size),
            "spark.databricks.delta.optimize.minFileSize": str(size),
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        }
    )
    table = f"delta.`{work / 'orders'}`"
    rows = session.read.parquet(str(data))

    def copy() -> None:
        rows.write.format("delta").save(str(work / "orders"))
        session.sql(f"OPTIMIZE {table} ZORDER BY ({', '.join(ZORDER)})")
        session.sql(f"VACUUM {table} RETAIN 0 HOURS")

    preparation = prepared(f"a copy, in Z-order by {' and '.join(ZORDER)}", work, session, [copy])
    return SparkSql(session, table, preparation, f"Delta {PACKAGES[0].rpartition(':')[2]}")
