"""Public functions that switch pruning on and off for all queries of a session, and report what was pruned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secateur.api import open_table
from secateur.io.tables.delta.table import DeltaTable, VersionSelection
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.io.tables.openers import is_of
from secateur.plan_log import log_to
from secateur.scan import Scan
from secateur.session_settings import is_index_enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.openers import SparkFrame
    from secateur.pruning.explain.why import FileWhy, Why


def enable(
    spark: SparkSession,
    tables: Sequence[ParquetDirectory | DeltaTable | SparkFrame | str | os.PathLike[str]] | None = None,
    *,
    index_location: str | None = None,
    log: str | os.PathLike[str] | None = None,
) -> None:
    """Prune every query of the session that reads an indexed table.

    This covers ``spark.read.parquet``, catalog tables in Parquet, tables of Iceberg and Delta where the session has
    their runtime, views, joins, subqueries, CTAS and INSERT ... SELECT, unchanged; in this session of Spark Classic, in
    sessions that ``spark.newSession()`` makes from it, and in those of a Connect server in the same driver.
    ``EXPLAIN`` shows ``IndexPruning: 1 of 500 row groups``; :func:`last_plans` has
    details. ``SET secateur.enabled=false`` or :func:`disable` switches pruning off for a session,
    ``SET secateur.enabled.<table or path>=false`` for one table, the environment variable ``SECATEUR_DISABLE=1`` for
    the process. With ``SET secateur.audit=<share>``, a share of what queries leave out is checked in the background.
    With ``SET secateur.grouping=true``, Spark is told by which columns directories are partitioned: it then joins and
    groups by them without a shuffle.

    Parameters
    ----------
    tables, index_location
        Tables whose index does not lie beside them: results of :func:`secateur.open_table`, or one location or
        DataFrame with its `index_location`. Other tables are pruned if an index lies beside them.
    log
        A file to which every plan of this process appends a line of JSON, for :func:`secateur.workload`; by default
        the one that the environment variable ``SECATEUR_LOG`` names, if it is set.

    Raises
    ------
    ValueError
        If the session is one of Spark Connect, Spark's internals are not those of 3.5 to 4.3, or `index_location` is
        given without exactly one table.
    TypeError
        If one of `tables` is not a directory of Parquet files, or the newest version of a Delta table.

    Soundness
    ---------
    Spark lists the files and reads all of them, except row groups that the index proves to have no match. A file that
    does not match its index entry in path, length and modification time is read whole. A Delta table is read in the
    version that Delta has opened; deletion vectors stay Delta's. A relation that is not fully
    understood is left unchanged (options that change what is read, buckets, hidden columns, streams); so is a query
    with samples or expressions that depend on how rows are partitioned, and a query in which anything fails.
    """
    from secateur.io.spark.planner import session_rule

    reason = session_rule.enable(spark, _opened(tables or (), index_location), is_index_enabled)
    if reason is not None:
        raise ValueError(f"queries of this session cannot be pruned: {reason}")
    if log is not None:
        log_to(log)


def disable(spark: SparkSession) -> None:
    """Stop pruning the queries of the session, and of sessions made later."""
    from secateur.io.spark.planner import session_rule

    session_rule.disable(spark)


@dataclass(frozen=True)
class QueryPlan:
    """The plan of one relation of a query."""

    location: str
    reason: str  # what EXPLAIN shows; if there is no plan, why the relation was not pruned
    plan: Scan | None

    def explain(self) -> str:
        """Return the plan's report as a text table, or why there is no plan."""
        return f"{self.location}: {self.reason}" if self.plan is None else self.plan.explain()

    def why(self, block: str, row_group: int) -> Why | None:
        """Return why a row group is read or pruned (see :meth:`Scan.why`); None if there is no plan."""
        return None if self.plan is None else self.plan.why(block, row_group)

    def why_file(self, file: str) -> FileWhy | None:
        """Return why a file is read or pruned; None if there is no plan."""
        return None if self.plan is None else self.plan.why(file)


def last_plans(spark: SparkSession) -> list[QueryPlan]:
    """Return the results for the relations in the session's last queries, oldest first.

    Returns
    -------
    list[QueryPlan]
        One for each relation. The driver keeps the last hundred. A query that is planned twice, for example by
        ``EXPLAIN``, is listed twice.
    """
    from secateur.io.spark.planner import session_rule

    return [
        QueryPlan(relation.location, relation.text, None if relation.plan is None else Scan.of(relation.plan))
        for relation in session_rule.relations(spark)
    ]


def _opened(tables: Sequence[object], index_location: str | None) -> list[ParquetDirectory | DeltaTable]:
    """Open the tables. Raises TypeError for other tables, ValueError for an index location without exactly one."""
    if index_location is not None and len(tables) != 1:
        raise ValueError("index_location= is for one table: name that table in tables=")
    opened: list[ParquetDirectory | DeltaTable] = []
    for given in tables:
        names_table = isinstance(given, str | os.PathLike) or is_of(given, "pyspark", "DataFrame")
        table = open_table(given, index_location=index_location) if names_table else given
        match table:
            case ParquetDirectory(is_whole=True) | DeltaTable(selection=VersionSelection(is_latest=True)):
                opened.append(table)
            case _:
                raise TypeError(
                    f"{given!r} is neither a directory of Parquet files nor the newest version of a Delta table; of "
                    "Iceberg, tables are pruned whose index lies beside them"
                )
    return opened
