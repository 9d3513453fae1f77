"""Tables about a table, as Arrow: its snapshots, manifests, files and blocks, and what its index has of them.

All of them tell of the snapshot that queries of the handle read. Of data files nothing is opened, but for the footers
of those that the index does not cover, by :func:`blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy
from secateur.index.read.index_view import IndexView
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.sort_key import parse_sort_key
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.scan.block_list import reading_order
from secateur.io.scan.opened_table import OpenedTable, opened_strictly
from secateur.io.tables.table import Table
from secateur.pruning.explain.why import is_unbounded
from secateur.pruning.predicate.bound import Constant, Field
from secateur.pruning.predicate.operands import literal_of
from secateur.ragged import offsets_of
from secateur.values import Keys


def snapshots(table: Table) -> pa.Table:
    """One row per snapshot of the table: id, parent, time, operation, summary, and the branches and tags that name it.

    `selected` marks the one that queries of this handle read. A directory of Parquet files has no snapshots, and so no
    row here.
    """
    return table.snapshot().metadata_tables.snapshots()


def manifests(table: Table) -> pa.Table:
    """One row per manifest of the snapshot: what it lists, its size, and its counts of files and rows.

    `partitions` has a summary for every field of its partition spec, with bounds as text. Counts that a manifest list
    of version 1 leaves out are null. A directory of Parquet files has no manifests, and so no row here.
    """
    return table.snapshot().metadata_tables.manifests()


def files(table: Table) -> pa.Table:
    """One row per live file, by path: size, rows, partition values, whether the index covers it; then the delete files.

    `file` is the name that ``plan.files`` and ``plan.blocks`` use. `partition` is a struct of the partition values, of
    all specs that the table has had, or of the columns that directories name. `row_count` counts deleted rows too, and
    is null where neither manifests nor the index tell it. `delete_files` counts those that apply to a data file; of
    delete files themselves, it is null as `indexed` is.
    """
    opened = opened_strictly(table)
    told = opened.table.metadata_tables.files(opened.listing)
    live, rest = len(opened.listing.size), len(told) - len(opened.listing.size)
    covered = np.ones(live, bool)
    covered[opened.catalog.coverage.uncovered] = False
    indexed = pa.concat_arrays([flags(covered), pa.nulls(rest, pa.bool_())])
    rows = pa.concat_arrays([_rows_by_index(opened.catalog, live), pa.nulls(rest, pa.int64())])
    counted = pc.coalesce(told["row_count"].combine_chunks(), rows)
    at = told.column_names.index("row_count")
    return told.set_column(at, "row_count", counted).append_column("indexed", indexed)


def _rows_by_index(catalog: IndexView, live: int) -> pa.Array:
    """The rows of every live file by the index; null where it does not cover the file."""
    coverage = catalog.coverage
    found = np.full(live, -1, np.int64)
    if coverage.counts_of is not None:
        entries = np.flatnonzero(coverage.live >= 0)
        found[coverage.live[entries]] = coverage.counts_of.row_count[entries]
    return pa.array(found, mask=found < 0)


def blocks(table: Table) -> pa.Table:
    """One row per row group that has rows, in order of files: its rows, its compressed bytes, and its segment.

    `segment` is the number of a row of :func:`segments`; null for blocks that the index does not cover, whose footers
    are read.
    """
    opened = opened_strictly(table)
    catalog = opened.catalog
    loose = [np.arange(run.begin, run.begin + len(run)) for run in catalog.loose_runs(None)]
    found = catalog.open(np.concatenate([np.arange(catalog.total), *loose]), None)
    file, row_group, segment = found.file, found.row_group, found.segment
    order = np.flatnonzero(file >= 0)
    order = order[reading_order(file[order], row_group[order])]
    names = pa.DictionaryArray.from_arrays(from_numpy(file[order].astype(np.int32)), opened.listing.paths)
    return pa.table(
        {
            "file": names,
            "row_group": from_numpy(row_group[order]),
            "row_count": from_numpy(found.row_count[order]),
            "bytes": from_numpy(found.byte_count[order]),
            "segment": pa.array(segment[order], mask=segment[order] < 0),
        }
    )


# ---- segments --------------------------------------------------------------------------------------------------------


def segments(table: Table) -> pa.Table:
    """One row per segment of the index, in key order: its file, what it holds, and bounds of the sort key's columns.

    `live_files` are those of its files that the snapshot has. `lower` and `upper` are structs of a value per column of
    the sort key; null where it is not known, or all values are NULL. Without an index there is no row.
    """
    opened = opened_strictly(table)
    snapshot, live = opened.catalog.snapshot, opened.catalog.coverage
    key = [] if snapshot is None else list(_key_columns(opened, snapshot))
    lower, upper = ([_values(column, zone_map, end) for column, zone_map in key] for end in (0, 1))
    fields = [pa.field(".".join(column.path), column.type) for column, _ in key]
    n = 0 if snapshot is None else len(snapshot.segments)
    nothing = np.zeros(0, np.int64)
    held = None if snapshot is None else snapshot.segments
    live_files = nothing if held is None else np.diff(offsets_of(live.live >= 0)[live.begin])
    return pa.table(
        {
            "segment": from_numpy(np.arange(n)),
            "name": pa.array([] if held is None else held.name, pa.string()),
            "bytes": from_numpy(nothing if held is None else held.size),
            "files": from_numpy(nothing if held is None else held.file_count),
            "live_files": from_numpy(live_files),
            "blocks": from_numpy(nothing if held is None else held.block_count),
            "row_count": from_numpy(nothing if held is None else held.row_count),
            "lower": _struct(lower, fields, n),
            "upper": _struct(upper, fields, n),
        }
    )


def _key_columns(opened: OpenedTable, snapshot: Snapshot) -> Iterator[tuple[Field, ZoneMap]]:
    """The columns of the sort key as the table calls them, with their zone maps over the segments."""
    naming = opened.table.naming
    types = {column.path: column.type for column in snapshot.columns}
    for each in parse_sort_key(snapshot.options.sort_key):
        if each.path in types:
            zone_map = snapshot.tree_zones(Field(each.path, types[each.path]))
            shown = naming.in_table(each.path)
            if zone_map is not None:
                yield Field(shown, types[each.path]), zone_map.take(np.arange(len(snapshot.segments)))


def _values(column: Field, zone_map: ZoneMap, end: int) -> pa.Array:
    """Lower or upper bounds as values; null where there is none."""
    keys = (zone_map.lower, zone_map.upper)[end]
    return pa.array([_value(column, keys.take(slice(i, i + 1)), end) for i in range(len(keys))], column.type)


def _value(column: Field, keys: Keys, end: int) -> object:
    key = keys.at(0)
    literal = None if is_unbounded(column, keys, key, end) else literal_of(Constant(column.type, key))
    return None if literal is None else literal.value


def _struct(values: Sequence[pa.Array], fields: Sequence[pa.Field], n: int) -> pa.Array:
    return pa.StructArray.from_arrays(values, fields=fields) if fields else pa.nulls(n, pa.struct([]))
