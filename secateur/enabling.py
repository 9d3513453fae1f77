"""Sessions whose every query prunes: the public functions that switch it on and off, and tell what was done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secateur.api import is_index_enabled, open_table
from secateur.io.tables.directory.table import ParquetDirectory
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.pruning.explain.why import FileWhy, Why


def enable(
    spark: SparkSession,
    tables: Sequence[ParquetDirectory | str | os.PathLike[str]] | None = None,
    *,
    index_location: str | None = None,
) -> None:
    """From here on, every query of the session that reads an indexed table reads only what can match.

    That is ``spark.read.parquet``, catalog tables in Parquet, views, joins, subqueries, CTAS and INSERT ... SELECT,
    with nothing changed in them; in this session of Spark Classic, in those that ``spark.newSession()`` makes of it,
    and in those of a Connect server in the same driver. ``EXPLAIN`` shows ``IndexPruning: 1 of 500 row groups``, and
    :func:`last_plans` tells more.

    A table prunes where an index lies beside it. For an index that lies elsewhere name the table in `tables`: as
    :func:`secateur.open_table` gave it, or one location, with `index_location`.

    Spark lists the files, and reads just those, but for row groups that the index proves to hold no match; a file
    that the index does not know, by path, length and time of modification, is read whole. Whatever is not known exactly
    is left as it is: options that change what is read, bucketed tables, hidden columns, streams, samples, and
    expressions that depend on how rows are partitioned. So is a query where anything fails.

    ``SET secateur.enabled=false`` switches it off for a session, :func:`disable` too, and the environment variable
    ``SECATEUR_DISABLE=1`` for the process.

    Raises ValueError where the session is one of Spark Connect, or Spark's internals are not those of 4.1 to 4.3.
    """
    from secateur.io.spark.planner import session_rule

    reason = session_rule.enable(spark, _opened(tables or (), index_location), is_index_enabled)
    if reason is not None:
        raise ValueError(f"queries of this session cannot be pruned: {reason}")


def disable(spark: SparkSession) -> None:
    """Leave the session's queries alone again, and those of sessions that are made later."""
    from secateur.io.spark.planner import session_rule

    session_rule.disable(spark)


@dataclass(frozen=True)
class QueryPlan:
    """What became of one relation of a query."""

    location: str
    reason: str  # what EXPLAIN shows; where there is no plan, why the relation was left as it is
    plan: Scan | None

    def explain(self) -> str:
        """The plan's report as a text table, or why there is none."""
        return f"{self.location}: {self.reason}" if self.plan is None else self.plan.explain()

    def why(self, block: str, row_group: int) -> Why | None:
        """Why a row group is read or left out (:meth:`Scan.why`); None where there is no plan."""
        return None if self.plan is None else self.plan.why(block, row_group)

    def why_file(self, file: str) -> FileWhy | None:
        """Why a file is read or left out; None where there is no plan."""
        return None if self.plan is None else self.plan.why(file)


def last_plans(spark: SparkSession) -> list[QueryPlan]:
    """What became of the relations of Parquet files in the session's last queries, the latest last.

    At most the last hundred of the driver are remembered. A query that is planned twice, as for ``EXPLAIN``, is told
    twice.
    """
    from secateur.io.spark.planner import session_rule

    return [
        QueryPlan(each.location, each.text, None if each.plan is None else Scan.of(each.plan))
        for each in session_rule.relations(spark)
    ]


def _opened(tables: Sequence[object], index_location: str | None) -> list[ParquetDirectory]:
    """Raises TypeError for other tables, ValueError for an index location that belongs to none, or to several."""
    if index_location is not None and len(tables) != 1:
        raise ValueError("index_location= is that of one table: name it in tables=")
    found = []
    for each in tables:
        table = open_table(each, index_location=index_location) if isinstance(each, str | os.PathLike) else each
        if not isinstance(table, ParquetDirectory):
            raise TypeError(f"{each!r} is no directory of Parquet files")
        found.append(table)
    return found
