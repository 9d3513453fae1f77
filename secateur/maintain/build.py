"""Build an index from scratch."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.amounts import bytes_of, require_amount
from secateur.errors import InvalidOption, UnknownColumn
from secateur.index.build.add_columns import Amendment, with_amended
from secateur.index.build.assemble import recipe
from secateur.index.build.build import OnProgress, new_build, total, write_segments
from secateur.index.build.filter_files import write_bloom_matrices
from secateur.index.build.options import (
    Columns,
    auto_columns,
    checked,
    column_called,
    filter_options,
    filters_of,
    listed,
    with_choices,
)
from secateur.index.build.sampling import choices
from secateur.index.build.source_file import OpenFile
from secateur.index.build.spark_tasks import runner
from secateur.index.build.survey import FileSurvey, cut, survey
from secateur.index.build.tasks import RunTasks
from secateur.index.filters.bloom import rate_for
from secateur.index.filters.bloom_matrix import no_bloom_matrices
from secateur.index.model import OF_ROWS, BuildOptions, indexed_columns
from secateur.index.naming import ByFieldId
from secateur.index.segments.named_columns import called_in_index, called_in_table, computed
from secateur.index.segments.segment_table import Segments, joined, summarised
from secateur.index.zones.segment_tree import FAN_OUT
from secateur.index.zones.sort_key import parse_sort_key
from secateur.io.parquet.arrow_types import merge_schemas
from secateur.io.scan.opened_table import no_file
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table, TableSnapshot
from secateur.maintain.describe import IndexSnapshot, described, undone
from secateur.maintain.entries import chosen_files, glob_of, usable_files
from secateur.maintain.estimate import estimated
from secateur.maintain.publish import declared_schema, index_schema, publish, sort_paths, summarised_columns
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.indexed.indexed_expressions import normalised
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.report import human_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.io.tables.open import Source

LEAST_GROWN, GROWN = 1 << 12, 1 << 4  # blocks, and the steps above for which the rate of bloom filters is chosen
FILES_ASKED = 8  # files whose footers are read for the names of columns


def build_index(
    table: Table | Source,
    *,
    spark: SparkSession | None = None,
    sort_key: Sequence[str] = (),
    bloom: Columns = (),
    postings: Columns = (),
    ngram: Columns = (),
    tokens: Columns = (),
    gaps: Sequence[str] = (),
    zone_map: Sequence[str] = (),
    sums: Sequence[str] = (),
    auto: Sequence[str] | bool = (),
    fpr: float | None = None,
    pages: bool = True,
    page_locations: bool = True,
    segment_blocks: int | None = None,
    fan_out: int = FAN_OUT,
    max_bytes: float | str | None = None,
    on_progress: OnProgress | None = None,
    on_survey: OnProgress | None = None,
    dry_run: bool = False,
) -> IndexSnapshot:
    """Index a table and publish the index in one atomic create. Until it returns, readers see the old index.

    Zone maps cover every orderable column. The other structures are made for the columns named, given as a list or as a
    mapping from names to settings. For an array column its elements are indexed, for a map its keys. An expression in
    SQL, such as ``lower(name)``, may take the place of a column, except in the sort key: conditions on it are then
    looked up in the index. Its value must be the same in every session, and computable here.

    Parameters
    ----------
    spark
        Distributes the work over the executors. Without it, threads of this process do it, one segment each, which is
        faster for tables of up to some gigabytes and needs no Java.
    sort_key
        The columns by which the data is clustered, as in ORDER BY (``["day", "user_id DESC NULLS LAST"]``). Segments
        are cut in this order. For several columns the least and greatest tuple of every block is kept, for which the
        columns are read.
    bloom
        Columns for bloom filters. `fpr` is their false-positive rate; by default, looking up five absent values leaves
        about one block of the whole table. ``{"user_id": "native"}`` uses the filters in the data files.
    postings
        Columns for an exact map from values to blocks, without false positives. ``{"status": "rows"}`` also keeps the
        rows of a block that hold a value, so that little else of it is read. ``{"price": "ordered"}`` keeps all values
        in order with their rows, for ranges and prefixes of columns by which the table is not clustered.
    ngram
        Text columns for substring search by LIKE and RLIKE: ``["message"]``, ``{"message": 6}`` for n-grams of six
        bytes, ``{"message": {"n": 5, "fold": True}}`` to ignore case. Unless `fpr` is given, a gram that is not there
        keeps a tenth of all blocks, and a text of k grams that power of it.
    tokens
        Text columns for whole-word search, by ``has_token()`` and LIKE '% word %'.
    gaps
        Numeric and time columns to keep the widest gaps between values of, so that outliers do not make bounds useless.
    zone_map
        Expressions to keep zone maps of; those named for another structure get them anyway. Of VARIANT, paths with a
        type: ``payload:user::int``.
    sums
        Integer and decimal columns to keep sums of, so that ``sum`` and ``avg`` are answered from metadata.
    auto
        Columns, or True for all, for which a sample of blocks decides between these structures. ``choices`` of the
        result lists what was chosen, why, and the size of each alternative.
    pages
        Keep the files' page index.
    page_locations
        Keep the page locations of all columns, so that reading single pages opens no footer. For files without a page
        index this reads the page headers, and on an object store all bytes between them too.
    segment_blocks, fan_out
        The approximate number of blocks in a segment, and of children of a node in the tree above the segments.
    max_bytes
        The most that the index may take: bytes, ``"20MB"``, or a share of the data's bytes, ``"5%"``. An index that
        would be larger is not built, which a sample tells, and one that has become larger is not published.
    on_survey, on_progress
        Called with the totals once footers are read, and with the files, rows and bytes done.
    dry_run
        Write nothing; estimate the cost. All footers are read, and a part of the index, of at most 256 MiB of data
        files, is built in a temporary directory of this machine. Sizes and time are extrapolated from it by rows.

    Returns
    -------
    IndexSnapshot
        The contents of the new index: counts, bytes, coverage, and the choices made for `auto`. After a dry run, the
        number is 0, and ``estimate`` has the bytes of every structure and the seconds of a build.

    Raises
    ------
    UnknownColumn, TableNotFound, InvalidParquet, IndexNotWritable, IndexConflict
    InvalidOption
        For an unreadable sort key or setting, a partition column, an expression that cannot be indexed, a fan-out
        below 2, or an index larger than `max_bytes`.
    """
    if max_bytes is not None:
        require_amount(max_bytes, "max_bytes")
    table = as_table(table)
    if not dry_run:
        table.store.require_writable()
    if fan_out < 2:
        raise InvalidOption(f"fan_out is {fan_out}; a node of a tree has 2 children or more")
    filters = filter_options(bloom, postings, ngram, tokens)
    options = BuildOptions(
        listed(sort_key),
        filters,
        listed(gaps),
        fpr,
        pages,
        segment_blocks,
        fan_out,
        page_locations=page_locations,
        expressions=listed(zone_map),
        sums=listed(sums),
    )
    auto = auto if isinstance(auto, bool) else listed(auto)
    names = [*(f.column for f in filters), *gaps, *options.expressions, *options.sums]
    require_columns(table, options.sort_key, [*names, *(() if isinstance(auto, bool) else auto)])
    progress = on_survey, on_progress
    return build_with(table, runner(spark), options, auto, progress, dry_run=dry_run, max_bytes=max_bytes)


def require_columns(table: Table, sort_key: Sequence[str], names: Sequence[str]) -> None:
    """Raise UnknownColumn for a column that some files lack, among them the oldest and the newest.

    Raises InvalidOption for an expression that cannot be indexed, and for a partition column.

    Only a few footers are read, so a misspelt name is reported before Spark starts and all footers are read. A column
    that only other files have passes if the table was opened with a schema that has it.
    """
    now = table.snapshot()
    known = now.stored_schema
    if known is None:
        listing = now.listing(dt.UTC)
        if not len(listing.size):
            return
        by_age = np.argsort(listing.stamp, kind="stable")
        some = np.unique(np.linspace(0, len(by_age) - 1, FILES_ASKED).astype(int))
        known = merge_schemas(now.schemas(listing, by_age[some]))
    binder, key = Binder(known, dt.UTC), [column.path for column in parse_sort_key(sort_key)]
    try:
        for path in key:
            resolve(Column(path), binder)
        for name in names:
            if column_called(name, known) is None:
                normalised(name, known)
    except UnknownColumn:
        _require_no_partition(now, [*(".".join(path) for path in key), *names])
        raise


def _require_no_partition(now: TableSnapshot, names: Sequence[str]) -> None:
    """Raise InvalidOption for the name of a partition column, which files lack."""
    partitions = {field.name.lower() for field in now.listing(dt.UTC).partitions.fields}
    for name in names:
        if name.lower() in partitions:
            raise InvalidOption(
                f"{name} is a partition column, of which a file has one value: files are pruned by it without an "
                "index, so leave it out"
            )


def build_with(
    table: Table,
    run: RunTasks,
    options: BuildOptions,
    auto: Sequence[str] | bool = (),
    progress: tuple[OnProgress | None, OnProgress | None] = (None, None),
    *,
    dry_run: bool = False,
    max_bytes: float | str | None = None,
) -> IndexSnapshot:
    """Index a table with options that use the table's column names; see :func:`build_index`. Raises the same."""
    now = table.snapshot(fresh=True)
    options = replace(options, glob=glob_of(now))
    listing, usable = usable_files(now)
    files = chosen_files(listing, usable)
    if not len(listing.size) and now.declared_schema is None:
        raise no_file(now)
    if isinstance(now.naming, ByFieldId):
        options, auto = called_in_index(checked(options, declared_schema(now)), auto, declared_schema(now), now.naming)
    begun = time.monotonic()
    surveys = survey(run, now.open_for_index, files, sort_paths(options))
    schema = index_schema(now, [(item.file.path, item.schema) for item in surveys])
    options = _chosen(now, run, surveys, schema, checked(options, schema), auto)
    limit = None if max_bytes is None else bytes_of(max_bytes, sum(item.byte_count for item in surveys))
    if dry_run or limit is not None:
        estimate = estimated(now, surveys, schema, options, time.monotonic() - begun)
        _require_within(limit, estimate.index_bytes, str(estimate))
    if dry_run:
        columns = [now.naming.in_table(c.path) for c in (*indexed_columns(schema), *computed(options, schema))]
        return undone(table.store.location, called_in_table(options, now.naming), columns, estimate)
    with new_build(table.store) as build:
        nothing = summarised(summarised_columns(schema, options), filters_of(options, schema), [], {})
        segments = write_index(now, run, build, surveys, nothing, (), (schema, options), progress)
        _require_within(limit, segments.stored_bytes, "nothing is published")
        publish(now, build, segments, schema, options)
    return described(now, listing)


def _require_within(limit: int | None, taken: int, more: str) -> None:
    """Raise InvalidOption for an index larger than the limit."""
    if limit is not None and taken > limit:
        raise InvalidOption(
            f"the index takes {human_bytes(taken)}, and max_bytes allows {human_bytes(limit)}: leave out structures, "
            f"or allow more; {more}"
        )


def write_index(
    table: TableSnapshot,
    run: RunTasks,
    build: str,
    surveys: Sequence[FileSurvey],
    kept: Segments,
    lacking: Sequence[Amendment],
    asked: tuple[pa.Schema, BuildOptions],
    progress: tuple[OnProgress | None, OnProgress | None],
    open_file: OpenFile | None = None,
) -> Segments:
    """Return the kept segments, some of them amended, followed by those of the surveyed files."""
    schema, options = asked
    on_survey, on_progress = progress
    if on_survey is not None:
        on_survey(
            *total([*((1, s.row_count, s.byte_count) for s in surveys), *(amendment.sizes for amendment in lacking)])
        )
    blocks = int(kept.block_count.sum()) + sum(item.block_count for item in surveys)
    what = recipe(schema, kept.columns, options, blocks if lacking or not len(kept) else _grown(blocks))
    parts = cut(surveys, options.segment_blocks, has_postings=any(filter_.kind in OF_ROWS for filter_ in what.filters))
    opens = open_file or table.open_for_index
    summaries = write_segments(run, build, opens, table.store, parts, what, on_progress, lacking)
    bloom_matrices = write_bloom_matrices(run, build, table.store, summaries)
    new = summarised(kept.columns, kept.filters, summaries[: len(parts)], {})
    segments = joined(with_amended(kept, list(zip(lacking, summaries[len(parts) :], strict=True))), new)
    numbers = np.append(len(kept) + np.arange(len(parts)), [amendment.segment for amendment in lacking]).astype(
        np.int64
    )
    added = {f: matrices.at_segments(numbers) for f, matrices in bloom_matrices.items()}
    before = {f: segments.bloom_matrices.get(f, no_bloom_matrices()) for f in added}
    return replace(
        segments, bloom_matrices={**segments.bloom_matrices, **{f: before[f].followed_by(added[f], 0) for f in added}}
    )


def _grown(blocks: int) -> int:
    """Return the number of blocks for which a refresh sizes bloom filters: at least `blocks`, rounded up in big steps.

    Otherwise every refresh would choose another rate, hence other sizes of filters. Each size has matrices of its own,
    and a look-up reads them all.
    """
    grown = LEAST_GROWN
    while grown < blocks:
        grown *= GROWN
    return grown


def _chosen(
    table: TableSnapshot,
    run: RunTasks,
    surveys: Sequence[FileSurvey],
    schema: pa.Schema,
    options: BuildOptions,
    auto: Sequence[str] | bool,
) -> BuildOptions:
    """Fill in the options that a sample decides for the `auto` columns. Raises UnknownColumn."""
    columns = auto_columns(auto, options, schema)
    if not columns:
        return options
    rate = rate_for(sum(item.block_count for item in surveys), options.fpr)
    chosen = choices(run, table.open_for_index, surveys, schema, columns, options.segment_blocks, rate)
    return with_choices(options, chosen)
