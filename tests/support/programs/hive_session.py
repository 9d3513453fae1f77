"""A program: a session with Hive's catalog, indexed tables of Hive's, by their names too, and a client by JDBC.

Prints what it saw as JSON: ``hive_session.py DIRECTORY PORT``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import UnsupportedTable
from tests.support.checks import oracle
from tests.support.enabled_session import answer, pruning, reasons
from tests.support.profiles import one_in

QUERIES = {  # and what EXPLAIN says
    "SELECT * FROM plain WHERE id = 5": "1 of 10",
    "SELECT count(*), max(name) FROM plain WHERE id BETWEEN 150 AND 250": "2 of 10",
    "SELECT * FROM parts WHERE id = 7": "1 of 2",
    "SELECT day, count(*) FROM parts WHERE day = 'd1' AND id < 500 GROUP BY day": "0 of 1",  # no block is read
    "SELECT day, sum(id) FROM parts WHERE day = 'd1' AND id < 500 GROUP BY day": "1 of 1",
}


def session(home: str, port: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "spark.hadoop.hive.server2.thrift.port": port,
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.enableHiveSupport().getOrCreate()


def make_tables(spark: SparkSession, home: str) -> None:
    spark.sql("CREATE TABLE plain (id BIGINT, name STRING) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO plain SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, concat('name-', id) FROM range(0, 1000, 1, 1)"
    )
    spark.sql("CREATE TABLE parts (id BIGINT) PARTITIONED BY (day STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO parts SELECT /*+ COALESCE(1) */ id, if(id < 500, 'd1', 'd2') FROM range(0, 1000, 1, 1)")
    for name in ("plain", "parts"):
        sec.build_index(sec.open_table(f"{home}/warehouse/{name}"))


NAMED = {  # tables of the metastore, and what is asked of them
    "named.flat": ("TRUE", "id = 7", "name = 'n9' OR id > 50"),
    "named.placed": (
        *("TRUE", "day = '01'", "n IS NULL AND id < 30", "day = 'a/b=c' OR id = 5", "n = 7 AND id > 2003"),
        *("id IN (4, 2004, 3001)", "day = '02' AND n = 1 AND id > 10"),
    ),
    "named.by_source": ("TRUE", "day = DATE '2026-01-02' AND id > 30", "id = 9 OR day IS NULL"),
}


def make_named(spark: SparkSession, home: str) -> None:
    """Tables of Hive's format and of Spark's, whose partitions the metastore has, some of them at other places."""
    spark.sql("CREATE DATABASE named")
    spark.sql("CREATE TABLE named.flat (id BIGINT, Name STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO named.flat SELECT id, concat('n', id) FROM range(0, 60, 1, 3)")
    spark.sql("CREATE TABLE named.placed (id BIGINT, Tag STRING) PARTITIONED BY (day STRING, n INT) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO named.placed SELECT id, 'here', concat('0', id % 3), CAST(nullif(id % 2, 0) AS INT) "
        "FROM range(0, 60, 1, 2)"
    )
    stray = Path(home) / "warehouse" / "named.db" / "placed" / "day=09" / "n=5"  # which the metastore does not have
    for folder, start in ((stray, 1_000), (Path(home) / "away a%20b", 2_000), (Path(home) / "moved", 3_000)):
        folder.mkdir(parents=True)
        rows = {"id": pa.array(range(start, start + 5), pa.int64()), "tag": ["there"] * 5}
        pq.write_table(pa.table(rows), folder / "x.parquet")
    spark.sql(f"ALTER TABLE named.placed ADD PARTITION (day = 'a/b=c', n = 7) LOCATION '{home}/away a%20b'")
    spark.sql(f"ALTER TABLE named.placed PARTITION (day = '02', n = 1) SET LOCATION '{home}/moved'")
    spark.sql(f"ALTER TABLE named.placed ADD PARTITION (day = 'none', n = 8) LOCATION '{home}/empty'")
    spark.sql("CREATE TABLE named.by_source (id BIGINT, day DATE) USING parquet PARTITIONED BY (day)")
    spark.sql("INSERT INTO named.by_source SELECT id, IF(id < 50, DATE '2026-01-02', NULL) FROM range(0, 60, 1, 2)")
    spark.sql("CREATE TABLE named.texts (id BIGINT) STORED AS TEXTFILE")
    spark.sql("CREATE VIEW named.seen AS SELECT id FROM named.flat")


def by_name(spark: SparkSession) -> dict[str, bool]:
    """Whether each answer by name, without an index and with one, is Spark's own; and what is refused by name."""
    seen: dict[str, bool] = {}
    for name, predicates in NAMED.items():
        for is_indexed in (False, True):
            if is_indexed:
                sec.build_index(sec.open_table(name, spark=spark), bloom=["id"])
            for predicate in one_in(2, predicates):
                wanted = oracle.rows(spark.table(name).where(predicate).toArrow())
                plan = sec.prune(sec.open_table(name, spark=spark), predicate, strict=True)
                same = oracle.rows(plan.to_arrow()) == oracle.rows(plan.to_spark(spark).toArrow()) == wanted
                seen[f"{name}, {predicate}, {is_indexed=}"] = same and plan.count() == wanted.total() > 0
                by_frame = sec.prune(spark.table(name), predicate, strict=True).to_arrow()
                seen[f"{name}, {predicate}, {is_indexed=}, by a DataFrame"] = oracle.rows(by_frame) == wanted
    placed = sec.open_table("named.placed", spark=spark)
    seen["one file of a partition elsewhere"] = len(sec.prune(placed, "id = 2004", strict=True).files) == 1
    seen["none of a partition that nobody knows"] = not sec.prune(placed, "id BETWEEN 1000 AND 1009").count()
    spark.sql("ALTER TABLE named.placed DROP PARTITION (day = 'a/b=c', n = 7)")
    seen["none of a partition that was dropped"] = not sec.prune(placed, "id = 2004", strict=True).count()
    for name, reason in (("named.texts", "hive"), ("named.seen", "view")):
        try:
            sec.open_table(name, spark=spark)
            seen[f"{name} is refused"] = False
        except UnsupportedTable as error:
            seen[f"{name} is refused"] = name in str(error) and reason in str(error)
        try:
            sec.open_table(spark.table(name))
            seen[f"a DataFrame of {name} is refused"] = False
        except UnsupportedTable as error:
            seen[f"a DataFrame of {name} is refused"] = reason in str(error).lower()
    return seen


def by_jdbc(spark: SparkSession, port: str) -> dict[str, Any]:
    """The server is in this process, and so is the client."""
    jvm = spark._jvm
    jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithContext(spark._jsparkSession.sqlContext())
    url = f"jdbc:hive2://127.0.0.1:{port}/default"
    connection = jvm.org.apache.hive.jdbc.HiveDriver().connect(url, jvm.java.util.Properties())

    def asked(sql: str, columns: int = 1) -> list[str]:
        statement = connection.createStatement()
        cursor, rows = statement.executeQuery(sql), []
        while cursor.next():
            rows.append(" ".join(str(cursor.getString(i + 1)) for i in range(columns)))
        statement.close()
        return rows

    query = "SELECT * FROM plain WHERE id = 5"
    answers: dict[str, Any] = {"rows": asked(query, 2), "plan": "\n".join(asked(f"EXPLAIN {query}"))}
    asked("SET secateur.enabled=false", 2)
    answers["plan when off"] = "\n".join(asked(f"EXPLAIN {query}"))
    connection.close()
    return answers


def main(home: str, port: str) -> None:
    spark = session(home, port)
    spark.sparkContext.setLogLevel("ERROR")
    make_tables(spark, home)
    make_named(spark, home)
    named = by_name(spark)
    sec.enable(spark)
    queries = {
        query: {
            "on": answer(spark, query, pruned=True),
            "off": answer(spark, query, pruned=False),
            "pruning": pruning(spark.sql(query)) or reasons(spark)[-1:],
            "expected": expected,
        }
        for query, expected in QUERIES.items()
    }
    print(json.dumps({"queries": queries, "named": named, "jdbc": by_jdbc(spark, port)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
