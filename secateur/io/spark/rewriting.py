"""Run a plan of files to rewrite: each group by the table's own writer, in a commit of its own."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from secateur.errors import InvalidOption, StalePlan
from secateur.index.advise.row_orders import RowOrder
from secateur.io.scan.advise.reclustering import RewritePlan
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.tables.delta.rewriter import DeltaRewriter
from secateur.io.tables.directory.rewriter import DirectoryRewriter
from secateur.io.tables.listing import Listing
from secateur.io.tables.rewriter import Rewriter, RewrittenFiles

_log = logging.getLogger("secateur")
_CONFLICT = re.compile(r"CommitFailedException|ValidationException|Concurrent\w+Exception|DELTA_CONCURRENT")
_SORTED = "spark.databricks.io.skipping.mdc.sortWithinFiles"
_EXISTS = "PATH_ALREADY_EXISTS"


def rewrite(spark: SparkSession, opened: OpenedTable, rewriter: Rewriter, plan: RewritePlan) -> None:
    """Rewrite the groups of files of a plan, one after the other.

    Raises StalePlan if files of a group have changed since the plan was made, or a commit conflicts; groups before it
    stay rewritten. Raises InvalidOption if the session cannot write the table.
    """
    for number, files in enumerate(plan.files, 1):
        try:
            _rewrite(spark, opened, rewriter, files, plan.order, number)
        except (Py4JError, PySparkException) as error:
            if not _CONFLICT.search(str(error)):
                raise
            raise StalePlan(
                f"another commit has changed files of group {number} of {len(plan.files)}, which was not rewritten "
                f"(the {number - 1} groups before it were): plan again"
            ) from error
        location = opened.table.location
        _log.info("rewrote group %d of %d of %s: %d files", number, len(plan.files), location, len(files.paths))


def _rewrite(
    spark: SparkSession, opened: OpenedTable, rewriter: Rewriter, files: RewrittenFiles, order: RowOrder, number: int
) -> None:
    match rewriter:
        case DirectoryRewriter():
            _copy(spark, opened, rewriter, files, order, number)
        case DeltaRewriter():
            with _sorted_within_files(spark):
                spark.sql(rewriter.statement(files, order, number)).collect()
        case _:
            from secateur.io.spark.iceberg.rewriting import choose  # PyIceberg may be missing
            from secateur.io.tables.iceberg.snapshot import IcebergSnapshot

            assert isinstance(opened.table, IcebergSnapshot), "there is no other format with a writer"
            choose(spark, opened.table, files.paths).rewrite(order)


@contextmanager
def _sorted_within_files(spark: SparkSession) -> Iterator[None]:
    """Let Delta sort the rows of a file that OPTIMIZE writes, so that row groups are in order too."""
    before = spark.conf.get(_SORTED, None)
    spark.conf.set(_SORTED, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_SORTED)
        else:
            spark.conf.set(_SORTED, before)


def _copy(
    spark: SparkSession,
    opened: OpenedTable,
    rewriter: DirectoryRewriter,
    files: RewrittenFiles,
    order: RowOrder,
    number: int,
) -> None:
    """Do what the statement for a directory says."""
    copy = rewriter.copy(files, order, number)
    read = spark.read.option("mergeSchema", True).parquet(*files.paths)
    columns = list(order.columns)
    sorted_rows = read.repartitionByRange(len(files.paths), *columns).sortWithinPartitions(*columns)
    try:
        sorted_rows.write.parquet(copy)
    except PySparkException as error:
        if _EXISTS not in str(error):
            raise
        raise InvalidOption(f"{copy} is there already, of an earlier run: publish or remove it first") from None
    listed = opened.table.fresh_listing(UTC)
    if _identities(opened, opened.listing, files.paths) != _identities(opened, listed, files.paths):
        raise StalePlan(f"files were changed while they were copied to {copy}: remove it, and plan again")


def _identities(opened: OpenedTable, listing: Listing, paths: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    wanted = set(paths)
    named = ((i, opened.table.full_path(path)) for i, path in enumerate(listing.paths.to_pylist()))
    return {path: listing.identity(i) for i, path in named if path in wanted}
