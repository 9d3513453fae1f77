"""Build one segment from its files: footers first, then only the columns that footers do not settle.

A column is read if a footer lacks a bound or a null count, if it is floating (Parquet's bounds leave NaN out without
saying so), if it gets a filter, gaps or sums, or if it is one of several sort key columns, whose tuples are bounded. It
is read once, some megabytes at a time, and everything is measured in that pass. Only the sort key's columns are held
for a whole row group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from secateur.index.build.column_sketch import BoundsSketch, ColumnReading, FilterSketch, Sketch, ValuesSketch, measure
from secateur.index.build.options import filters_of
from secateur.index.build.row_sketch import ordered_sketch, row_list_sketch
from secateur.index.build.source_file import OpenFile, SourceFile
from secateur.index.build.sum_sketch import SumSketch
from secateur.index.filters import bloom
from secateur.index.filters.bloom_fragment import BloomFragment, BloomFragmentWriter
from secateur.index.filters.ordered import BlockEntries, ordered_of
from secateur.index.filters.parquet_bloom import NativeFilters, bit_vector
from secateur.index.filters.postings import Postings
from secateur.index.filters.postings_build import postings_of, postings_with_rows
from secateur.index.filters.row_lists import ValueRows
from secateur.index.identity import FileIdentity
from secateur.index.model import (
    BLOOM,
    NGRAM,
    ORDERED,
    POSTINGS,
    BlockTable,
    BuildOptions,
    Filter,
    IndexedColumn,
    Store,
    name_of,
)
from secateur.index.segments.named_columns import expressions_of
from secateur.index.segments.segment_file import SegmentData
from secateur.index.zones import zonemap
from secateur.index.zones.gaps import pays
from secateur.index.zones.page_locations import BlockLocations, concat_locations, of_file, unknown_locations
from secateur.index.zones.page_statistics import PageTable, concat_pages, whole_blocks
from secateur.index.zones.sort_key import SortColumn, parse_sort_key, tuple_column, tuple_zone_map
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.predicate.bound import Operand
from secateur.pruning.predicate.index_paths import is_sum, summed_path
from secateur.pruning.predicate.indexed.indexed_expressions import indexed_expression
from secateur.pruning.predicate.variant_paths import is_variant_path
from secateur.values.combination import same_width
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind

NGRAM_FPR = 0.1  # per gram; a part of a text has several, all of which must be present


@dataclass(frozen=True)
class Recipe:
    """What to keep of every file: columns, filters with their false-positive rates, gaps, pages, page locations."""

    schema: pa.Schema
    columns: Sequence[IndexedColumn]
    filters: Sequence[Filter] = ()
    rates: Sequence[float] = ()  # of the filters
    native: Sequence[Filter] = ()  # taken from the data files where they have them
    gaps: Sequence[IndexedColumn] = ()
    pages: bool = True
    sort_key: Sequence[SortColumn] = ()
    tuples: IndexedColumn | None = None  # the column for the bounds of the sort key's tuples
    page_locations: bool = True
    expressions: Sequence[str] = ()  # that are indexed

    @property
    def operands(self) -> dict[tuple[str, ...], Operand]:
        """The expressions that are computed from columns, by path, bound in the process that does it."""
        bound = (indexed_expression(sql, self.schema) for sql in self.expressions)
        return {expression.field.path: expression.operand for expression in bound if expression.at_path is None}


def recipe(schema: pa.Schema, columns: Sequence[IndexedColumn], options: BuildOptions, blocks: int) -> Recipe:
    """Return the recipe that build options imply for a table of `blocks` blocks.

    It leaves out what the columns no longer allow, as options may be older than their types.
    """
    filters = filters_of(options, schema)
    rate = bloom.rate_for(blocks, options.fpr)
    native = {option.column for option in options.filters if option.native}
    key = parse_sort_key(options.sort_key)
    return Recipe(
        schema,
        columns,
        filters,
        [NGRAM_FPR if filter_.kind == NGRAM and options.fpr is None else rate for filter_ in filters],
        [filter_ for filter_ in filters if filter_.kind == BLOOM and name_of(filter_.path) in native],
        [column for column in columns if name_of(column.path) in options.gaps and kind_of(column.type) is Kind.WORD],
        options.pages,
        key,
        tuple_column(key, schema),
        options.page_locations,
        [expression.sql for expression in expressions_of(options, schema)],
    )


@dataclass(frozen=True)
class FileStatistics:
    """What a segment keeps of one file, except its filters."""

    row_count: np.ndarray
    byte_count: np.ndarray
    zone_maps: Mapping[IndexedColumn, ZoneMap]
    pages: Mapping[IndexedColumn, PageTable]
    page_locations: BlockLocations | None  # None: not requested


@dataclass(frozen=True)
class Assembled:
    """A segment, and the bloom fragments of its filters, by filter number."""

    segment: SegmentData
    fragments: Mapping[int, Sequence[BloomFragment]]


@dataclass
class Collector:
    """The filters of one kind and column over the blocks of a segment, in order."""

    filter: Filter
    is_native: bool
    writer: BloomFragmentWriter
    hashes: list[np.ndarray | None] = field(default_factory=list)  # of postings
    values: list[ValueRows | None] = field(default_factory=list)  # of postings with row lists
    entries: list[BlockEntries | None] = field(default_factory=list)  # of ordered postings

    @property
    def sketch(self) -> Sketch:
        """What the values of every block are added to."""
        if self.filter.kind == ORDERED:
            return ordered_sketch(self.filter, self.entries.append)
        if self.filter.rows:
            return row_list_sketch(self.filter, self.values.append)
        return FilterSketch(self.filter, self.take)

    def take(self, hashes: np.ndarray | None) -> None:
        """Add the hashes of the next block; they must be distinct for postings."""
        if self.filter.kind == POSTINGS:
            self.hashes.append(hashes)
        else:
            self.writer.add(hashes)

    def postings(self) -> Postings:
        """Return the postings of all blocks."""
        return postings_with_rows(self.values) if self.filter.rows else postings_of(self.hashes)


def assemble(
    files: Sequence[FileIdentity], open_file: OpenFile, recipe: Recipe, store: Store, prefix: str
) -> Assembled:
    """Build the segment of some files; bloom fragments are written under names that start with `prefix`.

    Raises InvalidParquet, StalePlan, IndexNotWritable.
    """
    collectors = collectors_of(recipe, store, prefix)
    return assembled([summarise(open_file(file.path), recipe, collectors) for file in files], files, recipe, collectors)


def collectors_of(recipe: Recipe, store: Store, prefix: str) -> list[Collector]:
    """Return a collector for every filter; bloom fragments are written under names that start with `prefix`."""
    return [
        Collector(filter_, filter_ in recipe.native, BloomFragmentWriter(store, f"{prefix}-{f:02d}", rate))
        for f, (filter_, rate) in enumerate(zip(recipe.filters, recipe.rates, strict=True))
    ]


def assembled(
    parts: Sequence[FileStatistics], files: Sequence[FileIdentity], recipe: Recipe, collectors: Sequence[Collector]
) -> Assembled:
    """Build the segment of some files from their statistics. Raises IndexNotWritable."""
    counts = [len(part.row_count) for part in parts]
    blocks = BlockTable(
        np.repeat(np.arange(len(files), dtype=np.int32), counts),
        np.concatenate([np.arange(n, dtype=np.int32) for n in counts]),
        np.concatenate([part.row_count for part in parts]),
        np.concatenate([part.byte_count for part in parts]),
    )
    zone_maps = [_with_gaps(zonemap.concat([p.zone_maps[c] for p in parts]), blocks.row_count) for c in recipe.columns]
    pages = {c: table for c, column in enumerate(recipe.columns) if (table := _pages(parts, column)) is not None}
    by_number = dict(enumerate(collectors))
    postings = {f: c.postings() for f, c in by_number.items() if c.filter.kind == POSTINGS}
    ordered = {f: ordered_of(c.entries) for f, c in by_number.items() if c.filter.kind == ORDERED}
    in_matrices = (f for f in by_number if f not in postings and f not in ordered)
    size_classes = {f: by_number[f].writer.finish() for f in in_matrices}
    page_locations = [part.page_locations for part in parts if part.page_locations is not None]
    laid = concat_locations(page_locations) if recipe.page_locations else None
    segment = SegmentData(files, blocks, recipe.columns, zone_maps, pages, size_classes, postings, laid, ordered)
    return Assembled(segment, {f: by_number[f].writer.fragments for f in size_classes})


def summarise(source: SourceFile, recipe: Recipe, collectors: Sequence[Collector]) -> FileStatistics:
    """Return the statistics of one file; the contents of its filters go to the collectors."""
    operands = recipe.operands
    expressions = [c for c in recipe.columns if c.path in operands]
    sums = {c: SumSketch() for c in recipe.columns if is_sum(c.path)}
    stored = [c for c in recipe.columns if c != recipe.tuples and c not in expressions and c not in sums]
    zone_maps = {c: source.zone_map(c.path, c.type) for c in stored}
    zone_maps |= {c: zonemap.unknown(ordered_kind(c.type), len(source.row_count)) for c in expressions}
    unsettled = [c for c, zone_map in zone_maps.items() if _unsettled(zone_map, c, source.row_count)]
    bounds = {c: BoundsSketch(c, c in recipe.gaps) for c in dict.fromkeys((*unsettled, *recipe.gaps))}
    key = [ValuesSketch() for _ in recipe.sort_key] if recipe.tuples is not None else []
    always = [ColumnReading(column.path, sketch) for column, sketch in bounds.items()]
    always += [ColumnReading(column.path, sketch) for column, sketch in zip(recipe.sort_key, key, strict=False)]
    always += [ColumnReading(summed_path(column.path), sketch) for column, sketch in sums.items()]
    filters = [(c, ColumnReading(c.filter.path, c.sketch), _native(source, c)) for c in collectors]
    tuples = []
    for row_group in range(len(source.row_count)):
        readings = [*always]
        for collector, reading, native in filters:
            bits = None if native is None else native.filters[row_group]
            if native is None or native.encoding is None or bits is None:
                readings.append(reading)
            else:
                collector.writer.add_native(native.encoding.code, np.unpackbits(bit_vector(bits), bitorder="little"))
        measure(source.read, row_group, readings, recipe.schema, operands, source.values_at_path)
        tuples.append([values for sketch in key if (values := sketch.values) is not None])
    zone_maps |= {column: sketch.zone_map(source.row_count) for column, sketch in bounds.items()}
    zone_maps |= {column: sketch.zone_map() for column, sketch in sums.items()}
    with_pages = [c for c in stored if not is_variant_path(c.path)]
    pages = source.pages({c: zone_maps[c] for c in with_pages}) if recipe.pages else {}
    if recipe.tuples is not None:
        rows = [values if len(values) == len(key) else None for values in tuples]
        zone_maps[recipe.tuples] = tuple_zone_map(rows, recipe.sort_key)
    page_locations = of_file(source.page_locations()) if recipe.page_locations else None
    return FileStatistics(source.row_count, source.byte_count, zone_maps, pages, page_locations)


def unknown_statistics(
    row_count: np.ndarray, byte_count: np.ndarray, recipe: Recipe, collectors: Sequence[Collector]
) -> FileStatistics:
    """Return statistics of a file that is gone: only its row groups are known, and filters keep its blocks."""
    n = len(row_count)
    for collector in collectors:
        sketch = collector.sketch
        for _ in range(n):
            sketch.give_up()
    zone_maps = {c: zonemap.unknown(ordered_kind(c.type), n) for c in recipe.columns}
    return FileStatistics(row_count, byte_count, zone_maps, {}, unknown_locations(n) if recipe.page_locations else None)


def _with_gaps(zone_map: ZoneMap, row_count: np.ndarray) -> ZoneMap:
    """Drop the gaps of a zone map unless they rule out enough to be worth their bytes."""
    if zone_map.gaps is None:
        return zone_map
    filled = np.flatnonzero(zone_map.null_count != row_count)
    lower, upper = (side.words[0][filled] for side in (zone_map.lower, zone_map.upper))
    return zone_map if pays(zone_map.gaps.take(filled), lower, upper) else replace(zone_map, gaps=None)


def _native(source: SourceFile, collector: Collector) -> NativeFilters | None:
    """Return the bloom filters inside the file; None if they are not wanted."""
    if not collector.is_native:
        return None
    wanted = collector.filter
    return source.native_filters(wanted.path, wanted.type, collector.writer.fpr)


def _unsettled(zone_map: ZoneMap, column: IndexedColumn, row_count: np.ndarray) -> bool:
    """Whether the footer leaves something open that the data can settle."""
    has_values = zone_map.null_count != row_count
    if is_float(column.type):
        return bool((has_values & (zone_map.nan_count < 0)).any())
    nothing = zonemap.unknown(zone_map.lower.kind, len(zone_map))
    open_bounds = _equal(zone_map.lower, nothing.lower) | _equal(zone_map.upper, nothing.upper)
    return bool((has_values & (open_bounds | (zone_map.null_count < 0))).any())


def _equal(a: Keys, b: Keys) -> np.ndarray:
    a, b = same_width([a, b])
    return np.logical_and.reduce([x == y for x, y in zip(a.words, b.words, strict=True)])


def _pages(parts: Sequence[FileStatistics], column: IndexedColumn) -> PageTable | None:
    """Return the pages of a column over all files; a file without a page index has one page per block.

    Page places are dropped if there are page locations, which contain them.
    """
    if not any(column in part.pages for part in parts):
        return None
    pages = concat_pages([part.pages.get(column) or whole_blocks(part.zone_maps[column]) for part in parts])
    return pages if all(part.page_locations is None for part in parts) else replace(pages, places=None)
