"""Calls to Spark that version 3.5 spells otherwise: rows as Arrow and back, and jobs that end with their caller."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def arrow_of(frame: DataFrame) -> pa.Table:
    """Return all rows of a frame."""
    if not is_spark_3():
        return frame.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    batches = _batches_of(frame)
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def frame_of(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Return rows that lie here as a frame, a local relation if they are small."""
    rows = rows.combine_chunks()  # Spark loses all rows of a table that begins with two empty chunks
    if not is_spark_3():
        return spark.createDataFrame(rows, schema)
    if not rows.num_rows:
        return spark.createDataFrame([], schema)
    from pyspark.sql.pandas.types import to_arrow_schema

    return _relation_of(spark, rows.cast(to_arrow_schema(schema)), schema)


@contextmanager
def ended_with_caller(spark: SparkSession) -> Iterator[None]:
    """End the jobs of a call if it is interrupted."""
    tag, calls = f"secateur-{uuid.uuid4().hex[:8]}", _tag_calls(spark)
    calls.add(tag)
    try:
        yield
    except BaseException:
        calls.interrupt(tag)
        raise
    finally:
        calls.remove(tag)


@dataclass(frozen=True)
class _TagCalls:
    """What adds a tag to the jobs that this thread starts, ends them, and takes it away."""

    add: Callable[[str], object]
    interrupt: Callable[[str], object]
    remove: Callable[[str], object]


def _tag_calls(spark: Any) -> _TagCalls:
    if not is_spark_3() or not hasattr(spark, "_jsparkSession"):
        return _TagCalls(spark.addTag, spark.interruptTag, spark.removeTag)
    context = spark.sparkContext  # in Spark 3.5, sessions have tags on Spark Connect only
    return _TagCalls(context.addJobTag, context.cancelJobsWithTag, context.removeJobTag)


def _batches_of(frame: Any) -> list[pa.RecordBatch]:
    """Return all rows of a frame of Spark 3.5."""
    if hasattr(frame, "_collect_as_arrow"):
        batches: list[pa.RecordBatch] = frame._collect_as_arrow()
        return batches
    client = frame.sparkSession.client  # of Spark Connect
    table: pa.Table = client.to_table(frame._plan.to_proto(client))[0]
    return table.to_batches()


def _relation_of(spark: Any, rows: pa.Table, schema: StructType) -> DataFrame:
    """Return rows as a frame of Spark 3.5; at least one row."""
    if not hasattr(spark, "_jsparkSession"):
        from pyspark.sql.connect import dataframe, plan

        of_plan: Any = dataframe.DataFrame
        return of_plan.withPlan(plan.LocalRelation(rows, schema=schema.json()), spark)
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    jvm = spark._jvm
    batches = rows.to_batches(max_chunksize=spark._jconf.arrowMaxRecordsPerBatch())
    stream = spark._sc._serialize_to_jvm(
        batches, ArrowStreamSerializer(), jvm.PythonSQLUtils.readArrowStreamFromFile, jvm.ArrowIteratorServer
    )
    return DataFrame(jvm.PythonSQLUtils.toDataFrame(stream, schema.json(), spark._jsparkSession), spark)


def is_spark_3() -> bool:
    """Return whether the installed Spark is 3.5."""
    import pyspark

    return pyspark.__version__.startswith("3.")
