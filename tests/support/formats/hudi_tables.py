"""Hudi tables that Hudi's own Spark writer writes, and what its reader reads of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

ROWS = """
    SELECT id AS rid,
        CAST(element_at(array(-1, 0, 1, 2, 3, 5, NULL), CAST(1 + (id * 7 + {salt}) % 7 AS INT)) AS INT) AS k,
        element_at(array('', 'a', 'a/b=c', repeat('a', 80), NULL), CAST(1 + (id * 3 + {salt}) % 5 AS INT)) AS s,
        CAST(element_at(array('NaN', '-0.0', '0.0', '1.5', '2.5', NULL), CAST(1 + (id * 5 + {salt}) % 6 AS INT))
            AS DOUBLE) AS x,
        date_add(DATE '1969-12-30', CAST(id % 5 AS INT)) AS day,
        timestamp_micros(1000000000000001 + id * 1000003) AS ts,
        CAST(id / 8 AS DECIMAL(20, 3)) AS d,
        named_struct('a', id % 3, 'b', array(CAST(id AS STRING))) AS n,
        {salt} AS v,
        element_at(array('one', 'b c', 'tw%o'), CAST(1 + id % 3 AS INT)) AS p
    FROM {ids}
"""
PREDICATES = (
    "true",
    "rid % 3 = 0",
    "rid BETWEEN 10 AND 25",
    "k IS NULL OR k = 3",
    "NOT (k > 2)",
    "s LIKE 'a%' AND rid < 40",
    "x > 1.5",
    "x = 0.0",
    "day >= DATE '1970-01-01' AND v > 3",
    "ts < TIMESTAMP '2001-09-09 01:47:00'",
    "d = 1.125",
    "n.a = 2",
    "p = 'b c' OR rid = 7",
    "_hoodie_partition_path = 'b c' OR _hoodie_record_key = '7'",
)


@dataclass
class HudiHistory:
    """A table, and the steps that made it."""

    spark: SparkSession
    path: str
    settings: dict[str, str] = field(default_factory=dict)
    rid: int = 0
    version: int = 0
    log: list[str] = field(default_factory=list)

    def rows(self, ids: str) -> DataFrame:
        """Rows with some ids, whose other values are those of the next version."""
        self.version += 1
        return self.spark.sql(ROWS.format(salt=self.version, ids=ids)).coalesce(2)

    def write(self, rows: DataFrame, operation: str, **more: str) -> None:
        """Writes rows by one of Hudi's operations."""
        self.log.append(f"{operation} {more}")
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "rid",
            "hoodie.datasource.write.precombine.field": "v",
            "hoodie.datasource.write.operation": operation,
            "hoodie.bloom.index.filter.type": "SIMPLE",
            "hoodie.index.bloom.num_entries": "20",
            **{f"hoodie.{kind}.shuffle.parallelism": "2" for kind in ("insert", "upsert", "bulkinsert", "delete")},
            **self.settings,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        rows.write.format("hudi").options(**options).mode("append").save(self.path)

    def new(self, n: int) -> DataFrame:
        """Rows with ids of their own."""
        self.rid += n
        return self.rows(f"range({self.rid - n}, {self.rid}, 1, 2)")

    def known(self, condition: str) -> DataFrame:
        """Rows whose ids the table may have had."""
        return self.rows(f"range(0, {self.rid}, 1, 2) WHERE {condition}")

    def upsert(self, draw: random.Random) -> None:
        n = draw.choice([2, 10])
        self.write(self.new(n).union(self.known(f"id % 7 = {draw.randrange(7)}")).coalesce(2), "upsert")

    def step(self, draw: random.Random) -> None:
        """Writes in a random way."""
        match draw.choice(["insert", "upsert", "upsert", "delete", "overwrite", "cluster", "bulk"]):
            case "insert":
                self.write(self.new(20), "insert")
            case "bulk":
                self.write(self.new(15), "bulk_insert")
            case "delete":
                self.write(self.known(f"id % 5 = {draw.randrange(5)}"), "delete")
            case "overwrite":
                operation = draw.choice(["insert_overwrite", "insert_overwrite_table"])
                self.write(self.known(f"id % 6 = {draw.randrange(6)}"), operation)
            case "cluster":
                self.write(self.new(4), "insert", hoodie_clustering_inline="true", **ALWAYS_CLUSTERED)
            case _:
                self.upsert(draw)

    def roll_back(self, instant: int) -> None:
        """Rolls the last commit back, by Hudi's procedure, which wants a name."""
        self.log.append(f"rollback of {instant}")
        self.spark.sql(f"CREATE TABLE rolled USING hudi LOCATION '{self.path}'")
        self.spark.sql(f"CALL rollback_to_instant(table => 'rolled', instant_time => '{instant}')").collect()
        self.spark.sql("DROP TABLE rolled")

    def read(self, **options: str) -> DataFrame:
        """What Hudi's reader reads; an underscore in an option's name is a point."""
        named = {name.replace("_", "."): value for name, value in options.items()}
        return self.spark.read.format("hudi").options(**named).load(self.path)


ALWAYS_CLUSTERED = {"hoodie_clustering_inline_max_commits": "1"}
ALWAYS_COMPACTED = {"hoodie_compact_inline": "true", "hoodie_compact_inline_max_delta_commits": "1"}


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table by id, with texts for values, so that NaN equals NaN."""
    return sorted(
        ({name: repr(value) for name, value in row.items()} for row in table.to_pylist()), key=lambda r: r["rid"]
    )
