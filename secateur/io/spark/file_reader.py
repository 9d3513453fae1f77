"""The files of a plan through Spark's own Parquet reader, by its public interface: on Spark Connect too.

No filter decides what that reader opens. Parquet's own filters, to which Spark hands those of a query, lose rows: to
bounds of floats, which leave NaN out; at IS NULL, where files have wrong null counts, or none; and at a name with a
dot, taken for a field of a struct. Any query may have such a filter, so that they are off for these files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema

from secateur.arrays import from_numpy
from secateur.io.tables.directory.table import ParquetDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from secateur.io.scan.opened_table import OpenedTable

MOST_LOOKED_UP = 500  # files; a status takes about a millisecond on a local disk, and tens on an object store
_DISCOVERY_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
# Of org.apache.parquet.hadoop.ParquetInputFormat: the levels at which a filter leaves out row groups and pages.
_NO_PUSH_DOWN = {
    f"parquet.filter.{level}.enabled": "false" for level in ("stats", "dictionary", "bloom", "columnindex")
}


def by_files(opened: OpenedTable, files: np.ndarray, spark: SparkSession) -> DataFrame:
    """All rows of some files of a table for which Spark's own reader can be taken (:func:`.roads.is_read_by_spark`).

    Raises StalePlan where a file is gone.
    """
    schema = spark_schema(opened.schema)
    if not len(files):
        return spark.createDataFrame([], schema)
    return _read(opened, files, spark, _reader(spark, opened).schema(schema))


def with_collations(opened: OpenedTable, files: np.ndarray, spark: SparkSession) -> DataFrame:
    """As :func:`by_files`, with the collations of strings: they are told by the files alone, and Spark who reads them.

    Where no file is wanted, the first one of the table tells.
    """
    if not len(opened.listing.size):
        return by_files(opened, files, spark)
    told = files if len(files) else np.zeros(1, np.int64)
    found = _read(opened, told, spark, _reader(spark, opened).option("mergeSchema", "true"))
    known = {name.lower() for name in found.columns}
    fields = spark_schema(opened.schema).fields
    found = found.withColumns({f.name: lit(None).cast(f.dataType) for f in fields if f.name.lower() not in known})
    return found if len(files) else found.where(lit(False))


def _reader(spark: SparkSession, opened: OpenedTable) -> DataFrameReader:
    return spark.read.options(**_NO_PUSH_DOWN).option("basePath", opened.table.location)


def _read(opened: OpenedTable, files: np.ndarray, spark: SparkSession, reader: DataFrameReader) -> DataFrame:
    table, listing = opened.table, opened.listing
    assert isinstance(table, ParquetDirectory)
    paths = [table.full_path(path) for path in listing.paths.take(from_numpy(files)).to_pylist()]
    try:
        with _looked_up_by_the_driver(spark, len(paths)):
            return reader.parquet(*paths)
    except AnalysisException:
        table.require_listed(listing, files)
        raise


@contextlib.contextmanager
def _looked_up_by_the_driver(spark: SparkSession, paths: int) -> Iterator[None]:
    """Let the driver ask for the status of some hundred files itself; above 32 Spark starts a job for it."""
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
    """Whether Spark itself opens locations of this scheme: of S3 not without a library; unknown on Spark Connect."""
    scheme, separator, _ = location.partition("://")
    if not separator or scheme == "file":
        return True
    try:
        context = spark.sparkContext
        jvm, configuration = context._jvm, context._jsc.hadoopConfiguration()
        assert jvm is not None
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except (PySparkException, Py4JError):
        return False
    return True


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of Arrow fields; timestamps without zone are TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
