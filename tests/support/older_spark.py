"""What tests call on every version of Spark, and PySpark 3.5 does not have. The package may not call it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from secateur.index.build.spark_calls import arrow_of, frame_of
from secateur.io.spark.file_reader import spark_schema
from secateur.io.spark.version import IS_3

since_4 = pytest.mark.skipif(IS_3, reason="Spark 3.5 does not have what this test is about")
SCANS_TELL_SNAPSHOTS = pyspark.__version__ >= "4.1"  # those of Iceberg's runtime for this Spark


def as_in_spark_4() -> None:
    """Give frames ``toArrow``, and sessions ``createDataFrame`` of an Arrow table, where they lack it."""
    if IS_3 and not hasattr(DataFrame, "toArrow"):
        DataFrame.toArrow = arrow_of
        _of_others = SparkSession.createDataFrame

        def made(spark: SparkSession, data: Any, schema: Any = None, **options: Any) -> DataFrame:
            if isinstance(data, pa.Table):
                return frame_of(spark, data, spark_schema(data.schema) if schema is None else schema)
            return _of_others(spark, data, schema, **options)

        SparkSession.createDataFrame = made  # type: ignore[method-assign]


def condition_of(error: PySparkException) -> str | None:
    """The name of an error's condition."""
    return error.getErrorClass() if IS_3 else error.getCondition()
