"""Lets Spark find the format "secateur" by itself: it imports every module named ``pyspark_*``."""

import sys

try:
    from secateur.io.spark.data_source import SecateurDataSource as DefaultSource
except ModuleNotFoundError as error:
    if error.name != "pyspark.sql.datasource":
        raise ModuleNotFoundError(
            f"{error}. Spark runs {sys.executable}: set PYSPARK_PYTHON to the Python in which secateur is installed",
            name=error.name,
        ) from None
    raise ImportError(
        'format("secateur") needs Spark 4.0 or newer, as Spark 3.5 has no Python data sources: '
        "use sec.dataframe(spark, table), sec.enable(spark) or sec.prune(...).to_spark(spark)"
    ) from None

__all__ = ["DefaultSource"]
