"""Make a DataFrame of Spark Classic that asks the index whenever Spark plans a query over it.

``PrunedTable.java`` is a DataSource V2 table, compiled in the driver by Janino, the compiler that Spark ships. Its
scans are those of Spark's own Parquet reader. When a query is planned, Java sends its filters to :mod:`.planner` and
gets byte ranges that hold the surviving row groups; if a join yields values of its other side while the query runs,
Java asks once more. Sound: Spark keeps all filters, and a reply leaves out only row groups where no row matches.

If this read path is not available, a public one is used (:mod:`.dataframe`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.read_path import is_found_by_spark, only_spark_keeps
from secateur.io.spark.file_reader import has_filesystem, spark_schema
from secateur.io.spark.planner.compiled import TABLE, compiled
from secateur.io.spark.planner.planner import Planned, Planner
from secateur.io.spark.planner.protocol import is_local, place_of
from secateur.io.spark.version import classic
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.listing import METADATA
from secateur.io.tables.places import any_absolute
from secateur.values.kinds import kind_of


def of_table(opened: OpenedTable, spark: SparkSession, uses_index: Callable[[], bool]) -> DataFrame | str:
    """Return the whole table, pruned whenever a query is planned; or the reason why this session cannot have it."""
    reason = obstacle(spark, opened)
    if reason is not None:
        return reason
    try:
        return _over(spark, opened, Planner(*_parts(opened), uses_index))
    except (Py4JError, PySparkException, TypeError, ValueError) as error:
        return f"this Spark has other internals: {first_line(error)}"


def obstacle(spark: SparkSession, opened: OpenedTable) -> str | None:
    """Return why Spark's own reader cannot read the table in place; None if it can."""
    table = opened.table
    if not hasattr(spark, "_jsparkSession"):
        return "Spark Connect plans in another process"
    if not isinstance(table, ParquetDirectory):
        return "only directories of Parquet files are read by Spark's Parquet reader"
    if any_absolute(opened.listing.paths):
        return "some of its files lie elsewhere"
    if any(only_spark_keeps(field.type) for field in opened.schema):
        return "a column has a collation or is VARIANT, which only the files tell"
    if not is_found_by_spark(table) or not _is_plain(table):
        return "Spark may find other files by the table's location"
    return None if has_filesystem(spark, table.location) else "Spark has no library for the table's filesystem"


def _is_plain(table: ParquetDirectory) -> bool:
    """Return whether Hadoop can take the table's path, in which it knows no escapes."""
    _, _, path = place_of(table)
    return path.startswith("/") and (is_local(table) or not set(path) & set("%?#"))


def of_plan(plan: PlannedScan, spark: SparkSession) -> DataFrame | None:
    """Return the surviving row groups of a plan through Spark's own reader; None if that is impossible.

    Predicates on Spark's hidden metadata column take Spark's public reader, which has it too.
    """
    if METADATA in plan.named or obstacle(spark, plan.opened) is not None:
        return None
    try:
        return _over(spark, plan.opened, Planned(plan))
    except (Py4JError, PySparkException, TypeError, ValueError):
        return None


def _parts(opened: OpenedTable) -> tuple[ParquetDirectory, pa.Schema, tuple[pa.Field, ...]]:
    assert isinstance(opened.table, ParquetDirectory), "called for directories only"
    return opened.table, opened.schema, opened.listing.partitions.fields


def _over(spark: SparkSession, opened: OpenedTable, asked: Planner | Planned) -> DataFrame:
    """Return a DataFrame whose scans ask `asked` which row groups to read.

    Raises Py4JError, PySparkException, TypeError or ValueError if Spark's internals do not fit.
    """
    context, table = spark.sparkContext, opened.table
    gateway, jvm = context._gateway, context._jvm
    assert gateway is not None and jvm is not None, "the session is one of Spark Classic"
    assert isinstance(table, ParquetDirectory), "called for directories only"
    made = compiled(gateway, TABLE)
    ensure_callback_server_started(gateway)
    schema, partitions = spark_schema(opened.schema), opened.listing.partitions.fields
    named = {field.name for field in partitions}
    in_files = StructType([field for field in schema.fields if field.name not in named])
    parts = (
        spark._jsparkSession,
        f"secateur {table.location}",
        *(_struct(jvm, columns) for columns in (schema, in_files, spark_schema(pa.schema(partitions)))),
        listed(jvm, [field.name for field in opened.schema if kind_of(field.type) is not None]),
        asked,
    )
    arguments = gateway.new_array(jvm.java.lang.Object, 1)
    arguments[0] = listed(jvm, parts)
    (constructor,) = made.getConstructors()
    relation = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    none = jvm.scala.Option.empty()
    java = constructor.newInstance(arguments)
    if isinstance(asked, Planner):
        java.allowPartial()
    plan = relation.create(java, none, none)
    return DataFrame(classic(jvm).Dataset.ofRows(spark._jsparkSession, plan), spark)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class name if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _struct(jvm: Any, schema: StructType) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())


def listed(jvm: Any, items: Iterable[object]) -> Any:
    array = jvm.java.util.ArrayList()
    for item in items:
        array.add(item)
    return array
