"""Bringing an index up to date with its table, and with what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur.errors import InvalidOption
from secateur.index.amend import Amendment, amendments, with_amended
from secateur.index.assemble import recipe
from secateur.index.build import OnProgress, new_build, write_segments
from secateur.index.model import POSTINGS, BuildOptions
from secateur.index.options import Columns, called_in_index, checked, filter_options, filters_of
from secateur.index.segments import Segments, joined, summarised
from secateur.index.slab_files import write_slabs
from secateur.index.slabs import no_slabs
from secateur.index.snapshot import Snapshot
from secateur.index.survey import FileSurvey, cut, survey
from secateur.index.tasks import RunTasks, run_tasks
from secateur.io.table import Table, TableSnapshot
from secateur.maintain.describe import IndexSnapshot, describe_index
from secateur.maintain.difference import Difference, difference
from secateur.maintain.entries import indexed_files, live_files, require_snapshot, settled_files
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
    segments_amended: int  # that got columns or filters which they lacked

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
    repair: bool = False,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> Refreshed:
    """Index the files that are new or changed, forget those that are gone, and publish.

    Structures for look-ups may be added to those that the index has, in the words of :func:`secateur.build_index`. A
    segment that lacks some, or a column that the table got later, is amended: of its files only the columns in question
    are read, or only footers. Segments and filters whose files are gone are made anew; with `repair` every byte of the
    index is read first, and those are made anew too whose files are broken. All else stays as it is.

    With `dry_run` nothing is written, and `spark` is not needed: columns that new files bring are not foreseen then.

    Raises IndexMissing where there is no index, IndexFault where its snapshot or a segment that is to be amended cannot
    be read, and as :func:`secateur.build_index` does. Until it has returned, readers see the index as it was.
    """
    snapshot = require_snapshot(table)
    now = table.snapshot(fresh=True)
    added = BuildOptions(filters=filter_options(bloom, postings, ngram, tokens), gaps=tuple(gaps))
    added = _called_in_index(now, added)
    files = live_files(now) if dry_run else settled_files(now)
    plan = difference(table.store, snapshot, files, broken_files(table.store, snapshot) if repair else ())
    if dry_run:
        options = _joined(snapshot.options, checked(added, snapshot.schema))
        kept = _under(plan.kept, snapshot.schema, options)
        return _refreshed(table, plan, _lacking(kept, plan, snapshot, options), dry_run=True)
    if spark is None:
        raise InvalidOption("a refresh runs as a Spark job: pass spark=, or dry_run=True to see what it would do")
    run = partial(run_tasks, spark)
    surveys = survey(run, now.open_for_index, plan.new, sort_paths(snapshot.options))
    schema = index_schema(now, [("the index", snapshot.schema), *((item.file[0], item.schema) for item in surveys)])
    options = _joined(snapshot.options, checked(added, schema))
    kept = _under(plan.kept, schema, options)
    lacking = _lacking(kept, plan, snapshot, options)
    found = partial(_refreshed, table, plan, lacking, dry_run=False)
    if not plan.new and not lacking and options == snapshot.options and len(kept) == len(snapshot.segments):
        return found()
    table.store.require_writable()
    if on_survey is not None:
        sizes = [(1, s.row_count, s.byte_count) for s in surveys] + [each.sizes for each in lacking]
        on_survey(*(sum(each[part] for each in sizes) for part in range(3)))
    with new_build(table.store) as build:
        segments = _written(now, run, build, surveys, kept, lacking, (schema, options), on_progress)
        publish(now, build, segments, schema, options, expected=snapshot)
    return found()


def _written(
    table: TableSnapshot,
    run: RunTasks,
    build: str,
    surveys: Sequence[FileSurvey],
    kept: Segments,
    lacking: Sequence[Amendment],
    asked: tuple[pa.Schema, BuildOptions],
    on_progress: OnProgress | None,
) -> Segments:
    """The kept segments, of which some are amended, and behind them the segments of new files."""
    schema, options = asked
    blocks = int(kept.block_count.sum()) + sum(item.block_count for item in surveys)
    what = recipe(schema, kept.columns, options, blocks)
    parts = cut(surveys, options.segment_blocks, has_postings=any(each.kind == POSTINGS for each in what.filters))
    summaries = write_segments(run, build, table.open_for_index, table.store, parts, what, on_progress, lacking)
    slabs = write_slabs(run, build, table.store, summaries, what)
    new = summarised(kept.columns, kept.filters, summaries[: len(parts)], {})
    segments = joined(with_amended(kept, list(zip(lacking, summaries[len(parts) :], strict=True))), new)
    numbers = np.append(len(kept) + np.arange(len(parts)), [each.segment for each in lacking]).astype(np.int64)
    added = {f: found.at_segments(numbers) for f, found in slabs.items()}
    before = {f: segments.slabs.get(f, no_slabs()) for f in added}
    return replace(segments, slabs={**segments.slabs, **{f: before[f].followed_by(added[f], 0) for f in added}})


def _called_in_index(table: TableSnapshot, added: BuildOptions) -> BuildOptions:
    """Options with columns as the index calls them."""
    if table.naming is None:
        return added
    schema = declared_schema(table)
    return called_in_index(checked(added, schema), (), schema, table.naming)[0]


def _joined(own: BuildOptions, added: BuildOptions) -> BuildOptions:
    """The options of an index, which may name columns that are no more, with more filters and gaps."""
    filters, gaps = (*own.filters, *added.filters), (*own.gaps, *added.gaps)
    return replace(own, filters=tuple(dict.fromkeys(filters)), gaps=tuple(dict.fromkeys(gaps)))


def _under(segments: Segments, schema: pa.Schema, options: BuildOptions) -> Segments:
    """The segments under the columns and filters that a schema and options mean."""
    return segments.under(summarised_columns(schema, options), filters_of(options, schema))


def _lacking(kept: Segments, plan: Difference, snapshot: Snapshot, options: BuildOptions) -> list[Amendment]:
    """What the kept segments lack; columns whose gaps were not asked for before are measured anew."""
    gaps = set(options.gaps) - set(snapshot.options.gaps)
    anew = [c for c, column in enumerate(kept.columns) if ".".join(column.path) in gaps]
    return amendments(kept, indexed_files(kept.files), plan.live, anew)


def _refreshed(table: Table, plan: Difference, lacking: Sequence[Amendment], *, dry_run: bool) -> Refreshed:
    counts = (plan.added, plan.changed, plan.removed, plan.lost, len(lacking))
    return Refreshed(describe_index(table), dry_run, *counts)
