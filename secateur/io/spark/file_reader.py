"""Read a plan's files by Spark's own Parquet reader, through its public interface, also on Spark Connect.

Parquet's own filters are switched off for these files, because they lose rows. Spark passes a query's filters to them,
and they are wrong on bounds of floats, which exclude NaN; on IS NULL, if files have wrong null counts or none; and on a
name with a dot, which is taken for a field of a struct. Any query may have such a filter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from secateur.arrays import from_numpy
from secateur.io.tables.directory.table import ParquetDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from secateur.io.scan.opened_table import OpenedTable

MOST_LOOKED_UP = 500  # files; a status takes about 1 ms on a local disk, and tens on an object store
_DISCOVERY_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
# Spark 4.1 assumes UTC for timestamps; later versions require the zone.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
# Levels of org.apache.parquet.hadoop.ParquetInputFormat at which a filter drops row groups and pages.
_NO_PUSH_DOWN = {
    f"parquet.filter.{level}.enabled": "false" for level in ("stats", "dictionary", "bloom", "columnindex")
}


def by_files(opened: OpenedTable, files: np.ndarray, spark: SparkSession) -> DataFrame:
    """Return all rows of some files of a table that :func:`secateur.io.scan.read_path.is_read_by_spark` allows.

    Raises StalePlan if a file is gone.
    """
    schema = spark_schema(opened.schema)
    if not len(files):
        return spark.createDataFrame([], schema)
    return _read(opened, files, spark, _reader(spark, opened).schema(schema))


def with_collations(opened: OpenedTable, files: np.ndarray, spark: SparkSession) -> DataFrame:
    """Read as :func:`by_files`, with collations of strings: only the files declare them, and only Spark reads that.

    If no file is wanted, the first one of the table is used for the schema.
    """
    if not len(opened.listing.size):
        return by_files(opened, files, spark)
    looked_at = files if len(files) else np.zeros(1, np.int64)
    frame = _read(opened, looked_at, spark, _reader(spark, opened).option("mergeSchema", "true"))
    known = {name.lower() for name in frame.columns}
    fields = spark_schema(opened.schema).fields
    frame = frame.withColumns({f.name: lit(None).cast(f.dataType) for f in fields if f.name.lower() not in known})
    return frame if len(files) else frame.where(lit(False))


def _reader(spark: SparkSession, opened: OpenedTable) -> DataFrameReader:
    return spark.read.options(**_NO_PUSH_DOWN).option("basePath", opened.table.location)


def _read(opened: OpenedTable, files: np.ndarray, spark: SparkSession, reader: DataFrameReader) -> DataFrame:
    table, listing = opened.table, opened.listing
    assert isinstance(table, ParquetDirectory), "Spark reads no other tables by their paths: is_read_by_spark"
    paths = [table.full_path(path) for path in listing.paths.take(from_numpy(files)).to_pylist()]
    try:
        with _looked_up_by_the_driver(spark, len(paths)):
            return reader.parquet(*paths)
    except AnalysisException:
        table.require_listed(listing, files)
        raise


@contextlib.contextmanager
def _looked_up_by_the_driver(spark: SparkSession, paths: int) -> Iterator[None]:
    """Let the driver look up the status of some hundred files itself; above 32 Spark starts a job for it."""
    if paths > MOST_LOOKED_UP:
        yield
        return
    threshold = spark.conf.get(_DISCOVERY_THRESHOLD)
    spark.conf.set(_DISCOVERY_THRESHOLD, MOST_LOOKED_UP)
    try:
        yield
    finally:
        spark.conf.set(_DISCOVERY_THRESHOLD, str(threshold))


def has_filesystem(spark: SparkSession, location: str) -> bool:
    """Return whether Spark can open locations of this scheme (S3 needs a library); unknown on Spark Connect."""
    scheme, separator, _ = location.partition("://")
    if not separator or scheme == "file":
        return True
    try:
        context = spark.sparkContext
        jvm, configuration = context._jvm, context._jsc.hadoopConfiguration()
        assert jvm is not None, "the session is one of Spark Classic"
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except (PySparkException, Py4JError):
        return False
    return True


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of Arrow fields; timestamps without zone are TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of Spark's columns; timestamps are in UTC, but for those without a zone."""
    return to_arrow_schema(schema, **_IN_UTC)
