"""Tables about a table, as Arrow: its snapshots, manifests, files and blocks, and what its index has of them.

All of them tell of the snapshot that queries of the handle read. Of data files nothing is opened, but for the footers
of those that the index does not cover, by :func:`blocks`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy
from secateur.index.model import NGRAM, POSTINGS, TOKEN, Filter
from secateur.index.options import called_in_table, hashed_type
from secateur.index.reader import IndexCatalog
from secateur.index.segment import PAGE, POSTING, ZONE
from secateur.index.segments import Directory
from secateur.index.snapshot import Snapshot
from secateur.index.sort_key import is_tuple_column, parse_sort_key
from secateur.index.zonemap import ZoneMap
from secateur.io.block_list import reading_order
from secateur.io.catalog import OpenedTable, open_snapshot_of
from secateur.io.table import Table
from secateur.pruning.predicate.bound import Constant, Field
from secateur.pruning.predicate.operands import literal_of
from secateur.pruning.report import Faults
from secateur.pruning.why import is_unbounded
from secateur.ragged import offsets_of
from secateur.values import Keys, kind_of, same_keys


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
    opened = _opened(table)
    told = opened.table.metadata_tables.files(opened.listing)
    live, rest = len(opened.listing.size), len(told) - len(opened.listing.size)
    covered = np.ones(live, bool)
    covered[opened.catalog.coverage.uncovered] = False
    indexed = pa.concat_arrays([flags(covered), pa.nulls(rest, pa.bool_())])
    rows = pa.concat_arrays([_rows_by_index(opened.catalog, live), pa.nulls(rest, pa.int64())])
    counted = pc.coalesce(told["row_count"].combine_chunks(), rows)
    at = told.column_names.index("row_count")
    return told.set_column(at, "row_count", counted).append_column("indexed", indexed)


def _rows_by_index(catalog: IndexCatalog, live: int) -> pa.Array:
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
    opened = _opened(table)
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
    opened = _opened(table)
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
            shown = each.path if naming is None else naming.in_table.get(each.path, each.path)
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


# ---- coverage --------------------------------------------------------------------------------------------------------

_COVERAGE = pa.schema(
    [
        ("column", pa.string()),
        ("structure", pa.string()),
        ("setting", pa.string()),
        ("files", pa.int64()),
        ("blocks", pa.int64()),
        ("row_count", pa.int64()),
        ("files_without_entry", pa.int64()),
        ("files_changed", pa.int64()),
        ("files_without_structure", pa.int64()),
        ("why", pa.string()),
    ]
)


def coverage(table: Table) -> pa.Table:
    """One row per column and structure of the index: how much of the live files it covers, and why not the rest.

    Every column of the files has a row for its zone maps, and rows for pages, bloom filters, postings, n-grams and
    tokens where the index has some; tuples of the sort key have one. `files`, `blocks` and `row_count` are covered.
    The other live files have no entry in the index, or were changed since it was made, or lie in segments without the
    structure (which segments written before it was asked for are). `why` says so in words; it is null where
    everything is covered. Whether a block has gaps, or a filter, that were left out because they would not pay is not
    told here.
    """
    opened = _opened(table)
    found = _Coverage(opened)
    return pa.Table.from_pylist([found.row(each) for each in _structures(opened)], _COVERAGE)


def not_covered(opened: OpenedTable) -> dict[tuple[str, str], str | None]:
    """Of every column and structure that the index has, why not all live files are covered; None where they are.

    Zone maps that it does not have are among these.
    """
    found = _Coverage(opened)
    structures = (each for each in _structures(opened) if each.has is not None or each.why_not)
    return {(each.column, each.name): _why(found.row(each)) for each in structures}


def columns_with_gaps(opened: OpenedTable) -> frozenset[str]:
    """The columns of which the index was asked to keep gaps, as the table calls them."""
    snapshot, naming = opened.catalog.snapshot, opened.table.naming
    if snapshot is None:
        return frozenset()
    options = snapshot.options if naming is None else called_in_table(snapshot.options, naming)
    return frozenset(options.gaps)


def _why(row: dict[str, object]) -> str | None:
    why = row["why"]
    assert why is None or isinstance(why, str)
    return why


@dataclass(frozen=True)
class _Structure:
    """Something that the index keeps of a column, and which segments have it; None where the index cannot have it."""

    column: str
    name: str
    setting: str | None
    has: np.ndarray | None  # bool over segments
    why_not: str = ""


@dataclass(frozen=True)
class _Coverage:
    """The live files by what the index has of them."""

    opened: OpenedTable

    def row(self, structure: _Structure) -> dict[str, object]:
        """How much of a structure there is."""
        coverage = self.opened.catalog.coverage
        live = coverage.live >= 0
        has = np.zeros(len(live), bool) if structure.has is None else np.repeat(structure.has, np.diff(coverage.begin))
        covered = live & has
        counts = coverage.counts_of
        changed = self.changed
        missing = len(coverage.uncovered)
        without = int((live & ~has).sum())
        return {
            "column": structure.column,
            "structure": structure.name,
            "setting": structure.setting,
            "files": int(covered.sum()),
            "blocks": 0 if counts is None else int(counts.block_count[covered].sum()),
            "row_count": 0 if counts is None else int(counts.row_count[covered].sum()),
            "files_without_entry": missing - changed,
            "files_changed": changed,
            "files_without_structure": without,
            "why": structure.why_not or _in_words(missing - changed, changed, without),
        }

    @cached_property
    def changed(self) -> int:
        """The live files of which the index has an entry of another size or time."""
        catalog, listing = self.opened.catalog, self.opened.listing
        if catalog.snapshot is None or not len(catalog.coverage.uncovered):
            return 0
        paths = listing.paths.take(from_numpy(catalog.coverage.uncovered)).cast(pa.large_string())
        return int(pc.sum(pc.is_in(paths, value_set=catalog.snapshot.files.path)).as_py())


def _in_words(without_entry: int, changed: int, without: int) -> str | None:
    counts = ((without_entry, "not in the index"), (changed, "changed since"), (without, "in segments without it"))
    parts = [f"{_files(count)} {what}" for count, what in counts if count]
    return ", ".join(parts) or None


def _files(count: int) -> str:
    return f"{count:,} file" if count == 1 else f"{count:,} files"


def _structures(opened: OpenedTable) -> Iterator[_Structure]:
    snapshot = opened.catalog.snapshot
    outside = set(opened.listing.columns)
    for column in _leaves([Field((field.name,), field.type) for field in opened.schema if field.name not in outside]):
        if snapshot is None:
            yield _Structure(".".join(column.path), "zone map", None, None, "there is no index")
        else:
            yield from _of_column(opened, snapshot, column)
    for indexed in () if snapshot is None else snapshot.columns:
        if snapshot is not None and is_tuple_column(indexed.path):
            key = ", ".join(shown_key(opened, snapshot))
            has = _has(snapshot.directory(ZONE, Field(indexed.path, indexed.type)))
            yield _Structure(key, "sort key", None, has)


def shown_key(opened: OpenedTable, snapshot: Snapshot) -> Iterator[str]:
    naming = opened.table.naming
    for each in parse_sort_key(snapshot.options.sort_key):
        yield ".".join(each.path if naming is None else naming.in_table.get(each.path, each.path))


def _leaves(fields: Sequence[Field]) -> Iterator[Field]:
    """Columns, and of structs the fields within."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaves([Field((*field.path, child.name), child.type) for child in field.type])
        else:
            yield field


def _of_column(opened: OpenedTable, snapshot: Snapshot, column: Field) -> Iterator[_Structure]:
    naming, name = opened.table.naming, ".".join(column.path)
    own = column if naming is None else naming.field(column)
    if kind_of(column.type) is None:
        yield _Structure(name, "zone map", None, None, f"values of {column.type} have no order")
    elif own is None or snapshot.number_of(own) is None:
        yield _Structure(name, "zone map", None, None, "the index does not have the column, or of another type")
    else:
        yield _Structure(name, "zone map", None, _has(snapshot.directory(ZONE, own)))
        if (pages := _has(snapshot.directory(PAGE, own))) is not None:
            yield _Structure(name, "pages", None, pages)
    hashed = hashed_type(column.type)
    for f, each in enumerate(snapshot.filters):
        if own is not None and each.path == own.path and same_keys(each.type, hashed):
            has = _has_filter(snapshot, f, each)
            yield _Structure(name, "tokens" if each.kind == TOKEN else each.kind, _setting(each), has)


def _setting(each: Filter) -> str | None:
    parts = [f"{each.gram} bytes"] if each.kind == NGRAM else []
    return ", ".join([*parts, "folded"] if each.folded else parts) or None


def _has(directory: Directory | None) -> np.ndarray | None:
    return None if directory is None else directory.size > 0


def _has_filter(snapshot: Snapshot, f: int, each: Filter) -> np.ndarray | None:
    """The segments that have a filter: postings in the segments themselves, the others in slabs."""
    if each.kind == POSTINGS:
        return _has(snapshot.filter_directory(POSTING, f))
    slabs = snapshot.slabs(f)
    if slabs is None:
        return None
    found = np.zeros(len(snapshot.segments), bool)
    found[slabs.segment[slabs.segment >= 0]] = True
    return found


def _opened(table: Table) -> OpenedTable:
    """The table as queries see it. Raises IndexFault where the index cannot be read."""
    return open_snapshot_of(table, dt.UTC, Faults(strict=True))
