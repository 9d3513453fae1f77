"""Measure a column in one pass over its values, chunk by chunk: bounds and filters, block by block.

A sketch takes the values of a block in chunks; then the block ends, or its values turn out to be unknowable. What it
holds between two blocks is bounded, whatever a row group holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import NotInFile, OldCalendar
from secateur.index.filters.hashing import MOST, DistinctHashes, hash_present
from secateur.index.filters.ngrams import add_grams, add_tokens
from secateur.index.model import POSTINGS, Filter, IndexedColumn
from secateur.index.zones import zonemap
from secateur.index.zones.gaps import MOST_GAPS, Gaps, gap_table, widest_gaps
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.bound import Operand
from secateur.pruning.predicate.bound_walks import fields as fields_of
from secateur.pruning.predicate.variant_paths import is_variant_path
from secateur.pruning.rows.row_values import UnknownValue, known_values, other_texts
from secateur.values.kinds import Kind, kind_of

CHUNK_BYTES = 1 << 26
MOST_SORTED = 1 << 24  # most values of a block that are sorted for their gaps

ReadValues = Callable[[int, tuple[str, ...]], Iterator[RowValues]]  # at a path into VARIANT, in a row group
ReadColumns = Callable[[int, Sequence[pa.Field]], Iterator[pa.RecordBatch]]  # reads columns of a row group
Measured = tuple[pa.Scalar | None, pa.Scalar | None, int, int]  # lower, upper, null count, NaN count


class Sketch(Protocol):
    """Measures the values of one column."""

    def add(self, values: pa.Array) -> None:
        """Add the values of the next rows of the block."""

    def add_others(self, values: pa.Array, rows: np.ndarray) -> None:
        """Add other values that some of the rows added last may have; `rows` are counted from the first of those."""
        self.add(values)

    def end(self) -> None:
        """End the block."""

    def give_up(self) -> None:
        """End the block as unknown, since some of its values cannot be known."""


@dataclass(frozen=True)
class ColumnReading:
    """A sketch and the column it measures."""

    path: tuple[str, ...]
    sketch: Sketch


def measure(
    read: ReadColumns,
    row_group: int,
    readings: Sequence[ColumnReading],
    schema: pa.Schema,
    operands: Mapping[tuple[str, ...], Operand] = MappingProxyType({}),
    values_at_path: ReadValues | None = None,
) -> None:
    """Feed the values of one row group to sketches, reading every top-level column once.

    The columns of expressions, whose `operands` have their paths, are read for each expression again, and VARIANT
    columns for each path into them.
    """
    at_paths = {reading.path for reading in readings if is_variant_path(reading.path)}
    for path in at_paths:
        assert values_at_path is not None, "given wherever paths into VARIANT are measured"
        _measure_path(values_at_path(row_group, path), [item.sketch for item in readings if item.path == path])
    for path, operand in operands.items():
        of_expression = [reading.sketch for reading in readings if reading.path == path]
        if of_expression:
            _measure_expression(read, row_group, of_expression, schema, operand)
    columns = [reading for reading in readings if reading.path not in {*operands, *at_paths}]
    for root in dict.fromkeys(reading.path[0] for reading in columns):
        of_column = [reading for reading in columns if reading.path[0] == root]
        with _unknown_if_one_is([reading.sketch for reading in of_column]):
            for values in _chunks(batch.column(0) for batch in read(row_group, [schema.field(root)])):
                for reading in of_column:
                    reading.sketch.add(nested(values, reading.path[1:]))


def _measure_expression(
    read: ReadColumns, row_group: int, sketches: Sequence[Sketch], schema: pa.Schema, operand: Operand
) -> None:
    """Feed the values of an expression to its sketches; the block is unknown if one of its values is."""
    roots = [schema.field(root) for root in dict.fromkeys(field.path[0] for field in fields_of(operand))]
    with _unknown_if_one_is(sketches):
        for batch in read(row_group, roots):
            rows = pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(roots))
            values = known_values(operand, rows)
            for sketch in sketches:
                sketch.add(values)
            for others in other_texts(operand, rows, values):
                for sketch in sketches:
                    sketch.add_others(*others)


def _measure_path(values: Iterator[RowValues], sketches: Sequence[Sketch]) -> None:
    """Feed the values at a path into VARIANT to sketches; the block is unknown if one of its values is."""
    with _unknown_if_one_is(sketches):
        for part in values:
            if part.unknown.any():
                raise UnknownValue
            for sketch in sketches:
                sketch.add(part.values)


@contextmanager
def _unknown_if_one_is(sketches: Sequence[Sketch]) -> Iterator[None]:
    """End sketches that were fed all values of a block; they give up on it where one of its values is not known."""
    try:
        yield
    except (OldCalendar, NotInFile, UnknownValue):
        for sketch in sketches:
            sketch.give_up()
    else:
        for sketch in sketches:
            sketch.end()


def _chunks(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Join consecutive arrays into fewer, of about :data:`CHUNK_BYTES` each."""
    parts: list[pa.Array] = []
    size = 0
    for values in batches:
        parts.append(values)
        size += values.nbytes
        if size >= CHUNK_BYTES:
            yield pa.concat_arrays(parts)
            parts, size = [], 0
    if parts:
        yield pa.concat_arrays(parts)


def nested(values: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return a field of structs, NULL where an enclosing struct is."""
    for name in path:
        values = pc.struct_field(values, name)
    return values


@dataclass
class ValuesSketch(Sketch):
    """Keeps the values of one block at a time; None where they cannot be known."""

    values: pa.Array | None = None
    _parts: list[pa.Array] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        self._parts.append(values)

    def end(self) -> None:
        self.values = pa.concat_arrays(self._parts) if self._parts else None
        self._parts.clear()

    def give_up(self) -> None:
        self.values = None
        self._parts.clear()


@dataclass
class BoundsSketch(Sketch):
    """Measures exact zone maps, and the gaps between values if requested."""

    column: IndexedColumn
    has_gaps: bool = False
    blocks: list[Measured] = field(default_factory=list)
    gaps: list[Gaps | None] = field(default_factory=list)
    _parts: list[Measured] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        self._parts.append(zonemap.of_values(values, self.column.type))
        if self.has_gaps and self._is_sortable:
            self._values.append(values)

    @property
    def _is_sortable(self) -> bool:
        """Whether few enough values are held to compute gaps; if not, some are missing."""
        return sum(map(len, self._values)) <= MOST_SORTED

    def end(self) -> None:
        self.blocks.append(self._merged())
        whole = pa.concat_arrays(self._values) if self._values and self._is_sortable else None
        self.gaps.append(None if whole is None else widest_gaps(whole, MOST_GAPS))
        self._clear()

    def give_up(self) -> None:
        self.blocks.append((None, None, -1, -1))
        self.gaps.append(None)
        self._clear()

    def _clear(self) -> None:
        self._parts.clear()
        self._values.clear()

    def _merged(self) -> Measured:
        if len(self._parts) == 1:
            return self._parts[0]
        lower, upper, nulls, nans = zip(*self._parts, strict=True) if self._parts else ((), (), (0,), (0,))
        least, greatest = (pa.array(list(side), self._type) for side in (lower, upper))
        return pc.min(least), pc.max(greatest), sum(nulls), sum(nans)

    @property
    def _type(self) -> pa.DataType:
        return pa.binary() if kind_of(self.column.type) is Kind.BYTES else self.column.type

    def zone_map(self, row_count: np.ndarray) -> ZoneMap:
        """Return the zone maps of all blocks so far."""
        lower, upper, nulls, nans = zip(*self.blocks, strict=True) if self.blocks else ((), (), (), ())
        low, high = (pa.array(list(side), self._type) for side in (lower, upper))
        null_count, nan_count = (np.array(side, np.int64) for side in (nulls, nans))
        zone_map = zonemap.from_bounds(self.column.type, low, high, null_count, nan_count, row_count)
        return replace(zone_map, gaps=gap_table(self.gaps, MOST_GAPS)) if self.has_gaps else zone_map


@dataclass
class FilterSketch(Sketch):
    """Passes on the hashes of every block when it ends; None for an unknown block.

    Bloom filters do not need distinct hashes: duplicates are removed only if a block has more than may be held.
    """

    filter: Filter
    take: Callable[[np.ndarray | None], None]
    _hashes: DistinctHashes = field(init=False)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._hashes = DistinctHashes() if self.filter.kind == POSTINGS else DistinctHashes(enough=MOST)

    def add(self, values: pa.Array) -> None:
        add_hashes(self.filter, elements(values), self._hashes)

    def end(self) -> None:
        self.take(self._hashes.distinct() if self.filter.kind == POSTINGS else self._hashes.collected())
        self._begin()

    def give_up(self) -> None:
        self.take(None)
        self._begin()


def elements(values: pa.Array) -> pa.Array:
    """Return what a filter hashes of values: an array's elements, a map's keys, else the values."""
    if pa.types.is_map(values.type):
        return pc.struct_field(values.drop_null().cast(_as_list(values.type)).flatten(), 0)
    return values.flatten() if pa.types.is_list(values.type) else values


def _as_list(type_: pa.DataType) -> pa.DataType:
    """Return the type of a map as a list of its entries; flattening it leaves out what NULL maps hide."""
    return pa.list_(pa.struct([type_.key_field, type_.item_field]))


def add_hashes(kind: Filter, values: pa.Array, distinct: DistinctHashes) -> None:
    """Add what a filter hashes of some values."""
    values = values.cast(kind.type) if values.type != kind.type else values
    match kind.kind:
        case "ngram":
            add_grams(distinct, values, kind.gram, folded=kind.folded)
        case "token":
            add_tokens(distinct, values, folded=kind.folded)
        case _:
            distinct.add(hash_present(values))
