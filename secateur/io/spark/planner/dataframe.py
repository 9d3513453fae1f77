"""Make an ordinary DataFrame of a table, by the best read path that the session supports."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from secateur.errors import UnsupportedTable
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan, Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.scan.read_path import is_read_by_spark, only_spark_keeps
from secateur.io.spark.file_reader import by_files, has_filesystem, with_collations
from secateur.io.spark.planner.relation import of_table
from secateur.io.spark.to_spark import is_ansi, to_spark
from secateur.io.tables.table import Table
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.nodes import Truth
from secateur.pruning.report import Faults

READ_PATHS = ("auto", "transparent", "public")


def dataframe(spark: SparkSession, table: Table, via: str, uses_index: Callable[[], bool]) -> DataFrame:
    """Return the whole table as a DataFrame. Parameters and errors: see :func:`secateur.dataframe`."""
    if via not in READ_PATHS:
        raise ValueError(f"via is one of {', '.join(READ_PATHS)}, not {via!r}")
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    settings = Settings(use_index=uses_index(), session_time_zone=time_zone, ansi=is_ansi(spark))
    opened = open_snapshot_of(table, known_zone(time_zone), Faults(), use_index=settings.use_index)
    frame_or_reason = "a public read path was asked for" if via == "public" else of_table(opened, spark, uses_index)
    if isinstance(frame_or_reason, DataFrame):
        return frame_or_reason
    if via == "transparent":
        raise ValueError(f"via='transparent' is not there: {frame_or_reason}")
    plan = plan_scan(table, Truth(True), Truth(True), settings, opened)
    return _public(spark, plan).alias(f"secateur reads by a public read path: {frame_or_reason}")


def _public(spark: SparkSession, plan: PlannedScan) -> DataFrame:
    """Return all rows of the current table by a public read path.

    Raises UnsupportedTable if a column has a collation and Spark would not find the same files by their names: only
    Spark's own reader keeps collations.
    """
    if any(only_spark_keeps(field.type) for field in plan.opened.schema):
        if not is_read_by_spark(plan):
            raise UnsupportedTable(
                f"{plan.opened.table.location} has collations or VARIANT, and names that Spark reads as patterns"
            )
        return with_collations(plan.opened, plan.file_ordinals, spark)
    if is_read_by_spark(plan) and has_filesystem(spark, plan.opened.table.location):
        return by_files(plan.opened, plan.file_ordinals, spark)
    return to_spark(plan, spark, None, "auto")
