"""What the installed Spark has. What differs between versions is here, in spark_calls (rows as Arrow) and in column."""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark.sql import SparkSession

from secateur.index.build.spark_calls import is_spark_3

IS_3 = is_spark_3()


def classic(jvm: Any) -> Any:
    """Return the package of Spark Classic's Dataset and SparkSession."""
    return jvm.org.apache.spark.sql if IS_3 else jvm.org.apache.spark.sql.classic


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session."""
    return {row.key: row.value for row in spark.sql("SET").collect()} if IS_3 else spark.conf.getAll


def staged_by(id_: str) -> dict[str, str]:
    """Return the options by which Iceberg reads staged tasks, not the table.

    Its runtimes for Spark 4.1 find them by the path; those for 3.5 and 4.0 read the whole table without the option.
    """
    return {"scan-task-set-id": id_} if _is_before_41() else {}


def _is_before_41() -> bool:
    return tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 1)


def java_source(text: str) -> str:
    """Return Java that is written for Spark 4 as this Spark needs it.

    Spark 3.5 has one package less, and Scala 2.12, whose ``Seq`` is any sequence.
    """
    if not IS_3:
        return text
    return text.replace("org.apache.spark.sql.classic.", "org.apache.spark.sql.").replace(
        "scala.collection.immutable.Seq;", "scala.collection.Seq;"
    )
