"""Inspect a table as Arrow tables: its snapshots, manifests, files and blocks, and their coverage by the index.

All describe the snapshot that queries of the handle read. No data file is opened, except by :func:`blocks`, which reads
the footers of files that the index does not cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.read.index_view import IndexView
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.sort_key import parse_sort_key
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.scan.block_list import reading_order
from secateur.io.scan.opened_table import OpenedTable, opened_strictly
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.pruning.explain.why import is_unbounded
from secateur.pruning.predicate.binding.typed_constants import literal_of
from secateur.pruning.predicate.bound import Constant, Field
from secateur.ragged import offsets_of
from secateur.values.keys import Keys

if TYPE_CHECKING:
    from secateur.io.tables.open import Source


def snapshots(table: Table | Source) -> pa.Table:
    """Return one row per snapshot of the table.

    Returns
    -------
    pa.Table
        Id, parent, time, operation, summary, and the branches and tags that name the snapshot; `selected` marks the one
        that queries of this handle read. Empty for a directory of Parquet files, which has no snapshots.
    """
    table = as_table(table)
    return table.snapshot().metadata_tables.snapshots()


def manifests(table: Table | Source) -> pa.Table:
    """Return one row per manifest of the snapshot.

    Returns
    -------
    pa.Table
        What the manifest lists, its size, and its counts of files and rows; counts that a manifest list of version 1
        leaves out are null. `partitions` has a summary per field of its partition spec, with bounds as text. Empty for
        a directory of Parquet files, which has no manifests.
    """
    table = as_table(table)
    return table.snapshot().metadata_tables.manifests()


def files(table: Table | Source) -> pa.Table:
    """Return one row per live data file, by path, then one per delete file.

    Returns
    -------
    pa.Table
        `file` is the name used in ``plan.files`` and ``plan.blocks``. `partition` is a struct of the partition values,
        over all specs of the table, or of the Hive partition columns. `row_count` includes deleted rows; null if
        neither manifests nor the index have it. `delete_files` counts those that apply to a data file; for delete
        files, it and `indexed` are null.
    """
    table = as_table(table)
    opened = opened_strictly(table)
    listed = opened.table.metadata_tables.files(opened.listing)
    live, rest = len(opened.listing.size), len(listed) - len(opened.listing.size)
    covered = np.ones(live, bool)
    covered[opened.catalog.coverage.uncovered] = False
    indexed = pa.concat_arrays([flags(covered), pa.nulls(rest, pa.bool_())])
    rows = pa.concat_arrays([_rows_by_index(opened.catalog, live), pa.nulls(rest, pa.int64())])
    counted = pc.coalesce(listed["row_count"].combine_chunks(), rows)
    at = listed.column_names.index("row_count")
    return listed.set_column(at, "row_count", counted).append_column("indexed", indexed)


def _rows_by_index(catalog: IndexView, live: int) -> pa.Array:
    """Return the index's row count of every live file; null if the file is not covered."""
    coverage = catalog.coverage
    counts = np.full(live, -1, np.int64)
    if coverage.counts_of is not None:
        entries = np.flatnonzero(coverage.live >= 0)
        counts[coverage.live[entries]] = coverage.counts_of.row_count[entries]
    return pa.array(counts, mask=counts < 0)


def blocks(table: Table | Source) -> pa.Table:
    """Return one row per non-empty row group, ordered by file.

    Returns
    -------
    pa.Table
        Its rows, compressed bytes and segment. `segment` is the row number in :func:`segments`; null for blocks that
        the index does not cover, whose footers are read.
    """
    table = as_table(table)
    opened = opened_strictly(table)
    every = every_block(opened)
    order = reading_order(every.file, every.row_group)
    file, segment = every.file[order].astype(np.int32), every.segment[order]
    return pa.table(
        {
            "file": pa.DictionaryArray.from_arrays(from_numpy(file), opened.listing.paths),
            "row_group": from_numpy(every.row_group[order]),
            "row_count": from_numpy(every.row_count[order]),
            "bytes": from_numpy(every.byte_count[order]),
            "segment": pa.array(segment, mask=segment < 0),
        }
    )


def every_block(opened: OpenedTable) -> OpenedBlocks:
    """Return all non-empty row groups of live files; footers of files without an entry are read."""
    catalog = opened.catalog
    loose = [np.arange(run.begin, run.begin + len(run)) for run in catalog.loose_runs(None)]
    known = catalog.open(np.concatenate([np.arange(catalog.total), *loose]), None)
    return known.take(np.flatnonzero(known.file >= 0))


# ---- segments --------------------------------------------------------------------------------------------------------


def segments(table: Table | Source) -> pa.Table:
    """Return one row per segment of the index, in key order; none without an index.

    Returns
    -------
    pa.Table
        Its file, contents and bounds of the sort key's columns. `live_files`: its files that are in the snapshot.
        `lower` and `upper`: structs with a value per column of the sort key; null if unknown, or all values are NULL.
    """
    table = as_table(table)
    opened = opened_strictly(table)
    snapshot, live = opened.catalog.snapshot, opened.catalog.coverage
    key = [] if snapshot is None else list(_key_columns(opened, snapshot))
    lower, upper = ([_values(column, zone_map, end) for column, zone_map in key] for end in (0, 1))
    fields = [pa.field(".".join(column.path), column.type) for column, _ in key]
    n = 0 if snapshot is None else len(snapshot.segments)
    nothing = np.zeros(0, np.int64)
    stored = None if snapshot is None else snapshot.segments
    live_files = nothing if stored is None else np.diff(offsets_of(live.live >= 0)[live.begin])
    return pa.table(
        {
            "segment": from_numpy(np.arange(n)),
            "name": pa.array([] if stored is None else stored.name, pa.string()),
            "bytes": from_numpy(nothing if stored is None else stored.size),
            "files": from_numpy(nothing if stored is None else stored.file_count),
            "live_files": from_numpy(live_files),
            "blocks": from_numpy(nothing if stored is None else stored.block_count),
            "row_count": from_numpy(nothing if stored is None else stored.row_count),
            "lower": _struct(lower, fields, n),
            "upper": _struct(upper, fields, n),
        }
    )


def _key_columns(opened: OpenedTable, snapshot: Snapshot) -> Iterator[tuple[Field, ZoneMap]]:
    """Yield the sort key's columns, named as in the table, with their zone maps over the segments."""
    naming = opened.table.naming
    types = {column.path: column.type for column in snapshot.columns}
    for sort_column in parse_sort_key(snapshot.options.sort_key):
        if sort_column.path in types:
            zone_map = snapshot.tree_zones(Field(sort_column.path, types[sort_column.path]))
            path = naming.in_table(sort_column.path)
            if zone_map is not None:
                yield Field(path, types[sort_column.path]), zone_map.take(np.arange(len(snapshot.segments)))


def _values(column: Field, zone_map: ZoneMap, end: int) -> pa.Array:
    """Return lower or upper bounds as values; null if there are none."""
    keys = (zone_map.lower, zone_map.upper)[end]
    return pa.array([_value(column, keys.take(slice(i, i + 1)), end) for i in range(len(keys))], column.type)


def _value(column: Field, keys: Keys, end: int) -> object:
    key = keys.at(0)
    literal = None if is_unbounded(column, keys, key, end) else literal_of(Constant(column.type, key))
    return None if literal is None else literal.value


def _struct(values: Sequence[pa.Array], fields: Sequence[pa.Field], n: int) -> pa.Array:
    return pa.StructArray.from_arrays(values, fields=fields) if fields else pa.nulls(n, pa.struct([]))
