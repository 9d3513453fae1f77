"""Sort keys: the columns by which a table is clustered, and the least and greatest tuple of a block.

Bounds of single columns lose which values occur together: if a block ends one value of the first column and begins the
next, every value of the second seems possible with both. Bounds of the tuples keep the two ends apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import InvalidOption
from secateur.index.model import IndexedColumn, indexed_columns, type_name
from secateur.index.naming import ColumnNaming
from secateur.index.zones.zonemap import ZoneMap, from_bounds
from secateur.pruning.bounds.key_bytes import Component, encode_rows
from secateur.pruning.order import OrderColumn
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.key_ranges import KeyColumn, key_ranges
from secateur.pruning.predicate.nodes import Predicate, quoted_name
from secateur.values.conversion import keys_of
from secateur.values.kinds import Kind, is_float, kind_of, ordered_kind

_PART = r"(?:`(?:[^`]|``)+`|[^\s`.,()]+)"
_SORT_COLUMN = re.compile(
    rf"\s*(?P<name>{_PART}(?:\.{_PART})*)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SortColumn:
    """One column of a sort key, by its path in the table's schema, and its order."""

    path: tuple[str, ...]
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        name = ".".join(part if part.isidentifier() else quoted_name(part) for part in self.path)
        nulls = "" if self.nulls_first != self.descending else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{name}{' DESC' if self.descending else ''}{nulls}"

    def component(self, type_: pa.DataType) -> Component:
        """Return how values of a type are encoded at this place of the key. Raises ValueError for a type without an
        order.
        """
        kind = kind_of(type_)
        if kind is None:
            raise ValueError(f"a {type_} has no order, so {self} cannot be part of a sort key")
        return Component(kind, self.descending, self.nulls_first)


def parse_sort_column(text: str) -> SortColumn:
    """Parse a sort column as in Spark's ORDER BY: ``ts``, ``ts DESC``, ``address.zip ASC NULLS LAST``.

    NULL is the least value unless the text says otherwise: first with ASC, last with DESC. A name with dots, spaces,
    commas or parentheses is put in back-quotes. Raises ValueError for anything else.
    """
    match = _SORT_COLUMN.fullmatch(text)
    if match is None:
        raise InvalidOption(
            f"{text!r} is not a sort column: write a column's name, then ASC or DESC, then NULLS FIRST or NULLS LAST, "
            "both as you like; a name with spaces or dots in back-quotes"
        )
    descending = (match["direction"] or "").upper() == "DESC"
    nulls_first = not descending if match["nulls"] is None else match["nulls"].upper() == "FIRST"
    return SortColumn(split_name(match["name"]), descending, nulls_first)


@lru_cache(maxsize=256)
def parse_sort_key(texts: tuple[str, ...]) -> tuple[SortColumn, ...]:
    """Parse the columns of a sort key; cached, because every query parses those of the index. Raises ValueError."""
    return tuple(map(parse_sort_column, texts))


def tuple_column(key: Sequence[SortColumn], schema: pa.Schema) -> IndexedColumn | None:
    """Return the segment column that holds the bounds of the key's tuples; None for a key of one column.

    Its path begins with an empty name, unlike any column's, and contains everything that the bytes depend on: another
    key, or columns whose keys have changed, make another column.
    """
    if len(key) < 2:
        return None
    types = {column.path: column.type for column in indexed_columns(schema)}
    if any(column.path not in types for column in key):
        return None
    parts = (f"{column!r} {_family(types[column.path])}" for column in key)
    return IndexedColumn(("", *parts), pa.binary())


def _family(type_: pa.DataType) -> str:
    """Return a text that is equal for types with the same keys only (:func:`secateur.values.kinds.same_keys`)."""
    if pa.types.is_decimal128(type_):
        kind = ordered_kind(type_)
        return f"decimal of scale {type_.scale}, {kind.value}"
    if pa.types.is_signed_integer(type_):
        return "integer"
    return "floating" if is_float(type_) else type_name(type_)


def tuple_condition(
    predicate: Predicate,
    key: Sequence[SortColumn],
    columns: Sequence[IndexedColumn],
    schema: pa.Schema,
    naming: ColumnNaming,
) -> Within | None:
    """Return the condition that a predicate implies for the tuples of an index with these columns; None if none.

    `schema` and the key name columns as the index does, the predicate as the table does. Sound: it is TRUE of the tuple
    of every row on which the predicate is TRUE. It says no more than that.
    """
    column = tuple_column(key, schema)
    if column is None or column not in columns:
        return None
    types = {indexed.path: indexed.type for indexed in indexed_columns(schema)}
    paths = [naming.in_table(c.path) for c in key]
    bound = [
        KeyColumn(Field(path, types[c.path]), c.descending, c.nulls_first) for path, c in zip(paths, key, strict=True)
    ]
    ranges = key_ranges(predicate, bound)
    return None if ranges is None else Within(Field(column.path, column.type), ranges, "the sort key")


def tuple_order(
    order: Sequence[OrderColumn],
    key: Sequence[SortColumn],
    columns: Sequence[IndexedColumn],
    schema: pa.Schema,
    naming: ColumnNaming,
) -> OrderColumn | None:
    """Return how the tuples of an index with these columns are ordered if that refines an order; None if it does not.

    It does if the order has the leading columns of the key, each in the key's direction, or each in the other one. A
    single column gains nothing by tuples.
    """
    column = tuple_column(key, schema) if 1 < len(order) <= len(key) else None
    if column is None or column not in columns:
        return None
    key_columns = [(naming.in_table(c.path), c.descending, c.nulls_first) for c in key[: len(order)]]
    for reverse in (False, True):
        if key_columns == [(o.field.path, o.descending != reverse, o.nulls_first != reverse) for o in order]:
            return OrderColumn(Field(column.path, column.type), reverse, nulls_first=False, nullable=False)
    return None


def tuple_zone_map(rows: Sequence[Sequence[pa.Array] | None], key: Sequence[SortColumn]) -> ZoneMap:
    """Return the bounds of the tuples of row groups, from their values of the key's columns; None means unknown."""
    bounds = [None if values is None else tuple_bounds(values, key) for values in rows]
    lower, upper = (pa.array([None if ends is None else ends[i] for ends in bounds], pa.binary()) for i in (0, 1))
    nothing = np.zeros(len(rows), np.int64)
    return from_bounds(pa.binary(), lower, upper, nothing, nothing, np.full(len(rows), -1))


def tuple_bounds(columns: Sequence[pa.Array], sort_columns: Sequence[SortColumn]) -> tuple[bytes, bytes] | None:
    """Return the least and the greatest tuple of one block's rows as bytes; None if it has no rows.

    `columns` are the values of the sort columns, of the table's types, with rows in any order. Exact, and of any
    length: :func:`secateur.index.zones.zonemap.from_bounds` truncates long bounds. Raises ValueError for a type without
    an order.
    """
    components = [column.component(values.type) for column, values in zip(sort_columns, columns, strict=True)]
    if not len(columns[0]):
        return None
    ends = pa.array([_row_at(columns, components, greatest) for greatest in (False, True)], pa.int64())
    least, greatest = encode_rows([values.take(ends) for values in columns], components).to_pylist()
    return least, greatest


def _row_at(columns: Sequence[pa.Array], components: Sequence[Component], greatest: bool) -> int:
    """Return the position of a row with the least or the greatest tuple, narrowing ties column by column."""
    rows: np.ndarray | None = None
    for values, component in zip(columns, components, strict=True):
        candidates = values if rows is None else values.take(pa.array(rows))
        tied = _at_end(candidates, component, greatest)
        rows = tied if rows is None else rows[tied]
        if len(rows) == 1:
            break
    assert rows is not None, "a sort key has a column"
    return int(rows[0])


def _at_end(values: pa.Array, component: Component, greatest: bool) -> np.ndarray:
    """Return the positions of the values that come first, or last, in a component's order; at least one value."""
    if values.null_count and (component.nulls_first != greatest or values.null_count == len(values)):
        return np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))
    by_greatest_key = component.descending != greatest
    if component.kind is Kind.BYTES:
        binary = values.cast(pa.binary())
        extreme = pc.max(binary) if by_greatest_key else pc.min(binary)
        return np.flatnonzero(pc.fill_null(pc.equal(binary, extreme), False).to_numpy(zero_copy_only=False))
    positions = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
    for word in keys_of(values).words:
        candidates = word if len(positions) == len(values) else word[positions]
        positions = positions[candidates == (candidates.max() if by_greatest_key else candidates.min())]
    return positions
