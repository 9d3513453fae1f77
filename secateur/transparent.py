"""Tables as DataFrames whose queries prune by themselves: the public function that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.api import is_index_enabled
from secateur.io.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def dataframe(spark: SparkSession, table: Table, *, via: str = "auto") -> DataFrame:
    """The whole table as an ordinary DataFrame. Every query on it is pruned by the index, with nothing changed in it.

    Spark's own vectorised reader reads the table: the road ``transparent``, for directories of Parquet files on Spark
    Classic. When a query is planned, the index is asked with the query's own filters, whatever their shape: ORs,
    functions, lists of any length, in SQL over a view, under joins and unions. Only row groups that can hold a match
    are read; joins are planned with the bytes and rows of these; and the values of a join's small side prune the big
    side while the query runs. ``explain()`` shows ``IndexPruning: 3 of 2,000 row groups``.

    Every planning looks for the live files, as old as the table's `freshness` allows; so a query sees what was added
    after the DataFrame was made, and two queries on it may see different files. A DataFrame of which an action ran
    keeps its plan, as always in Spark: another action of the same object reads the files that the first one read.
    Columns and their types are those of when the DataFrame was made.

    No row is ever lost to the index: Spark applies all filters itself, and an index that is missing, stale or broken,
    or any error while it is asked, keeps row groups, which ``explain()`` tells. Filters to which Spark's own Parquet
    push-down loses rows are kept from it: on floating columns, for NULL, and on columns with a dot in their names.

    Elsewhere a public road is taken, and ``explain(True)`` tells why: the rows of the table as it is at the call, of
    which queries prune by partitions alone. That is Spark's own reader of a directory, with Parquet's filters off; for
    Iceberg tables Iceberg's own reader, if the session has it; else pyarrow in Python workers. So it is on Spark
    Connect, for columns with a collation, and where Spark's internals are not those of 4.1 to 4.3.
    ``via="transparent"`` raises ValueError instead; ``via="public"`` takes that road anyway.

    Raises ValueError, TableNotFound, InvalidParquet. A query raises where the live files cannot be listed.
    """
    from secateur.io.spark.planner.dataframe import dataframe as made

    return made(spark, table, via, is_index_enabled)
