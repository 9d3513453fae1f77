"""Plan which files of a table to rewrite together, and in which order: the public function."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from secateur.amounts import bytes_of, require_amount
from secateur.errors import InvalidOption
from secateur.index.advise.row_orders import Curve
from secateur.io.scan.advise.bounds_plan import plan_of_all, plans_of
from secateur.io.scan.advise.logged_queries import queries_of
from secateur.io.scan.advise.reclustering import Terms, WeightedPlan, rewrite_plan
from secateur.io.scan.clustering import ordered_columns
from secateur.io.scan.opened_table import OpenedTable, opened_strictly
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import plan_unreported
from secateur.io.tables.formats import rewriter_of
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.pruning.explain.reclustering import Reclustering
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.sql.parse import parse
from secateur.session_settings import session_settings
from secateur.tuning import logged_shape
from secateur.workloads import workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source

PAYS_AFTER = 1000
SAMPLE_BLOCKS = 64


def plan_recluster(
    table: Table | Source,
    by: str | Sequence[str],
    *,
    budget_bytes: float | str | None = None,
    predicates: Sequence[str] = (),
    log: str | os.PathLike[str] | None = None,
    pays_after: float = PAYS_AFTER,
    curve: str | None = None,
    sample_blocks: int = SAMPLE_BLOCKS,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    apply: bool = False,
    spark: SparkSession | None = None,
) -> Reclustering:
    """Choose the files of a table to rewrite together in another order, so that queries read less.

    Files are chosen within their partitions, where many share values of the columns, and only if the rewrite pays after
    `pays_after` queries. So files that are in order already, such as those rewritten before, are left alone.
    Every group of files comes with the statement by which the table's own writer rewrites it. That is Spark for a
    directory (it writes a copy beside it, which you put in place of the old files), ``OPTIMIZE`` for Delta, which takes
    whole partitions, and ``rewrite_data_files`` for Iceberg. That procedure takes no list of files, so there is a
    statement only for a group that is a whole table or a whole identity partition, of a table opened by its catalog's
    name or in Spark's catalog. Nothing is written without `apply`, which rewrites exactly the files of each group:
    Iceberg's action behind the procedure can.

    The orders are compared on sampled rows: sorted by the columns, each of them first, and along the curves of Z-order
    and Hilbert. The best that the table's writer can write is chosen. All figures are estimates of what a query is
    expected to read, in whole row groups.

    Parameters
    ----------
    by
        The column or columns by which to order.
    budget_bytes
        The most bytes to rewrite: a number, ``"20GB"``, or a share of the data, ``"5%"``; by default all that pays.
    predicates
        Queries that the order should serve, as Spark SQL. Without these and a log, it serves look-ups of the value of
        any row, in each of the columns alike. What the index's filters leave out already counts as not read.
    log
        A log of plans (``SECATEUR_LOG``) whose queries the order should serve, as often as they were asked. Hashed
        literals are replaced by values of the table, as in :func:`secateur.tune`.
    pays_after
        Leave alone what saves, over this many queries, fewer bytes than its rewrite reads and writes.
    curve
        The only kind of order to try: ``"sort"``, ``"zorder"`` or ``"hilbert"``.
    sample_blocks
        The most blocks sampled of the table.
    apply
        Run the rewrites with `spark`, one group after the other, each in a commit of its own. A commit of others that
        conflicts ends this with StalePlan; the groups before it stay rewritten. Of a directory, copies are written
        beside it, and the old files stay. The index is not refreshed.
    spark
        The session that writes; by default the one that is running.

    Returns
    -------
    Reclustering
        The orders that were compared, the groups of files, best first, with their statements, and what a query reads
        now and then.

    Raises
    ------
    InvalidOption
        For columns whose values have no order or that are the same in a whole file, for an amount that is none, and for
        a format whose writer cannot be told what to rewrite. With `apply`, also without a session, and for one that
        cannot write the table.
    UnknownColumn, AmbiguousColumn, InvalidPredicate
    StalePlan, InvalidParquet
        If data files are gone, were changed meanwhile, or cannot be read.
    Also
        With `apply`, what the table's writer raises.
    """
    session = _session(spark) if apply else None
    names = [by] if isinstance(by, str) else list(by)
    chosen_curve = None if curve is None else _curve(curve)
    _require_amounts(budget_bytes, pays_after, names, sample_blocks)
    opened = opened_strictly(as_table(table))
    budget = None if budget_bytes is None else bytes_of(budget_bytes, int(opened.listing.size.sum()))
    terms = Terms(budget, pays_after, chosen_curve)
    columns = list(ordered_columns(opened, names))
    _require_inside(opened, columns)
    settings = session_settings(session_time_zone, ansi)
    plans = _plans(opened, predicates, log, settings)
    rewriter = rewriter_of(opened.table)
    plan = rewrite_plan(opened, rewriter, columns, plans, terms, sample_blocks)
    if session is None:
        return plan.reclustering
    from secateur.io.spark.rewriting import rewrite  # PySpark may be missing

    rewrite(session, opened, rewriter, plan)
    return replace(plan.reclustering, applied=True)


def _session(spark: SparkSession | None) -> SparkSession:
    """Return the given session, or the one that is running. Raises InvalidOption if there is none."""
    if spark is None and "pyspark" in sys.modules:
        from pyspark.sql import SparkSession

        spark = SparkSession.getActiveSession()
    if spark is None:
        raise InvalidOption("apply=True rewrites files by Spark, and no session is running: pass spark=")
    return spark


def _curve(name: str) -> Curve:
    try:
        return Curve(name)
    except ValueError:
        raise InvalidOption(f"curve is {name!r}; it must be one of {', '.join(map(repr, map(str, Curve)))}") from None


def _require_amounts(budget: float | str | None, pays_after: float, names: Sequence[str], sample_blocks: int) -> None:
    if not names:
        raise InvalidOption("by is empty; name a column by which to order the table")
    if len(set(names)) < len(names):
        raise InvalidOption(f"by names a column twice: {', '.join(names)}")
    if budget is not None:
        require_amount(budget)
    if not pays_after > 0:
        raise InvalidOption(f"pays_after is {pays_after}; it must be more than 0")
    if sample_blocks < 1:
        raise InvalidOption(f"sample_blocks is {sample_blocks}; it must be 1 or more")


def _require_inside(opened: OpenedTable, columns: Sequence[Field]) -> None:
    """Raise InvalidOption for columns that are not in the files."""
    for field in columns:
        if field.path[0] in opened.listing.columns:
            raise InvalidOption(f"{field.path[0]} has one value in every file: no order of the rows changes that")


def _plans(
    opened: OpenedTable, predicates: Sequence[str], log: str | os.PathLike[str] | None, settings: Settings
) -> list[WeightedPlan]:
    """Return the plans of the given queries, and of those of a log, with how often each is asked."""
    if isinstance(predicates, str):
        raise InvalidOption(f"predicates is one text; write a list of predicates: [{predicates!r}]")
    asked = [(text, 1.0) for text in predicates]
    if log is not None:
        asked += _logged(opened, log, settings)
    plans = []
    for text, weight in asked:
        written = parse(text)
        plans.append(WeightedPlan(plan_unreported(opened.table, written, written, settings, opened), weight))
    return plans


def _logged(opened: OpenedTable, log: str | os.PathLike[str], settings: Settings) -> list[tuple[str, float]]:
    """Return queries that stand for those of a log, and how many logged plans each stands for."""
    logged = workload(opened.table, log=log)
    if not logged.plans:
        raise InvalidOption(f"the log {logged.log} has no plan of {opened.table.location}")
    shapes = [logged_shape(use) for use in logged.shapes]
    whole = plan_of_all(opened)
    plans, _ = plans_of(whole, queries_of(whole, shapes), shapes, settings)
    of_shape = Counter(plan.shape for plan in plans)
    return [(plan.text, shapes[plan.shape].plans / of_shape[plan.shape]) for plan in plans]
