"""Bringing an index up to date with its table, and with what is asked of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from secateur.index.build.add_columns import Amendment, amendments
from secateur.index.build.build import OnProgress, new_build
from secateur.index.build.options import Columns, called_in_index, checked, filter_options, filters_of
from secateur.index.build.spark_tasks import runner
from secateur.index.build.survey import survey
from secateur.index.identity import FileIdentity
from secateur.index.model import BuildOptions
from secateur.index.naming import ByFieldId
from secateur.index.segments.segment_table import Segments
from secateur.index.segments.snapshot import Snapshot
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.listing import Listing
from secateur.io.tables.table import Table, TableSnapshot
from secateur.maintain.build import write_index
from secateur.maintain.describe import IndexSnapshot, described
from secateur.maintain.difference import Difference, difference
from secateur.maintain.entries import indexed_files, live_files, require_snapshot, settled, with_witnesses_of
from secateur.maintain.publish import declared_schema, index_schema, publish, sort_paths, summarised_columns
from secateur.maintain.verify import broken_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did, or would do."""

    index: IndexSnapshot  # as it is now
    dry_run: bool
    files_added: int  # that are new to the index
    files_changed: int  # of another size or time than the index has of them
    files_removed: int  # that are live no more, in segments that have no other: they leave the index
    files_lost: int  # of segments that are gone: indexed anew
    segments_amended: int  # that got columns, filters or layouts which they lacked

    @property
    def is_current(self) -> bool:
        """Whether there was nothing to do."""
        changes = (self.files_added, self.files_changed, self.files_removed, self.files_lost, self.segments_amended)
        return not any(changes)


def refresh_index(
    table: Table,
    *,
    spark: SparkSession | None = None,
    bloom: Columns = (),
    postings: Columns = (),
    ngram: Columns = (),
    tokens: Columns = (),
    gaps: Sequence[str] = (),
    layouts: bool = False,
    repair: bool = False,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> Refreshed:
    """Index the files that are new or changed, forget those that are gone, and publish.

    Structures for look-ups may be added to those that the index has, in the words of :func:`secateur.build_index`. A
    segment that lacks some, or a column that the table got later, is amended: of its files only the columns in question
    are read, or only footers. `layouts` adds those to an index that was made without. Segments and filters whose files
    are gone are made anew; with `repair` every byte of the index is read first, and those are made anew too whose files
    are broken. All else stays as it is.

    With `spark` the work is spread over its executors, else over threads of this process. With `dry_run` nothing is
    written: columns that new files bring are not foreseen then.

    Raises IndexMissing where there is no index, IndexFault where its snapshot or a segment that is to be amended cannot
    be read, and as :func:`secateur.build_index` does. Until it has returned, readers see the index as it was.
    """
    snapshot = require_snapshot(table)
    now = table.snapshot(fresh=True)
    added = BuildOptions(filters=filter_options(bloom, postings, ngram, tokens), gaps=tuple(gaps), layouts=layouts)
    added = _called_in_index(now, added)
    listing, files = _listed(now, snapshot) if dry_run else settled(now, snapshot)
    plan = difference(table.store, snapshot, files, broken_files(table.store, snapshot) if repair else ())
    if dry_run:
        options = _joined(snapshot.options, checked(added, snapshot.schema))
        kept = _under(plan.kept, snapshot.schema, options)
        return _refreshed(now, listing, plan, _lacking(kept, plan, snapshot, options), dry_run=True)
    run = runner(spark)
    surveys = survey(run, now.open_for_index, plan.new, sort_paths(snapshot.options))
    schema = index_schema(now, [("the index", snapshot.schema), *((item.file.path, item.schema) for item in surveys)])
    options = _joined(snapshot.options, checked(added, schema))
    kept = _under(plan.kept, schema, options)
    lacking = _lacking(kept, plan, snapshot, options)
    found = partial(_refreshed, now, listing, plan, lacking, dry_run=False)
    renewed = with_witnesses_of(listing, kept) if listing.recognised is not None else kept
    is_same = renewed is kept and len(kept) == len(snapshot.segments)
    if not plan.new and not lacking and options == snapshot.options and is_same:
        return found()
    table.store.require_writable()
    with new_build(table.store) as build:
        progress = on_survey, on_progress
        segments = write_index(now, run, build, surveys, renewed, lacking, (schema, options), progress)
        publish(now, build, segments, schema, options, expected=snapshot)
    return found()


def _listed(table: TableSnapshot, snapshot: Snapshot) -> tuple[Listing, list[FileIdentity]]:
    listing = recognised(table, table.fresh_listing(dt.UTC), snapshot)
    return listing, live_files(listing)


def _called_in_index(table: TableSnapshot, added: BuildOptions) -> BuildOptions:
    """Options with columns as the index calls them."""
    naming = table.naming
    if not isinstance(naming, ByFieldId):
        return added
    schema = declared_schema(table)
    return called_in_index(checked(added, schema), (), schema, naming)[0]


def _joined(own: BuildOptions, added: BuildOptions) -> BuildOptions:
    """The options of an index, which may name columns that are no more, with more filters, gaps and layouts."""
    filters, gaps = (*own.filters, *added.filters), (*own.gaps, *added.gaps)
    return replace(
        own,
        filters=tuple(dict.fromkeys(filters)),
        gaps=tuple(dict.fromkeys(gaps)),
        layouts=own.layouts or added.layouts,
    )


def _under(segments: Segments, schema: pa.Schema, options: BuildOptions) -> Segments:
    """The segments under the columns and filters that a schema and options mean."""
    return segments.under(summarised_columns(schema, options), filters_of(options, schema))


def _lacking(kept: Segments, plan: Difference, snapshot: Snapshot, options: BuildOptions) -> list[Amendment]:
    """What the kept segments lack; columns whose gaps were not asked for before are measured anew."""
    gaps = set(options.gaps) - set(snapshot.options.gaps)
    anew = [c for c, column in enumerate(kept.columns) if ".".join(column.path) in gaps]
    return amendments(kept, indexed_files(kept.files), plan.live, anew, layouts=options.layouts)


def _refreshed(
    table: TableSnapshot, listing: Listing, plan: Difference, lacking: Sequence[Amendment], *, dry_run: bool
) -> Refreshed:
    counts = (plan.added, plan.changed, plan.removed, plan.lost, len(lacking))
    return Refreshed(described(table, listing), dry_run, *counts)
