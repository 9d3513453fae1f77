"""Reorganise an index: merge small segments, put files in key order, reduce the number of bloom matrices."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.index.build.add_columns import amendments
from secateur.index.build.build import OnProgress, new_build
from secateur.index.build.spark_tasks import runner
from secateur.index.compact.plan_segments import Regrouping, regroup
from secateur.index.model import Store
from secateur.index.read.coverage import file_of_entry
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import joined
from secateur.index.segments.snapshot import Snapshot
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.listing import Listing
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.describe import IndexSnapshot, described, filter_files
from secateur.maintain.entries import require_snapshot
from secateur.maintain.merge import Sources, write_merged
from secateur.maintain.publish import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source


@dataclass(frozen=True)
class Optimized:
    """What an optimization did, or would do."""

    index: IndexSnapshot  # the current one
    dry_run: bool
    segments_before: int
    segments_after: int
    segments_made: int  # segments written, replacing all others
    filter_files_before: int
    filter_files_after: int | None  # None with dry_run

    @property
    def is_in_order(self) -> bool:
        """Whether there was nothing to do."""
        return not self.segments_made and self.segments_before == self.segments_after


def optimize_index(
    table: Table | Source,
    *,
    spark: SparkSession | None = None,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> Optimized:
    """Merge small segments, put their files in key order, and regroup their filters, as one build would.

    Only index files are read: statistics move with their blocks. Entries of removed files are dropped, those of
    overwritten ones once a refresh has indexed the files anew. A segment that is in order is kept, and so is one that
    lacks a structure, which a refresh adds. Until it returns, readers see the old index.

    Parameters
    ----------
    spark
        Distributes the work over the executors; without it, threads of this process do it.
    dry_run
        Write nothing.

    Returns
    -------
    Optimized
        What was done, or with `dry_run` what would be.

    Raises
    ------
    IndexMissing, IndexNotWritable
    IndexFault
        If a part of the index that must move cannot be read.
    IndexConflict
        If another build or refresh published first.
    """
    table = as_table(table)
    snapshot = require_snapshot(table)
    now = table.snapshot(fresh=True)
    listing = recognised(now, now.fresh_listing(dt.UTC), snapshot)
    plan = _planned(table.store, snapshot, listing)
    before, files = len(snapshot.segments), len(filter_files(snapshot))
    after = len(plan.stay) + len(plan.merged)
    done = partial(Optimized, segments_before=before, segments_after=after, segments_made=len(plan.merged))
    if dry_run:
        return done(described(now, listing), dry_run, filter_files_before=files, filter_files_after=None)
    if plan.merged or after != before:
        table.store.require_writable()
        with new_build(table.store) as build:
            stored = snapshot.as_segments()
            reopen = partial(open_snapshot, table.store, snapshot.number)
            sources = Sources(table.store, snapshot, reopen)
            merged = write_merged(sources, runner(spark), build, plan.merged, (on_survey, on_progress))
            segments = joined(stored.take(plan.stay), merged)
            publish(now, build, segments, snapshot.schema, snapshot.options, expected=snapshot)
    left = len(filter_files(require_snapshot(table)))
    return done(described(now, listing), dry_run, filter_files_before=files, filter_files_after=left)


def _planned(store: Store, snapshot: Snapshot, listing: Listing) -> Regrouping:
    """Decide how to regroup the index. Raises IndexFault."""
    segments = snapshot.as_segments()
    file = file_of_entry(listing, segments.files)
    fixed = np.zeros(len(segments), bool)
    lacking = amendments(segments, file >= 0, page_locations=snapshot.options.page_locations)
    fixed[[amendment.segment for amendment in lacking]] = True
    return regroup(store, snapshot, (file >= 0) | _is_of_changed_file(segments.files, file, listing), fixed)


def _is_of_changed_file(entries: SegmentFiles, file: np.ndarray, listing: Listing) -> np.ndarray:
    """Mark the entries of files that were overwritten, and have no new entry yet: bool of shape (n_entries,).

    They stay until a refresh gives the file another: a stream from here on sees by them that the file is no new one.
    `file` is the listed file of every entry, or -1.
    """
    without_entry = listing.paths.take(from_numpy(np.setdiff1d(np.arange(len(listing.size)), file)))
    return pc.is_in(entries.path, value_set=without_entry).to_numpy(zero_copy_only=False)
