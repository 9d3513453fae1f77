"""A program: a session with Hive's catalog, an indexed table of Hive's, and a client of its Thrift server by JDBC.

Prints what it saw as JSON: ``hive_session.py DIRECTORY PORT``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import secateur as sec
from tests.support.enabled_session import answer, pruning, reasons

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
    print(json.dumps({"queries": queries, "jdbc": by_jdbc(spark, port)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
