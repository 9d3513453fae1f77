"""Index what a job has written, at its end: every file that is in the table then is covered."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from secateur.errors import IndexConflict, InvalidOption
from secateur.index.build.spark_tasks import runner
from secateur.index.model import BuildOptions
from secateur.index.read.open_index import current_snapshot
from secateur.io.tables.given_footers import ByPath, Footers, by_path
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.build import build_index
from secateur.maintain.describe import IndexSnapshot
from secateur.maintain.refresh import refresh_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source

TRIES = 20  # of a refresh that loses against other writers, or finds files too young to be indexed
LONGEST_WAIT = 1.0  # seconds between two tries


def index_written(
    table: Table | Source,
    *,
    spark: SparkSession | None = None,
    build: Mapping[str, Any] | None = None,
    footers: Footers = (),
) -> IndexSnapshot:
    """Index the files that were just written: call it at the end of the job that writes them.

    When it returns, the index covers every file that was in the table when it was called, except those that stayed too
    young to be indexed through all tries. Only files without an entry are read. Any number of jobs may write the table
    and call this at once: those that lose try again.

    Parameters
    ----------
    spark
        Distributes the work over the executors; without it, threads of this process do it.
    build
        Arguments of :func:`secateur.build_index`, for a table that has no index yet:
        ``{"sort_key": ["ts"], "bloom": ["user_id"]}``. Without these, a missing index is an error.
    footers
        What pyarrow knows of files that it has just written, so that their footers are not read again: the
        `metadata_collector` of ``pyarrow.parquet.write_to_dataset``, or :class:`pyarrow.parquet.FileMetaData` by path,
        as :attr:`Scan.files` has it or below the table's location. Files that have no entry for another reason, and
        those of which a footer cannot be, are read. A build of a missing index reads all files.

    Returns
    -------
    IndexSnapshot
        The contents of the index.

    Soundness
    ---------
    A footer counts only if the file ends with its bytes.

    Raises
    ------
    InvalidOption
        For a name in `build` that :func:`secateur.build_index` does not have; for something else than metadata among
        `footers`, metadata without a path.
    IndexMissing
        If there is no index, and `build` is not given.
    IndexConflict
        If other jobs came first again and again.
    Also
        What :func:`secateur.refresh_index` and :func:`secateur.build_index` raise.
    """
    table = as_table(table)
    if build is not None and (taken := {"spark", "dry_run", "table"} & set(build)):
        raise InvalidOption(f"build has {', '.join(sorted(taken))}: give only what the index is to hold")
    given = by_path(footers)
    for number in range(1, TRIES + 1):
        try:
            index = _indexed(table, spark, build, given)
        except IndexConflict:
            if number == TRIES:
                raise
        else:
            if not any(one.files_without_entry or one.files_changed for one in index.coverage) or number == TRIES:
                return index
        time.sleep(random.uniform(0, LONGEST_WAIT) * number / TRIES)
    raise AssertionError("the last try returns or raises")


def _indexed(
    table: Table,
    spark: SparkSession | None,
    build: Mapping[str, Any] | None,
    footers: ByPath,
) -> IndexSnapshot:
    """Build the index if it may be missing and is, then refresh it. Raises IndexConflict if another job came first.

    Of jobs that build at once, the last one's index stays, which may lack files of the others: so it is refreshed too.
    """
    if build is not None and current_snapshot(table.store) is None:
        build_index(table, spark=spark, **build)
    return refresh_with(table, runner(spark), BuildOptions(page_locations=False), footers=footers).index
