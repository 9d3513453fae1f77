"""DataFrames that prune every query on them: the public function that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.session_settings import is_index_enabled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from secateur.io.tables.open import Source


def dataframe(spark: SparkSession, table: Table | Source, *, via: str = "auto") -> DataFrame:
    """Return the whole table as an ordinary DataFrame; the index prunes every query on it.

    On Spark Classic, directories of Parquet files take the read path ``transparent``: Spark's own vectorised reader.
    When Spark plans a query, the index is asked with the query's own filters of any shape: ORs, functions, lists of any
    length, in SQL over a view, under joins and unions. Spark then reads only row groups that can hold a match, plans
    joins with their bytes and rows, and prunes the big side of a join at run time by the values of the small side.
    ``explain()`` shows ``IndexPruning: 3 of 2,000 row groups``.

    A query may name Spark's hidden column ``_metadata``. Then Spark reads the whole files that hold surviving row
    groups.

    Elsewhere a public read path is taken, and ``explain(True)`` says why: on Spark Connect, for columns with a
    collation, for Iceberg tables, and where Spark's internals are not those of 3.5 to 4.3. It reads the table as it is
    at the call, and queries prune by partitions only. The reader is Spark's own for a directory, with Parquet filters
    off; for Iceberg tables Iceberg's own if the session has it; else pyarrow in Python workers.

    Each planning lists the live files, at most `freshness` old; so a query sees files added after the DataFrame was
    made, and two queries may see different files. Once an action has run, the DataFrame keeps its plan, as always in
    Spark: the next action on the same object reads the same files. Columns and types are those at the call.

    Parameters
    ----------
    via
        ``"auto"``, ``"public"`` to take the public read path in any case, or ``"transparent"`` to raise ValueError
        where that path is not possible.

    Raises
    ------
    ValueError, TableNotFound, InvalidParquet
        At the call. A query raises if the live files cannot be listed.

    Soundness
    ---------
    The index never loses a row: Spark applies all filters itself, and a missing, stale or broken index, or any error
    while it is asked, keeps row groups, as ``explain()`` shows. Filters for which Spark's own Parquet push-down loses
    rows are not passed to it: on floating columns, for NULL, and on columns with a dot in their name.
    """
    table = as_table(table)
    from secateur.io.spark.planner.dataframe import dataframe as made

    return made(spark, table, via, is_index_enabled)
