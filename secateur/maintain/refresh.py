"""Bringing an index up to date with its table, and with what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from secateur.errors import InvalidOption
from secateur.index.amend import Amendment, amendments, with_amended
from secateur.index.assemble import FileIdentity, recipe
from secateur.index.build import FOLDER as SEGMENTS_FOLDER
from secateur.index.build import OnProgress, new_build, write_segments
from secateur.index.interleave import FOLDER as FILTERS_FOLDER
from secateur.index.model import POSTINGS, BuildOptions
from secateur.index.options import Columns, called_in_index, checked, filter_options, filters_of
from secateur.index.segment import CODE
from secateur.index.segments import Directory, Segments, joined, summarised
from secateur.index.slab_files import write_slabs
from secateur.index.slabs import no_slabs
from secateur.index.snapshot import Snapshot
from secateur.index.survey import FileSurvey, cut, survey
from secateur.index.tasks import RunTasks, run_tasks
from secateur.io.store import FileStore
from secateur.io.table import Table, TableSnapshot
from secateur.maintain.describe import IndexSnapshot, describe_index
from secateur.maintain.entries import indexed_files, live_files, require_snapshot, settled_files
from secateur.maintain.publish import declared_schema, index_schema, publish, sort_paths, summarised_columns

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
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
) -> Refreshed:
    """Index the files that are new or changed, forget those that are gone, and publish.

    Structures for look-ups may be added to those that the index has, in the words of :func:`secateur.build_index`. A
    segment that lacks some, or a column that the table got later, is amended: of its files only the columns in question
    are read, or only footers. Segments and filters whose files are gone are made anew. All else stays as it is.

    With `dry_run` nothing is written, and `spark` is not needed: columns that new files bring are not foreseen then.

    Raises IndexMissing where there is no index, IndexFault where its snapshot or a segment that is to be amended cannot
    be read, and as :func:`secateur.build_index` does. Until it has returned, readers see the index as it was.
    """
    snapshot = require_snapshot(table)
    now = table.snapshot(fresh=True)
    added = BuildOptions(filters=filter_options(bloom, postings, ngram, tokens), gaps=tuple(gaps))
    added = _called_in_index(now, added)
    plan = _planned(now, snapshot, live_files(now) if dry_run else settled_files(now))
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


# ---- what there is to do ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What stays of an index, and which files are to be indexed.

    Of segments that hold a live file all entries stay: those of files that are gone serve nothing and do no harm, and
    go when the segment is merged.
    """

    kept: Segments
    live: set[FileIdentity]
    new: Sequence[FileIdentity]
    added: int
    changed: int
    removed: int
    lost: int


def _planned(table: TableSnapshot, snapshot: Snapshot, files: Sequence[FileIdentity]) -> _Plan:
    before = snapshot.as_segments()
    live, known = set(files), indexed_files(before.files)
    is_there = _are_there(table.store, before)
    is_live = np.array([file in live for file in known], bool) & is_there[before.files.segment]
    kept = before.take(np.flatnonzero(np.bincount(before.files.segment[is_live], minlength=len(before))))
    covered, indexed = set(indexed_files(kept.files)), set(known)
    new = [file for file in files if file not in covered]
    unknown = [file for file in new if file not in indexed]
    paths = _paths(known)
    changed = sum(path in paths for path, _, _ in unknown)
    return _Plan(
        kept=_without_lost_filters(table.store, kept),
        live=live,
        new=new,
        added=len(unknown) - changed,
        changed=changed,
        removed=len(paths - _paths(files) - _paths(covered)),
        lost=len(new) - len(unknown),
    )


def _paths(files: Iterable[FileIdentity]) -> set[str]:
    return {path for path, _, _ in files}


def _are_there(store: FileStore, segments: Segments) -> np.ndarray:
    """Which segments have their file, of the size that it should have: bool of shape (n_segments,)."""
    sizes = {file.name: file.size for file in store.files(SEGMENTS_FOLDER)}
    found = [sizes.get(name) == size for name, size in zip(segments.name, segments.size.tolist(), strict=True)]
    return np.array(found, bool)


def _without_lost_filters(store: FileStore, segments: Segments) -> Segments:
    """The segments as if they did not have the filters of which a file is gone, or cut off."""
    sizes = {file.name: file.size for file in store.files(FILTERS_FOLDER)} if segments.slabs else {}
    slabs, directory = dict(segments.slabs), dict(segments.directory)
    for f, found in segments.slabs.items():
        named = zip(found.file_name, found.file_size.tolist(), strict=True)
        lost = {name for name, size in named if sizes.get(name) != size}
        if lost:
            slabs[f], harmed = found.without_files(lost)
            codes = directory[CODE, f]
            size = codes.size.copy()
            size[harmed] = 0
            directory[CODE, f] = Directory(codes.at, size, codes.crc)
    return replace(segments, slabs=slabs, directory=directory)


def _under(segments: Segments, schema: pa.Schema, options: BuildOptions) -> Segments:
    """The segments under the columns and filters that a schema and options mean."""
    return segments.under(summarised_columns(schema, options), filters_of(options, schema))


def _lacking(kept: Segments, plan: _Plan, snapshot: Snapshot, options: BuildOptions) -> list[Amendment]:
    """What the kept segments lack; columns whose gaps were not asked for before are measured anew."""
    gaps = set(options.gaps) - set(snapshot.options.gaps)
    anew = [c for c, column in enumerate(kept.columns) if ".".join(column.path) in gaps]
    return amendments(kept, indexed_files(kept.files), plan.live, anew)


def _refreshed(table: Table, plan: _Plan, lacking: Sequence[Amendment], *, dry_run: bool) -> Refreshed:
    counts = (plan.added, plan.changed, plan.removed, plan.lost, len(lacking))
    return Refreshed(describe_index(table), dry_run, *counts)
