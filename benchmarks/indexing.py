"""Indexing a table in this process: the passes of a build without Spark."""

from __future__ import annotations

import datetime as dt

from benchmarks.slabs import lay_slivers
from benchmarks.synthetic import publish
from secateur.index.build.assemble import assemble, recipe
from secateur.index.build.options import checked, filters_of
from secateur.index.build.survey import FileSurvey, cut
from secateur.index.filters.transpose import FOLDER
from secateur.index.identity import FileIdentity
from secateur.index.model import BuildOptions
from secateur.index.segments.segment_table import summarised
from secateur.index.segments.snapshot import encode_snapshot, snapshot_name
from secateur.io.parquet.arrow_types import merge_schemas
from secateur.io.tables.table import Table, TableSnapshot
from secateur.maintain.entries import live_files
from secateur.maintain.publish import keep_manifests, summarised_columns


def index_here(table: Table, options: BuildOptions) -> None:
    """Index a table that has no index; segments are in no order."""
    now = table.snapshot()
    listing = now.fresh_listing(dt.UTC)
    surveys = [_survey(now, file) for file in live_files(listing)]
    schema = merge_schemas((item.file.path, item.schema) for item in surveys)
    options = checked(options, schema)
    what = recipe(schema, summarised_columns(schema, options), options, sum(item.block_count for item in surveys))
    summaries = []
    for number, part in enumerate(cut(surveys, options.segment_blocks)):
        name = f"000000000000-{number:06d}"
        identities = [item.file for item in part]
        made = assemble(identities, now.open_for_index, what, table.store, f"slivers/{name}")
        summaries.append(publish(table.store, f"segments/{name}.segment", made.segment, made.slivers))
    slabs = lay_slivers(table.store, summaries, what.rates)
    segments = summarised(what.columns, filters_of(options, schema), summaries, slabs)
    table.store.create(
        snapshot_name(1), encode_snapshot(1, 0.0, segments, options, schema, keep_manifests(now, "0" * 12))
    )


def _survey(table: TableSnapshot, file: FileIdentity) -> FileSurvey:
    source = table.open_for_index(file.path)
    counts = len(source.row_count), int(source.row_count.sum()), int(source.byte_count.sum())
    return FileSurvey(file, *counts, source.schema, (), b"")


def filter_bytes(table: Table) -> int:
    """What all filters of a table's index take."""
    return sum(file.size for file in table.store.files(FOLDER))
