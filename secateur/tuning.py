"""Tune an index by the log of plans: the public function."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from secateur.amounts import bytes_of, require_amount
from secateur.errors import InvalidOption
from secateur.index.build.spark_tasks import runner
from secateur.io.scan.advise.tuning import tuned
from secateur.io.scan.opened_table import opened_strictly
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.entries import require_snapshot
from secateur.maintain.restructure import restructure
from secateur.plan_log import PATH_VARIABLE
from secateur.pruning.explain.tuning import LoggedShape, Tuning
from secateur.session_settings import session_settings
from secateur.workloads import ShapeUse, workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source

SAMPLE_BLOCKS = 64
_BY_BOUNDS = ("files", "segments", "zone maps")  # stages


def tune(
    table: Table | Source,
    *,
    budget: int | float | str,
    log: str | os.PathLike[str] | None = None,
    apply: bool = False,
    spark: SparkSession | None = None,
    sample_blocks: int = SAMPLE_BLOCKS,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
) -> Tuning:
    """Choose the structures of a table's index that save the most of its logged plans, within a budget of bytes.

    What the logged queries read is simulated on sampled blocks, with and without every filter and list of gaps that
    the index has or could have, together as well as alone. The structures that leave the least to read are chosen, but
    none that saves less than a thousandth. No plan is logged, and without `apply` nothing is written.

    Literals are those of the log where it has them as they are (``SECATEUR_LOG_LITERALS=1``). Otherwise they are drawn
    from sampled rows of the table: all literals of a query from one row, so a look-up asks for a value that exists. A
    range is made so wide that bounds leave as much as they left of the logged plans. A pattern looks for rare words of
    the row. A structure is kept if it may serve a shape that cannot be simulated.

    Parameters
    ----------
    budget
        What the filters and gaps may take together: bytes, ``"20MB"``, or a share of the data's bytes, ``"5%"``. Zone
        maps, pages and the sort key stay as they are and are not counted.
    log
        The log of plans; by default the one to which this process logs.
    apply
        Build and drop. Readers see the old index until it is done, and it stays if that fails. If something is dropped,
        the whole index is built anew; the files of the old one are removed by :func:`secateur.vacuum_index`.
    spark
        Distributes what `apply` builds over the executors; without it, threads of this process do it.
    sample_blocks
        The most blocks sampled of the table, and again for each query.

    Returns
    -------
    Tuning
        The structures to build, to keep and to drop, and what every shape reads now and then.

    Raises
    ------
    InvalidOption
        If the budget is not an amount, or there is no log, or no plan of the table in it.
    IndexMissing, IndexFault
        If the table has no index, or it cannot be read.
    StalePlan, InvalidParquet
        If data files are gone, were changed meanwhile, or cannot be read.
    Also
        With `apply`, what :func:`secateur.build_index` raises.
    """
    if sample_blocks < 1:
        raise InvalidOption(f"sample_blocks is {sample_blocks}; it must be 1 or more")
    require_amount(budget)
    table = as_table(table)
    if apply:
        table.store.require_writable()
    logged = workload(table, log=log)
    if not logged.plans:
        raise InvalidOption(
            f"the log {logged.log} has no plan of {table.location}: set {PATH_VARIABLE} where the table is queried"
        )
    require_snapshot(table)
    opened = opened_strictly(table)
    settings = session_settings(session_time_zone, ansi)
    shapes = [logged_shape(use) for use in logged.shapes]
    data_bytes = int(opened.listing.size.sum())
    result = tuned(opened, shapes, settings, (bytes_of(budget, data_bytes), data_bytes), sample_blocks)
    if not apply:
        return result.tuning
    if result.tuning.to_build or result.tuning.to_drop:
        restructure(table, runner(spark), result.filters, result.gaps)
    return replace(result.tuning, applied=True)


def logged_shape(use: ShapeUse) -> LoggedShape:
    """Return what a log says of one shape of queries."""
    share, before = 1.0, use.bytes_before
    for stage, after in use.bytes_after_stage.items():
        share *= after / before if stage in _BY_BOUNDS and before else 1.0
        before = after
    return LoggedShape(use.predicate, use.plans, share, use.examples)
