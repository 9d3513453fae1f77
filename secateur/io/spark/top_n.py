"""The first rows of an order in Spark: found here where that is quick, else by Spark in what may hold them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructType

from secateur.errors import EvaluationError, OldCalendar
from secateur.index.build import spark_calls
from secateur.io.scan.first_rows import FirstRows
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.read_path import asks_hidden_metadata, needs_sparks_reader
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.order import OrderColumn
from secateur.pruning.predicate.nodes import quoted_name

SEARCH_BYTES = 64 << 20  # of files that the driver reads in search of the first rows, before Spark does


def limited(scan: PlannedScan, rows: DataFrame) -> DataFrame:
    """Return as many rows as the plan asks for, the first ones if it has an order."""
    if scan.order_by is not None:
        rows = rows.orderBy(*map(_sorted, scan.order_by.columns))
    return rows if scan.limit is None else rows.limit(scan.limit)


def _sorted(by: OrderColumn) -> Column:
    column = col(".".join(map(quoted_name, by.field.path)))
    if by.descending:
        return column.desc_nulls_first() if by.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if by.nulls_first else column.asc_nulls_last()


def found_here(scan: PlannedScan, spark: SparkSession, fields: Sequence[pa.Field]) -> DataFrame | PlannedScan:
    """Return the first rows of the plan's order as found here; or if that takes too long, what is left of the plan."""
    if scan.left_to_spark or needs_sparks_reader(scan, fields) or asks_hidden_metadata(scan):
        return scan
    known = {field.name for field in fields}
    others = [scan.opened.readable_schema.field(name) for name in scan.named if name not in known]
    search = FirstRows(scan, [*fields, *others])
    with contextlib.suppress(OldCalendar, EvaluationError):  # Spark converts the former, and raises the latter itself
        if search.run(SEARCH_BYTES):
            return frame_of(search.ranked.rows.to_batches(), spark_schema(search.ranked.rows.schema), spark)
    return scan.part(search.left)


def frame_of(batches: Sequence[pa.RecordBatch], schema: StructType, spark: SparkSession) -> DataFrame:
    """Return rows that lie here as a local relation."""
    if not batches:
        return spark.createDataFrame([], schema)
    return spark_calls.frame_of(spark, pa.Table.from_batches(batches), schema)
