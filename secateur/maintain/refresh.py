"""Bring an index up to date with its table, and add structures to it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from secateur.errors import InvalidOption
from secateur.index.build.add_columns import Amendment, amendments
from secateur.index.build.build import OnProgress, new_build
from secateur.index.build.options import Columns, checked, filter_options, filters_of, listed
from secateur.index.build.spark_tasks import runner
from secateur.index.build.survey import survey
from secateur.index.build.tasks import RunTasks
from secateur.index.model import BuildOptions, name_of
from secateur.index.naming import ByFieldId
from secateur.index.segments.named_columns import called_in_index
from secateur.index.segments.path_search import is_ascending
from secateur.index.segments.segment_files import SegmentFiles
from secateur.index.segments.segment_table import Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.field_ids import require_named_as
from secateur.io.tables.given_footers import ByPath, opens_with
from secateur.io.tables.listing import Listing
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table, TableSnapshot
from secateur.maintain.build import write_index
from secateur.maintain.describe import IndexSnapshot, described
from secateur.maintain.difference import Difference, difference
from secateur.maintain.entries import glob_of, require_snapshot, usable_files, with_witnesses_of
from secateur.maintain.increments import remove_merged, with_increments_merged
from secateur.maintain.publish import declared_schema, index_schema, publish, sort_paths, summarised_columns
from secateur.maintain.verify import broken_files
from secateur.pruning.report import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did, or would do."""

    index: IndexSnapshot  # the current one
    dry_run: bool
    files_added: int  # new to the index
    files_changed: int  # their size or time differs from the index's
    files_removed: int  # no longer live, in segments without any live file: they leave the index
    files_lost: int  # of segments whose file is missing: indexed again
    segments_amended: int  # segments that got missing columns, filters or page locations
    segments_merged: int = 0  # small segments of earlier refreshes and of this one, merged; not predicted by a dry run

    @property
    def is_current(self) -> bool:
        """Whether there was nothing to do."""
        changes = (self.files_added, self.files_changed, self.files_removed, self.files_lost, self.segments_amended)
        return not any(changes)

    def changes(self) -> str:
        """Say what was done, or is to do: ``2 new files, 1 segment amended``; empty if nothing."""
        parts = (
            (self.files_added, "new file", ""),
            (self.files_changed, "changed file", ""),
            (self.files_removed, "file", " gone"),
            (self.files_lost, "file", " of lost segments"),
            (self.segments_amended, "segment", " to amend" if self.dry_run else " amended"),
            (self.segments_merged, "small segment", " merged"),
        )
        return ", ".join(counted(number, noun) + rest for number, noun, rest in parts if number)


def refresh_index(
    table: Table | Source,
    *,
    spark: SparkSession | None = None,
    bloom: Columns = (),
    postings: Columns = (),
    ngram: Columns = (),
    tokens: Columns = (),
    gaps: Sequence[str] = (),
    zone_map: Sequence[str] = (),
    sums: Sequence[str] = (),
    page_locations: bool = False,
    repair: bool = False,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> Refreshed:
    """Index new and changed files, drop removed ones, add structures, and publish.

    Structures are given as for :func:`secateur.build_index`. A segment that lacks some, or a column that was added to
    the table later, is amended: only the columns concerned are read in its files, or only footers. Missing segments and
    filters are rebuilt. Small segments of several refreshes are merged, from index files alone, so that look-ups stay
    fast in an index that grows bit by bit. Everything else is kept. Until it returns, readers see the old index.

    Parameters
    ----------
    page_locations
        Add page locations to an index made without them.
    repair
        Read every byte of the index first, and rebuild segments and filters with broken files too.
    spark
        Distributes the work over the executors; without it, threads of this process do it.
    dry_run
        Write nothing; columns that new files add are then not predicted.

    Returns
    -------
    Refreshed
        What was done, or with `dry_run` what would be.

    Raises
    ------
    IndexMissing
        If there is no index.
    IndexFault
        If its snapshot, or a segment to amend, cannot be read; or the table names its columns in another way since.
    Also
        What :func:`secateur.build_index` raises.
    """
    added = BuildOptions(
        filters=filter_options(bloom, postings, ngram, tokens),
        gaps=listed(gaps),
        page_locations=page_locations,
        expressions=listed(zone_map),
        sums=listed(sums),
    )
    progress = on_survey, on_progress
    return refresh_with(as_table(table), runner(spark), added, progress, repair=repair, dry_run=dry_run)


def refresh_with(
    table: Table,
    run: RunTasks,
    added: BuildOptions,
    progress: tuple[OnProgress | None, OnProgress | None] = (None, None),
    *,
    repair: bool = False,
    dry_run: bool = False,
    footers: ByPath = MappingProxyType({}),
) -> Refreshed:
    """Refresh an index, adding what some options request; see :func:`refresh_index`. Raises the same.

    `footers` are those of some files by path, which then are not read.
    """
    now = table.snapshot(fresh=True)
    snapshot = require_snapshot(table, None if repair else now.cache)
    require_named_as(now, snapshot.schema)
    _require_same_glob(now, snapshot)
    added = _called_in_index(now, added)
    listing, usable = _listed(now, snapshot) if dry_run else usable_files(now, snapshot)
    broken = broken_files(table.store, snapshot) if repair else set()
    plan = difference(table.store, snapshot, listing, usable, broken)
    if dry_run:
        options = _joined(snapshot.options, checked(added, snapshot.schema))
        kept = _under(plan.kept, snapshot.schema, options)
        return _refreshed(now, listing, plan, _lacking(kept, plan, snapshot, options), dry_run=True)
    open_file = opens_with(now, listing, footers)
    surveys = survey(run, open_file, plan.new, sort_paths(snapshot.options))
    schema = index_schema(now, [("the index", snapshot.schema), *((item.file.path, item.schema) for item in surveys)])
    options = _joined(snapshot.options, checked(added, schema))
    kept = _under(plan.kept, schema, options)
    lacking = _lacking(kept, plan, snapshot, options)
    refresh = partial(_refreshed, now, listing, plan, lacking, dry_run=False)
    renewed = with_witnesses_of(listing, kept) if listing.recognised is not None else kept
    is_same = renewed is kept and len(kept) == len(snapshot.segments)
    of_manifests = set() if snapshot.made_of is None else {*snapshot.made_of.names}
    if not plan.new and not lacking and options == snapshot.options and is_same and not broken & of_manifests:
        return refresh()
    table.store.require_writable()
    with new_build(table.store) as build, new_build(table.store) as merging:
        written = write_index(now, run, build, surveys, renewed, lacking, (schema, options), progress, open_file)
        is_live = np.append(plan.is_live, np.ones(len(written.files) - len(plan.is_live), bool))
        segments, merged = with_increments_merged(table.store, merging, written, is_live, options, schema)
        known = listing.id if plan.is_whole and _is_of(segments.files, listing) else None
        publish(now, build, segments, schema, options, snapshot, known, broken)
        remove_merged(table.store, build, written, segments)
    return replace(refresh(), segments_merged=merged)


def _require_same_glob(table: TableSnapshot, snapshot: Snapshot) -> None:
    """Raise InvalidOption if the index is of other files of the table than those that were opened.

    Pruning would stay right: the index would lose the entries of the files that are not opened.
    """
    before, now = snapshot.options.glob, glob_of(table)
    if before != now:
        of_index = "all files" if before is None else f"the files named {before!r}"
        of_table = "with no glob" if before is None else f"with glob={before!r}"
        raise InvalidOption(
            f"the index at {table.store.location} is of {of_index} of {table.location}: open the table {of_table}, "
            "give another index_location, or build the index anew"
        )


def _is_of(files: SegmentFiles, listing: Listing) -> bool:
    """Whether files, each of them one of a listing, are all of it, and positions by path are those in the listing."""
    return len(files) == len(listing.size) and listing.recognised is None and is_ascending(listing.paths)


def _listed(table: TableSnapshot, snapshot: Snapshot) -> tuple[Listing, np.ndarray]:
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    return listing, np.ones(len(listing.size), bool)


def _called_in_index(table: TableSnapshot, added: BuildOptions) -> BuildOptions:
    """Translate the columns of options to the names in the index."""
    naming = table.naming
    if not isinstance(naming, ByFieldId):
        return added
    schema = declared_schema(table)
    return called_in_index(checked(added, schema), (), schema, naming)[0]


def _joined(before: BuildOptions, added: BuildOptions) -> BuildOptions:
    """Merge added filters, gaps, sums and page locations into an index's options, which may name columns that are gone.

    Postings that say rows say blocks, too, and take the place of those that do not.
    """
    filters, gaps = (*before.filters, *added.filters), (*before.gaps, *added.gaps)
    with_rows = {replace(option, rows=False) for option in filters if option.rows}
    return replace(
        before,
        filters=tuple(dict.fromkeys(option for option in filters if option not in with_rows)),
        gaps=tuple(dict.fromkeys(gaps)),
        page_locations=before.page_locations or added.page_locations,
        expressions=tuple(dict.fromkeys((*before.expressions, *added.expressions))),
        sums=tuple(dict.fromkeys((*before.sums, *added.sums))),
    )


def _under(segments: Segments, schema: pa.Schema, options: BuildOptions) -> Segments:
    """Return the segments with the columns and filters that a schema and options describe."""
    return segments.under(summarised_columns(schema, options), filters_of(options, schema))


def _lacking(kept: Segments, plan: Difference, snapshot: Snapshot, options: BuildOptions) -> list[Amendment]:
    """Return what the kept segments lack; columns that get gaps for the first time are measured again."""
    gaps = set(options.gaps) - set(snapshot.options.gaps)
    anew = [c for c, column in enumerate(kept.columns) if name_of(column.path) in gaps]
    return amendments(kept, plan.is_live, anew, page_locations=options.page_locations)


def _refreshed(
    table: TableSnapshot, listing: Listing, plan: Difference, lacking: Sequence[Amendment], *, dry_run: bool
) -> Refreshed:
    counts = (plan.added, plan.changed, plan.removed, plan.lost, len(lacking))
    return Refreshed(described(table, listing), dry_run, *counts)
