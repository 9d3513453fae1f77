"""One value by ``format("secateur")``, beside a plan given to Spark and beside a Python data source of one row.

Spark asks a Python process to make a source, one to plan it, and one on executors to read it: that time any source
takes that is written in Python.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.planning.scale_tables import changing
from benchmarks.results import Result, timed
from benchmarks.setting import Setting
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.spark_scans import SPARK, planned_ids, warming
from benchmarks.spark.spark_table import ROW_GROUPS, SparkTable, spark_table
from benchmarks.timing import race

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource, DataSourceReader

SOURCE, FLOOR = 'format("secateur")', "a Python data source of one row"


def lookup_source(setting: Setting) -> Result:
    """One value of an unsorted column, another in every call, from the query to its rows."""
    data = spark_table(setting)
    with spark_session() as spark:
        spark.dataSource.register(_one_row())
        contenders = {
            SOURCE: partial(_by_source, spark, data),
            "prune().to_spark(via='blocks')": partial(planned_ids, spark, data, via="blocks"),
            "prune().to_spark()": partial(planned_ids, spark, data, via="auto"),
            SPARK: partial(_by_spark, spark, data),
        }
        for call in range(2):
            answers = {name: contender(call) for name, contender in contenders.items()}
            if len(set(map(tuple, answers.values()))) > 1:
                raise AssertionError(f"not the same rows: {answers}")
        races = [*map(changing, contenders.values()), lambda: spark.read.format("one_row").load().collect()]
        *times, floor = race(races, setting.repetitions, warming(setting))
    ratios = [timed(f"{name}, one value", time, FLOOR, floor) for name, time in zip(contenders, times, strict=True)]
    return Result({"rows": data.rows, "files": data.files, "blocks": data.files * ROW_GROUPS}, tuple(ratios))


def _by_source(spark: SparkSession, data: SparkTable, call: int) -> list[int]:
    options = {"predicate": f"uid = {data.key(call)}", "index_location": data.table.store.location}
    return [row.id for row in spark.read.format("secateur").options(**options).load(data.location).collect()]


def _by_spark(spark: SparkSession, data: SparkTable, call: int) -> list[int]:
    return [row.id for row in spark.read.parquet(data.location).where(f"uid = {data.key(call)}").collect()]


def _one_row() -> type[DataSource]:
    """Return the source, whose classes lie in a function so that Spark sends their code to its Python processes."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    class Reader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (1,)

    class OneRow(DataSource):
        @classmethod
        def name(cls) -> str:
            return "one_row"

        def schema(self) -> str:
            return "id bigint"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    return OneRow
