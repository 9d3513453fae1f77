"""Read a table through Spark Connect by every read path; print as JSON what differs from Spark's own reader.

``connect_read_paths.py DIRECTORY PREDICATE...``.

A script, because a process has either a session of Spark Classic or one of Spark Connect.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.errors import TableNotFound, UnsupportedTable
from secateur.java import require_java

PREDICATES = (
    "id = 77 OR name = 'n500'",
    "id BETWEEN 100 AND 700 AND price > 3.5",
    "upper(name) = 'N12' OR id IN (1, 2, 3)",
    "array_join(tags, '') = 't1' AND id < 50",  # which only Spark evaluates
    "id < 0",
    "id IS NOT NULL",
)
PUSH_DOWN = "spark.sql.parquet.filterPushdown"
LOST_BY_PUSH_DOWN = ("x > 5", "`a.b` = 'n7'", "`a.b` IS NULL")  # where Spark's reader filters, as is its default
READ_PATHS = ("auto", "local", "blocks", "native")


def answer(frame: DataFrame) -> tuple[str, list[str]]:
    """The schema, and the rows in some order that depends on them alone."""
    return frame.schema.simpleString(), sorted(map(str, frame.collect()))


def by_name(spark: SparkSession, root: str) -> dict[str, object]:
    """What is right of tables by their names: a client learns of the catalog by SQL alone."""
    spark.sql(f"CREATE TABLE flat USING parquet LOCATION '{root}-flat' AS SELECT * FROM parquet.`{root}`")
    spark.sql(f"CREATE TABLE parts USING parquet PARTITIONED BY (k) LOCATION '{root}-parts' AS SELECT 1 AS id, 2 AS k")
    spark.sql("CREATE VIEW looked_at AS SELECT 1 AS id")
    seen: dict[str, object] = {}
    for name in ("flat", "spark_catalog.default.flat"):
        plan = sec.prune(sec.open_table(name, spark=spark), PREDICATES[0])
        seen[f"named: {name}"] = answer(plan.to_spark(spark)) == answer(spark.table(name).where(PREDICATES[0]))
    for name, refusal, reason in (
        ("parts", UnsupportedTable, "the partitions of `parts` are in the catalog, which Spark Connect does not tell"),
        ("looked_at", UnsupportedTable, "looked_at is a view"),
        ("nothing", TableNotFound, "Spark's catalog has no table nothing"),
    ):
        try:
            sec.open_table(name, spark=spark)
            seen[f"named: {name}"] = False
        except refusal as error:
            seen[f"named: {name}"] = reason in str(error)
    return seen


def main(root: str, *by_every_path: str) -> None:
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.simplefilter("ignore")  # settings of the server that a client cannot change
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = sec.open_table(root)
    whole = spark.read.parquet(root)
    seen: dict[str, object] = {"session": type(spark).__module__}
    for predicate in by_every_path:
        wanted = answer(whole.where(predicate))
        narrow_wanted = answer(whole.where(predicate).select("name", "id"))
        plan = sec.prune(table, predicate)
        for read_path in READ_PATHS:
            seen[f"{read_path}: {predicate}"] = answer(plan.to_spark(spark, via=read_path)) == wanted
            narrow = plan.to_spark(spark, ["name", "id"], via=read_path)
            seen[f"{read_path}: {predicate}: columns"] = answer(narrow) == narrow_wanted
        source = spark.read.format("secateur").load(root).where(predicate)
        seen[f"format: {predicate}"] = answer(source) == wanted
    seen.update(by_name(spark, root))
    frame = sec.dataframe(spark, table)
    for predicate in (*by_every_path, *LOST_BY_PUSH_DOWN):
        spark.conf.set(PUSH_DOWN, "false")
        wanted = answer(whole.where(predicate))
        spark.conf.set(PUSH_DOWN, "true")
        seen[f"dataframe: {predicate}"] = answer(frame.where(predicate)) == wanted
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
