"""Compute what the index covers for every column and structure, and why the rest is not covered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.index.build.options import hashed_type
from secateur.index.model import NGRAM, ORDERED, POSTINGS, Filter, FilterOption, is_tuple_column, name_of
from secateur.index.segments.named_columns import called_in_table, expressions_of
from secateur.index.segments.segment_file import ORDERED_POSTING, PAGE, PLACE, POSTING, SIZE_CLASS, ZONE
from secateur.index.segments.segment_table import Directory
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones.sort_key import parse_sort_key
from secateur.io.scan.opened_table import OpenedTable, opened_strictly
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.pruning.aggregates.sums import is_summed, kept_sum
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.variant_paths import is_variant
from secateur.pruning.report import counted
from secateur.values.kinds import kind_of, same_keys

if TYPE_CHECKING:
    from secateur.io.tables.open import Source

_COVERAGE = pa.schema(
    [
        ("column", pa.string()),
        ("structure", pa.string()),
        ("setting", pa.string()),
        ("files", pa.int64()),
        ("blocks", pa.int64()),
        ("row_count", pa.int64()),
        ("bytes", pa.int64()),
        ("files_without_entry", pa.int64()),
        ("files_changed", pa.int64()),
        ("files_without_structure", pa.int64()),
        ("why", pa.string()),
    ]
)


@dataclass(frozen=True)
class Covered:
    """The coverage of a column by one structure, over the live files."""

    column: str
    structure: (
        str  # "zone map", "pages", "sum", "bloom", "postings", "ordered postings", "ngram", "tokens" or "sort key"
    )
    setting: str | None
    files: int
    blocks: int
    row_count: int
    bytes: int  # of index files in the store
    files_without_entry: int
    files_changed: int
    files_without_structure: int
    why: str | None  # reason for missing coverage


def coverage(table: Table | Source) -> pa.Table:
    """Return how much of the live files the index covers, per column and structure, and why not the rest.

    Every column of the files has a row for its zone maps, and rows for pages, sums, bloom filters, postings, n-grams
    and tokens if the index has some; tuples of the sort key have one row. Live files are not covered if they have no
    entry in the index, were changed since it was built, or lie in segments without the structure (because they were
    written before it was requested). Whether gaps or a filter of a block were left out because they would not pay is
    not reported.

    Returns
    -------
    pa.Table
        One row per column and structure. `files`, `blocks` and `row_count`: what is covered; `bytes`: of index files
        in the store; `why`: the reason for missing coverage, null if everything is covered.
    """
    table = as_table(table)
    return pa.Table.from_pylist([asdict(structure) for structure in covered(opened_strictly(table))], _COVERAGE)


def covered(opened: OpenedTable) -> list[Covered]:
    """Return the rows of :func:`coverage` as values."""
    measure = _Coverage(opened)
    return [measure.of(structure) for structure in _structures(opened)]


def not_covered(opened: OpenedTable) -> dict[tuple[str, str], str | None]:
    """Return for every column and structure of the index why live files are not covered; None if all are.

    Includes zone maps that the index lacks.
    """
    measure = _Coverage(opened)
    structures = (structure for structure in _structures(opened) if structure.has is not None or structure.why_not)
    return {(structure.column, structure.name): measure.why(structure) for structure in structures}


def columns_with_gaps(opened: OpenedTable) -> frozenset[str]:
    """Return the table's names of the columns for which the index was asked to keep gaps."""
    snapshot, naming = opened.catalog.snapshot, opened.table.naming
    if snapshot is None:
        return frozenset()
    options = called_in_table(snapshot.options, naming)
    return frozenset(options.gaps)


@dataclass(frozen=True)
class _Structure:
    """One structure of a column, and the segments that have it; None if the index cannot have it."""

    column: str
    name: str
    setting: str | None
    has: np.ndarray | None  # bool over segments
    size: Callable[[], int] = int  # bytes in the store
    why_not: str = ""


@dataclass(frozen=True)
class _Coverage:
    """The live files by their coverage in the index."""

    opened: OpenedTable

    def of(self, structure: _Structure) -> Covered:
        """Return the coverage of a structure."""
        of_live, has = self.opened.catalog.coverage.of_segments, self._has(structure)
        files, blocks, rows, _ = of_live[:, has].sum(axis=1).tolist()
        return Covered(
            column=structure.column,
            structure=structure.name,
            setting=structure.setting,
            files=files,
            blocks=blocks,
            row_count=rows,
            bytes=structure.size(),
            files_without_entry=self.missing - self.changed,
            files_changed=self.changed,
            files_without_structure=int(of_live[0, ~has].sum()),
            why=self.why(structure),
        )

    def why(self, structure: _Structure) -> str | None:
        """Return why coverage is incomplete; None if it is complete."""
        without = int(self.opened.catalog.coverage.of_segments[0, ~self._has(structure)].sum())
        return structure.why_not or _in_words(self.missing - self.changed, self.changed, without)

    def _has(self, structure: _Structure) -> np.ndarray:
        """Return which segments have the structure: bool."""
        segments = self.opened.catalog.coverage.of_segments.shape[1]
        return np.zeros(segments, bool) if structure.has is None else structure.has

    @property
    def missing(self) -> int:
        """The live files without an index entry of their identity."""
        return len(self.opened.catalog.coverage.uncovered)

    @cached_property
    def changed(self) -> int:
        """The live files whose index entry has another size or time."""
        catalog, listing = self.opened.catalog, self.opened.listing
        if catalog.snapshot is None or not len(catalog.coverage.uncovered):
            return 0
        paths = listing.paths.take(from_numpy(catalog.coverage.uncovered)).cast(pa.large_string())
        return int(catalog.snapshot.segment_files.holds(paths).sum())


def _in_words(without_entry: int, changed: int, without: int) -> str | None:
    counts = ((without_entry, "not in the index"), (changed, "changed since"), (without, "in segments without it"))
    parts = [f"{counted(count, 'file')} {what}" for count, what in counts if count]
    return ", ".join(parts) or None


def _structures(opened: OpenedTable) -> Iterator[_Structure]:
    snapshot = opened.catalog.snapshot
    outside = set(opened.listing.columns)
    for column in _leaves([Field((field.name,), field.type) for field in opened.schema if field.name not in outside]):
        if snapshot is None:
            yield _Structure(".".join(column.path), "zone map", None, None, why_not="there is no index")
        else:
            yield from _of_column(opened, snapshot, column)
    if snapshot is not None:
        for expression in expressions_of(called_in_table(snapshot.options, opened.table.naming), opened.schema):
            yield from _of_column(opened, snapshot, expression.field)
    for indexed in () if snapshot is None else snapshot.columns:
        if snapshot is not None and is_tuple_column(indexed.path):
            key = ", ".join(sort_key_names(opened, snapshot))
            directory = snapshot.directory(ZONE, Field(indexed.path, indexed.type))
            yield _Structure(key, "sort key", None, _has(directory), partial(_bytes, directory))


def sort_key_names(opened: OpenedTable, snapshot: Snapshot) -> Iterator[str]:
    naming = opened.table.naming
    for column in parse_sort_key(snapshot.options.sort_key):
        yield ".".join(naming.in_table(column.path))


def _leaves(fields: Sequence[Field]) -> Iterator[Field]:
    """Yield columns and, for structs, their fields; not those of a VARIANT, which is a value to Spark."""
    for field in fields:
        if pa.types.is_struct(field.type) and is_variant(field.type):
            continue
        if pa.types.is_struct(field.type):
            yield from _leaves([Field((*field.path, child.name), child.type) for child in field.type])
        else:
            yield field


def _of_column(opened: OpenedTable, snapshot: Snapshot, column: Field) -> Iterator[_Structure]:
    naming, name = opened.table.naming, name_of(column.path)
    stored = naming.field(column)
    if kind_of(column.type) is None:
        yield _Structure(name, "zone map", None, None, why_not=f"values of {column.type} have no order")
    elif stored is None or snapshot.number_of(stored) is None:
        yield _Structure(name, "zone map", None, None, why_not="the index lacks the column, or has another type")
    else:
        zones, pages = snapshot.directory(ZONE, stored), snapshot.directory(PAGE, stored)
        yield _Structure(name, "zone map", None, _has(zones), partial(_bytes, zones))
        if pages is not None:
            size = partial(_bytes, pages, snapshot.directory(PLACE, stored))
            yield _Structure(name, "pages", None, _has(pages), size)
    if stored is not None and is_summed(column.type):
        sums = snapshot.directory(ZONE, kept_sum(stored))
        if sums is not None:
            yield _Structure(name, "sum", None, _has(sums), partial(_bytes, sums))
    hashed = hashed_type(column.type)
    for f, filter_ in enumerate(snapshot.filters):
        if stored is not None and filter_.path == stored.path and same_keys(filter_.type, hashed):
            has, size = _has_filter(snapshot, f, filter_), partial(_filter_bytes, opened, snapshot, f, filter_)
            yield _Structure(name, STRUCTURES.get(filter_.kind, filter_.kind), setting_of(filter_), has, size)


def setting_of(filter_: Filter | FilterOption) -> str | None:
    """Return how a filter differs from others of its kind; None where it cannot."""
    parts = [f"{filter_.gram} bytes"] if filter_.kind == NGRAM else ["rows"] if filter_.rows else []
    return ", ".join([*parts, "folded"] if filter_.folded else parts) or None


def _has(directory: Directory | None) -> np.ndarray | None:
    return None if directory is None else directory.size > 0


def _bytes(*directories: Directory | None) -> int:
    return sum(int(directory.size.sum()) for directory in directories if directory is not None)


def _filter_bytes(opened: OpenedTable, snapshot: Snapshot, f: int, filter_: Filter) -> int:
    """Return the bytes of a filter: its chunks plus the matrices of postings, or the bloom matrix files."""
    if filter_.kind == POSTINGS:
        postings = opened.catalog.memory.postings(f, np.arange(len(snapshot.segments)))
        rows = sum(stored.stored_bytes for stored in postings if stored is not None)
        return _bytes(snapshot.filter_directory(POSTING, f)) + rows
    if filter_.kind == ORDERED:
        ordered = opened.catalog.memory.ordered(f, np.arange(len(snapshot.segments)))
        pages = sum(stored.stored_bytes for stored in ordered if stored is not None)
        return _bytes(snapshot.filter_directory(ORDERED_POSTING, f)) + pages
    bloom_matrices = snapshot.bloom_matrices(f)
    return _bytes(snapshot.filter_directory(SIZE_CLASS, f)) + (
        0 if bloom_matrices is None else int(bloom_matrices.file_size.sum())
    )


def _has_filter(snapshot: Snapshot, f: int, filter_: Filter) -> np.ndarray | None:
    """Return the segments that have a filter: postings are in the segments, other filters in bloom matrices."""
    if filter_.kind == POSTINGS:
        return _has(snapshot.filter_directory(POSTING, f))
    if filter_.kind == ORDERED:
        return _has(snapshot.filter_directory(ORDERED_POSTING, f))
    bloom_matrices = snapshot.bloom_matrices(f)
    if bloom_matrices is None:
        return None
    has = np.zeros(len(snapshot.segments), bool)
    has[bloom_matrices.segment[bloom_matrices.segment >= 0]] = True
    return has
