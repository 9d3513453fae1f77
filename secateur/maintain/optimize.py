"""Reorganise an index: merge small segments, put files in key order, reduce the number of bloom matrices."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur.index.build.add_columns import amendments
from secateur.index.build.assemble import Assembled
from secateur.index.build.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.build.build import OnProgress, Sizes, decode_summary, encode_summary, new_build, total, watching
from secateur.index.build.filter_files import lay_side_by_side
from secateur.index.build.spark_tasks import runner
from secateur.index.build.tasks import RunTasks
from secateur.index.compact.merge_filters import Gathering, MatrixColumns, columns_of, merged_columns, plan_merged
from secateur.index.compact.merge_segments import MergePlan, merge, plan_merge
from secateur.index.compact.plan_segments import Regrouping, regroup
from secateur.index.filters.bloom_matrix import BloomMatrices, no_bloom_matrices
from secateur.index.filters.transpose import PartPlan
from secateur.index.identity import FileIdentity
from secateur.index.model import POSTINGS, Store
from secateur.index.segments.segment_file import encode_segment
from secateur.index.segments.segment_table import Segments, SegmentSummary, joined, summarised
from secateur.index.segments.snapshot import Snapshot, open_snapshot
from secateur.index.segments.stored_segment import stored_segment
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.maintain.describe import IndexSnapshot, described, filter_files
from secateur.maintain.entries import indexed_files, live_files, require_snapshot
from secateur.maintain.publish import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source


@dataclass(frozen=True)
class Optimized:
    """What an optimization did, or would do."""

    index: IndexSnapshot  # as it is now
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

    Only index files are read: statistics move with their blocks. Entries of removed files are dropped. A segment that
    is in order is kept, and so is one that lacks a structure, which a refresh adds. Until it returns, readers see the
    old index.

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
    plan = _planned(table.store, snapshot, set(live_files(listing)))
    before, files = len(snapshot.segments), len(filter_files(snapshot))
    after = len(plan.stay) + len(plan.merged)
    done = partial(Optimized, segments_before=before, segments_after=after, segments_made=len(plan.merged))
    if dry_run:
        return done(described(now, listing), dry_run, filter_files_before=files, filter_files_after=None)
    if plan.merged or after != before:
        table.store.require_writable()
        with new_build(table.store) as build:
            segments = _written(table.store, runner(spark), build, snapshot, plan, (on_survey, on_progress))
            publish(now, build, segments, snapshot.schema, snapshot.options, expected=snapshot)
    left = len(filter_files(require_snapshot(table)))
    return done(described(now, listing), dry_run, filter_files_before=files, filter_files_after=left)


def _planned(store: Store, snapshot: Snapshot, live: set[FileIdentity]) -> Regrouping:
    """Decide how to regroup the index. Raises IndexFault."""
    segments = snapshot.as_segments()
    known = indexed_files(segments.files)
    is_live = np.array([file in live for file in known], bool)
    fixed = np.zeros(len(segments), bool)
    fixed[
        [
            amendment.segment
            for amendment in amendments(segments, known, live, page_locations=snapshot.options.page_locations)
        ]
    ] = True
    return regroup(store, snapshot, is_live, fixed)


def _written(
    store: Store,
    run: RunTasks,
    build: str,
    snapshot: Snapshot,
    plan: Regrouping,
    progress: tuple[OnProgress | None, OnProgress | None],
) -> Segments:
    """Write the index: the kept segments, followed by the new ones."""
    segments = snapshot.as_segments()
    merges = [plan_merge(snapshot, entries) for entries in plan.merged]
    sizes = [_sizes(segments, entries) for entries in plan.merged]
    on_survey, on_progress = progress
    if on_survey is not None:
        on_survey(*total(sizes))
    columns = _columns(store, snapshot, segments.bloom_matrices, merges)
    with watching(store, build, sizes, on_progress):
        summaries = _write_merged(run, build, store, snapshot, merges, columns)
    bloom_matrices = _write_bloom_matrices(run, build, store, segments.bloom_matrices, columns)
    made = summarised(segments.columns, segments.filters, summaries, bloom_matrices)
    return joined(segments.take(plan.stay), made)


def _sizes(segments: Segments, entries: np.ndarray) -> Sizes:
    files = segments.files
    return len(entries), int(files.row_count[entries].sum()), int(files.byte_count[entries].sum())


def _columns(
    store: Store, snapshot: Snapshot, bloom_matrices: Mapping[int, BloomMatrices], merges: Sequence[MergePlan]
) -> dict[int, list[MatrixColumns]]:
    """Return the location of the bloom filters of every merged segment's blocks, per filter. Raises IndexFault."""
    sources = sorted({part.segment for plan in merges for part in plan.parts})
    columns = {}
    for f, filter_ in enumerate(snapshot.filters):
        if filter_.kind != POSTINGS:
            names, matrices = snapshot.segments.name, bloom_matrices.get(f, no_bloom_matrices())
            size_classes = ((s, stored_segment(store, snapshot, s).size_classes(f)) for s in sources)
            by_segment = {s: columns_of(matrices, s, of_blocks, names[s]) for s, of_blocks in size_classes}
            columns[f] = [merged_columns(plan, by_segment) for plan in merges]
    return columns


def _write_merged(
    run: RunTasks,
    build: str,
    store: Store,
    snapshot: Snapshot,
    merges: Sequence[MergePlan],
    columns: Mapping[int, Sequence[MatrixColumns]],
) -> list[SegmentSummary]:
    """Write the merged segments, one task each; each task opens the snapshot itself."""
    number = snapshot.number
    size_classes = [{f: filters[i].size_class for f, filters in columns.items()} for i in range(len(merges))]

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        opened = open_snapshot(store, number)
        for i in numbers:
            segment = merge(store, opened, merges[i], size_classes[i])
            encoded = encode_segment(segment)
            name = f"{build}-{i:06d}"
            store.put(f"{SEGMENTS_FOLDER}/{name}.segment", encoded.data)
            yield encode_summary(i, name, len(encoded.data), Assembled(segment, {}), encoded.places, {})

    summaries = dict(decode_summary(data) for data in run(work, len(merges)))
    return [summaries[i] for i in range(len(merges))]


def _write_bloom_matrices(
    run: RunTasks,
    build: str,
    store: Store,
    bloom_matrices: Mapping[int, BloomMatrices],
    columns: Mapping[int, Sequence[MatrixColumns]],
) -> dict[int, BloomMatrices]:
    """Write the bloom matrices of the merged segments, which are numbered from 0."""
    plans = {f: plan_merged(of_filter) for f, of_filter in columns.items()}
    gatherings = {
        f: Gathering(store, bloom_matrices.get(f, no_bloom_matrices()), of_filter, plans[f])
        for f, of_filter in columns.items()
    }

    def rows_of(f: int, part: PartPlan) -> np.ndarray:
        return gatherings[f].rows_of(part)

    return lay_side_by_side(run, build, store, plans, rows_of, dict.fromkeys(plans, 1.0))
