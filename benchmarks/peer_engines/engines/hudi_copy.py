"""Hudi on Spark: a copy with its metadata table: column statistics, a record index and a secondary index."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer_engines.engines.spark_sql import SparkSql, jars, prepared, session_with

PACKAGE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"


def open_engine(data: Path, work: Path) -> SparkSql:
    """Write the rows in as many files, in the order of ts, and make the indexes."""
    session = session_with(
        {
            "spark.jars": jars(work.parent / "packages", [PACKAGE]),
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.warehouse.dir": str(work / "warehouse"),
            "hoodie.metadata.enable": "true",
            "hoodie.enable.data.skipping": "true",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        }
    )
    files = len(list(data.glob("*.parquet")))
    home = str(work / "orders")

    def copy() -> None:
        rows = session.read.parquet(str(data)).repartitionByRange(files, "ts").sortWithinPartitions("ts")
        settings = {
            "hoodie.table.name": "orders",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.datasource.write.recordkey.field": "order_id",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
        }
        rows.write.format("hudi").options(**settings).save(home)
        session.sql(f"CREATE TABLE orders USING hudi LOCATION '{home}'")

    what = "a copy, by ts; column statistics, a record index of order_id, a secondary index of user_id"
    steps = [copy, lambda: session.sql("CREATE INDEX by_user ON orders (user_id)")]
    preparation = prepared(what, work, session, steps)
    return SparkSql(session, "orders", preparation, f"Hudi {PACKAGE.rpartition(':')[2]}")
