"""Making one segment from its files: footers first, then only the columns that footers do not settle.

A column is read where a footer lacks a bound or a null count, where it is floating (Parquet's bounds leave NaN out,
and do not say so), where it gets a bloom filter, and where it is one of several columns of the sort key, whose tuples
are bounded. One column of one row group is in memory at a time, or the sort key's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import OldCalendar
from secateur.index import bitsliced, zonemap
from secateur.index.model import BlockTable, BuildOptions, IndexedColumn
from secateur.index.pages import PageTable, concat_pages, whole_blocks
from secateur.index.segment import BlockFilters, SegmentData
from secateur.index.sort_key import SortColumn, parse_sort_key, tuple_column, tuple_zone_map
from secateur.index.zonemap import ZoneMap
from secateur.values import Keys, Kind, is_float, kind_of, same_width

FileIdentity = tuple[str, int, int]  # path below the table, size, modified (ns)


class SourceFile(Protocol):
    """An open file of the table, as the build sees it."""

    @property
    def row_count(self) -> np.ndarray: ...

    @property
    def byte_count(self) -> np.ndarray: ...

    @property
    def schema(self) -> pa.Schema: ...

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap: ...

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]: ...

    def read(self, row_group: int, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]: ...


OpenFile = Callable[[str], SourceFile]


@dataclass(frozen=True)
class FileStatistics:
    """What a segment keeps of one file."""

    row_count: np.ndarray
    byte_count: np.ndarray
    zone_maps: Mapping[IndexedColumn, ZoneMap]
    hashes: Mapping[IndexedColumn, Sequence[bitsliced.Hashes | None]]  # per row group
    pages: Mapping[IndexedColumn, PageTable]


@dataclass(frozen=True)
class Recipe:
    """What to keep of every file: the columns, those with bloom filters and their false-positive rate."""

    schema: pa.Schema
    columns: Sequence[IndexedColumn]
    bloom: Sequence[IndexedColumn]
    fpr: float
    pages: bool
    sort_key: Sequence[SortColumn] = ()
    tuples: IndexedColumn | None = None  # under which the bounds of the sort key's tuples are kept


def recipe(schema: pa.Schema, columns: Sequence[IndexedColumn], options: BuildOptions, blocks: int) -> Recipe:
    """The recipe that build options mean for a table of so many blocks."""
    bloom = [column for column in columns if ".".join(column.path) in options.bloom]
    key = parse_sort_key(options.sort_key)
    tuples = tuple_column(key, schema)
    return Recipe(schema, columns, bloom, bitsliced.rate_for(blocks, options.fpr), options.pages, key, tuples)


def assemble(files: Sequence[FileIdentity], open_file: OpenFile, recipe: Recipe) -> SegmentData:
    """The segment of some files. Raises InvalidParquet, StalePlan."""
    parts = [summarise(open_file(path), recipe) for path, _, _ in files]
    counts = [len(part.row_count) for part in parts]
    blocks = BlockTable(
        np.repeat(np.arange(len(files), dtype=np.int32), counts),
        np.concatenate([np.arange(n, dtype=np.int32) for n in counts]),
        np.concatenate([part.row_count for part in parts]),
        np.concatenate([part.byte_count for part in parts]),
    )
    zone_maps = [zonemap.concat([part.zone_maps[column] for part in parts]) for column in recipe.columns]
    numbers = {column: c for c, column in enumerate(recipe.columns)}
    filters = {numbers[column]: _filters(parts, column, recipe.fpr) for column in recipe.bloom}
    pages = {c: table for column, c in numbers.items() if (table := _pages(parts, column)) is not None}
    return SegmentData(files, blocks, recipe.columns, zone_maps, pages, filters)


def summarise(source: SourceFile, recipe: Recipe) -> FileStatistics:
    """The statistics of one file."""
    zone_maps: dict[IndexedColumn, ZoneMap] = {}
    hashes: dict[IndexedColumn, list[bitsliced.Hashes | None]] = {}
    for column in recipe.columns:
        if column == recipe.tuples:
            continue
        zone_map = source.zone_map(column.path, column.type)
        with_filter = column in recipe.bloom
        if with_filter or _unsettled(zone_map, column, source.row_count):
            values = (_values(source, row_group, column, recipe.schema) for row_group in range(len(source.row_count)))
            zone_map, hashes[column] = _measure(values, column, source.row_count, with_filter)
        zone_maps[column] = zone_map
    pages = source.pages(zone_maps) if recipe.pages else {}
    if recipe.tuples is not None:
        zone_maps[recipe.tuples] = _tuples(source, recipe)
    return FileStatistics(source.row_count, source.byte_count, zone_maps, hashes, pages)


def _tuples(source: SourceFile, recipe: Recipe) -> ZoneMap:
    """The bounds of the sort key's tuples, for which all its columns are read."""
    own = {column.path: column for column in recipe.columns}
    rows: list[list[pa.Array] | None] = []
    for row_group in range(len(source.row_count)):
        values = [_values(source, row_group, own[column.path], recipe.schema) for column in recipe.sort_key]
        known = [each for each in values if each is not None]
        rows.append(known if len(known) == len(values) else None)
    return tuple_zone_map(rows, recipe.sort_key)


def _unsettled(zone_map: ZoneMap, column: IndexedColumn, row_count: np.ndarray) -> bool:
    """Whether the footer leaves something open that the data can tell."""
    has_values = zone_map.null_count != row_count
    if is_float(column.type):
        return bool((has_values & (zone_map.nan_count < 0)).any())
    nothing = zonemap.unknown(zone_map.lower.kind, len(zone_map))
    open_bounds = _equal(zone_map.lower, nothing.lower) | _equal(zone_map.upper, nothing.upper)
    return bool((has_values & (open_bounds | (zone_map.null_count < 0))).any())


def _equal(a: Keys, b: Keys) -> np.ndarray:
    a, b = same_width([a, b])
    return np.logical_and.reduce([x == y for x, y in zip(a.words, b.words, strict=True)])


def _values(source: SourceFile, row_group: int, column: IndexedColumn, schema: pa.Schema) -> pa.Array | None:
    """The values of one column of one row group, NULL where a struct on the way is; None where only Spark has them."""
    root = schema.field(column.path[0])
    chunks = []
    try:
        for batch in source.read(row_group, [root]):
            values = batch.column(0)
            for name in column.path[1:]:
                values = pc.struct_field(values, name)
            chunks.append(values)
    except OldCalendar:
        return None
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.type)


def _measure(
    row_groups: Iterator[pa.Array | None], column: IndexedColumn, row_count: np.ndarray, with_filter: bool
) -> tuple[ZoneMap, list[bitsliced.Hashes | None]]:
    """Exact zone maps from the data, and the hashes of the distinct values where a filter is wanted."""
    measured: list[tuple[pa.Scalar | None, pa.Scalar | None, int, int]] = []
    hashes = []
    for values in row_groups:
        measured.append((None, None, -1, -1) if values is None else zonemap.of_values(values, column.type))
        if with_filter:
            hashes.append(None if values is None else bitsliced.hash_values(values))
    lower, upper, null_count, nan_count = zip(*measured, strict=True) if measured else ((), (), (), ())
    bound_type = pa.binary() if kind_of(column.type) is Kind.BYTES else column.type
    low, high = (pa.array(list(side), bound_type) for side in (lower, upper))
    nulls, nans = (np.array(side, np.int64) for side in (null_count, nan_count))
    return zonemap.from_bounds(column.type, low, high, nulls, nans, row_count), hashes


def _filters(parts: Sequence[FileStatistics], column: IndexedColumn, fpr: float) -> BlockFilters:
    hashes = [block for part in parts for block in part.hashes[column]]
    probes = bitsliced.probes_for(fpr)
    log2_bits = [-1 if block is None else bitsliced.log2_bits_for(len(block.first), probes) for block in hashes]
    filters = [
        None if block is None else bitsliced.build_filter(block, probes, bits)
        for block, bits in zip(hashes, log2_bits, strict=True)
    ]
    return BlockFilters(np.array(log2_bits, np.int8), filters, probes)


def _pages(parts: Sequence[FileStatistics], column: IndexedColumn) -> PageTable | None:
    """The pages of a column over all files; a file without a page index has one page per block."""
    if not any(column in part.pages for part in parts):
        return None
    return concat_pages([part.pages.get(column) or whole_blocks(part.zone_maps[column]) for part in parts])
