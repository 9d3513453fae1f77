"""Bringing an index up to date with its table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur.index.assemble import FileIdentity
from secateur.index.build import OnProgress, new_build
from secateur.index.options import filters_of
from secateur.index.segments import Segments, joined
from secateur.index.survey import survey
from secateur.index.tasks import run_tasks
from secateur.io.table import Table
from secateur.maintain.build import write_index
from secateur.maintain.describe import IndexSnapshot, describe_index
from secateur.maintain.entries import indexed_files, live_files, require_snapshot
from secateur.maintain.publish import index_schema, publish, sort_paths, summarised_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refresh_index(
    table: Table,
    *,
    spark: SparkSession,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> IndexSnapshot:
    """Index the files that are new or changed, forget those that are gone, and publish.

    Raises IndexMissing where there is no index, and as :func:`build_index` does.
    """
    snapshot = require_snapshot(table)
    before = snapshot.as_segments()
    now = table.snapshot(fresh=True)
    live = live_files(now)
    kept = before.take(_with_live_files(before, set(live)))
    covered = set(indexed_files(kept.files))
    new = [file for file in live if file not in covered]
    if not new and len(kept) == len(before):
        return describe_index(table)
    table.store.require_writable()
    run = partial(run_tasks, spark)
    surveys = survey(run, now.open_for_index, new, sort_paths(snapshot.options))
    schema = index_schema(now, [("the index", snapshot.schema), *((item.file[0], item.schema) for item in surveys)])
    options = snapshot.options
    blocks = int(kept.block_count.sum()) + sum(item.block_count for item in surveys)
    with new_build(table.store) as build:
        added = write_index(now, run, build, surveys, schema, options, blocks, on_survey, on_progress)
        segments = joined(kept.under(summarised_columns(schema, options), filters_of(options, schema)), added)
        publish(now, build, segments, schema, options, expected=snapshot.number)
    return describe_index(table)


def _with_live_files(segments: Segments, live: set[FileIdentity]) -> np.ndarray:
    """The segments that hold a live file, ascending."""
    known = np.array([file in live for file in indexed_files(segments.files)], bool)
    return np.flatnonzero(np.bincount(segments.files.segment[known], minlength=len(segments)))
